"""The evidence of one partition, read from a lake that has been reconstructed: small, and for one reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, PinnedLake, side_by_side
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.events import (
    CONTROLLER_EVENTS,
    METADATA_CHANGES,
    REPLICATION_EVENTS,
    STATE_CHANGE_EVENTS,
    ZNODE_CHANGES,
)
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.silver import TOPIC_INCARNATIONS
from reconstruct.cluster.spark.incarnations import stored_incarnations
from reconstruct.cluster.spark.step import HISTORY_TABLES, ClusterHistory, cluster_histories
from reconstruct.engine.folds import select_columns
from reconstruct.engine.rows import evidence_row, value_of
from reconstruct.events.spark.fields import int_field, speaker
from reconstruct.explain.described import described
from reconstruct.explain.explain import Span, description_only, explanation, holders
from reconstruct.explain.refusals import IGNORED
from reconstruct.explain.spark.descriptions import described_of, describing_clusters
from reconstruct.findings.verdicts import Finding
from reconstruct.metadata_log.spark.migration import of_one_before_take_over
from reconstruct.model.znode_paths import DELETE_TOPICS_PATH, REASSIGN_PARTITIONS_PATH, TOPICS_PATH
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.spark.evidence import EVIDENCE_COLUMNS, TOPIC_KINDS, partition_evidence
from reconstruct.partitions.spark.step import history_of
from reconstruct.time.instants import to_micros

#: Requests that name no partition concern it where they came so near to the time asked for.
_NEAR_US: Final = 60_000_000
_MOST_REFUSALS: Final = 50


class NothingKnown(Exception):
    """The lake knows no such topic, partition or time; the message is one sentence that says what it does know."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which partition, when; ``cluster_id`` None where the lake holds one cluster with that topic, ``broker_id`` where
    it is about all brokers."""

    topic: str
    partition_id: int
    span: Span
    cluster_id: str | None = None
    broker_id: int | None = None


class _OneCluster(PinnedLake):
    """The lake as if it held one cluster."""

    def __init__(self, lake: Lake, cluster_id: str) -> None:
        super().__init__(lake)
        self._cluster_id = cluster_id

    def read(self, spec: TableSpec) -> DataFrame:
        """The cluster's rows of a table."""
        return super().read(spec).where(F.col("cluster_id") == self._cluster_id)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A cluster of a lake at one moment: equal to another of which no table has become another since."""

    lake: _OneCluster = field(compare=False)
    root: str
    cluster_id: str
    states: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, lake: Lake, cluster_id: str) -> _Cluster:
        """As it is now."""
        states = side_by_side(lake.state_read, HISTORY_TABLES)
        return cls(_OneCluster(lake, cluster_id), lake.root, cluster_id, tuple(states))


@lru_cache(maxsize=4)
def _histories(cluster: _Cluster) -> Sequence[ClusterHistory]:
    """To make it takes most of an explanation, and who asks for one mostly asks for more."""
    return cluster_histories(cluster.lake)


def explain(lake: Lake, question: Question) -> str:
    """The explanation as text. Raises :class:`NothingKnown`."""
    lake = PinnedLake(lake)
    incarnations = _incarnations(lake, question)
    clusters = sorted({row["cluster_id"] for row in incarnations}) or _describing(lake, question)
    if len(clusters) > 1:
        raise NothingKnown(f"{len(clusters)} clusters have that topic: say --cluster {' or '.join(clusters)}")
    if not clusters:
        raise NothingKnown(_no_topic(lake, question))
    cluster_id = clusters[0]
    heading = f"{question.topic}-{question.partition_id} of cluster {cluster_id}"
    span = question.span
    answers, missed = described_of(lake, cluster_id, question.topic, question.partition_id, span.start, span.end)
    own = [answer for answer in answers if question.broker_id in (None, answer.broker_id)]
    description = described(span.start, span.end, own, missed)
    if incarnations:
        incarnation = _incarnation(incarnations, question)
        # to plan each takes a second or two, on one processor
        queries: tuple[Callable[[], Any], ...] = (
            lambda: _evidence(lake, question, cluster_id, incarnation),
            lambda: _histories(_Cluster.of(lake, cluster_id)),
            lambda: _refusals_of_no_partition(lake, question, cluster_id),
            lambda: _findings(lake, question, cluster_id, incarnation),
        )
        rows, histories, refused, found = side_by_side(lambda query: query(), queries)
        if rows:
            history = history_of(rows, {one.cluster_id: one.view for one in histories})
            _require_replica(history, question, {fact.broker_id for fact in refused})
            return explanation(heading, history, span, refused, description, found, question.broker_id)
    if description is None or not own:
        raise NothingKnown(_no_partition(lake, question, cluster_id))
    return description_only(heading, description)


def _incarnations(lake: Lake, question: Question) -> Sequence[Row]:
    """The topic's incarnations, in order."""
    known = lake.read(TOPIC_INCARNATIONS).where(F.col("topic") == question.topic)
    rows = known.orderBy("cluster_id", "valid_from").collect()
    return [row for row in rows if question.cluster_id in (None, row["cluster_id"])]


def _describing(lake: Lake, question: Question) -> list[str]:
    """The clusters whose brokers described the topic."""
    return [one for one in describing_clusters(lake, question.topic) if question.cluster_id in (None, one)]


def _no_topic(lake: Lake, question: Question) -> str:
    known = lake.read(TOPIC_INCARNATIONS)
    names = [row["topic"] for row in known.select("topic").distinct().orderBy("topic").limit(20).collect()]
    return (
        f"no topic {question.topic} is known{'' if question.cluster_id is None else ' in that cluster'}:"
        f" there are {', '.join(names) or 'none, run reconstruct first'}"
    )


def _incarnation(incarnations: Sequence[Row], question: Question) -> str:
    """The incarnation of the topic that the time falls into."""
    for row in incarnations:
        if row["valid_to"] is None or question.span.start < to_micros(row["valid_to"]):
            return str(row["topic_incarnation"])
    return str(incarnations[-1]["topic_incarnation"])


def _require_replica(history: Case, question: Question, refusing: Set[int | None]) -> None:
    """Whether the broker that was asked about has a replica, or refused a request. Raises :class:`NothingKnown`."""
    known = holders(history)
    if question.broker_id is None or question.broker_id in known or question.broker_id in refusing:
        return
    have = f"of brokers {', '.join(map(str, known))} it is known" if known else "of none it is known"
    raise NothingKnown(
        f"nothing shows a replica of {question.topic}-{question.partition_id} at broker {question.broker_id}: {have}"
    )


def _evidence(lake: Lake, question: Question, cluster_id: str, incarnation: str) -> Sequence[dict[str, Any]]:
    own = (F.col("cluster_id") == cluster_id) & (F.col("topic") == question.topic)
    lists_topics = (F.col("cluster_id") == cluster_id) & F.col("event_type").isin(*TOPIC_KINDS)
    znodes, changes = lake.read(ZNODE_CHANGES).where(F.col("cluster_id") == cluster_id), lake.read(METADATA_CHANGES)
    found = partition_evidence(
        lake.read(STATE_CHANGE_EVENTS).where(own),
        lake.read(REPLICATION_EVENTS).where(own),
        lake.read(CONTROLLER_EVENTS).where(own | lists_topics),
        of_one_before_take_over(znodes.where(_is_about(question.topic)), znodes, changes.where(own)),
        changes.where(own),
        stored_incarnations(lake.read(TOPIC_INCARNATIONS)).where(own),
    )
    chosen = (F.col("partition_id") == question.partition_id) & (F.col("topic_incarnation") == incarnation)
    return [evidence_row(row.asDict()) for row in found.where(chosen).collect()]


def _findings(lake: Lake, question: Question, cluster_id: str, incarnation: str) -> list[Finding] | None:
    """All findings of the partition, of every rule; None where gold holds no finding of it."""
    if not lake.exists(DIVERGENCES):
        return None
    of_partition = (
        (F.col("cluster_id") == cluster_id)
        & (F.col("topic") == question.topic)
        & (F.col("partition_id") == question.partition_id)
        & F.coalesce(F.col("topic_incarnation") == incarnation, F.lit(True))
    )
    rows = lake.read(DIVERGENCES).where(of_partition).orderBy("detected_at", "rule_id", "divergence_id").collect()
    return [value_of(Finding, row.asDict(), at=to_micros(row["detected_at"])) for row in rows] or None


def _is_about(topic: str) -> Column:
    path = F.col("path")
    own = f"{TOPICS_PATH}/{topic}"
    return (
        (path == own)
        | path.startswith(f"{own}/")
        | (path == f"{DELETE_TOPICS_PATH}/{topic}")
        | (path == REASSIGN_PARTITIONS_PATH)
    )


def _no_partition(lake: Lake, question: Question, cluster_id: str) -> str:
    events = lake.read(STATE_CHANGE_EVENTS).where(
        (F.col("cluster_id") == cluster_id) & F.col("partition_id").isNotNull()
    )
    bounds = (
        events.where(F.col("topic") == question.topic)
        .agg(F.min("partition_id").alias("first"), F.max("partition_id").alias("last"))
        .collect()[0]
    )
    if bounds["first"] is None:
        return f"nothing is known of topic {question.topic} at that time"
    return (
        f"nothing is known of partition {question.partition_id} of topic {question.topic} at that time: the logs name"
        f" its partitions {bounds['first']} to {bounds['last']}"
    )


def _refusals_of_no_partition(lake: Lake, question: Question, cluster_id: str) -> list[Evidence]:
    """Requests that a broker ignored as a whole: the first of them around the time, shown with any partition."""
    at = F.unix_micros("corrected_time")
    ignored = (
        lake.read(STATE_CHANGE_EVENTS)
        .where((F.col("cluster_id") == cluster_id) & F.col("topic").isNull() & F.col("event_type").isin(*IGNORED))
        .where(at.between(question.span.start - _NEAR_US, question.span.end))
        .orderBy(at, "file_id", "byte_offset")
        .limit(_MOST_REFUSALS)
    )
    rows = select_columns(
        ignored,
        (),
        EVIDENCE_COLUMNS,
        evidence_id="record_id",
        kind="event_type",
        at=at,
        file="file_id",
        offset="byte_offset",
        source_kind=F.lit(SourceKind.STATE_CHANGE_LOG),
        broker_id=speaker(),
        controller_id=int_field("controller_id"),
        controller_epoch=F.coalesce(int_field("request_controller_epoch"), int_field("controller_epoch")),
        correlation_id="correlation_id",
        known_controller_epoch=int_field("known_controller_epoch"),
    )
    return [value_of(Evidence, row.asDict()) for row in rows.collect()]
