"""Incarnations of topics: a topic deleted and created again is another topic, and its epochs start again.

By the creation of the topic's znode where snapshots or transactions tell it; else, and before the first of them, by the
controller's log: a partition that becomes New a second time is a partition of another incarnation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconstruct.silver.events import named_partitions
from reconstruct.silver.znode_transactions import UNKNOWN_CZXID

#: How long after the creation of its znode a controller may take to log a topic's partitions as New.
REACTION_MS: Final = 30_000
_BEGINNING: Final = datetime(1, 1, 2, tzinfo=UTC)
_END: Final = datetime(9999, 12, 30, tzinfo=UTC)
_FAR_PAST: Final = -(2**62)

INCARNATIONS_SCHEMA: Final = (
    "cluster_id string, topic string, topic_incarnation string, starts_at_us bigint, ends_at_us bigint, is_last boolean"
)


@dataclass(frozen=True, slots=True)
class Creation:
    """A creation of a topic: by its znode (``name``: topic id or creation zxid), or by the controller's log."""

    at: int
    name: str
    is_znode: bool


def incarnations_of(creations: Sequence[Creation]) -> list[tuple[str, int]]:
    """(name, start) in order, the first from the beginning of time; ``creations`` in any order, instants in µs."""
    znodes = sorted((c for c in creations if c.is_znode), key=lambda c: (c.at, c.name))
    logged = sorted((c for c in creations if not c.is_znode), key=lambda c: (c.at, c.name))
    unmatched = [c for c in logged if not any(0 <= c.at - z.at <= REACTION_MS * 1000 for z in znodes)]
    if znodes:
        unmatched = [c for c in unmatched if c.at < znodes[0].at]
    starts = sorted([*znodes, *unmatched], key=lambda c: (c.at, c.name))
    return [(start.name, start.at if index else _FAR_PAST) for index, start in enumerate(starts)]


def topic_incarnations(records: DataFrame, znodes: DataFrame) -> DataFrame:
    """``bronze.log_records`` and ``silver.znode_changes`` to the incarnations of topics.

    Grain: one row per (cluster, topic, incarnation), with the half-open span of instants that belongs to it.
    """
    written = znodes.where(
        F.col("path").rlike("^/brokers/topics/[^/]+$")
        & (F.col("change") == "written")
        & (F.col("czxid") != UNKNOWN_CZXID)
        & F.col("created_at").isNotNull()
    )
    created = (
        written.groupBy("cluster_id", "path", "czxid")
        .agg(F.min("created_at").alias("at"), F.max(F.get_json_object("data", "$.topic_id")).alias("topic_id"))
        .select(
            "cluster_id",
            F.regexp_extract("path", "^/brokers/topics/([^/]+)$", 1).alias("topic"),
            F.unix_micros("at").alias("at"),
            F.coalesce("topic_id", F.col("czxid").cast("string")).alias("name"),
            F.lit("znode").alias("kind"),
        )
    )
    named = named_partitions(records)
    first = named.groupBy("cluster_id", "topic").agg(
        F.unix_micros(F.min("event_time")).alias("at"),
        F.min_by("record_id", F.struct("event_time", "file_id", "byte_offset", "record_id")).alias("name"),
    )
    # the n-th time that a partition becomes New begins the n-th incarnation of its topic
    new = named.where(
        (F.col("event_type") == "partition_state_change") & (F.col("fields")["to_state"] == "NewPartition")
    ).select(
        "cluster_id", "topic", "partition_id", F.unix_micros("event_time").alias("at"), F.col("record_id").alias("name")
    )
    facts = (
        created.unionByName(first.withColumn("kind", F.lit("first")))
        .unionByName(
            new.select(
                "cluster_id", "topic", "at", "name", F.concat_ws(":", F.lit("new"), "partition_id").alias("kind")
            )
        )
        .groupBy("cluster_id", "topic")
        .applyInPandas(_incarnations, INCARNATIONS_SCHEMA)
    )
    return facts.select(
        "cluster_id",
        "topic",
        "topic_incarnation",
        _instant("starts_at_us", _BEGINNING, "starts_at"),
        _instant("ends_at_us", _END, "ends_at"),
        "is_last",
    )


def _instant(column: str, otherwise: datetime, name: str) -> Column:
    return F.coalesce(F.timestamp_micros(column), F.lit(otherwise)).alias(name)


def _incarnations(facts: pd.DataFrame) -> pd.DataFrame:
    cluster_id, topic = facts["cluster_id"].iloc[0], facts["topic"].iloc[0]
    creations = [Creation(row.at, row.name_, True) for row in _rows(facts, "znode")]
    times_seen: dict[str, int] = {}
    again: dict[int, Creation] = {}
    for row in _rows(facts, "new:"):
        times_seen[row.kind] = times_seen.get(row.kind, 0) + 1
        generation = times_seen[row.kind]
        again.setdefault(generation, Creation(row.at, row.name_, False))
    first = next(_rows(facts, "first"), None)
    logged = [again[generation] for generation in sorted(again) if generation > 1]
    if 1 in again:
        logged.append(again[1] if first is None else Creation(again[1].at, first.name_, False))
    elif first is not None and not creations:
        logged.append(Creation(first.at, first.name_, False))
    starts = incarnations_of([*creations, *logged])
    ends: list[int | None] = [start for _, start in starts[1:]]
    return pd.DataFrame(
        {
            "cluster_id": cluster_id,
            "topic": topic,
            "topic_incarnation": [name for name, _ in starts],
            "starts_at_us": pd.array([None if at == _FAR_PAST else at for _, at in starts], dtype="Int64"),
            "ends_at_us": pd.array([*ends, None], dtype="Int64"),
            "is_last": [index == len(starts) - 1 for index in range(len(starts))],
        }
    )


@dataclass(frozen=True, slots=True)
class _Fact:
    at: int
    name_: str
    kind: str


def _rows(facts: pd.DataFrame, kind: str) -> Iterator[_Fact]:
    chosen = facts[facts["kind"].str.startswith(kind)].sort_values(["at", "name"])
    for at, name, of in zip(chosen["at"], chosen["name"], chosen["kind"], strict=True):
        yield _Fact(int(at), str(name), str(of))
