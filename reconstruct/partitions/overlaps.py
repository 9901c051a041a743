"""Two brokers acting as leader of one partition at once, at two leader epochs: how long a deposed leader went on.

A deposed leader learns of it by a request only; until then it accepts writes with acks=0 and acks=1, and answers reads
of what it holds (KIP-101, KIP-320). What it accepted that its followers had not fetched is cut off when it follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.partitions.evidence import METADATA_PARTITION, Evidence
from reconstruct.partitions.roles import FOLLOWER, LEADER, Role
from reconstruct.time.intervals import Interval
from reconstruct.time.spans import within

BECAME_FOLLOWER: Final = "became_follower"
ELECTED_AGAIN: Final = "elected_again"
REPLICA_STOPPED: Final = "replica_stopped"
PROCESS_ENDED: Final = "process_ended"
_SAYS_ITS_ROLE: Final = (
    EventType.LEADER_EPOCH_STARTED,
    EventType.BECOME_LEADER_SKIPPED,
    EventType.BECOME_FOLLOWER_SKIPPED,
)
#: Within so long of removing fetchers a broker says what it does from then on: µs.
_AT_ONCE_US: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class LeadershipOverlap:
    """From ``start`` on ``leader`` acted at its leader epoch while ``deposed`` still acted at a lower one.

    Instants are µs since the epoch, each by the clock of its broker, corrected. ``end`` is None where nothing says when
    the deposed one stopped; after ``process_ended`` it is the latest possible, the end of the registration that a
    controlled shutdown gives up, and None where the process died.
    """

    deposed: int
    deposed_leader_epoch: int
    leader: int
    leader_epoch: int
    start: int
    end: int | None
    ended_by: str | None
    evidence: tuple[str, ...]


def leadership_overlaps(
    roles: Mapping[int, Sequence[Interval[Role]]],
    facts: Sequence[Evidence],
    cluster: ClusterView,
) -> list[LeadershipOverlap]:
    """One for each (broker, leader epoch) that outlasted the begin of a later one, by what the brokers' own logs show.

    A broker that just stops logging does not count as having gone on: it must have written something after the later
    leader's start, in the same process.
    """
    led = [
        (broker_id, interval, following)
        for broker_id, timeline in sorted(roles.items())
        for interval, following in zip(timeline, [*timeline[1:], None], strict=True)
        if interval.value.role == LEADER and interval.value.leader_epoch is not None
    ]
    found: dict[tuple[int, int], LeadershipOverlap] = {}
    is_of_quorum = any(fact.kind == METADATA_PARTITION for fact in facts)
    for deposed, old, following in led:
        later = [
            (new.value.leader_epoch or 0, leader, new)
            for leader, new, _ in led
            if leader != deposed and (new.value.leader_epoch or 0) > (old.value.leader_epoch or 0)
        ]
        begun = [entry for entry in later if old.end is None or entry[2].start < old.end]
        if not begun:
            continue
        epoch, leader, new = min(begun, key=lambda entry: (entry[0], entry[2].start, entry[1]))
        start = max(new.start, old.start)
        stopped = _given_up_at(deposed, old, facts) if is_of_quorum else None
        if stopped is not None and stopped <= start:
            continue
        ended_by = _ended_by(following, {record_id for _, record_id in cluster.process_starts.get(deposed, ())})
        if not _is_alive_after(deposed, start, old.end, facts, ended_by):
            continue
        evidence = (*new.evidence, *old.evidence, *(following.evidence if following is not None else ()))
        old_epoch = old.value.leader_epoch or 0
        end = _shut_down_at(cluster, deposed, start, old.end) if ended_by == PROCESS_ENDED else old.end
        if stopped is not None:
            end, ended_by = stopped, REPLICA_STOPPED
        overlap = LeadershipOverlap(
            deposed, old_epoch, leader, epoch, start, end, ended_by, tuple(dict.fromkeys(evidence))
        )
        found[deposed, old_epoch] = overlap
    return sorted(found.values(), key=lambda overlap: (overlap.start, overlap.deposed, overlap.leader_epoch))


def leads_at(
    roles: Mapping[int, Sequence[Interval[Role]]],
    facts: Sequence[Evidence],
    cluster: ClusterView,
    broker_id: int,
    leader_epoch: int,
    at: int,
) -> bool:
    """Whether a broker's own log shows that it acted as leader at the leader epoch still after an instant."""
    timeline = roles.get(broker_id, ())
    restarts = {record_id for _, record_id in cluster.process_starts.get(broker_id, ())}
    return any(
        (interval.value.role, interval.value.leader_epoch) == (LEADER, leader_epoch)
        and interval.holds_at(at)
        and _is_alive_after(broker_id, at, interval.end, facts, _ended_by(following, restarts))
        for interval, following in zip(timeline, [*timeline[1:], None], strict=True)
    )


def _ended_by(following: Interval[Role] | None, restarts: Set[str]) -> str | None:
    if following is None:
        return None
    if following.value.role == FOLLOWER:
        return BECAME_FOLLOWER
    if following.value.role == LEADER:
        return ELECTED_AGAIN
    return PROCESS_ENDED if restarts & set(following.evidence) else REPLICA_STOPPED


def _given_up_at(broker_id: int, led: Interval[Role], facts: Sequence[Evidence]) -> int | None:
    """When a KRaft broker stopped leading without a word of it, as one that is assigned no more or has lost the log
    directory: it removes the fetchers of what changed and says at once whom it leads or follows, as long as it does."""
    own = [fact for fact in facts if fact.broker_id == broker_id]
    said = [fact.at for fact in own if fact.kind in _SAYS_ITS_ROLE]
    removed = (fact.at for fact in own if fact.kind == EventType.FETCHER_REMOVED and led.holds_at(fact.at))
    return min((at for at in removed if not any(at <= told <= at + _AT_ONCE_US for told in said)), default=None)


def _shut_down_at(cluster: ClusterView, broker_id: int, start: int, restart: int | None) -> int | None:
    ends = [
        span.end
        for span in cluster.liveness.get(broker_id, ())
        if span.end is not None and span.value.end_reason == EventType.CONTROLLED_SHUTDOWN
    ]
    return min((end for end in ends if start <= end and (restart is None or end <= restart)), default=None)


def _is_alive_after(
    broker_id: int, start: int, end: int | None, facts: Sequence[Evidence], ended_by: str | None
) -> bool:
    if ended_by not in (None, PROCESS_ENDED):
        return True
    own = (fact for fact in within(facts, start + 1, None if end is None else end - 1) if fact.broker_id == broker_id)
    return any(fact.source_kind is not None and fact.source_kind != "znode" for fact in own)
