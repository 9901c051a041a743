"""The fold of every partition on Spark: evidence in, the rows of all partition timelines and findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ingest.lake.tables.gold import (
    AVAILABILITY_INTERVALS,
    ISR_FLAPPING,
    LEADER_ELECTIONS,
    LEADERSHIP_OVERLAPS,
)
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.lake.tables.silver import (
    ASSIGNMENT_TIMELINE,
    FETCHER_TIMELINE,
    LEADER_AND_ISR_TIMELINE,
    PARTITION_STATE_TIMELINE,
    REPLICA_ROLE_TIMELINE,
    REPLICA_STATE_TIMELINE,
)
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import Row, numbered, table_row, table_rows, value_of, verdict_rows
from reconstruct.kept.folds import Fold, settled_by
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.controller_view import BrokerStatus
from reconstruct.partitions.elections.judging import JudgedElection
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.spark.evidence import INCARNATION_END, IS_ONLY_INCARNATION
from reconstruct.partitions.timeline import MAY_END, OF_ITS_END, deleted_at, fold_partition

#: The tables that the fold of partitions alone makes; findings it adds to gold.divergences, and verdicts.
FOLDED_TABLES: Final = (
    LEADER_AND_ISR_TIMELINE,
    PARTITION_STATE_TIMELINE,
    REPLICA_STATE_TIMELINE,
    ASSIGNMENT_TIMELINE,
    REPLICA_ROLE_TIMELINE,
    FETCHER_TIMELINE,
    AVAILABILITY_INTERVALS,
    LEADER_ELECTIONS,
    LEADERSHIP_OVERLAPS,
    ISR_FLAPPING,
)


def history_of(rows: Sequence[Row], clusters: Mapping[str, ClusterView]) -> Case:
    """The history of the one partition incarnation that all ``rows`` of evidence are about, in plain Python."""
    first = rows[0]
    cluster = clusters.get(first["cluster_id"]) or ClusterView(first["cluster_id"])
    evidence = (value_of(Evidence, row) for row in rows)
    return fold_partition(
        first["topic"],
        evidence,
        cluster,
        first[INCARNATION_END],
        first[IS_ONLY_INCARNATION],
        first["partition_id"],
    )


def history_rows(case: Case) -> Iterator[dict[str, Any]]:
    """The rows of one partition's history, without its key, in a fixed order."""
    yield from table_rows(LEADER_AND_ISR_TIMELINE, case.decided)
    yield from table_rows(PARTITION_STATE_TIMELINE, case.partition_states)
    for replica_id, timeline in case.replica_states.items():
        yield from table_rows(REPLICA_STATE_TIMELINE, timeline, replica_id=replica_id)
    for sequence, assigned in enumerate(case.assignments):
        yield table_row(
            ASSIGNMENT_TIMELINE,
            assigned,
            assigned.value,
            sequence=sequence,
            adding_replicas=assigned.value.adding,
            removing_replicas=assigned.value.removing,
        )
    for view, timelines in (("replica_manager", case.roles), ("metadata_cache", case.caches)):
        for broker_id, roles in timelines.items():
            yield from table_rows(REPLICA_ROLE_TIMELINE, roles, broker_id=broker_id, view=view)
    for fetched in case.fetchers.values():
        yield from table_rows(FETCHER_TIMELINE, fetched)
    for sequence, span in numbered(case.availability, lambda span: span.kind):
        yield table_row(AVAILABILITY_INTERVALS, span, sequence=sequence)
    for sequence, election in enumerate(case.elections):
        yield table_row(
            LEADER_ELECTIONS,
            election,
            election.decision,
            sequence=sequence,
            elected_at=election.at,
            election_kind=election.kind,
            previous_isr=election.isr_before,
            allowed_leaders=election.allowed,
            **_election_inputs(election),
        )
    for overlap in case.overlaps:
        yield table_row(LEADERSHIP_OVERLAPS, overlap, deposed_leader=overlap.deposed)
    for sequence, flapping in numbered(case.isr_flapping, lambda flapping: flapping.replica_id):
        yield table_row(ISR_FLAPPING, flapping, sequence=sequence)
    yield from verdict_rows(case.verdicts)


def _election_inputs(election: JudgedElection) -> dict[str, Any]:
    """What the controller chose from, as far as it is known."""
    inputs = election.seen
    if inputs is None:
        return {}
    statuses = {replica: inputs.statuses[replica] for replica in inputs.replicas if replica >= 0}
    return {
        "assigned_replicas": list(inputs.assignments[0]),
        "live_brokers": sorted(replica for replica, views in statuses.items() if views == {BrokerStatus.LIVE}),
        "shutting_down_brokers": sorted(
            replica for replica, views in statuses.items() if views == {BrokerStatus.LEAVING}
        ),
        "uncertain_brokers": sorted(replica for replica, views in statuses.items() if len(views) > 1),
    }


def _partition_rows(rows: Sequence[Row], cluster: ClusterView) -> Iterator[dict[str, Any]]:
    return history_rows(history_of(rows, {cluster.cluster_id: cluster}))


def _over_by(rows: Sequence[Row]) -> int | None:
    """By when an incarnation that was deleted, or that another followed, was over."""
    end = rows[0][INCARNATION_END]
    if end is None:
        if MAY_END.isdisjoint(row["kind"] for row in rows):
            return None
        if deleted_at([value_of(Evidence, row) for row in rows if row["kind"] in OF_ITS_END]) is None:
            return None
    return settled_by(max(end or 0, *(max(row["at"], row["at_upper"] or 0) for row in rows)))


#: The fold of every partition; its evidence as :func:`partition_evidence` gives it.
PARTITION_FOLD: Final = Fold("partitions", PARTITION_KEY, FOLDED_TABLES, _partition_rows, ClusterView, over_by=_over_by)
