"""Causal pairs out of typed events and writes to znodes, by the rules of :mod:`reconstruct.clocks.evidence`.

What is kept of the pairs grows with the clocks and not with the logs: of each two clocks, the tightest of at most
:data:`BUCKETS` stretches of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import map_in_arrow, union
from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.kept import CLOCK_MARKS
from ingest.lake.tables.types import arrow_schema, spark_schema
from ingest.shapes.event_types import EventType
from reconstruct.clocks.evidence import (
    ANNOUNCES_REGISTRATION,
    EVENT_TYPES,
    RULES,
    SAME_REQUEST_US,
    LogFact,
    Mark,
    RecordFact,
    ZnodeFact,
    log_marks,
    record_marks,
    znode_marks,
)
from reconstruct.clocks.timeline import CausalPair
from reconstruct.engine.batches import rows_in
from reconstruct.engine.rows import Row, Value, columns_of, value_of
from reconstruct.events.spark.fields import text_field
from reconstruct.model.znode_paths import BROKER_PATTERN, CONTROLLER_EPOCH_PATH, PARTITION_STATE_PATTERN

#: Of each two clocks and direction, pairs are kept for so many stretches of time, and so many of each stretch.
BUCKETS: Final = 200
TIGHTEST: Final = 3
_SHORTEST_BUCKET_US: Final = 60_000_000

PAIR_COLUMNS: Final = {"cluster_id": "string", **columns_of(CausalPair)}
_SIDE_COLUMNS: Final = {column.name: column.type for column in CLOCK_MARKS.columns}
#: So many sides a task counts the marks of before it hands them on: memory stays bounded.
_SIDES_AT_A_TIME: Final = 100_000


def written_marks(znode_changes: DataFrame, metadata_changes: DataFrame | None = None) -> DataFrame:
    """The marks of ``silver.znode_changes`` and ``silver.metadata_changes``: rows of ``kept.clock_marks`` without a
    file."""
    sides = [_marked(_writes(znode_changes), ZnodeFact, znode_marks)]
    if metadata_changes is not None:
        sides.append(_marked(_records(metadata_changes), RecordFact, record_marks))
    return union(sides)


def logged_marks(state_changes: DataFrame, controller_events: DataFrame, replication_events: DataFrame) -> DataFrame:
    """The marks of ``silver``'s events, or of records with an ``event_id``, file by file: rows of
    ``kept.clock_marks``."""
    logged = union(
        [
            _facts(state_changes, SourceKind.STATE_CHANGE_LOG),
            _facts(controller_events, SourceKind.CONTROLLER_LOG),
            _announced(_facts(replication_events, SourceKind.SERVER_LOG)),
        ]
    )
    # the parts of a union are as many tasks, each with a Python of its own: no more of them than a shuffle would make
    tasks = int(logged.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return _marked(logged.coalesce(tasks), LogFact, log_marks)


def _marked(rows: DataFrame, kind: type[Value], marks_of: Callable[[Value], Iterable[Mark]]) -> DataFrame:
    """The marks that rows of facts leave, by side: rows of ``kept.clock_marks``, a side in any number of them."""

    def sides(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _sides((row for batch in batches for row in rows_in(batch)), kind, marks_of)

    return map_in_arrow(rows, sides, spark_schema(_SIDE_COLUMNS))


def _facts(events: DataFrame, source_kind: str) -> DataFrame:
    """What :class:`LogFact` needs of each record that may leave a mark, once per record."""
    wanted = F.col("event_type").isin(*sorted(EVENT_TYPES), *ANNOUNCES_REGISTRATION)
    if source_kind == SourceKind.SERVER_LOG:
        wanted = wanted | (text_field("is_secure").isNotNull() & text_field("path").rlike(BROKER_PATTERN))
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
    announces = F.col("event_type").isin(*ANNOUNCES_REGISTRATION) | text_field("is_secure").isNotNull()
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


def _records(metadata_changes: DataFrame) -> DataFrame:
    """What :class:`RecordFact` needs of each record that leaves marks."""
    marked = metadata_changes.where("subject_kind IN ('partition', 'broker', 'controller')")
    of_subject = Window.partitionBy("cluster_id", "subject_kind", "subject", "partition_id").orderBy("offset")
    of_name = Window.partitionBy("cluster_id", "topic")
    return marked.select(
        "cluster_id",
        F.col("evidence")[0].alias("evidence_id"),
        "subject_kind",
        "subject",
        "topic",
        "partition_id",
        "record_type",
        F.unix_micros("changed_at").alias("at_us"),
        "state",
        F.lag("state").over(of_subject).alias("previous"),
        F.coalesce(
            F.min("topic_incarnation").over(of_name) == F.max("topic_incarnation").over(of_name), F.lit(True)
        ).alias("is_only"),
    ).where("record_type IS NOT NULL AND state IS NOT NULL")


#: What a side is told by, and how many marks it has, the first and the last of them: when and of which evidence.
_Whose = tuple[str, str | None, str, str, bool, int]
_Place = tuple[int, str]


def _sides(
    rows: Iterable[Row], kind: type[Value], marks_of: Callable[[Value], Iterable[Mark]]
) -> Iterator[pa.RecordBatch]:
    sides: dict[_Whose, tuple[int, _Place, _Place]] = {}
    for row in rows:
        cluster_id, file_id = row["cluster_id"], row.get("file_id")
        for rule, key, is_earlier, clock, at_us, evidence_id in marks_of(value_of(kind, row)):
            whose, place = (cluster_id, file_id, rule, key, is_earlier, clock), (at_us, evidence_id)
            known = sides.get(whose)
            if known is None:
                sides[whose] = 1, place, place
                continue
            marks, first, last = known
            sides[whose] = marks + 1, first if first < place else place, last if last > place else place
        if len(sides) >= _SIDES_AT_A_TIME:
            yield _side_batch(sides)
            sides.clear()
    if sides:
        yield _side_batch(sides)


def _side_batch(sides: Mapping[_Whose, tuple[int, _Place, _Place]]) -> pa.RecordBatch:
    """Column by column: to make a dictionary of each side takes longer than to count its marks."""
    schema = arrow_schema(_SIDE_COLUMNS)
    *whose, marks, first, last = schema
    columns = list(map(_array, zip(*sides, strict=True), whose))
    counts, *places = zip(*sides.values(), strict=True)
    for of_sides, end in zip(places, (first, last), strict=True):
        parts = list(map(_array, zip(*of_sides, strict=True), end.type))
        columns.append(pa.StructArray.from_arrays(parts, fields=list(end.type)))
    columns.insert(len(whose), _array(counts, marks))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    return pa.array(values, field.type)


def tied(sides: DataFrame) -> DataFrame:
    """Sides (:func:`logged_marks`, :func:`written_marks`) with ``tie``, a hash of what ties them to others."""
    return sides.withColumn("tie", F.xxhash64("cluster_id", "rule", "key"))


def causal_pairs(sides: DataFrame) -> DataFrame:
    """The pairs that :func:`tied` sides make, rows of ``kept.clock_pairs``: of the marks of each key the last cause,
    and of each other clock the first effect. Other keys make no difference."""
    # the hash comes first, since rows are sorted by their first column before all others are looked at; by it alone
    # they are shuffled, once for all that follows
    key = ["tie", "cluster_id", "rule", "key"]
    sides = (
        sides.repartition("tie")
        .groupBy(*key, "is_earlier", "clock")
        .agg(F.sum("marks").alias("marks"), F.min("first").alias("first"), F.max("last").alias("last"))
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
            "tie",
            F.col("cause.clock").alias("earlier_clock"),
            F.col("clock").alias("later_clock"),
            F.col("cause.last.at_us").alias("earlier_us"),
            F.col("first.at_us").alias("later_us"),
            "rule",
            F.array("cause.last.evidence_id", "first.evidence_id").alias("evidence"),
        )
    )


def tightest(pairs: DataFrame) -> DataFrame:
    """The pairs that bound clocks, :data:`PAIR_COLUMNS`: the tightest of each stretch of time; the first of a stretch
    counts for all that it stands for."""
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
