"""The requests that change a quorum's voters (KIP-853), which kafka-python does not have: their fields in JSON of
Kafka's form, which its own classes of messages are made of."""

from __future__ import annotations

import base64
from typing import Any, Final
from uuid import UUID

from kafka.protocol.api_message import ApiMessage


class AddRaftVoterRequest(ApiMessage, load_json=__name__): ...  # type: ignore[misc,call-arg]


class AddRaftVoterResponse(ApiMessage, load_json=__name__): ...  # type: ignore[misc,call-arg]


class RemoveRaftVoterRequest(ApiMessage, load_json=__name__): ...  # type: ignore[misc,call-arg]


class RemoveRaftVoterResponse(ApiMessage, load_json=__name__): ...  # type: ignore[misc,call-arg]


#: DUPLICATE_VOTER, VOTER_NOT_FOUND: it is done already, by a request whose answer was lost.
_DONE: Final = (126, 127)
_TIMEOUT_MS: Final = 4_000


def adding(voter_id: int, directory_id: str, address: tuple[str, int]) -> Any:
    listener = AddRaftVoterRequest.Listener(version=0, name="CONTROLLER", host=address[0], port=address[1])
    return AddRaftVoterRequest(
        version=0,
        cluster_id=None,
        timeout_ms=_TIMEOUT_MS,
        voter_id=voter_id,
        voter_directory_id=_uuid(directory_id),
        listeners=[listener],
    )


def removing(voter_id: int, directory_id: str) -> Any:
    return RemoveRaftVoterRequest(version=0, cluster_id=None, voter_id=voter_id, voter_directory_id=_uuid(directory_id))


def error_of(response: Any) -> int:
    """Kafka's code of what is wrong with an answer; 0 where the voters are as they were asked to be."""
    return 0 if response.error_code in _DONE else int(response.error_code)


def _uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
