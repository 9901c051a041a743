"""What replicas went through: logs that were cut, replicas that left ISRs again and again, fetchers that gave up; and
how brokers stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dashboards import words
from dashboards.section import Partition, Section
from dashboards.source import Source, by_cluster, ms, spanned, together, top_of_cluster, with_total
from ingest.lake.tables import gold, silver

_MOST: Final = 10


@dataclass(frozen=True)
class Cut(Partition):
    """A row of ``gold.truncations``; ``total`` counts the cluster's."""

    replica_id: int
    at_ms: float
    truncated_to: int
    cause: str
    leader: int | None = None
    dropped_count_lower: int = 0
    dropped_count_upper: int | None = None
    committed_count_lower: int = 0
    committed_count_upper: int | None = None
    total: int = 1

    @property
    def dropped(self) -> str:
        return between(self.dropped_count_lower, self.dropped_count_upper)

    @property
    def committed(self) -> str:
        return between(self.committed_count_lower, self.committed_count_upper)


@dataclass(frozen=True)
class Flap(Partition):
    """A row of ``gold.isr_flapping`` in which the replica left the ISR twice or more."""

    replica_id: int
    from_ms: float
    shrink_count: int
    expand_count: int
    longest_absence_ms: int | None = None
    total: int = 1


@dataclass(frozen=True)
class GivenUp(Partition):
    """An interval of ``silver.fetcher_timeline`` in which a fetcher had given the partition up."""

    broker_id: int
    from_ms: float
    to_ms: float | None
    total: int = 1


@dataclass(frozen=True)
class Stop:
    """How a registration of a broker ended, as ``silver.broker_liveness_timeline`` tells."""

    broker_id: int
    to_ms: float
    ended_as: str
    shutdown_took_ms: int | None = None
    shutdown_retry_count: int | None = None
    total: int = 1

    @property
    def sentence(self) -> str:
        """``broker 2 in order (1.200 s to move its leaders, asked 2 times again)``"""
        took = "" if self.shutdown_took_ms is None else f"{words.duration(self.shutdown_took_ms)} to move its leaders"
        again = f"asked {words.count(self.shutdown_retry_count, 'time')} again" if self.shutdown_retry_count else ""
        beside = ", ".join(text for text in (took, again) if text)
        return f"broker {self.broker_id}: {words.named(self.ended_as)}" + (f" ({beside})" if beside else "")


@dataclass(frozen=True)
class Replicas:
    """Each the first ten of its kind: by committed records, departures, length; the last stops, in order."""

    cuts: tuple[Cut, ...] = ()
    flaps: tuple[Flap, ...] = ()
    given_up: tuple[GivenUp, ...] = ()
    stops: tuple[Stop, ...] = ()


def between(least: int, most: int | None) -> str:
    """``3``, ``3 to 5``, ``3 or more``; ``not known`` where nothing bounds it."""
    if most is None:
        return f"{least:,} or more" if least else "not known"
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def gather(source: Source) -> Mapping[str, Replicas]:
    """What there is of each cluster."""
    name = [F.col(column) for column in ("topic", "topic_incarnation", "partition_id")]
    cuts = source.read(gold.TRUNCATIONS).withColumn("at_ms", ms("truncated_at"))
    worst = [F.col("committed_count_lower").desc(), F.col("committed_count_upper").desc_nulls_first()]
    flaps = source.read(gold.ISR_FLAPPING).where("shrink_count > 1").withColumn("from_ms", ms("valid_from"))
    longest = (F.coalesce("to_ms", source.end()) - F.col("from_ms")).desc()
    failed = spanned(source.read(silver.FETCHER_TIMELINE).where("state = 'failed'"))
    ended = source.read(silver.BROKER_LIVENESS_TIMELINE).where("ended_as IS NOT NULL AND valid_to IS NOT NULL")
    latest = spanned(ended)

    def first(kind: type[Any], rows: DataFrame, *order: Column) -> Callable[[], Mapping[str, tuple[Any, ...]]]:
        return lambda: by_cluster(kind, top_of_cluster(with_total(rows), order, _MOST))

    found = together(
        {
            "cuts": first(Cut, cuts, *worst, F.col("at_ms"), *name, F.col("replica_id")),
            "flaps": first(Flap, flaps, F.col("shrink_count").desc(), F.col("from_ms"), *name, F.col("replica_id")),
            "given_up": first(GivenUp, failed, longest, F.col("from_ms"), *name, F.col("broker_id")),
            "stops": first(Stop, latest, F.col("to_ms").desc(), F.col("broker_id")),
        }
    )
    found["stops"] = {cluster: stops[::-1] for cluster, stops in found["stops"].items()}
    clusters = {cluster for of_kind in found.values() for cluster in of_kind}
    return {
        cluster: Replicas(**{kind: of_kind.get(cluster, ()) for kind, of_kind in found.items()}) for cluster in clusters
    }


SECTION: Final[Section[Replicas]] = Section("timelines/replicas", gather, Replicas())
