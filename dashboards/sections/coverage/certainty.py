"""Certainty: how many leader-and-ISR intervals were observed, and why the others were inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from dashboards import words
from dashboards.section import Section
from dashboards.source import Source, by_cluster
from ingest.lake.tables import silver


@dataclass(frozen=True)
class Inference:
    """Intervals by why they were inferred; None: they were observed."""

    inferred_from: str | None
    intervals: int


def gather(source: Source) -> Mapping[str, tuple[Inference, ...]]:
    """Intervals by why they were inferred, the observed ones first."""
    rows = source.read(silver.LEADER_AND_ISR_TIMELINE).groupBy("cluster_id", "inferred_from")
    counted = rows.agg(F.count("*").alias("intervals"))
    return by_cluster(Inference, counted.orderBy("cluster_id", F.col("inferred_from").asc_nulls_first()))


def sentence(inferences: Sequence[Inference], without_timeline: int) -> str:
    """Observed, inferred and unknown, apart."""
    total = sum(row.intervals for row in inferences)
    if not total:
        return "No leader-and-ISR interval is known."
    observed = sum(row.intervals for row in inferences if row.inferred_from is None)
    reasons = [f"{row.intervals:,} {words.named(row.inferred_from)}" for row in inferences if row.inferred_from]
    text = (
        f"Of {words.count(total, 'leader-and-ISR interval')}, {observed:,} were observed and"
        f" {total - observed:,} inferred"
    )
    text += f" ({words.listing(reasons, 8)})." if reasons else "."
    if without_timeline:
        text += f" Of {words.count(without_timeline, 'partition')} no leader is known at all."
    return text


SECTION: Final[Section[tuple[Inference, ...]]] = Section("coverage/certainty", gather, ())
