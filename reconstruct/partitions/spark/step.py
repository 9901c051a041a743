"""The fold of every partition on Spark: evidence in, the rows of all partition timelines and findings out.

The adapter knows nothing of Kafka: it turns rows into :class:`Evidence`, calls :func:`fold_partition`, and turns the
history into rows of one wide schema, told apart by ``table_name``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables.gold import AVAILABILITY_INTERVALS, DIVERGENCES, LEADER_ELECTIONS, LEADERSHIP_OVERLAPS
from ingest.lake.tables.silver import (
    ASSIGNMENT_TIMELINE,
    LEADER_AND_ISR_TIMELINE,
    PARTITION_KEY,
    PARTITION_STATE_TIMELINE,
    REPLICA_ROLE_TIMELINE,
    REPLICA_STATE_TIMELINE,
)
from ingest.lake.tables.spec import SPARK_TYPES
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding
from reconstruct.model.rules_version import MODEL_VERSION
from reconstruct.partitions.elections.controller_view import Seen
from reconstruct.partitions.elections.judging import Election
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.spark.evidence import INCARNATION_END, IS_ONLY_INCARNATION
from reconstruct.partitions.timeline import PartitionHistory, fold_partition
from reconstruct.rule_book import RULES
from reconstruct.time.instants import to_datetime

#: The tables that the fold of partitions makes.
FOLDED_TABLES: Final = (
    LEADER_AND_ISR_TIMELINE,
    PARTITION_STATE_TIMELINE,
    REPLICA_STATE_TIMELINE,
    ASSIGNMENT_TIMELINE,
    REPLICA_ROLE_TIMELINE,
    AVAILABILITY_INTERVALS,
    LEADER_ELECTIONS,
    LEADERSHIP_OVERLAPS,
    DIVERGENCES,
)
#: Pseudo table: how often each rule was kept, broken or could not be judged.
VERDICTS: Final = "verdicts"

_VERDICT_COLUMNS: Final = {"rule": "string", "verdict": "string", "times": "bigint"}


def _wide_columns() -> dict[str, str]:
    columns = {"table_name": "string"}
    for spec in FOLDED_TABLES:
        for column in spec.columns:
            known = columns.setdefault(column.name, column.type)
            assert known == column.type, f"{spec.full_name}.{column.name} is {column.type}, elsewhere {known}"
    return columns | _VERDICT_COLUMNS


WIDE_COLUMNS: Final[Mapping[str, str]] = _wide_columns()
WIDE_SCHEMA: Final = T.StructType([T.StructField(n, SPARK_TYPES[t]) for n, t in WIDE_COLUMNS.items()])
_ARROW_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
}
WIDE_ARROW: Final = pa.schema([(name, _ARROW_TYPES[type_]) for name, type_ in WIDE_COLUMNS.items()])
_EVIDENCE_FIELDS: Final = tuple(f.name for f in fields(Evidence))
_ID_LISTS: Final = frozenset({"isr", "old_isr", "replicas", "adding_replicas", "removing_replicas", "to_broker_ids"})


def fold_partitions(evidence: DataFrame, clusters: Mapping[str, ClusterView]) -> DataFrame:
    """Wide rows of every table in :data:`FOLDED_TABLES`, and verdicts; select with :func:`rows_of`."""
    return evidence.groupBy(*PARTITION_KEY).applyInArrow(_folder(dict(clusters)), WIDE_SCHEMA)


def rows_of(folded: DataFrame, spec: TableSpec) -> DataFrame:
    """The rows of one table."""
    return folded.where(F.col("table_name") == spec.full_name).select(*spec.column_names)


def _folder(clusters: Mapping[str, ClusterView]) -> Callable[[pa.Table], pa.Table]:
    def fold(group: pa.Table) -> pa.Table:
        rows = group.to_pylist()
        key = {name: rows[0][name] for name in PARTITION_KEY}
        made = [{**key, **row} for row in history_rows(history_of(rows, clusters))]
        return pa.Table.from_pylist(made, schema=WIDE_ARROW)

    return fold


def history_of(rows: Sequence[Mapping[str, Any]], clusters: Mapping[str, ClusterView]) -> PartitionHistory:
    """The history of the one partition incarnation that all ``rows`` of evidence are about, in plain Python."""
    first = rows[0]
    cluster = clusters.get(first["cluster_id"]) or ClusterView(first["cluster_id"])
    return fold_partition(first["topic"], map(_fact, rows), cluster, first[INCARNATION_END], first[IS_ONLY_INCARNATION])


def _fact(row: Mapping[str, Any]) -> Evidence:
    values = {name: row[name] for name in _EVIDENCE_FIELDS}
    for name in _ID_LISTS:
        if values[name] is not None:
            values[name] = tuple(values[name])
    return Evidence(**values)


def history_rows(history: PartitionHistory) -> Iterator[dict[str, Any]]:
    """The rows of one partition's history, without its key, in a fixed order."""
    for sequence, lai in enumerate(history.leader_and_isr):
        state = lai.value
        yield {
            **_interval(LEADER_AND_ISR_TIMELINE, sequence, lai),
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
            "controller_epoch": state.controller_epoch,
            "partition_epoch": state.partition_epoch,
            "leader_recovery_state": state.leader_recovery_state,
            "written_by": state.written_by,
        }
    for sequence, machine in enumerate(history.partition_states):
        yield {**_interval(PARTITION_STATE_TIMELINE, sequence, machine), **_machine(machine.value)}
    for replica_id, timeline in history.replica_states.items():
        for sequence, machine in enumerate(timeline):
            row = _interval(REPLICA_STATE_TIMELINE, sequence, machine)
            yield {**row, **_machine(machine.value), "replica_id": replica_id}
    for sequence, assigned in enumerate(history.assignments):
        yield {
            **_interval(ASSIGNMENT_TIMELINE, sequence, assigned),
            "replicas": list(assigned.value.replicas),
            "adding_replicas": _list(assigned.value.adding),
            "removing_replicas": _list(assigned.value.removing),
        }
    for view, timelines in (("replica_manager", history.roles), ("metadata_cache", history.caches)):
        for broker_id, believed in timelines.items():
            for sequence, belief in enumerate(believed):
                role = belief.value
                yield {
                    **_interval(REPLICA_ROLE_TIMELINE, sequence, belief),
                    "broker_id": broker_id,
                    "view": view,
                    "role": role.role,
                    "leader": role.leader,
                    "leader_epoch": role.leader_epoch,
                    "isr": _list(role.isr),
                    "partition_epoch": role.partition_epoch,
                    "told_by_controller_id": role.told_by_controller_id,
                    "told_by_controller_epoch": role.told_by_controller_epoch,
                }
    of_kind: dict[str, int] = {}
    for span in history.availability:
        sequence = of_kind[span.kind] = of_kind.get(span.kind, -1) + 1
        yield {
            "table_name": AVAILABILITY_INTERVALS.full_name,
            "kind": span.kind,
            "sequence": sequence,
            "valid_from": to_datetime(span.start),
            "valid_to": None if span.end is None else to_datetime(span.end),
            "opened_by": span.opened_by,
            "closed_by": span.closed_by,
            "evidence": list(span.evidence),
            "model_version": MODEL_VERSION,
        }
    for sequence, election in enumerate(history.elections):
        yield {
            "table_name": LEADER_ELECTIONS.full_name,
            "sequence": sequence,
            "elected_at": to_datetime(election.at),
            "election_kind": election.kind,
            "previous_leader": election.previous_leader,
            **_election_inputs(election),
            "is_exact": election.is_exact,
            "previous_isr": _list(election.isr_before),
            "allowed_leaders": list(election.allowed),
            "observed_leader": election.observed_leader,
            "leader_epoch": election.leader_epoch,
            "isr": list(election.isr),
            "is_unclean": election.is_unclean,
            "evidence": list(election.evidence),
            "inferred_from": election.inferred_from,
            "model_version": MODEL_VERSION,
        }
    for overlap in history.overlaps:
        yield {
            "table_name": LEADERSHIP_OVERLAPS.full_name,
            "deposed_leader": overlap.deposed,
            "deposed_leader_epoch": overlap.deposed_leader_epoch,
            "leader": overlap.leader,
            "leader_epoch": overlap.leader_epoch,
            "valid_from": to_datetime(overlap.start),
            "valid_to": None if overlap.end is None else to_datetime(overlap.end),
            "ended_by": overlap.ended_by,
            "evidence": list(overlap.evidence),
            "inferred_from": None,
            "model_version": MODEL_VERSION,
        }
    for finding in history.verdicts.findings:
        yield {"table_name": DIVERGENCES.full_name, **finding_row(finding)}
    for (rule_id, verdict), times in sorted(history.verdicts.counts.items()):
        yield {"table_name": VERDICTS, "rule": rule_id, "verdict": verdict, "times": times}


def _election_inputs(election: Election) -> dict[str, Any]:
    """What the controller had, as far as it is known; NULLs where nothing is."""
    decision, inputs = election.decision, election.inputs
    row: dict[str, Any] = {"controller_id": decision.controller_id, "controller_epoch": decision.controller_epoch}
    if inputs is None:
        return row
    seen = {replica: inputs.seen[replica] for replica in inputs.replicas if replica >= 0}
    return row | {
        "assigned_replicas": list(inputs.assignments[0]),
        "live_brokers": sorted(replica for replica, views in seen.items() if views == {Seen.LIVE}),
        "shutting_down_brokers": sorted(replica for replica, views in seen.items() if views == {Seen.LEAVING}),
        "uncertain_brokers": sorted(replica for replica, views in seen.items() if len(views) > 1),
    }


def finding_row(finding: Finding) -> dict[str, Any]:
    """A finding as columns of gold.divergences, without the key; its id is a hash of rule, subject and evidence."""
    subject = "|".join((finding.rule_id, finding.divergence_type, finding.observed, *finding.evidence))
    return {
        "divergence_id": hashlib.sha256(subject.encode()).hexdigest()[:32],
        "broker_id": finding.broker_id,
        "replica_id": finding.replica_id,
        "rule_id": finding.rule_id,
        "divergence_type": finding.divergence_type,
        "severity": finding.severity,
        "detected_at": to_datetime(finding.at),
        "expected": finding.expected,
        "observed": finding.observed,
        "explanation": finding.explanation,
        "known_issue": finding.known_issue,
        "rule_source": RULES[finding.rule_id].source,
        "evidence": list(finding.evidence),
        "inferred_from": None,
        "model_version": MODEL_VERSION,
    }


def _interval(spec: TableSpec, sequence: int, interval: Any) -> dict[str, Any]:
    return {
        "table_name": spec.full_name,
        "sequence": sequence,
        "valid_from": to_datetime(interval.start),
        "valid_to": None if interval.end is None else to_datetime(interval.end),
        "evidence": list(interval.evidence),
        "inferred_from": interval.inferred_from,
        "model_version": MODEL_VERSION,
    }


def _machine(value: Any) -> dict[str, Any]:
    return {"state": value.state, "controller_id": value.controller_id, "controller_epoch": value.controller_epoch}


def _list(ids: tuple[int, ...] | None) -> list[int] | None:
    return None if ids is None else list(ids)


assert all(spec.full_name in TABLES for spec in FOLDED_TABLES)
