"""A node's ``quorum-state``: the epoch, leader and vote that it must not forget (``FileQuorumStateStore``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ingest.readers.capture_lines.json_lines import objects
from ingest.readers.metadata_log.record_types import NO_ID
from ingest.readers.work import Kept, Rejected, WorkItem

#: What every version of the file has.
KEYS: Final = frozenset({"leaderId", "leaderEpoch", "votedId", "data_version"})
_NOBODY: Final = -1


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The one line of the file."""
    for place, entry in objects(item, source):
        if isinstance(entry, str):
            yield Rejected(place, entry)
        elif not set(entry) >= KEYS or not all(_is_number(entry[key]) for key in KEYS):
            yield Rejected(place, "no quorum-state: it has not the numbers " + ", ".join(sorted(KEYS)))
        else:
            yield Kept(place, _values(entry))


def _values(entry: dict[str, Any]) -> dict[str, Any]:
    voters = entry.get("currentVoters")
    ids = [voter.get("voterId") for voter in voters if isinstance(voter, dict)] if isinstance(voters, list) else None
    directory = entry.get("votedDirectoryId")
    return {
        "leader_id": _known(entry["leaderId"]),
        "leader_epoch": entry["leaderEpoch"],
        "voted_id": _known(entry["votedId"]),
        "voted_directory_id": directory if isinstance(directory, str) and directory != NO_ID else None,
        "voter_ids": None if ids is None else sorted(id_ for id_ in ids if _is_number(id_)),
        "data_version": entry["data_version"],
    }


def _known(id_: int) -> int | None:
    return None if id_ == _NOBODY else id_


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31
