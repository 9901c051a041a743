"""Availability: how many partitions were not as they should be, for how long, and the longest intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from dashboards import words
from dashboards.section import Partition, Section
from dashboards.source import Source, by_cluster, lasted_ms, ms, spanned, top
from ingest.lake.tables import gold

KIND_WORDS: Final[Mapping[str, str]] = {
    "no_live_leader": "without a live leader",
    "offline": "offline (without a registered leader)",
    "under_min_isr": "under min ISR (acks=all writes fail)",
    "at_min_isr": "at min ISR",
    "under_replicated": "under-replicated",
    "non_preferred_leader": "led by another than the preferred replica",
    "reassigning": "being reassigned",
    "deleting": "being deleted",
}
_LONGEST: Final = 20


@dataclass(frozen=True)
class KindSummary:
    """All intervals of one kind; ``open`` of them had not ended when the evidence does.

    What lasted ``total_ms`` and ``longest_ms`` at least lasted ``total_most_ms`` and ``longest_most_ms`` at most, where
    only bounds of the begin are known.
    """

    kind: str
    intervals: int
    partitions: int
    total_ms: float
    longest_ms: float
    open: int
    inferred: int = 0
    first_ms: float | None = None
    total_most_ms: float | None = None
    longest_most_ms: float | None = None


@dataclass(frozen=True)
class LongInterval(Partition):
    """One of the longest intervals of its kind; it lasted ``lasted_ms`` at least, ``most_ms`` at most."""

    kind: str
    lasted_ms: float
    from_ms: float
    to_ms: float | None
    opened_by: str | None = None
    closed_by: str | None = None
    inferred_from: str | None = None
    most_ms: float | None = None


@dataclass(frozen=True)
class Availability:
    """The kinds that occurred, and the longest intervals without a leader and under min ISR."""

    summary: tuple[KindSummary, ...] = ()
    longest: tuple[LongInterval, ...] = ()

    def of_kind(self, kind: str) -> KindSummary | None:
        return next((row for row in self.summary if row.kind == kind), None)

    @property
    def kinds(self) -> tuple[tuple[str, KindSummary], ...]:
        """The kinds that occurred with their words, in the order of :data:`KIND_WORDS`."""
        return tuple((word, row) for kind, word in KIND_WORDS.items() if (row := self.of_kind(kind)))


def gather(source: Source) -> Mapping[str, Availability]:
    """Availability of each cluster."""
    rows = source.read(gold.AVAILABILITY_INTERVALS).withColumn("lasted_ms", lasted_ms(source))
    early_ms = ms("valid_from") - ms(F.coalesce("valid_from_lower", "valid_from"))
    rows = rows.withColumn("most_ms", F.col("lasted_ms") + early_ms)
    summary = rows.groupBy("cluster_id", "kind").agg(
        F.count("*").alias("intervals"),
        F.count_distinct("topic", "topic_incarnation", "partition_id").alias("partitions"),
        F.sum("lasted_ms").alias("total_ms"),
        F.max("lasted_ms").alias("longest_ms"),
        F.count(F.when(F.col("valid_to").isNull(), 1)).alias("open"),
        F.count("inferred_from").alias("inferred"),
        F.min(ms("valid_from")).alias("first_ms"),
        F.sum("most_ms").alias("total_most_ms"),
        F.max("most_ms").alias("longest_most_ms"),
    )
    order = [F.col("most_ms").desc(), *map(F.col, ("topic", "topic_incarnation", "partition_id", "sequence"))]
    worst = rows.where(F.col("kind").isin(["no_live_leader", "offline", "under_min_isr"]))
    longest = spanned(top(worst, ["cluster_id", "kind"], order, _LONGEST)).orderBy("cluster_id", "kind", *order)
    by_kind = by_cluster(KindSummary, summary.orderBy("cluster_id", "kind"))
    intervals = by_cluster(LongInterval, longest)
    return {cluster: Availability(found, intervals.get(cluster, ())) for cluster, found in by_kind.items()}


def lasted(least_ms: float, most_ms: float | None) -> str:
    """How long something lasted: a range where only bounds are known."""
    least, most = words.duration(least_ms), words.duration(least_ms if most_ms is None else most_ms)
    return least if least == most else f"{least} to {most}"


def offline_verdict(data: Availability, judged: bool, partitions_total: int) -> str:
    """Whether anything was without a live or a registered leader, for how long, and what was worst."""
    kinds = (("no_live_leader", "live"), ("offline", "registered"))
    parts = [
        f"{words.count(row.partitions, 'partition')} of {partitions_total:,} had no {of} leader, "
        f"{words.count(row.intervals, 'time')} in all, for {lasted(row.total_ms, row.total_most_ms)} together"
        + _worst(data, kind)
        for kind, of in kinds
        if (row := data.of_kind(kind))
    ]
    if not parts:
        return (
            "No partition was offline in what the evidence shows."
            if judged
            else "Whether anything was offline is unknown: the lake holds no leader of any partition."
        )
    row = data.of_kind("offline")
    still = f" {words.count(row.open, 'partition')} had no leader when the evidence ends." if row and row.open else ""
    return " ".join(f"{part}." for part in parts) + still


def _worst(data: Availability, kind: str) -> str:
    worst = next((interval for interval in data.longest if interval.kind == kind), None)
    if worst is None:
        return ""
    stamp = words.clock if words.same_day([worst.from_ms, worst.to_ms]) else words.instant
    is_range = worst.most_ms not in (None, worst.lasted_ms)
    began = f"from {stamp(worst.from_ms)}{' or earlier' if is_range else ''}"
    until = f"to {stamp(worst.to_ms)}" if worst.to_ms is not None else "and still at the end of the evidence"
    return f"; longest {worst.name}, {lasted(worst.lasted_ms, worst.most_ms)}, {began} {until}"


def isr_verdict(data: Availability) -> str:
    """Under min ISR and under-replicated in one sentence; empty where neither occurred."""
    parts: Sequence[str] = [
        f"{words.count(row.partitions, 'partition')} {word} (longest {words.duration(row.longest_ms)}, "
        f"{row.open:,} still at the end)"
        for kind, word in (("under_min_isr", "under min ISR"), ("under_replicated", "under-replicated"))
        if (row := data.of_kind(kind))
    ]
    return f"{' and '.join(parts)}." if parts else ""


SECTION: Final = Section("availability", gather, Availability())
