"""What the death of each partition's leader would cost, on Spark: timelines in, ``gold.records_at_risk`` out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.gold import RECORDS_AT_RISK
from ingest.lake.tables.shared import PARTITION_KEY
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.folds import evidence_columns, select_evidence
from reconstruct.engine.rows import Row, rows_of_kind, table_row, values_of
from reconstruct.kept.folds import Fold
from reconstruct.kept.topics import ALL_TOPICS, Topics
from reconstruct.offsets.evidence import DecidedState, OffsetBounds
from reconstruct.offsets.records_at_risk import AssignedReplicas, records_at_risk
from reconstruct.offsets.spark.step import over_by

INFERRED: Final = "replication_rules"
_COLUMNS: Final = evidence_columns(OffsetBounds, DecidedState, AssignedReplicas)


def risk_evidence(
    offset_timeline: DataFrame, leader_and_isr: DataFrame, assignments: DataFrame, topics: Topics = ALL_TOPICS
) -> DataFrame:
    """What :data:`RISK_FOLD` judges from: the silver timelines ``replica_offset_timeline``,
    ``leader_and_isr_timeline`` and ``assignment_timeline`` of every partition of which offsets are bounded."""
    offset_timeline, leader_and_isr, assignments = map(topics.of, (offset_timeline, leader_and_isr, assignments))
    known = offset_timeline.select(*PARTITION_KEY).distinct()
    decided = union([_given(leader_and_isr, DecidedState), _given(assignments, AssignedReplicas, "start", "end")])
    return union([_given(offset_timeline, OffsetBounds), decided.join(known, list(PARTITION_KEY), "left_semi")])


def _given(timeline: DataFrame, kind: type, begin: str = "valid_from", end: str = "valid_to") -> DataFrame:
    ends = {begin: F.unix_micros("valid_from"), end: F.unix_micros("valid_to")}
    return select_evidence(timeline, PARTITION_KEY, _COLUMNS, kind, evidence=F.col("evidence"), **ends)


def _rows(rows: Sequence[Row], view: ClusterView) -> Iterator[dict[str, Any]]:
    live = {broker: [(span.start, span.end) for span in spans] for broker, spans in view.liveness.items()}
    assigned = sorted(values_of(AssignedReplicas, rows), key=lambda span: span.start)
    decided, bounds = values_of(DecidedState, rows), values_of(OffsetBounds, rows)
    # since when each state was decided, and what shows it: the evidence where no offset is known
    shown = sorted((row["valid_from"], row["evidence"]) for row in rows_of_kind(DecidedState, rows))
    for sequence, risk in enumerate(records_at_risk(decided, bounds, assigned, live, view.version)):
        begun = [evidence for start, evidence in shown if start <= risk.valid_from]
        latest = begun[-1] if begun else shown[0][1] if shown else []
        evidence = risk.evidence or latest[:1]
        yield table_row(RECORDS_AT_RISK, risk, sequence=sequence, evidence=evidence, inferred_from=INFERRED)


#: The fold of every partition's risks.
RISK_FOLD: Final = Fold(
    "records_at_risk", PARTITION_KEY, (RECORDS_AT_RISK,), _rows, ClusterView, judges=False, over_by=over_by
)
