"""The bounds of every partition's offsets on Spark: evidence in, the rows of both tables about offsets, findings and
verdicts out.

The adapter knows nothing of Kafka: it turns rows into :class:`OffsetEvidence`, calls :func:`bound_offsets`,
:func:`find_losses` and :func:`judge_offsets`, and turns what they give into rows of one wide schema, told apart by
``table_name``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ingest.lake.tables.gold import DATA_LOSS_BOUNDS, DIVERGENCES
from ingest.lake.tables.silver import PARTITION_KEY, REPLICA_OFFSET_TIMELINE
from ingest.lake.tables.spec import SPARK_TYPES
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.folds import table_columns
from reconstruct.engine.rows import VERDICTS, finding_row
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.replication_rules import HIGH_WATERMARK_KEPT_IN_LOG_SINCE, rules_of
from reconstruct.model.rules_version import MODEL_VERSION
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetBounds,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.losses import OffsetLoss, find_losses
from reconstruct.offsets.rules import IsrMove, IsrMoveKind, OffsetCase, judge_offsets
from reconstruct.offsets.spark.context import OffsetContext
from reconstruct.offsets.spark.evidence import DECIDED, EVENT, SIGHTING
from reconstruct.offsets.spark.isr_moves import ISR_MOVE
from reconstruct.offsets.timeline import bound_offsets
from reconstruct.offsets.widest_bounds import widest_bounds
from reconstruct.time.instants import to_datetime

#: The tables that this fold alone makes; findings it adds to gold.divergences, verdicts under :data:`VERDICTS`.
OFFSET_TABLES: Final = (REPLICA_OFFSET_TIMELINE, DATA_LOSS_BOUNDS)
INFERRED: Final = "replication_rules"

_COLUMNS: Final = table_columns(*OFFSET_TABLES, DIVERGENCES)
_WIDE_SCHEMA: Final = T.StructType([T.StructField(n, SPARK_TYPES[t]) for n, t in _COLUMNS.items()])
_ARROW_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
}
_WIDE_ARROW: Final = pa.schema([(name, _ARROW_TYPES[type_]) for name, type_ in _COLUMNS.items()])


def fold_offsets(evidence: DataFrame, contexts: Mapping[str, OffsetContext]) -> DataFrame:
    """Wide rows of both :data:`OFFSET_TABLES`, of ``gold.divergences`` and of :data:`VERDICTS`, to be selected by
    ``table_name``; ``evidence`` as :func:`offset_evidence` and :func:`with_isr_moves` give it."""
    return evidence.groupBy(*PARTITION_KEY).applyInArrow(_folder(dict(contexts)), _WIDE_SCHEMA)


def _folder(contexts: Mapping[str, OffsetContext]) -> Callable[[pa.Table], pa.Table]:
    return lambda group: fold_group(group, contexts)


def fold_group(group: pa.Table, contexts: Mapping[str, OffsetContext]) -> pa.Table:
    """The wide rows of one partition incarnation; ``group`` is all its evidence."""
    rows = group.to_pylist()
    key = {name: rows[0][name] for name in PARTITION_KEY}
    cluster_id = key["cluster_id"]
    context = contexts.get(cluster_id) or OffsetContext(ClusterView(cluster_id))
    evidence = _evidence(rows, context)
    # what is shown rests on clocks that nothing speaks against; what anybody is accused of does not
    shown = replace(evidence, clocks=context.clocks.assuming_unbounded_exact())
    bounds = _bounds(shown, context.view)
    losses = find_losses(shown, bounds)
    sure = losses if shown.clocks == evidence.clocks else find_losses(evidence, _bounds(evidence, context.view))
    verdicts = Verdicts()
    judge_offsets(_case(key["topic"], rows, context, evidence, sure), verdicts)
    made = [{**key, **row} for row in (*_bounds_rows(bounds), *_loss_rows(losses), *_verdict_rows(verdicts))]
    return pa.Table.from_pylist(made, schema=_WIDE_ARROW)


def _bounds(evidence: OffsetEvidence, view: ClusterView) -> list[OffsetBounds]:
    """What holds by the rules of every version that the cluster may be of."""
    low, high = rules_of(view.version.low), rules_of(view.version.high)
    bounds = bound_offsets(evidence, high)
    since = HIGH_WATERMARK_KEPT_IN_LOG_SINCE  # the one gate that the bounds ask for
    if view.version.may_be_before(since) and view.version.may_be_since(since):
        return widest_bounds(bounds, bound_offsets(evidence, low))
    return bounds


def _evidence(rows: Sequence[Mapping[str, Any]], context: OffsetContext) -> OffsetEvidence:
    sightings, events, decided = [], [], []
    for row in rows:
        if row["row_kind"] == SIGHTING:
            sightings.append(
                OffsetObservation(
                    row["replica_id"],
                    row["kind"],
                    row["offset"],
                    row["at"],
                    row["at_upper"],
                    row["leader_epoch"],
                    row["source"],
                    row["written_after"],
                    evidence_id=row["evidence_id"],
                )
            )
        elif row["row_kind"] == EVENT:
            events.append(
                ReplicaEvent(
                    row["replica_id"],
                    ReplicaEventKind(row["kind"]),
                    row["at"],
                    row["offset"],
                    row["leader"],
                    row["leader_epoch"],
                    row["evidence_id"],
                )
            )
        elif row["row_kind"] == DECIDED:
            decided.append(
                DecidedState(row["at"], row["at_upper"], row["leader"], row["leader_epoch"], tuple(row["isr"]))
            )
    began = [
        ReplicaEvent(broker_id, ReplicaEventKind.STARTED, at, evidence_id=record_id)
        for broker_id, starts in context.view.process_starts.items()
        for at, record_id in starts
    ]
    return OffsetEvidence(sightings, events + began, decided, context.covered, context.schedules, context.clocks)


def _case(
    topic: str,
    rows: Sequence[Mapping[str, Any]],
    context: OffsetContext,
    evidence: OffsetEvidence,
    losses: Sequence[OffsetLoss],
) -> OffsetCase:
    moves = [
        IsrMove(
            row["replica_id"], row["leader"], IsrMoveKind(row["kind"]), row["at"], row["offset"], row["evidence_id"]
        )
        for row in rows
        if row["row_kind"] == ISR_MOVE
    ]
    decided: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        if row["row_kind"] == DECIDED and row["evidence_id"] is not None:
            decided.setdefault((row["at"], row["leader_epoch"]), []).append(row["evidence_id"])
    return OffsetCase(topic, context.view, evidence, losses, moves, context.lag_time_max_us, decided)


def _verdict_rows(verdicts: Verdicts) -> Iterator[dict[str, Any]]:
    for finding in verdicts.findings:
        yield {"table_name": DIVERGENCES.full_name, **finding_row(finding)}
    for (rule_id, verdict), times in sorted(verdicts.counts.items()):
        yield {"table_name": VERDICTS, "rule": rule_id, "verdict": verdict, "times": times}


def _bounds_rows(bounds: Sequence[OffsetBounds]) -> Iterator[dict[str, Any]]:
    sequences: dict[int, int] = {}
    for row in bounds:
        sequence = sequences[row.replica_id] = sequences.get(row.replica_id, -1) + 1
        yield {
            "table_name": REPLICA_OFFSET_TIMELINE.full_name,
            "replica_id": row.replica_id,
            "sequence": sequence,
            "valid_from": to_datetime(row.valid_from),
            "valid_to": None if row.valid_to is None else to_datetime(row.valid_to),
            "high_watermark_lower": row.high_watermark_lower,
            "high_watermark_upper": row.high_watermark_upper,
            "log_end_offset_lower": row.log_end_offset_lower,
            "log_end_offset_upper": row.log_end_offset_upper,
            "log_start_offset_lower": row.log_start_offset_lower,
            "recovery_point_lower": row.recovery_point_lower,
            "evidence": list(row.evidence),
            "inferred_from": INFERRED,
            "model_version": MODEL_VERSION,
        }


def _loss_rows(losses: Sequence[OffsetLoss]) -> Iterator[dict[str, Any]]:
    for sequence, loss in enumerate(losses):
        evidence = {*loss.evidence, *(name for kept in loss.diverging for name in kept.evidence)}
        yield {
            "table_name": DATA_LOSS_BOUNDS.full_name,
            "sequence": sequence,
            "event_at": to_datetime(loss.event_at),
            "cause": loss.cause,
            "leader": loss.leader,
            "previous_leader": loss.previous_leader,
            "leader_epoch": loss.leader_epoch,
            "lost_from_offset": loss.lost_from_offset,
            "lost_to_offset_lower": loss.lost_to_offset_lower,
            "lost_to_offset_upper": loss.lost_to_offset_upper,
            "lost_count_lower": loss.lost_count_lower,
            "lost_count_upper": loss.lost_count_upper,
            "diverging_replicas": [kept.replica_id for kept in loss.diverging],
            "diverging_offsets": [f"{kept.from_offset}-{kept.to_offset - 1}" for kept in loss.diverging],
            "evidence": sorted(evidence),
            "inferred_from": INFERRED,
            "model_version": MODEL_VERSION,
        }
