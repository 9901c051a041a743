"""R37 on Spark: the checkpoint files of every broker, judged broker by broker; rows for ``gold.divergences`` out.

The adapter knows nothing of Kafka: it turns rows into :class:`BrokerCheckpoints`, calls :func:`judge_checkpoints`, and
turns what that finds into rows, told apart by ``table_name``; take them with
:func:`reconstruct.partitions.spark.step.rows_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.spec import SPARK_TYPES
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
from reconstruct.checkpoints.spark.evidence import (
    ASSIGNED,
    BAD,
    COPY,
    ENTRY,
    LINE,
    PROVEN,
    checkpoint_evidence_rows,
)
from reconstruct.checkpoints.verdicts import CheckpointVerdicts
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import VERDICTS, finding_row
from reconstruct.offsets.clocks import DECISIONS
from reconstruct.offsets.spark.context import OffsetContext

_COLUMNS: Final = {
    "table_name": "string",
    **{c.name: c.type for c in DIVERGENCES.columns},
    "rule": "string",
    "verdict": "string",
    "times": "bigint",
}
_SCHEMA: Final = T.StructType([T.StructField(name, SPARK_TYPES[type_]) for name, type_ in _COLUMNS.items()])
_ARROW_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
}
_ARROW: Final = pa.schema([(name, _ARROW_TYPES[type_]) for name, type_ in _COLUMNS.items()])


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

    Grain: one row per finding, ``table_name`` that of the table; and one per (broker, verdict), ``table_name``
    :data:`VERDICTS`. ``files`` are ``bronze.ingested_files``, ``rejected`` ``bronze.rejected_records``, ``sightings``
    of :func:`offset_observations`, ``records`` ``bronze.log_records`` with ``corrected_time``; the others the silver
    tables ``replication_events``, ``assignment_timeline`` and ``replica_offset_timeline``.
    """
    copies = checkpoint_copies(files, _starts(files, contexts))
    entries = corner_entries(sightings, copies)
    given = checkpoint_evidence_rows(
        copies, entries, rejected, replication_events, records, assignments, offset_timeline
    )
    return given.groupBy("cluster_id", "broker_id").applyInArrow(_folder(dict(contexts)), _SCHEMA)


def _starts(files: DataFrame, contexts: Mapping[str, OffsetContext]) -> DataFrame:
    rows = [
        (cluster_id, broker_id, at)
        for cluster_id, context in sorted(contexts.items())
        for broker_id, starts in sorted(context.view.process_starts.items())
        for at, _ in starts
    ]
    return files.sparkSession.createDataFrame(rows, "cluster_id string, broker_id int, start_us bigint")


def _folder(contexts: Mapping[str, OffsetContext]) -> Callable[[pa.Table], pa.Table]:
    def fold(group: pa.Table) -> pa.Table:
        rows = group.to_pylist()
        cluster_id, broker_id = rows[0]["cluster_id"], rows[0]["broker_id"]
        context = contexts.get(cluster_id) or OffsetContext(ClusterView(cluster_id))
        judged = judge_checkpoints(_seen(rows, broker_id, context))
        return pa.Table.from_pylist(list(_rows(cluster_id, judged)), schema=_ARROW)

    return fold


def _seen(rows: Sequence[Mapping[str, Any]], broker_id: int, context: OffsetContext) -> BrokerCheckpoints:
    of_kind: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_kind.setdefault(row["row_kind"], []).append(row)
    schedule = context.schedules.get(broker_id)
    return BrokerCheckpoints(
        broker_id,
        context.view.version,
        _copies_of(of_kind),
        _entries_of(of_kind),
        _lines_of(of_kind),
        context.view.process_starts.get(broker_id, ()),
        _assigned_of(of_kind),
        _proven_of(of_kind),
        context.covered.get(broker_id, ()),
        () if schedule is None else schedule.sessions,
        None if schedule is None else schedule.interval_us + schedule.longest_stall_us,
        max((row["to_us"] or 0 for row in of_kind.get(COPY, ())), default=0),
        context.clocks.slack_us(broker_id),
        context.clocks.slack_us(DECISIONS),
    )


_Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def _copies_of(rows: _Rows) -> list[CheckpointCopy]:
    bad: dict[str, list[tuple[int, str, RejectedEntry]]] = {}
    for row in rows.get(BAD, ()):
        entry = RejectedEntry(row["reason"], row["text"], row["evidence"][0])
        bad.setdefault(row["file_id"], []).append((row["from_us"], entry.evidence_id, entry))
    return [
        CheckpointCopy(
            row["directory"],
            row["kind"],
            row["from_us"],
            row["offset"],
            tuple(entry for _, _, entry in sorted(bad.get(row["file_id"], ()), key=lambda one: one[:2])),
            row["text"] or "",
        )
        for row in rows.get(COPY, ())
    ]


def _replica(row: Mapping[str, Any]) -> Replica:
    return row["topic"], row["topic_incarnation"] or "", row["partition_id"]


def _entries_of(rows: _Rows) -> list[CheckpointEntry]:
    return [
        CheckpointEntry(
            row["directory"],
            row["kind"],
            _replica(row),
            row["from_us"],
            row["offset"],
            row["evidence"][0],
            row["is_so"],
        )
        for row in rows.get(ENTRY, ())
    ]


def _lines_of(rows: _Rows) -> list[BrokerLine]:
    result: list[BrokerLine] = []
    for row in rows.get(LINE, ()):
        fields = {name: value for name, value in row["fields"] or () if value is not None}
        if row["topic"] is not None and row["partition_id"] is not None:
            fields |= {"topic": row["topic"], "partition_id": str(row["partition_id"])}
        result += lines_of(
            row["from_us"],
            row["evidence"][0],
            row["kind"] or "",
            fields,
            row["text"] or "",
            row["reason"] or "",
            row["topic_incarnation"] or "",
        )
    return result


def _assigned_of(rows: _Rows) -> dict[Replica, list[AssignedSpan]]:
    result: dict[Replica, list[AssignedSpan]] = {}
    for row in rows.get(ASSIGNED, ()):
        result.setdefault(_replica(row), []).append(AssignedSpan(row["from_us"], row["to_us"], row["is_so"]))
    for spans in result.values():
        spans.sort(key=lambda span: (span.start, span.end is None, span.end or 0))
    return result


def _proven_of(rows: _Rows) -> dict[Replica, list[ProvenHighWatermark]]:
    result: dict[Replica, list[ProvenHighWatermark]] = {}
    for row in rows.get(PROVEN, ()):
        proven = ProvenHighWatermark(row["from_us"], row["to_us"], row["offset"], tuple(row["evidence"] or ()))
        result.setdefault(_replica(row), []).append(proven)
    for spans in result.values():
        spans.sort(key=lambda span: (span.start, span.offset, span.evidence))
    return result


def _rows(cluster_id: str, judged: CheckpointVerdicts) -> Iterator[dict[str, Any]]:
    for finding, replica in zip(judged.verdicts.findings, judged.replicas, strict=True):
        topic, incarnation, partition_id = (None, None, None) if replica is None else replica
        yield {
            "table_name": DIVERGENCES.full_name,
            **finding_row(finding),
            "cluster_id": cluster_id,
            "topic": topic,
            "topic_incarnation": incarnation,
            "partition_id": partition_id,
        }
    for (rule_id, verdict), times in sorted(judged.verdicts.counts.items()):
        yield {"table_name": VERDICTS, "cluster_id": cluster_id, "rule": rule_id, "verdict": verdict, "times": times}
