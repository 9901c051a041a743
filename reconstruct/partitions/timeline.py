"""The history of one partition: every timeline and every verdict, from all its evidence at once.

:func:`fold_partition` is pure and total: the same facts in any order give the same history. Spark runs it for each
partition (:mod:`reconstruct.partitions.spark.step`); tests, and small incidents, run it as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.rule import judge
from reconstruct.model.states import PartitionState
from reconstruct.model.versions import DELETED_PARTITIONS_LEAVE_FIRST_SINCE
from reconstruct.partitions.assignment import (
    assigned_intervals,
    assignment_timeline,
    deletion_windows,
    logged_reassignments,
    reassignment_windows,
)
from reconstruct.partitions.availability import availability
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.judging import elections, unclean_setting
from reconstruct.partitions.elections.occasions import Occasions
from reconstruct.partitions.evidence import (
    METADATA_PARTITION,
    METADATA_PARTITION_REMOVED,
    ZNODE_STATE,
    ZNODE_STATE_DELETED,
    ZNODE_TOPIC_DELETED,
    Evidence,
    in_order,
)
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState, reconstruct_leader_and_isr
from reconstruct.partitions.roles import metadata_cache_timelines, replica_manager_timelines
from reconstruct.partitions.rules.book import RULES
from reconstruct.partitions.state_timelines import partition_state_timeline, replica_state_timeline
from reconstruct.time.intervals import Change, close_intervals


def fold_partition(
    topic: str,
    evidence: Iterable[Evidence],
    cluster: ClusterView,
    ends_at: int | None = None,
    is_only: bool = True,
    partition_id: int | None = None,
) -> Case:
    """The history of one partition incarnation of ``topic``; ``ends_at`` is when the next incarnation began,
    ``is_only`` whether the topic has no other. By ``partition_id`` is known which thread fetches it."""
    facts = in_order(evidence)
    if facts:
        cluster = cluster.at_generation_of(facts[0].at)
    ended_at = deleted_at(facts)
    if ended_at is None:
        ended_at = ends_at
    gone_at = _gone_at(facts, ends_at) if _waits_for_replicas(facts, cluster) else ended_at
    history = reconstruct_leader_and_isr(facts, cluster.version)
    changes: list[Change[LeaderAndIsrState]] = list(history.changes)
    if ended_at is not None and changes:
        changes.append(Change(ended_at, None, ()))
    decided = close_intervals(changes)
    assignments = assignment_timeline(facts, gone_at)
    assigned = assigned_intervals(assignments)
    known_replicas = {*assigned, *(f.replica_id for f in facts if f.kind == EventType.REPLICA_STATE_CHANGE)} - {None}
    first_known = [timeline[0].start for timeline in (decided, assignments) if timeline]
    exists_from = min(first_known, default=None)
    reassigning = reassignment_windows(facts, assignments)
    moved = sorted([*reassigning, *logged_reassignments(facts, reassigning, gone_at)], key=itemgetter(0))
    deleting = deletion_windows(facts, gone_at)
    unclean = unclean_setting(topic, facts, cluster)
    roles = replica_manager_timelines(facts, cluster.process_starts)
    case = Case(
        topic=topic,
        facts=facts,
        cluster=cluster,
        sightings=history.sightings,
        discarded=history.discarded,
        decided=decided,
        assignments=assignments,
        reassigning=reassigning,
        unclean_setting=unclean,
        all_elections=elections(decided, Occasions(facts, assignments, reassigning, cluster), unclean),
        partition_states=partition_state_timeline(facts, decided, cluster, exists_from, ended_at),
        replica_states={
            replica: replica_state_timeline(replica, facts, assigned.get(replica, ()), cluster, gone_at)
            for replica in sorted(r for r in known_replicas if r is not None)
        },
        roles=roles,
        caches=metadata_cache_timelines(facts, cluster.process_starts),
        availability=availability(topic, decided, assignments, moved, deleting, roles, cluster),
        deleted_at=ended_at,
        is_only_incarnation=is_only,
        partition_id=partition_id,
    )
    judge(RULES, case, case.verdicts)
    return case


_GONE: Final = (ZNODE_TOPIC_DELETED, ZNODE_STATE_DELETED, METADATA_PARTITION_REMOVED)
_LIVES_ON: Final = (ZNODE_STATE, METADATA_PARTITION)
#: The kinds of facts that may tell of its end, and all by which :func:`deleted_at` decides.
MAY_END: Final = frozenset({*_GONE, EventType.PARTITION_STATE_CHANGE, EventType.TOPIC_DELETION_COMPLETED})
OF_ITS_END: Final = MAY_END.union(_LIVES_ON)


def deleted_at(facts: Sequence[Evidence]) -> int | None:
    """When the partition ended: as the controller logged it, else the latest instant that the znodes allow."""
    logged = [fact.at for fact in facts if _is_end(fact)] or _completed(facts)
    gone = [fact for fact in facts if fact.kind in _GONE]
    lives_on = max((f.at for f in facts if f.kind in _LIVES_ON), default=None)
    if logged and (lives_on is None or gone or max(logged) >= lives_on):
        return max(logged)
    return min((fact.at_upper if fact.at_upper is not None else fact.at for fact in gone), default=None)


def _is_end(fact: Evidence) -> bool:
    return fact.kind == EventType.PARTITION_STATE_CHANGE and fact.to_state == PartitionState.NON_EXISTENT


def _completed(facts: Sequence[Evidence]) -> list[int]:
    return [fact.at for fact in facts if fact.kind == EventType.TOPIC_DELETION_COMPLETED]


def _waits_for_replicas(facts: Sequence[Evidence], cluster: ClusterView) -> bool:
    """Whether the partition's end, as it is logged, began its deletion (since 2.1), and did not end it."""
    return cluster.version.is_since(DELETED_PARTITIONS_LEAVE_FIRST_SINCE) and any(map(_is_end, facts))


def _gone_at(facts: Sequence[Evidence], ends_at: int | None) -> int | None:
    """When the last replica was deleted and with it the topic, as the controller logged it, else as znodes allow."""
    gone = [fact.at if fact.at_upper is None else fact.at_upper for fact in facts if fact.kind == ZNODE_TOPIC_DELETED]
    return max(_completed(facts), default=min(gone, default=ends_at))
