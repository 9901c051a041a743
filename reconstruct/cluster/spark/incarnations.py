"""Incarnations of topics: a topic deleted and created again is another topic, and its epochs start again.

By the creation of the topic's znode, or its record in the metadata log, where these tell it; else, and before the first
and after the last of them, by the controller's log: a partition that becomes New when the topic was there before is a
partition of another incarnation; and by the topic's id, where brokers print it (since 2.8). No topic outlives its
cluster: where that was created again in the same folders, its topics were too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, zip_longest
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import differing, named, union
from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.cluster.generations import GenerationFact, generation_starts
from reconstruct.cluster.spark.controller_lines import (
    controller_acts,
    controller_minutes,
    is_election,
    process_start_lines,
)
from reconstruct.cluster.spark.statements import stated_ids
from reconstruct.engine.folds import fold, select_columns
from reconstruct.engine.rows import Row, columns_of, numbered, value_of
from reconstruct.events.spark.fields import int_field
from reconstruct.events.spark.placing import with_incarnation
from reconstruct.events.spark.step import named_partitions
from reconstruct.events.spark.znode_transactions import UNKNOWN_CZXID
from reconstruct.metadata_log.spark.migration import take_overs
from reconstruct.model.versions import MODEL_VERSION
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH, TOPIC_PATTERN

#: How long after the creation of its znode a controller may take to log a topic's partitions as New.
REACTION_MS: Final = 30_000
_BEGINNING: Final = datetime(1, 1, 2, tzinfo=UTC)
_END: Final = datetime(9999, 12, 30, tzinfo=UTC)
_FAR_PAST: Final = -(2**62)
_STORED: Final = "stored"
_ID: Final = "id:"

_COLUMNS: Final = {
    "cluster_id": "string",
    "topic": "string",
    "topic_incarnation": "string",
    "evidence_id": "string",
    "starts_at_us": "bigint",
    "ends_at_us": "bigint",
    "created_at_us": "bigint",
    "is_last": "boolean",
}


@dataclass(frozen=True, slots=True)
class Creation:
    """A creation of a topic: as its znode or the metadata log stores it (``name``: topic id or creation zxid), or by
    the controller's log."""

    at: int
    name: str
    is_stored: bool


@dataclass(frozen=True, slots=True)
class Recreation:
    """A creation of the whole cluster, and the first record that names the topic after it."""

    at: int
    first: Creation


def incarnations_of(
    creations: Sequence[Creation], recreations: Sequence[Recreation] = (), stored_until: int | None = None
) -> list[tuple[str, int]]:
    """(name, start) in order, the first from the beginning of time; ``creations`` in any order, instants in µs.

    ``stored_until`` is the last change of any znode, or of the metadata log, that is known: after it, only the
    controller's log tells of creations. Between the first and the last that is known it tells of creations only where
    it has more than fit them: snapshots do not show a topic that was created and deleted between two of them.
    No topic outlives its cluster: where that was created again, and nothing tells of the topic's own creation, another
    incarnation begins.
    """
    stored = sorted((c for c in creations if c.is_stored), key=lambda c: (c.at, c.name))
    logged = sorted((c for c in creations if not c.is_stored), key=lambda c: (c.at, c.name))
    unmatched = [c for c in logged if not any(0 <= c.at - s.at <= REACTION_MS * 1000 for s in stored)]
    unlogged = [s for s in stored if not any(0 <= c.at - s.at <= REACTION_MS * 1000 for c in logged)]
    # where clocks differ, each of them may be one of the others; more are creations that are stored nowhere
    if stored and len(unmatched) <= len(unlogged):
        unmatched = [c for c in unmatched if c.at < stored[0].at or (stored_until is not None and c.at > stored_until)]
    starts = [*stored, *unmatched]
    for recreation in recreations:
        since = recreation.at - REACTION_MS * 1000
        if not any(since <= start.at <= recreation.first.at for start in starts):
            starts.append(Creation(recreation.at, recreation.first.name, False))
    starts.sort(key=lambda c: (c.at, c.name))
    return [(start.name, start.at if index else _FAR_PAST) for index, start in enumerate(starts)]


def topic_incarnations(namings: DataFrame, znodes: DataFrame, metadata: DataFrame) -> DataFrame:
    """What logs name (:func:`topic_namings`), ``silver.znode_changes`` and ``silver.metadata_changes`` to the
    incarnations of topics.

    Grain: one row per (cluster, topic, incarnation), with the half-open span of instants that belongs to it. That of
    the first begins with time: brokers' clocks may be behind. ``created_at`` is when the metadata log has it created.
    """
    written = znodes.where(
        F.col("path").rlike(TOPIC_PATTERN)
        & (F.col("change") == "written")
        & (F.col("czxid") != UNKNOWN_CZXID)
        & F.col("created_at").isNotNull()
    )
    created = (
        written.groupBy("cluster_id", "path", "czxid")
        .agg(
            F.min("created_at").alias("at"),
            F.max(F.get_json_object("data", "$.topic_id")).alias("topic_id"),
            F.min_by(F.col("evidence")[0], F.struct("changed_at", "mzxid")).alias("evidence_id"),
        )
        .select(
            "cluster_id",
            F.regexp_extract("path", TOPIC_PATTERN, 1).alias("topic"),
            F.unix_micros("at").alias("at"),
            F.coalesce("topic_id", F.col("czxid").cast("string")).alias("name"),
            F.lit(_STORED).alias("kind"),
            "evidence_id",
        )
        .join(
            F.broadcast(znodes.groupBy("cluster_id").agg(F.unix_micros(F.max("changed_at")).alias("stored_until"))),
            "cluster_id",
        )
    )
    facts = fold(
        union([created, _metadata_creations(metadata), _logged_facts(namings)]),
        ("cluster_id", "topic"),
        _COLUMNS,
        incarnation_spans,
    )
    return facts.select(
        "cluster_id",
        "topic",
        "topic_incarnation",
        "evidence_id",
        _instant("starts_at_us", _BEGINNING, "starts_at"),
        _instant("ends_at_us", _END, "ends_at"),
        F.timestamp_micros("created_at_us").alias("created_at"),
        "is_last",
    )


def _metadata_creations(metadata: DataFrame) -> DataFrame:
    """A topic's record, or the snapshot that first shows it; only the record tells when it was created."""
    until = metadata.groupBy("cluster_id").agg(F.unix_micros(F.max("changed_at")).alias("stored_until"))
    return (
        metadata.where("subject_kind = 'topic' AND state IS NOT NULL")
        .groupBy("cluster_id", "topic", F.col("subject").alias("name"))
        .agg(
            F.unix_micros(F.min("changed_at")).alias("at"),
            F.min_by(F.col("evidence")[0], "offset").alias("evidence_id"),
            F.unix_micros(F.min(F.when(F.col("record_type").isNotNull(), F.col("changed_at")))).alias("created_at_us"),
        )
        .withColumn("kind", F.lit(_STORED))
        .join(F.broadcast(until), "cluster_id")
    )


def incarnation_rows(incarnations: DataFrame) -> DataFrame:
    """What :func:`topic_incarnations` gives as ``silver.topic_incarnations``; no instant where it is not bounded."""
    begins = F.coalesce(F.when(F.col("starts_at") > F.lit(_BEGINNING), F.col("starts_at")), F.col("created_at"))
    return incarnations.select(
        "cluster_id",
        "topic",
        "topic_incarnation",
        begins.alias("valid_from"),
        F.when(F.col("ends_at") < F.lit(_END), F.col("ends_at")).alias("valid_to"),
        F.array("evidence_id").alias("evidence"),
        F.when(begins.isNull(), "retention_boundary").alias("inferred_from"),
        F.lit(MODEL_VERSION).alias("model_version"),
    )


def stored_incarnations(rows: DataFrame) -> DataFrame:
    """``silver.topic_incarnations`` with the spans that :func:`topic_incarnations` gave."""
    of_name = Window.partitionBy("cluster_id", "topic").orderBy(F.col("valid_from").asc_nulls_first())
    begins = F.when(F.row_number().over(of_name) == 1, F.lit(_BEGINNING)).otherwise(F.col("valid_from"))
    return rows.select(
        "cluster_id",
        "topic",
        "topic_incarnation",
        F.col("evidence")[0].alias("evidence_id"),
        begins.alias("starts_at"),
        F.coalesce("valid_to", F.lit(_END)).alias("ends_at"),
        F.col("valid_to").isNull().alias("is_last"),
    )


def are_placed_alike(
    events: Sequence[DataFrame],
    incarnations: DataFrame,
    before: DataFrame,
    held: Callable[[DataFrame], tuple[DataFrame, Sequence[Any] | None]],
) -> bool:
    """Whether typed events that were placed when ``silver.topic_incarnations`` was ``before`` are of the same
    incarnations by those that are known now; ``held`` gives rows to be read more than once, and those that are few."""
    columns = ("cluster_id", "topic", "topic_incarnation", "starts_at", "ends_at")
    others = differing(stored_incarnations(before).select(*columns), incarnations.select(*columns))
    # what was before the first of a topic's incarnations that is another is where it was
    topics, few = held(others.groupBy("cluster_id", "topic").agg(F.min("starts_at").alias("since")))
    if few is not None and not few:
        return True
    names = None if few is None else sorted({row["topic"] for row in few})
    of_topics = [
        (rows if names is None else named(rows, "topic", names))
        .select("cluster_id", "topic", "corrected_time", F.col("topic_incarnation").alias("placed_in"))
        .join(F.broadcast(topics), ["cluster_id", "topic"])
        .where("corrected_time >= since")
        for rows in events
    ]
    placed = with_incarnation(union(of_topics), incarnations, F.unix_micros("corrected_time"), "left")
    return placed.where("NOT placed_in <=> topic_incarnation").isEmpty()


def acted_minutes(records: DataFrame) -> DataFrame:
    """Rows of ``kept.controller_minutes`` from ``bronze.log_records`` with ``corrected_time``."""
    return controller_minutes(records.where(_of(SourceKind.STATE_CHANGE_LOG)))


def cluster_generations(
    records: DataFrame, minutes: DataFrame, znodes: DataFrame, files: DataFrame, jumps: DataFrame
) -> DataFrame:
    """Grain: one row per (cluster, time it was created), with its half-open span in microseconds; no row for a
    cluster of which no controller, no start and no id is known.

    ``records`` are rows of ``kept.key_records``, or of all log records with ``corrected_time``, ``minutes`` those that
    :func:`~reconstruct.cluster.spark.controller_lines.controller_minutes` gives, ``files`` ``bronze.ingested_files``,
    ``jumps`` :func:`reconstruct.events.spark.line_order.jumps_of_files`."""
    epochs = znodes.where((F.col("path") == CONTROLLER_EPOCH_PATH) & (F.col("change") == "written"))
    by_lines: dict[str, Column | str] = {"at": F.unix_micros("corrected_time"), "evidence_id": "record_id"}
    by_znodes: dict[str, Column | str] = {"at": F.unix_micros("changed_at"), "evidence_id": "evidence[0]"}
    controller_id, epoch = F.coalesce(int_field("controller_id"), "broker_id"), int_field("controller_epoch")
    of_file: dict[str, Column | str] = {"log_file": "source_file"}
    by_election = by_lines | of_file | {"broker_id": controller_id, "controller_epoch": epoch}
    by_act = of_file | {"at": "at", "evidence_id": "evidence_id", "broker_id": "controller_id", "is_act": "true"}
    facts: list[tuple[DataFrame, Mapping[str, Column | str]]] = [
        (records.where(_of(SourceKind.CONTROLLER_LOG) & is_election()), by_election),
        (controller_acts(minutes), by_act | {"controller_epoch": "epoch"}),
        (epochs, by_znodes | {"controller_epoch": F.col("data").try_cast("int")}),
        (
            process_start_lines(records.where(_of(SourceKind.SERVER_LOG))),
            of_file | {"at": "at", "evidence_id": "evidence_id", "broker_id": "speaker_id"},
        ),
        (
            jumps.where("far_jumps_back > 0").join(files, ["cluster_id", "file_id"]),
            of_file | {"at": "0", "evidence_id": "''", "is_set_back": "true"},
        ),
        (
            stated_ids(records, files),
            {name: name for name in ("at", "evidence_id", "stated_cluster_id", "broker_id")},
        ),
    ]
    key, columns = ("cluster_id",), columns_of(GenerationFact)
    evidence = union(select_columns(rows, key, columns, **given) for rows, given in facts)
    # a quorum's controller that writes to ZooKeeper too names ZooKeeper's epochs and its own in one log (KIP-866)
    evidence = (
        evidence.join(F.broadcast(take_overs(znodes)), list(key), "left")
        .where("controller_epoch IS NULL OR taken_over_us IS NULL OR at < taken_over_us")
        .drop("taken_over_us")
    )
    return fold(evidence, key, {"cluster_id": "string", "begins_us": "bigint", "ends_us": "bigint"}, _generations)


def _of(kind: SourceKind) -> Column:
    return F.col("source_kind") == kind


def _generations(rows: Iterable[Row]) -> Iterator[dict[str, int]]:
    facts = (value_of(GenerationFact, row) for row in rows)
    begins = [_FAR_PAST, *(start.at for start in generation_starts(facts)), -_FAR_PAST]
    for start, end in pairwise(begins):
        yield {"begins_us": start, "ends_us": end}


def topic_namings(records: DataFrame, generations: DataFrame) -> DataFrame:
    """Which partitions records name, each time that the cluster was created, file by file: rows of
    ``kept.topic_namings``."""
    at = F.unix_micros("corrected_time")
    spans = generations.withColumnRenamed("cluster_id", "g_cluster_id")
    inside = (F.col("cluster_id") == F.col("g_cluster_id")) & (at >= F.col("begins_us")) & (at < F.col("ends_us"))
    since = F.when(F.col("begins_us") > _FAR_PAST, F.col("begins_us"))
    is_new = (F.col("event_type") == EventType.PARTITION_STATE_CHANGE) & (F.col("to_state") == "NewPartition")
    has_id = (F.col("event_type") == EventType.LEADER_EPOCH_STARTED) & F.col("topic_id").isNotNull()
    new = F.when(is_new, F.struct(at.alias("at"), F.col("record_id").alias("name"), "byte_offset"))
    told = F.when(_of(SourceKind.STATE_CHANGE_LOG), F.struct(at.alias("at"), "byte_offset"))
    ids = F.when(has_id, F.struct(F.col("topic_id").alias("id"), at.alias("at"), F.col("record_id")))
    return (
        named_partitions(records)
        .join(F.broadcast(spans), inside, "left")
        .groupBy("cluster_id", "file_id", "topic", "partition_id", since.alias("since"))
        .agg(
            F.min(at).alias("at"),
            F.min(F.struct("corrected_time", "byte_offset", "record_id")).alias("first"),
            F.collect_list(new).alias("new"),
            F.collect_list(ids).alias("ids"),
            F.min(told).alias("told"),
        )
        .withColumn("new", F.transform("new", lambda n: n.withField("is_behind", _is_behind(n, F.col("told")))))
        .withColumn("new", F.transform("new", lambda n: n.dropFields("byte_offset")))
        .drop("told")
    )


def _is_behind(line: Column, other: Column) -> Column:
    """In one file: where the lines of several brokers came together, their order is not that in which they were
    written."""
    return (line["at"] > other["at"]) & (line["byte_offset"] > other["byte_offset"])


def _logged_facts(namings: DataFrame) -> DataFrame:
    """What logs tell of the creations of topics.

    ``first`` and ``again``: the first record that names a topic each time that its cluster was created; ``since`` is
    NULL for the first. ``new:PARTITION``: the n-th time that a partition becomes New begins the n-th incarnation of its
    topic; the first time goes unlogged where the partition is named before, at ``named_at`` or above in the same
    state-change log (``is_behind``): of one that it creates a controller logs nothing before (onNewPartitionCreation).
    ``id:ID``: a replica began to lead or to follow in a topic of this id, for the first or the last time.
    """
    place = F.struct("first.corrected_time", "file_id", "first.byte_offset", "first.record_id")
    of_partitions = namings.groupBy("cluster_id", "topic", "partition_id", "since").agg(
        F.min("at").alias("at"),
        F.min(place).alias("first"),
        *(F.flatten(F.collect_list(name)).alias(name) for name in ("new", "ids")),
    )
    of_topic = Window.partitionBy("cluster_id", "topic", "since")
    of_partition = Window.partitionBy("cluster_id", "topic", "partition_id")
    nothing, unknown = F.lit(None).cast("bigint"), F.lit(None).cast("boolean")

    def fact(kind: Column, of: Column, since: Column, named_at: Column, is_behind: Column = unknown) -> Column:
        told = {"kind": kind, "at": of["at"], "name": of["name"], "since": since, "named_at": named_at}
        return F.struct(*(value.alias(name) for name, value in told.items()), is_behind.alias("is_behind"))

    def first_and_last(name: Column) -> Column:
        of_id = F.transform(
            F.filter("ids", lambda seen: seen["id"] == name),
            lambda seen: F.struct(seen["at"].alias("at"), seen["record_id"].alias("name")),
        )
        return F.transform(
            F.array_distinct(F.array(F.array_min(of_id), F.array_max(of_id))),
            lambda seen: fact(F.concat(F.lit(_ID), name), seen, nothing, nothing),
        )

    first = F.struct(F.min("at").over(of_topic).alias("at"), F.col("first.record_id").alias("name"))
    return (
        of_partitions.withColumns(
            {
                "is_first": F.row_number().over(of_topic.orderBy("first")) == 1,
                "named": first,
                "named_at": F.min("at").over(of_partition),
            }
        )
        .withColumns(
            {
                "first_kind": F.when(F.col("since").isNull(), "first").otherwise("again"),
                "new_kind": F.concat_ws(":", F.lit("new"), "partition_id"),
            }
        )
        .select(
            "cluster_id",
            "topic",
            F.inline(
                F.concat(
                    F.when(
                        F.col("is_first"), F.array(fact(F.col("first_kind"), F.col("named"), F.col("since"), nothing))
                    ).otherwise(F.array()),
                    F.transform(
                        "new", lambda new: fact(F.col("new_kind"), new, nothing, F.col("named_at"), new["is_behind"])
                    ),
                    F.flatten(F.transform(F.array_distinct(F.transform("ids", lambda s: s["id"])), first_and_last)),
                )
            ),
        )
    )


def _instant(column: str, otherwise: datetime, name: str) -> Column:
    return F.coalesce(F.timestamp_micros(column), F.lit(otherwise)).alias(name)


def incarnation_spans(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The incarnations of one topic in order, from all facts about its creations; instants in µs, None unbounded."""
    facts = sorted(rows, key=lambda row: (row["at"], row["name"]))
    # one that was there before a quorum took over from ZooKeeper is stored twice, by one id
    stored = {row["name"]: row for row in reversed(facts) if row["kind"] == _STORED}
    creations = [Creation(row["at"], row["name"], True) for row in stored.values()]
    new = [row for row in facts if row["kind"].startswith("new:")]
    again: dict[int, Creation] = {}
    unlogged: set[str] = set()
    for time, row in numbered(new, lambda row: row["kind"]):
        if time == 0 and (row["is_behind"] or row["named_at"] < row["at"] - REACTION_MS * 1000):
            unlogged.add(row["kind"])
        again.setdefault(time + 1 + (row["kind"] in unlogged), Creation(row["at"], row["name"], False))
    first = next((Creation(row["at"], row["name"], False) for row in facts if row["kind"] == "first"), None)
    recreations = [
        Recreation(row["since"], Creation(row["at"], row["name"], False))
        for row in sorted(facts, key=lambda row: (row["since"] or 0, row["at"], row["name"]))
        if row["kind"] == "again"
    ]
    logged = _logged_creations(first, again, creations, recreations)
    ends = [row["stored_until"] for row in facts if row["stored_until"] is not None]
    starts = incarnations_of([*creations, *logged], recreations, max(ends, default=None))
    starts = _with_ids(starts, [row for row in facts if row["kind"].startswith(_ID)])
    shown = {row["name"]: row["evidence_id"] for row in facts if row["evidence_id"] is not None}
    created = {name: row["created_at_us"] for name, row in stored.items()}
    for (name, start), (_, end) in zip_longest(starts, starts[1:], fillvalue=(None, None)):
        yield {
            "topic_incarnation": name,
            "evidence_id": shown.get(name, name),
            "starts_at_us": None if start == _FAR_PAST else start,
            "ends_at_us": end,
            "created_at_us": created.get(name),
            "is_last": end is None,
        }


def _logged_creations(
    first: Creation | None,
    new: Mapping[int, Creation],
    stored: Sequence[Creation],
    recreations: Sequence[Recreation],
) -> list[Creation]:
    """The creations that logs tell of; the oldest is named by the first record that names the topic.

    ``new`` holds, for the n-th time that any partition became New, when it did.
    """
    later = [new[time] for time in sorted(new) if time > 1]
    if first is None:
        return [*later, new[1]] if 1 in new else later
    if 1 in new and not _is_all_later([new[1]], recreations):
        return [*later, Creation(new[1].at, first.name, False)]
    if 1 in new:
        later.append(new[1])
    if not stored or _is_all_later(stored, recreations) or _is_older(first, stored, later):
        later.append(Creation(first.at, first.name, False))
    return later


def _is_older(first: Creation, stored: Sequence[Creation], logged: Sequence[Creation]) -> bool:
    """Whether the first record is of before the first creation that is stored: logs tell of that, and not as the
    topic's first."""
    oldest = min(creation.at for creation in stored)
    return first.at < oldest and any(0 <= creation.at - oldest <= REACTION_MS * 1000 for creation in logged)


def _with_ids(starts: list[tuple[str, int]], seen: Sequence[Row]) -> list[tuple[str, int]]:
    """``starts`` and those of ids that follow one another in brokers' lines with no creation known between: what has
    another id is another topic (KIP-516). Ids that come back are of brokers that were not told, and part nothing.

    ``seen`` are the sightings of ids, in order.
    """
    first = {row["kind"]: row for row in reversed(seen)}
    last = {row["kind"]: row["at"] for row in seen}
    names, slack = {name for name, _ in starts}, REACTION_MS * 1000
    more = [
        (first[now]["name"], first[now]["at"])
        for before, now in pairwise(sorted(first, key=lambda kind: first[kind]["at"]))
        if last[before] < first[now]["at"]
        and now.removeprefix(_ID) not in names
        and not any(last[before] - slack < start <= first[now]["at"] + slack for _, start in starts)
    ]
    return sorted((*starts, *more), key=lambda start: start[1])


def _is_all_later(creations: Sequence[Creation], recreations: Sequence[Recreation]) -> bool:
    """Whether every creation known is one of a cluster created again, so that what came before has none."""
    return bool(recreations) and all(c.at >= recreations[0].at - REACTION_MS * 1000 for c in creations)
