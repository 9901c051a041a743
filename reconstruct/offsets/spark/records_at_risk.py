"""What the death of each partition's leader would cost, on Spark: timelines in, ``gold.records_at_risk`` out.

The adapter knows nothing of Kafka: it turns the rows of a partition's timelines into values, calls
:func:`reconstruct.offsets.records_at_risk.records_at_risk`, and turns what that gives into rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.gold import RECORDS_AT_RISK
from ingest.lake.tables.silver import PARTITION_KEY
from reconstruct.cluster.view import ClusterView
from reconstruct.model.rules_version import MODEL_VERSION
from reconstruct.offsets.evidence import DecidedState, OffsetBounds
from reconstruct.offsets.records_at_risk import AssignedReplicas, RecordsAtRisk, records_at_risk
from reconstruct.time.instants import to_datetime

INFERRED: Final = "replication_rules"
_BOUNDS, _DECIDED, _ASSIGNED = "bounds", "decided", "assigned"
_OFFSETS: Final = (
    "high_watermark_lower",
    "high_watermark_upper",
    "log_end_offset_lower",
    "log_end_offset_upper",
)
_GIVEN: Final = {
    "row_kind": "string",
    "from_us": "bigint",
    "to_us": "bigint",
    "replica_id": "int",
    "leader_epoch": "int",
    "brokers": "array<int>",
    **dict.fromkeys(_OFFSETS, "bigint"),
    "evidence": "array<string>",
}
_ARROW_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
}
_ARROW: Final = pa.schema([(c.name, _ARROW_TYPES[c.type]) for c in RECORDS_AT_RISK.columns])
#: Its own values, by the names of the table's columns.
_VALUES: Final = (
    "leader",
    "last_leader",
    "leader_epoch",
    "uncommitted_lower",
    "uncommitted_upper",
    "next_leader",
    "clean_from_offset",
    "clean_lost_lower",
    "clean_lost_upper",
    "worst_replica",
    "unclean_from_offset",
    "unclean_lost_lower",
    "unclean_lost_upper",
    "truncation",
)


def fold_risks(
    offset_timeline: DataFrame, leader_and_isr: DataFrame, assignments: DataFrame, views: Mapping[str, ClusterView]
) -> DataFrame:
    """Rows of ``gold.records_at_risk`` from the silver timelines ``replica_offset_timeline``,
    ``leader_and_isr_timeline`` and ``assignment_timeline``: of every partition of which offsets are bounded."""
    bounds = _given(offset_timeline, _BOUNDS, replica_id=F.col("replica_id"), **{n: F.col(n) for n in _OFFSETS})
    known = offset_timeline.select(*PARTITION_KEY).distinct()
    decided = _given(
        leader_and_isr, _DECIDED, replica_id=F.col("leader"), leader_epoch=F.col("leader_epoch"), brokers=F.col("isr")
    )
    assigned = _given(assignments, _ASSIGNED, brokers=F.col("replicas"))
    rows = bounds.unionByName(decided.unionByName(assigned).join(known, list(PARTITION_KEY), "left_semi"))
    return rows.groupBy(*PARTITION_KEY).applyInArrow(_folder(dict(views)), RECORDS_AT_RISK.struct)


def _given(timeline: DataFrame, row_kind: str, **given: Column) -> DataFrame:
    every = {
        "row_kind": F.lit(row_kind),
        "from_us": F.unix_micros("valid_from"),
        "to_us": F.unix_micros("valid_to"),
        "evidence": F.col("evidence"),
        **given,
    }
    return timeline.select(
        *PARTITION_KEY, *(every.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in _GIVEN.items())
    )


def _folder(views: Mapping[str, ClusterView]) -> Callable[[pa.Table], pa.Table]:
    def fold(group: pa.Table) -> pa.Table:
        rows = group.to_pylist()
        key = {name: rows[0][name] for name in PARTITION_KEY}
        view = views.get(key["cluster_id"]) or ClusterView(key["cluster_id"])
        shown = sorted((row["from_us"], row["evidence"]) for row in rows if row["row_kind"] == _DECIDED)
        made = [{**key, **row} for row in _rows(_risks(rows, view), shown)]
        return pa.Table.from_pylist(made, schema=_ARROW)

    return fold


def _risks(rows: Sequence[Mapping[str, Any]], view: ClusterView) -> list[RecordsAtRisk]:
    decided, bounds, assigned = [], [], []
    for row in rows:
        start, end, brokers = row["from_us"], row["to_us"], tuple(row["brokers"] or ())
        if row["row_kind"] == _DECIDED:
            decided.append(DecidedState(start, end, row["replica_id"], row["leader_epoch"], brokers))
        elif row["row_kind"] == _ASSIGNED:
            assigned.append(AssignedReplicas(start, end, brokers))
        else:
            offsets = {name: row[name] for name in _OFFSETS}
            evidence = tuple(row["evidence"] or ())
            bounds.append(OffsetBounds(row["replica_id"], start, end, **offsets, evidence=evidence))
    assigned.sort(key=lambda span: span.start)
    live = {broker: [(span.start, span.end) for span in spans] for broker, spans in view.liveness.items()}
    return records_at_risk(decided, bounds, assigned, live, view.version)


def _rows(risks: Sequence[RecordsAtRisk], shown: Sequence[tuple[int, list[str]]]) -> Iterator[dict[str, Any]]:
    """``shown``: since when each state was decided, and what shows it; the evidence where no offset is known."""
    for sequence, risk in enumerate(risks):
        begun = [evidence for start, evidence in shown if start <= risk.valid_from]
        decided = begun[-1] if begun else shown[0][1] if shown else []
        yield {
            **{name: getattr(risk, name) for name in _VALUES},
            "sequence": sequence,
            "valid_from": to_datetime(risk.valid_from),
            "valid_to": None if risk.valid_to is None else to_datetime(risk.valid_to),
            "isr": list(risk.isr),
            "held_by": list(risk.held_by),
            "evidence": list(risk.evidence) or decided[:1],
            "inferred_from": INFERRED,
            "model_version": MODEL_VERSION,
        }
