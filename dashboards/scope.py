"""What of a lake a report is about: a topic, a broker, a span of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dashboards import words
from ingest.lake.plans import union
from ingest.lake.tables import TableSpec, bronze, gold, silver
from ingest.lake.tables.incidents import INCIDENT_EVENTS, INCIDENTS
from ingest.lake.tables.shared import PARTITION_KEY

#: When what a row is about began, and ended; the first of the names that its table has. NULL as an end: not over.
_BEGINS: Final = ("valid_from", "elected_at", "detected_at", "event_at", "truncated_at")
_ENDS: Final = ("valid_to", "ended_at", "truncated_at_upper")
#: Tables that name the brokers that have them; the rest of a broker's rows follow from its partitions.
_BROKERS: Final = ("broker_id", "replica_id")
Read = Callable[[TableSpec], DataFrame]


class NothingInScope(ValueError):
    """Nothing in the lake is of that topic, broker or time; the message says so."""


@dataclass(frozen=True)
class Scope:
    """Rows of ``topic``; of partitions with a replica at ``broker``, and that broker's own; of what was so at some
    instant in [``begin``, ``end``), aware. None: all. Of bronze and quality, files and their coverage, all is in scope;
    so is what no topic, broker or time is known of, and of an incident every event."""

    topic: str | None = None
    broker: int | None = None
    begin: datetime | None = None
    end: datetime | None = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """As saved questions name them, those that are given."""
        named = {"topic": self.topic, "broker": self.broker, "from": self.begin, "to": self.end}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def sentence(self) -> str:
        """What is shown, and what is not; empty where all is."""
        parts = [f"topic {words.visible(self.topic)}"] if self.topic is not None else []
        parts += [f"broker {self.broker}"] if self.broker is not None else []
        parts += [f"from {words.instant(self.begin.timestamp() * 1000)}"] if self.begin else []
        parts += [f"before {words.instant(self.end.timestamp() * 1000)}"] if self.end else []
        within = " Of what lasted longer the part in that time is counted." if self.begin or self.end else ""
        return f"Only {', '.join(parts)} is shown; files and their coverage are of all.{within}" if parts else ""

    def of(self, spec: TableSpec, read: Read) -> DataFrame:
        """The rows of the table that are in scope; ``read`` gives those of any table."""
        rows = read(spec)
        if not self.parameters or spec.schema not in ("silver", "gold") or spec is INCIDENT_EVENTS:
            return rows
        for condition in (*self._in_time(spec), *self._of_topic(spec)):
            rows = rows.where(condition)
        if spec is INCIDENTS:
            return self._incidents(rows, read)
        return rows if self.broker is None else self._at_broker(spec, rows, read)

    def clusters(self, read: Read) -> tuple[str, ...] | None:
        """The clusters that have the topic and the broker, by name; None: all. Raises :class:`NothingInScope`."""
        found: set[str] | None = None
        for name, rows in self._holders(read).items():
            holds = {row["cluster_id"] for row in rows.distinct().limit(1000).collect()}
            if not holds:
                raise NothingInScope(f"no cluster of the lake has {name}{self._nearest(read, name)}")
            found = holds if found is None else found & holds
        if found is not None and not found:
            raise NothingInScope(f"no cluster of the lake has {' and '.join(self._holders(read))}")
        return None if found is None else tuple(sorted(found))

    def clipped(self, first: float, last: float) -> tuple[float, float]:
        """The part of a span of evidence, ms since 1970, that is in scope; twice 0 where nothing is."""
        if self.begin is not None:
            first = max(first, self.begin.timestamp() * 1000)
        if self.end is not None:
            last = min(last, self.end.timestamp() * 1000)
        return (first, last) if first <= last else (0, 0)

    def _in_time(self, spec: TableSpec) -> tuple[Column, ...]:
        begins = next((name for name in _BEGINS if name in spec.column_names), None)
        if begins is None:
            return ()
        ends = next((name for name in _ENDS if name in spec.column_names), None)
        after = (
            F.lit(True) if self.begin is None else F.coalesce(F.col(ends or begins) >= F.lit(self.begin), F.lit(True))
        )
        before = F.lit(True) if self.end is None else F.coalesce(F.col(begins) < F.lit(self.end), F.lit(True))
        return (after, before)

    def _of_topic(self, spec: TableSpec) -> tuple[Column, ...]:
        if self.topic is None or "topic" not in spec.column_names:
            return ()
        return (F.coalesce(F.col("topic") == self.topic, F.lit(True)),)

    def _at_broker(self, spec: TableSpec, rows: DataFrame, read: Read) -> DataFrame:
        brokers = [F.col(name) for name in _BROKERS if name in spec.column_names]
        own = F.coalesce(*brokers, F.lit(self.broker)) == F.lit(self.broker)
        if not set(PARTITION_KEY) <= set(spec.column_names):
            return rows.where(own)
        here = self._partitions(read).withColumn("_here", F.lit(True))
        joined = rows.join(here, list(PARTITION_KEY), "left")
        return joined.where(F.col("_here") | (F.col("partition_id").isNull() & own)).select(*rows.columns)

    def _partitions(self, read: Read) -> DataFrame:
        """Those with a replica at the broker, as far as any assignment or ISR shows."""
        assigned = read(silver.ASSIGNMENT_TIMELINE).where(F.array_contains("replicas", self.broker))
        in_sync = read(silver.LEADER_AND_ISR_TIMELINE).where(F.array_contains("isr", self.broker))
        return assigned.select(*PARTITION_KEY).unionByName(in_sync.select(*PARTITION_KEY)).distinct()

    def _incidents(self, rows: DataFrame, read: Read) -> DataFrame:
        """Those that name the broker, and the topic, or that happened to more partitions than they name."""
        if self.broker is not None:
            rows = rows.where(F.array_contains("brokers", self.broker))
        if self.topic is None:
            return rows
        topics = F.transform("partitions", lambda name: F.regexp_replace(name, "-[0-9]+$", ""))
        of_topic = F.array_contains(topics, self.topic)
        may_be = of_topic | (F.col("partitions_count") > F.size("partitions"))
        return rows.join(read(INCIDENT_EVENTS).where(may_be), ["cluster_id", "incident_id"], "left_semi")

    def _holders(self, read: Read) -> Mapping[str, DataFrame]:
        """The clusters that have what is asked for, by what it is in words."""
        holders = {}
        if self.topic is not None:
            of_topic = F.col("topic") == self.topic
            timelines = (silver.LEADER_AND_ISR_TIMELINE, gold.DIVERGENCES)
            holders[_topic_words(self.topic)] = _clusters(*(read(spec).where(of_topic) for spec in timelines))
        if self.broker is not None:
            of_broker = F.col("broker_id") == self.broker
            lives = (silver.BROKER_LIVENESS_TIMELINE, bronze.INGESTED_FILES)
            rows = _clusters(*(read(spec).where(of_broker) for spec in lives), self._partitions(read))
            holders[f"a broker {self.broker}"] = rows
        return holders

    def _nearest(self, read: Read, name: str) -> str:
        if self.topic is None or name != _topic_words(self.topic):
            return ""
        topics = read(silver.LEADER_AND_ISR_TIMELINE).select("topic").distinct()
        distance = F.levenshtein(F.lower("topic"), F.lit(self.topic.lower()))
        near = topics.where(distance <= max(2, len(self.topic) // 2)).orderBy(distance, "topic").limit(3).collect()
        return f"; did you mean {' or '.join(row['topic'] for row in near)}?" if near else ""


def _topic_words(topic: str) -> str:
    return f"a topic {topic!r}"


def _clusters(first: DataFrame, *others: DataFrame) -> DataFrame:
    return union(rows.select("cluster_id") for rows in (first, *others))
