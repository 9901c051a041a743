"""Clocks on Spark: causal pairs out of the silver tables, segments of each broker's clock, corrected times.

What is kept of the pairs grows with the clocks and not with the logs: of each two clocks, the tightest of at most
:data:`BUCKETS` stretches of time. The rules are those of :mod:`reconstruct.clocks.evidence`, the solving that of
:mod:`reconstruct.clocks.timeline`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ingest.shapes.event_types import EventType
from reconstruct.clocks.evidence import (
    ANNOUNCES_REGISTRATION,
    EVENT_TYPES,
    RULES,
    SAME_REQUEST_US,
    LogFact,
    Mark,
    ZnodeFact,
    log_marks,
    znode_marks,
)
from reconstruct.clocks.timeline import CausalPair, correction_us, solve_clocks
from reconstruct.model.znode_paths import BROKER_PATTERN, CONTROLLER_EPOCH_PATH, PARTITION_STATE_PATTERN

#: Of each two clocks and direction, pairs are kept for so many stretches of time, and so many of each stretch.
BUCKETS: Final = 200
TIGHTEST: Final = 3
_SHORTEST_BUCKET_US: Final = 60_000_000
#: A file that goes back by more than threads of one broker overtake each other was written by a clock set back: µs.
_STEP_BACK_US: Final = 1_000_000

PAIR_COLUMNS: Final = {
    "cluster_id": "string",
    "earlier_clock": "int",
    "later_clock": "int",
    "earlier_us": "bigint",
    "later_us": "bigint",
    "rule": "string",
    "evidence": "array<string>",
    "pairs_count": "bigint",
}
SEGMENT_COLUMNS: Final = {
    "cluster_id": "string",
    "broker_id": "int",
    "sequence": "int",
    "from_us": "bigint",
    "to_us": "bigint",
    "offset_lower_ms": "bigint",
    "offset_upper_ms": "bigint",
    "pairs_count": "bigint",
    "dropped_pairs_count": "bigint",
    "reference_clock": "int",
    "zone_offset_minutes": "int",
    "verdict": "string",
    "correction_us": "bigint",
}
_ARROW: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
}
_MARK_COLUMNS: Final = {
    "cluster_id": "string",
    "rule": "string",
    "key": "string",
    "is_earlier": "boolean",
    "clock": "int",
    "at_us": "bigint",
    "evidence_id": "string",
}


def _ddl(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())


def _schema(columns: dict[str, str]) -> pa.Schema:
    return pa.schema([(name, _ARROW[type_]) for name, type_ in columns.items()])


def causal_pairs(
    state_changes: DataFrame, controller_events: DataFrame, replication_events: DataFrame, znode_changes: DataFrame
) -> DataFrame:
    """The pairs that bound clocks, :data:`PAIR_COLUMNS`, from ``silver``'s events and ``silver.znode_changes``."""
    logged = _facts(state_changes, "state_change_log").unionByName(_facts(controller_events, "controller_log"))
    logged = logged.unionByName(_announced(_facts(replication_events, "server_log")))
    # the parts of a union are as many tasks, each with a Python of its own: no more of them than a shuffle would make
    tasks = int(logged.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    marks = (
        logged.coalesce(tasks)
        .mapInArrow(_log_marks, _ddl(_MARK_COLUMNS))
        .unionByName(_writes(znode_changes).mapInArrow(_znode_marks, _ddl(_MARK_COLUMNS)))
    )
    return _tightest(_paired(marks))


def clock_segments(pairs: DataFrame, brokers: DataFrame) -> DataFrame:
    """Segments of every broker's clock, :data:`SEGMENT_COLUMNS`; ``brokers`` has ``cluster_id`` and ``broker_id``.

    ``from_us`` and ``to_us`` are printed times, µs; NULL is open. ``correction_us`` is to be subtracted from what
    was printed; NULL where nothing proves a correction.
    """
    named = brokers.where("broker_id IS NOT NULL").select("cluster_id", F.col("broker_id").cast("int")).distinct()
    return pairs.groupBy("cluster_id").cogroup(named.groupBy("cluster_id")).applyInArrow(_solve, _ddl(SEGMENT_COLUMNS))


def clocks_of(records: DataFrame, znode_changes: DataFrame) -> DataFrame:
    """Segments of every broker's clock, :data:`SEGMENT_COLUMNS`, from ``bronze.log_records`` and
    ``silver.znode_changes``."""
    matched = records.where("shape_id IS NOT NULL").withColumn("event_id", F.concat("record_id", F.lit(":0")))
    logs = [
        matched.where(F.col("source_kind") == kind) for kind in ("state_change_log", "controller_log", "server_log")
    ]
    pairs = causal_pairs(logs[0], logs[1], logs[2], znode_changes)
    return clock_segments(pairs, records.select("cluster_id", "broker_id"))


def is_any_corrected(segments: DataFrame) -> bool:
    """Whether any broker's times are to be corrected: most clusters' are not, and need no pass over their records."""
    return not segments.where("correction_us <> 0").isEmpty()


def as_printed(records: DataFrame) -> DataFrame:
    """Records with ``corrected_time`` where every clock is taken to be right."""
    return records.withColumn("corrected_time", F.col("event_time"))


def with_corrected_time(events: DataFrame, segments: DataFrame) -> DataFrame:
    """Events and ``corrected_time``: ``event_time`` as a right clock in UTC would have printed it.

    It is ``event_time`` itself where nothing proves a correction. ``events`` has ``cluster_id``, ``broker_id``,
    ``event_time``, ``file_id`` and ``byte_offset``. Where a clock that was set back printed a time twice, the record
    belongs to the later time if its file had shown a later one before it.
    """
    of_broker = F.broadcast(
        segments.groupBy("cluster_id", "broker_id").agg(
            F.array_sort(F.collect_list(F.struct("sequence", "from_us", "to_us", "correction_us"))).alias("segments")
        )
    )
    printed = F.unix_micros("event_time")
    holding = F.filter(
        "segments",
        lambda s: (s["from_us"].isNull() | (s["from_us"] <= printed)) & (s["to_us"].isNull() | (printed < s["to_us"])),
    )
    placed = events.join(of_broker, ["cluster_id", "broker_id"], "left").withColumn("holding", holding)
    in_file = (
        Window.partitionBy("cluster_id", "file_id").orderBy("byte_offset").rowsBetween(Window.unboundedPreceding, 0)
    )
    # only a broker whose clock was set has more than one segment: only its files are put in order
    once = placed.where(F.coalesce(F.size("segments"), F.lit(0)) < 2).withColumn(
        "chosen", F.try_element_at("holding", F.lit(1))
    )
    more = placed.where(F.size("segments") >= 2).withColumn("latest", F.max(printed).over(in_file))
    is_behind = F.col("latest") - printed > _STEP_BACK_US
    more = more.withColumn("chosen", F.try_element_at("holding", F.when(is_behind, F.lit(-1)).otherwise(F.lit(1))))
    corrected = F.timestamp_micros(printed - F.coalesce(F.col("chosen.correction_us"), F.lit(0)))
    return once.unionByName(more.drop("latest")).select(
        *(F.col(name) for name in events.columns), corrected.alias("corrected_time")
    )


def _facts(events: DataFrame, source_kind: str) -> DataFrame:
    """What :class:`LogFact` needs of each record that may leave a mark, once per record."""
    wanted = F.col("event_type").isin(*sorted(EVENT_TYPES), *ANNOUNCES_REGISTRATION)
    if source_kind == "server_log":
        wanted = wanted | (F.col("fields")["is_secure"].isNotNull() & F.col("fields")["path"].rlike(BROKER_PATTERN))
    return events.where(wanted & F.col("event_id").endswith(":0")).select(
        "cluster_id",
        "file_id",
        "byte_offset",
        F.col("record_id").alias("evidence_id"),
        F.lit(source_kind).alias("source_kind"),
        "event_type",
        F.unix_micros("event_time").alias("at_us"),
        F.col("broker_id").cast("int").alias("broker_id"),
        "fields",
        F.lit(None).cast("bigint").alias("announced_us"),
        F.lit(None).cast("string").alias("announced_by"),
    )


def _announced(server_log: DataFrame) -> DataFrame:
    """Each registration with the line before it in its file that announced it."""
    is_registered = F.col("event_type") == EventType.BROKER_REGISTERED
    announces = F.col("event_type").isin(*ANNOUNCES_REGISTRATION) | F.col("fields")["is_secure"].isNotNull()
    before = (
        Window.partitionBy("cluster_id", "file_id").orderBy("byte_offset").rowsBetween(Window.unboundedPreceding, -1)
    )
    last = F.last(F.when(announces, F.struct("at_us", "evidence_id")), ignorenulls=True).over(before)
    registrations = (
        server_log.where(is_registered | announces)
        .withColumn("announced", last)
        .where(is_registered)
        .withColumns({"announced_us": F.col("announced.at_us"), "announced_by": F.col("announced.evidence_id")})
        .drop("announced")
    )
    return server_log.where(~is_registered & ~announces).unionByName(registrations)


def _writes(znode_changes: DataFrame) -> DataFrame:
    """What :class:`ZnodeFact` needs of each write to a znode that leaves marks."""
    path = F.col("path")
    relevant = (path == CONTROLLER_EPOCH_PATH) | path.rlike(BROKER_PATTERN) | path.rlike(PARTITION_STATE_PATTERN)
    written = znode_changes.where((F.col("change") == "written") & relevant)
    by_znode = Window.partitionBy("cluster_id", "path", "czxid").orderBy("mzxid")
    everywhere = Window.partitionBy("cluster_id", "path")
    return written.select(
        "cluster_id",
        F.col("evidence")[0].alias("evidence_id"),
        "path",
        "data",
        F.unix_micros("changed_at").alias("at_us"),
        "czxid",
        "mzxid",
        "version",
        F.lag("data").over(by_znode).alias("previous"),
        F.lag("version").over(by_znode).alias("previous_version"),
        (F.min("czxid").over(everywhere) == F.max("czxid").over(everywhere)).alias("is_only"),
    )


def _log_marks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        marks = []
        for row in batch.to_pylist():
            fields = {name: value for name, value in row["fields"] or () if value is not None}
            fact = LogFact(
                row["evidence_id"],
                row["source_kind"],
                row["event_type"],
                row["at_us"],
                row["broker_id"],
                fields,
                row["announced_us"],
                row["announced_by"],
            )
            marks += [_mark_row(row["cluster_id"], mark) for mark in log_marks(fact)]
        yield pa.RecordBatch.from_pylist(marks, schema=_schema(_MARK_COLUMNS))


def _znode_marks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        marks = []
        for row in batch.to_pylist():
            cluster_id = row.pop("cluster_id")
            marks += [_mark_row(cluster_id, mark) for mark in znode_marks(ZnodeFact(**row))]
        yield pa.RecordBatch.from_pylist(marks, schema=_schema(_MARK_COLUMNS))


def _mark_row(cluster_id: str, mark: Mark) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "rule": mark.rule,
        "key": mark.key,
        "is_earlier": mark.is_earlier,
        "clock": mark.clock,
        "at_us": mark.at_us,
        "evidence_id": mark.evidence_id,
    }


def _paired(marks: DataFrame) -> DataFrame:
    """The pairs of :func:`reconstruct.clocks.evidence.pair_up`."""
    key = ["cluster_id", "rule", "key"]
    in_order = F.struct("at_us", "evidence_id")
    sides = marks.groupBy(*key, "is_earlier", "clock").agg(
        F.count("*").alias("marks"), F.min(in_order).alias("first"), F.max(in_order).alias("last")
    )
    many_earlier = F.col("rule").isin(*(rule.name for rule in RULES.values() if rule.many_earlier))
    many_later = F.col("rule").isin(*(rule.name for rule in RULES.values() if rule.many_later))
    is_one_request = many_earlier & (F.col("last.at_us") - F.col("first.at_us") <= SAME_REQUEST_US)
    all_sides = Window.partitionBy(*key, "is_earlier")
    counted = sides.withColumns({"clocks": F.count("*").over(all_sides), "all_marks": F.sum("marks").over(all_sides)})
    is_cause = F.col("is_earlier") & (F.col("clocks") == 1) & ((F.col("marks") == 1) | is_one_request)
    is_effect = ~F.col("is_earlier") & ((F.col("all_marks") == 1) | many_later)
    # a key has one cause at most: beside its effects instead of joined to them, the marks are made once
    cause = F.max(F.when(is_cause, F.struct("clock", "last"))).over(Window.partitionBy(*key))
    return (
        counted.withColumn("cause", cause)
        .where(is_effect & F.col("cause").isNotNull() & (F.col("cause.clock") != F.col("clock")))
        .select(
            "cluster_id",
            F.col("cause.clock").alias("earlier_clock"),
            F.col("clock").alias("later_clock"),
            F.col("cause.last.at_us").alias("earlier_us"),
            F.col("first.at_us").alias("later_us"),
            "rule",
            F.array("cause.last.evidence_id", "first.evidence_id").alias("evidence"),
        )
    )


def _tightest(pairs: DataFrame) -> DataFrame:
    """The tightest pairs of each stretch of time; the first of a stretch counts for all that it stands for."""
    clocks = ("cluster_id", "earlier_clock", "later_clock")
    of_clocks = Window.partitionBy(*clocks)
    # by the steadier clock: ZooKeeper's where it is one of the two
    at = F.when(F.col("later_clock") < 0, F.col("later_us")).otherwise(F.col("earlier_us"))
    span = (F.max("at").over(of_clocks) - F.min("at").over(of_clocks)) / BUCKETS
    width = F.greatest(span, F.lit(_SHORTEST_BUCKET_US))
    stretch = Window.partitionBy(*clocks, "bucket")
    order = (F.col("later_us") - F.col("earlier_us"), "earlier_us", "rule", "evidence")
    return (
        pairs.withColumn("at", at)
        .withColumn("bucket", F.floor((F.col("at") - F.min("at").over(of_clocks)) / width))
        .withColumns({"rank": F.row_number().over(stretch.orderBy(*order)), "all": F.count("*").over(stretch)})
        .where(F.col("rank") <= TIGHTEST)
        .withColumn(
            "pairs_count", F.when(F.col("rank") == 1, F.col("all") - F.least("all", F.lit(TIGHTEST)) + 1).otherwise(1)
        )
        .select(*(F.col(name).cast(type_).alias(name) for name, type_ in PAIR_COLUMNS.items()))
    )


def _solve(pairs: pa.Table, brokers: pa.Table) -> pa.Table:
    given = []
    cluster_id = ""
    for row in pairs.to_pylist():
        cluster_id = row.pop("cluster_id")
        given.append(CausalPair(**{**row, "evidence": tuple(row["evidence"])}))
    named = []
    for row in brokers.to_pylist():
        cluster_id = row["cluster_id"]
        named.append(row["broker_id"])
    rows = [
        {
            "cluster_id": cluster_id,
            "broker_id": s.broker_id,
            "sequence": s.sequence,
            "from_us": s.from_us,
            "to_us": s.to_us,
            "offset_lower_ms": s.offset_lower_ms,
            "offset_upper_ms": s.offset_upper_ms,
            "pairs_count": s.pairs_count,
            "dropped_pairs_count": s.dropped_pairs_count,
            "reference_clock": s.reference,
            "zone_offset_minutes": s.zone_offset_minutes,
            "verdict": s.verdict,
            "correction_us": correction_us(s),
        }
        for s in solve_clocks(given, named)
    ]
    return pa.Table.from_pylist(rows, schema=_schema(SEGMENT_COLUMNS))
