"""Values that the nodes of a KRaft quorum print: their own states, requests for votes, ids of snapshots."""

from __future__ import annotations

import re
from typing import Final

from ingest.shapes.values import Fields, searched

_name: Final = searched(r"\A(?P<quorum_state>\w+?)(?:State)?(?:\(|\Z)")
_epoch: Final = searched(r"\bepoch=(?P<quorum_epoch>\d+)")
#: A leader names itself (by ``localId``, since 3.9 ``localReplicaKey``, since 4.1 ``localVoterNode``); others whom they
#: follow, where they know one.
_leader: Final = searched(
    r"\ALeader\w*\(local(?:Id=|ReplicaKey=ReplicaKey\(id=|VoterNode=VoterNode\(voterKey=ReplicaKey\(id=)(?P<quorum_leader>\d+)",
    r"\bleader(?:Id)?=(?:OptionalInt\[)?(?P<quorum_leader>\d+)",
)
_voted: Final = searched(r"\bvoted(?:Key|Id)=(?:Optional\[)?(?:ReplicaKey\(id=)?(?P<voted_id>\d+)")
_high_watermark: Final = searched(
    r"\bhighWatermark=Optional\[LogOffsetMetadata\(offset=(?P<metadata_high_watermark>\d+)"
)
_candidate: Final = searched(r"Epoch=\d+, (?:replicaId|candidateId)=(?P<candidate_id>\d+)")
_voters: Final = searched(r"\bvoters=\[(?P<quorum_voters>\d+(?:, \d+)*)\]")
_log_end: Final = searched(
    r"\blastOffsetEpoch=(?P<last_epoch>\d+), lastOffset=(?P<log_end_offset>\d+)(?:, preVote=(?P<is_pre_vote>\w+))?"
)
_OFFSET_AND_EPOCH: Final = re.compile(r"offset=(\d+), epoch=(\d+)", re.ASCII)


def state(text: str) -> Fields:
    """``FollowerState(fetchTimeoutMs=2000, epoch=5, leader=1, ...)`` of any release (``EpochState``): its name without
    *State*, epoch, leader, vote, high watermark and voters, as far as it has them."""
    fields: dict[str, str] = {}
    for read in (_name, _epoch, _leader, _voted, _high_watermark, _voters):
        fields |= read(text)
    return fields


def previous_state(text: str) -> Fields:
    """The same of the state before: its name and epoch; ``null``, with which a node begins, is ``is_first_state``."""
    if text == "null":
        return {"is_first_state": "true"}
    return {f"previous_{name}": value for name, value in {**_name(text), **_epoch(text)}.items()}


def vote_request(text: str) -> Fields:
    """``VoteRequestData(...)``: who asks, up to where its log goes, and since 4.0 whether it only asks beforehand."""
    return {**_candidate(text), **_log_end(text)}


def snapshot(text: str) -> str | None:
    """``00000000000000000044-0000000003`` and ``OffsetAndEpoch(offset=44, epoch=3)`` become the first."""
    found = _OFFSET_AND_EPOCH.search(text)
    return text if found is None else f"{found[1].zfill(20)}-{found[2].zfill(10)}"
