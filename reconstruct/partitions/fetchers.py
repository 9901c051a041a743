"""Which broker fetched a partition from whom, from when to when, and what went wrong, by the brokers' own server.log.

A follower's partition is added to the fetcher thread of its leader (ReplicaFetcherManager.addFetcherForPartitions),
with the offset to begin from, and removed when the broker becomes leader, is told of another leader or stops. A thread
that cannot process what it got gives the partition up ("marked as failed", since 2.3): it is fetched no more until the
broker is told of it again. A process that ends takes its fetchers with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ingest.shapes.broker_settings import BrokerSetting
from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.model.fetchers import fetcher_id
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.roles import by_broker

FETCHING: Final = "fetching"
FAILED: Final = "failed"
REMOVED: Final = "removed"
ADDED_AGAIN: Final = "added_again"
GIVEN_UP: Final = "failed"
PROCESS_STARTED: Final = "process_started"

#: What a fetcher thread logs of a partition where it cannot go on as it did.
TROUBLE: Final = frozenset(
    {
        EventType.FETCH_FAILED,
        EventType.FETCHER_WAITING,
        EventType.FETCH_OFFSET_RESET,
        EventType.LOG_TRUNCATION_FAILED,
    }
)
#: The events of server.log that this reads.
FETCHER_EVENTS: Final = (EventType.FETCHER_ADDED, EventType.FETCHER_REMOVED, EventType.FETCHER_FAILED, *sorted(TROUBLE))


@dataclass(frozen=True, slots=True)
class Fetching:
    """One partition in one fetcher of one broker; instants in µs. ``end`` None: nothing says that it ended.

    ``state`` is ``failed`` from where the fetcher gave it up on. ``fetcher_id`` is None where neither the number of
    fetchers is known nor a line of the thread names it. ``leader_epoch`` is the one at which the broker was
    told of the leader; None where the line that adds the fetcher does not print it (up to 2.0).
    """

    broker_id: int
    start: int
    end: int | None
    state: str
    leader: int | None
    fetcher_id: int | None
    fetch_offset: int | None = None
    ended_by: str | None = None
    failure_count: int = 0
    last_failure: str | None = None
    evidence: tuple[str, ...] = ()
    leader_epoch: int | None = None


def fetcher_timelines(
    topic: str, partition_id: int | None, facts: Iterable[Evidence], cluster: ClusterView
) -> dict[int, list[Fetching]]:
    """By broker: when it fetched the partition, in order."""
    result: dict[int, list[Fetching]] = {}
    wanted = [fact for fact in facts if fact.kind in FETCHER_EVENTS]
    for broker_id, own in by_broker(wanted).items():
        thread = partial(thread_of, topic, partition_id, broker_id, cluster)
        timeline = _timeline(broker_id, own, thread, cluster.process_starts.get(broker_id, ()))
        if timeline:
            result[broker_id] = timeline
    return dict(sorted(result.items()))


def thread_of(topic: str, partition_id: int | None, broker_id: int, cluster: ClusterView, at: int) -> int | None:
    """By the number of the broker's fetchers at ``at``; None where that, or which hash its version takes, is not
    known."""
    own = cluster.configurations.get(broker_id)
    count = None if own is None else own.number(BrokerSetting.FETCHERS, at, 1)
    if not count or partition_id is None:
        return None
    ids = {fetcher_id(topic, partition_id, count, version) for version in (cluster.version.low, cluster.version.high)}
    return ids.pop() if len(ids) == 1 else None


def _timeline(
    broker_id: int, facts: Sequence[Evidence], thread: Callable[[int], int | None], starts: Sequence[tuple[int, str]]
) -> list[Fetching]:
    result: list[Fetching] = []
    restarts = sorted(starts)
    for fact in facts:
        while restarts and restarts[0][0] <= fact.at:
            at, record = restarts.pop(0)
            _end(result, at, PROCESS_STARTED, record)
        if fact.kind == EventType.FETCHER_ADDED:
            _end(result, fact.at, ADDED_AGAIN, fact.evidence_id)
            began = Fetching(broker_id, fact.at, None, FETCHING, fact.leader, thread(fact.at), fact.fetch_offset)
            result.append(replace(began, evidence=(fact.evidence_id,), leader_epoch=fact.leader_epoch))
        elif fact.kind == EventType.FETCHER_REMOVED:
            _end(result, fact.at, REMOVED, fact.evidence_id)
        elif fact.kind == EventType.FETCHER_FAILED:
            last = _end(result, fact.at, GIVEN_UP, fact.evidence_id)
            leader = last.leader if last is not None and fact.leader is None else fact.leader
            own = thread(fact.at) if fact.fetcher_id is None else fact.fetcher_id
            result.append(Fetching(broker_id, fact.at, None, FAILED, leader, own, evidence=(fact.evidence_id,)))
        elif result and result[-1].end is None and fact.leader in (None, result[-1].leader):
            _count(result, fact)
    for at, record in restarts:
        _end(result, at, PROCESS_STARTED, record)
    return result


def _end(timeline: list[Fetching], at: int, why: str, record: str) -> Fetching | None:
    """Close what is open; what is removed after it had been, or had never been added, was no fetcher."""
    if not timeline or timeline[-1].end is not None:
        return None
    last = timeline[-1]
    timeline[-1] = replace(last, end=at, ended_by=why, evidence=(*last.evidence, record))
    return last


def _count(timeline: list[Fetching], fact: Evidence) -> None:
    last = timeline[-1]
    known = last.fetcher_id if fact.fetcher_id is None else fact.fetcher_id
    timeline[-1] = replace(
        last,
        failure_count=last.failure_count + 1,
        last_failure=fact.kind,
        fetcher_id=known,
        evidence=last.evidence if last.failure_count else (*last.evidence, fact.evidence_id),
    )
