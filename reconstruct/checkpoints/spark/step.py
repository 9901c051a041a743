"""R37 on Spark: the checkpoint files of every broker, judged broker by broker; rows for ``gold.divergences`` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    RoleLines,
    lines_of,
    role_lines,
)
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.checkpoints.spark.corners import checkpoint_copies, corner_entries
from reconstruct.checkpoints.spark.evidence import BROKER_KEY, checkpoint_evidence_rows
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.folds import fold, table_columns
from reconstruct.engine.rows import KIND, Row, Value, count_rows, finding_row, value_of
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


def _judged_rows(rows: Iterable[Row], contexts: Mapping[str, OffsetContext]) -> Iterator[dict[str, Any]]:
    known = _KnownOfBroker()
    row: Row = {}
    for row in rows:
        known.add(row)
    context = contexts.get(row["cluster_id"]) or OffsetContext(ClusterView(row["cluster_id"]))
    judged = judge_checkpoints(_checkpoints_of(known, row["broker_id"], context))
    for finding, replica in zip(judged.verdicts.findings, judged.replicas, strict=True):
        yield finding_row(finding, **dict(zip(PARTITION_KEY[1:], replica or (None, None, None), strict=True)))
    yield from count_rows(judged.verdicts)


@dataclass
class _KnownOfBroker:
    """The rows of one broker as they come: its lines and entries, which may be millions, are held as values alone."""

    copies: list[Row] = field(default_factory=list)
    bad: dict[str, list[Row]] = field(default_factory=dict)
    entries: list[CheckpointEntry] = field(default_factory=list)
    lines: list[BrokerLine] = field(default_factory=list)
    assigned: dict[Replica, list[AssignedSpan]] = field(default_factory=dict)
    proven: dict[Replica, list[ProvenHighWatermark]] = field(default_factory=dict)
    #: What many values have in common, once: replicas, paths, directories.
    _shared: dict[Any, Any] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        match row[KIND]:
            case BrokerLine.__name__:
                self.lines.extend(_lines_of(row, self._once))
            case RoleLines.__name__:
                self.lines.extend(role_lines(value_of(RoleLines, row), self._replica(row)))
            case CheckpointEntry.__name__:
                named = {name: self._once(row[name]) for name in ("directory", "kind")}
                self.entries.append(value_of(CheckpointEntry, row, replica=self._replica(row), **named))
            case AssignedSpan.__name__:
                self.assigned.setdefault(self._replica(row), []).append(value_of(AssignedSpan, row))
            case ProvenHighWatermark.__name__:
                self.proven.setdefault(self._replica(row), []).append(value_of(ProvenHighWatermark, row))
            case RejectedEntry.__name__:
                self.bad.setdefault(row["file_id"], []).append(row)
            case CheckpointCopy.__name__:
                self.copies.append(row)
            case other:
                raise ValueError(f"evidence of a kind that R37 does not judge: {other}")

    def _replica(self, row: Row) -> Replica:
        return self._once((row["topic"], row["topic_incarnation"] or "", row["partition_id"]))

    def _once(self, value: Value) -> Value:
        shared: Value = self._shared.setdefault(value, value)
        return shared


def _checkpoints_of(known: _KnownOfBroker, broker_id: int, context: OffsetContext) -> BrokerCheckpoints:
    schedule = context.schedules.get(broker_id)
    for spans in known.assigned.values():
        spans.sort(key=lambda span: (span.start, span.end is None, span.end or 0))
    for highest in known.proven.values():
        highest.sort(key=lambda proven: (proven.start, proven.offset, proven.evidence))
    return BrokerCheckpoints(
        broker_id,
        context.view.version,
        _copies_of(known),
        known.entries,
        known.lines,
        context.view.process_starts.get(broker_id, ()),
        known.assigned,
        known.proven,
        context.covered.get(broker_id, ()),
        () if schedule is None else schedule.sessions,
        None if schedule is None else schedule.interval_us + schedule.longest_stall_us,
        max((row["known_until"] or 0 for row in known.copies), default=0),
        context.clocks.slack_us(broker_id),
        context.clocks.slack_us(DECISIONS),
        broker_id in context.view.set_back,
    )


def _copies_of(known: _KnownOfBroker) -> list[CheckpointCopy]:
    for of_file in known.bad.values():
        of_file.sort(key=lambda row: (row["source_line"], row["evidence_id"]))
    return [
        value_of(
            CheckpointCopy,
            row,
            bad=tuple(value_of(RejectedEntry, entry) for entry in known.bad.get(row["file_id"], ())),
        )
        for row in known.copies
    ]


def _lines_of(row: Row, once: Callable[[Any], Any]) -> Iterator[BrokerLine]:
    fields = fields_of(row["fields"])
    if row["topic"] is not None and row["partition_id"] is not None:
        fields = {**fields, "topic": row["topic"], "partition_id": str(row["partition_id"])}
    cause, cause_type, incarnation = (row[name] or "" for name in ("cause", "cause_type", "topic_incarnation"))
    event_type = row["event_type"] or ""
    return lines_of(row["at"], row["evidence_id"], event_type, fields, cause, cause_type, incarnation, once)
