"""The offset with which a follower's fetcher was added: of which of its own offsets that is, by version.

ReplicaManager.makeFollowers gives the fetcher the follower's log end offset up to 1.0, its high watermark from 1.1 on
(KAFKA-5163), and from 2.8 on (initialFetchOffset, KAFKA-10554) its log end offset again, where the inter-broker
protocol is 2.7 or later and the log knows an epoch; else its high watermark. What the line prints was read before the
first fetch. A fetcher that is added again from the same leader, as when ``num.replica.fetchers`` is changed (since 1.1,
AbstractFetcherManager.resizeThreadPool), goes on from where the old one was: that is at most the log's end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconstruct.cluster.settings import Configuration, truncates_on_fetch
from reconstruct.model.versions import (
    FETCHES_BEGIN_AT_HIGH_WATERMARK_SINCE,
    FETCHES_BEGIN_AT_LOG_END_SINCE,
    VersionRange,
)
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import OffsetEvidence, OffsetObservation, ReplicaEvent, ReplicaEventKind

_ROLES = (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS, ReplicaEventKind.STARTED, ReplicaEventKind.DELETED)


def with_fetch_offsets(
    evidence: OffsetEvidence, version: VersionRange, configurations: Mapping[int, Configuration]
) -> OffsetEvidence:
    """Each fetch offset as the sighting that it is in a cluster of ``version``; those that may be of either are left
    out.

    ``configurations`` by broker, where they are known: whether its inter-broker protocol was 2.7 or later.
    """
    if all(observation.offset_kind != oe.FETCH_OFFSET for observation in evidence.observations):
        return evidence
    result = []
    for observation in evidence.observations:
        if observation.offset_kind != oe.FETCH_OFFSET:
            result.append(observation)
            continue
        own = configurations.get(observation.replica_id)
        read = _read(
            observation, evidence, version, None if own is None else truncates_on_fetch(own, observation.observed_at)
        )
        if read is not None:
            result.append(read)
    return replace(evidence, observations=result)


def _read(
    observation: OffsetObservation, evidence: OffsetEvidence, version: VersionRange, is_truncating: bool | None
) -> OffsetObservation | None:
    if version.is_before(FETCHES_BEGIN_AT_HIGH_WATERMARK_SINCE):
        return replace(observation, offset_kind=oe.LOG_END_OFFSET)
    is_again = _is_added_again(observation, evidence)
    if version.is_before(FETCHES_BEGIN_AT_LOG_END_SINCE) or (
        version.is_since(FETCHES_BEGIN_AT_LOG_END_SINCE) and is_truncating is False
    ):
        is_high_watermark = not is_again and version.is_since(FETCHES_BEGIN_AT_HIGH_WATERMARK_SINCE)
        return replace(observation, offset_kind=oe.HIGH_WATERMARK) if is_high_watermark else None
    if version.may_be_before(FETCHES_BEGIN_AT_LOG_END_SINCE):
        return None
    is_exact = not is_again and is_truncating is True and _knows_epoch(observation, evidence)
    return replace(observation, offset_kind=oe.LOG_END_OFFSET, is_minimum=not is_exact)


def _is_added_again(observation: OffsetObservation, evidence: OffsetEvidence) -> bool:
    """Whether the replica fetched from this leader already, by what its log says before this line."""
    events = evidence.events_of(observation.replica_id, *_ROLES)
    own = next((e for e in events if e.evidence_id == observation.evidence_id), None)
    before = [event for event in events if event is not own and event.at <= observation.observed_at]
    last = max(before, key=lambda event: event.at, default=None)
    return (
        own is not None
        and last is not None
        and (last.kind, last.leader) == (ReplicaEventKind.FOLLOWS, own.leader)
        and own.leader is not None
    )


def _knows_epoch(observation: OffsetObservation, evidence: OffsetEvidence) -> bool:
    """Whether the log has an epoch: its lineage has one that begins below this offset, and no cut removed it since."""
    begins = [
        entry.offset
        for entry in evidence.observations
        if (entry.replica_id, entry.offset_kind) == (observation.replica_id, oe.EPOCH_START)
    ]
    cuts = _cuts_after(observation, evidence.events)
    return any(begin < min((observation.offset, *cuts)) for begin in begins)


def _cuts_after(observation: OffsetObservation, events: Sequence[ReplicaEvent]) -> list[int]:
    return [
        event.offset
        for event in events
        if (event.replica_id, event.kind) == (observation.replica_id, ReplicaEventKind.TRUNCATED)
        and event.offset is not None
        and event.at >= observation.observed_at - oe.LINE_TO_ACT_US
    ]
