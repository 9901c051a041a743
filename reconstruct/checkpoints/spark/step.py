"""R37 on Spark: the checkpoint files of every broker, judged broker by broker; rows for ``gold.divergences`` out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from ingest.lake.local_frames import local_frame
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.shared import PARTITION_KEY
from reconstruct.checkpoints.evidence import (
    AssignedSpan,
    BrokerCheckpoints,
    BrokerLine,
    CheckpointCopy,
    CheckpointEntry,
    ProvenHighWatermark,
    RejectedEntry,
    Replica,
    lines_of,
)
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.checkpoints.spark.corners import checkpoint_copies, corner_entries
from reconstruct.checkpoints.spark.evidence import BROKER_KEY, checkpoint_evidence_rows
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.folds import fold, table_columns
from reconstruct.engine.rows import Row, Value, count_rows, finding_row, rows_of_kind, value_of
from reconstruct.events.fields import fields_of
from reconstruct.offsets.clocks import DECISIONS
from reconstruct.offsets.spark.context import OffsetContext


def checkpoint_findings(
    files: DataFrame,
    rejected: DataFrame,
    sightings: DataFrame,
    replication_events: DataFrame,
    records: DataFrame,
    assignments: DataFrame,
    offset_timeline: DataFrame,
    contexts: Mapping[str, OffsetContext],
) -> DataFrame:
    """Rows of ``gold.divergences`` and verdicts of R37.

    Grain: one row per finding, and one per (broker, verdict); take the findings with
    :func:`reconstruct.engine.folds.rows_of`. ``files`` are ``bronze.ingested_files``, ``rejected``
    ``bronze.rejected_records``, ``sightings`` of :func:`offset_observations`, ``records`` ``bronze.log_records`` with
    ``corrected_time``; the others the silver tables ``replication_events``, ``assignment_timeline`` and
    ``replica_offset_timeline``.
    """
    copies = checkpoint_copies(files, _starts(files, contexts))
    entries = corner_entries(sightings, copies)
    given = checkpoint_evidence_rows(
        copies, entries, rejected, replication_events, records, assignments, offset_timeline
    )
    known = dict(contexts)
    return fold(given, BROKER_KEY, table_columns(DIVERGENCES), lambda rows: _judged_rows(rows, known))


def _starts(files: DataFrame, contexts: Mapping[str, OffsetContext]) -> DataFrame:
    rows = [
        (cluster_id, broker_id, at)
        for cluster_id, context in sorted(contexts.items())
        for broker_id, starts in sorted(context.view.process_starts.items())
        for at, _ in starts
    ]
    return local_frame(files.sparkSession, "cluster_id string, broker_id int, start_us bigint", rows)


def _judged_rows(rows: Sequence[Row], contexts: Mapping[str, OffsetContext]) -> Iterator[dict[str, Any]]:
    cluster_id, broker_id = rows[0]["cluster_id"], rows[0]["broker_id"]
    context = contexts.get(cluster_id) or OffsetContext(ClusterView(cluster_id))
    judged = judge_checkpoints(_checkpoints_of(rows, broker_id, context))
    for finding, replica in zip(judged.verdicts.findings, judged.replicas, strict=True):
        yield finding_row(finding, **dict(zip(PARTITION_KEY[1:], replica or (None, None, None), strict=True)))
    yield from count_rows(judged.verdicts)


def _checkpoints_of(rows: Sequence[Row], broker_id: int, context: OffsetContext) -> BrokerCheckpoints:
    schedule = context.schedules.get(broker_id)
    return BrokerCheckpoints(
        broker_id,
        context.view.version,
        _copies_of(rows),
        [value_of(CheckpointEntry, row, replica=_replica(row)) for row in rows_of_kind(CheckpointEntry, rows)],
        [line for row in rows_of_kind(BrokerLine, rows) for line in _lines_of(row)],
        context.view.process_starts.get(broker_id, ()),
        _by_replica(AssignedSpan, rows, lambda span: (span.start, span.end is None, span.end or 0)),
        _by_replica(ProvenHighWatermark, rows, lambda proven: (proven.start, proven.offset, proven.evidence)),
        context.covered.get(broker_id, ()),
        () if schedule is None else schedule.sessions,
        None if schedule is None else schedule.interval_us + schedule.longest_stall_us,
        max((row["known_until"] or 0 for row in rows_of_kind(CheckpointCopy, rows)), default=0),
        context.clocks.slack_us(broker_id),
        context.clocks.slack_us(DECISIONS),
        broker_id in context.view.set_back,
    )


def _copies_of(rows: Sequence[Row]) -> list[CheckpointCopy]:
    bad: dict[str, list[Row]] = {}
    for row in rows_of_kind(RejectedEntry, rows):
        bad.setdefault(row["file_id"], []).append(row)
    for of_file in bad.values():
        of_file.sort(key=lambda row: (row["source_line"], row["evidence_id"]))
    return [
        value_of(
            CheckpointCopy, row, bad=tuple(value_of(RejectedEntry, entry) for entry in bad.get(row["file_id"], ()))
        )
        for row in rows_of_kind(CheckpointCopy, rows)
    ]


def _lines_of(row: Row) -> Iterator[BrokerLine]:
    fields = fields_of(row["fields"])
    if row["topic"] is not None and row["partition_id"] is not None:
        fields |= {"topic": row["topic"], "partition_id": str(row["partition_id"])}
    words = (row[name] or "" for name in ("cause", "cause_type", "topic_incarnation"))
    return lines_of(row["at"], row["evidence_id"], row["event_type"] or "", fields, *words)


def _by_replica(kind: type[Value], rows: Sequence[Row], order: Callable[[Value], Any]) -> dict[Replica, list[Value]]:
    result: dict[Replica, list[Value]] = {}
    for row in rows_of_kind(kind, rows):
        result.setdefault(_replica(row), []).append(value_of(kind, row))
    for values in result.values():
        values.sort(key=order)
    return result


def _replica(row: Row) -> Replica:
    return row["topic"], row["topic_incarnation"] or "", row["partition_id"]
