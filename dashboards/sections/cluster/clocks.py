"""Clocks: how far each broker's can be trusted, in a sentence a segment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from dashboards import words
from dashboards.section import Cluster, Section
from dashboards.source import Source, by_cluster, spanned, top_of_cluster
from ingest.lake.tables import quality

ZOOKEEPER: Final = -1


@dataclass(frozen=True)
class ClockSegment:
    """A span of a broker's clock with bounds of how far it was ahead of ``reference`` (-1: ZooKeeper)."""

    broker_id: int
    from_ms: float | None
    to_ms: float | None
    verdict: str
    reference: int | None
    offset_lower_ms: int | None
    offset_upper_ms: int | None
    zone_offset_minutes: int | None
    correction_us: int | None
    pairs_count: int | None
    dropped_pairs_count: int | None


@dataclass(frozen=True)
class ClockSentence:
    """A segment in words; its span is given only where the broker has several segments."""

    text: str
    span: tuple[float | None, float | None] | None


def gather(source: Source) -> Mapping[str, tuple[ClockSegment, ...]]:
    """The segments of every broker's clock, those that say most first: corrected, then wrong, then the others."""
    rows = source.read(quality.EVIDENCE_COVERAGE).where(F.col("source_kind") == quality.CLOCK)
    corrected = F.coalesce(F.col("clock_correction_us"), F.lit(0)) != 0
    order = [corrected.desc(), (F.col("clock_verdict") == "agrees"), F.col("broker_id"), F.col("valid_from")]
    segments = spanned(top_of_cluster(rows, order, source.limits.groups))
    return by_cluster(
        ClockSegment,
        segments.withColumnsRenamed({name: name.removeprefix("clock_") for name in rows.columns}),
    )


def view(cluster: Cluster, segments: tuple[ClockSegment, ...]) -> tuple[ClockSentence, ...]:
    """A sentence for each segment."""
    counts = Counter(row.broker_id for row in segments)
    return tuple(
        ClockSentence(clock_sentence(row), (row.from_ms, row.to_ms) if counts[row.broker_id] > 1 else None)
        for row in segments
    )


def clock_sentence(row: ClockSegment) -> str:
    """A segment as a sentence."""
    broker = f"Broker {row.broker_id}"
    pairs = _pairs(row)
    if row.verdict == "unknown":
        return f"{broker}'s clock cannot be judged: {pairs}."
    reference = "ZooKeeper's"
    if row.reference != ZOOKEEPER:
        reference = f"broker {row.reference}'s (no znodes were given)"
    zone = row.zone_offset_minutes
    bounds = _bounds(row, zone or 0)
    text = f"{broker}'s clock was {bounds} {reference}"
    if zone:
        hours, minutes = divmod(abs(zone), 60)
        name = f"UTC{'-' if zone < 0 else '+'}{hours:02}:{minutes:02}"
        text = f"{broker}'s log is in {name}; but for that its clock was {bounds} {reference}"
    correction = row.correction_us
    if correction:
        earlier = "earlier" if correction > 0 else "later"
        done = f"its times were taken {words.duration(abs(correction) / 1000)} {earlier} before anything was ordered"
    elif row.verdict == "agrees":
        done = "nothing was corrected"
    else:
        done = "nothing was corrected, since nothing proves by how much"
    return f"{text} ({pairs}); {done}."


def _bounds(row: ClockSegment, zone_minutes: int) -> str:
    lower, upper = row.offset_lower_ms, row.offset_upper_ms
    zone_ms = zone_minutes * 60_000
    if lower is None:
        return "not bounded against" if upper is None else f"at most {_signed(upper - zone_ms)} ahead of"
    if upper is None:
        return f"at least {_signed(lower - zone_ms)} ahead of"
    return f"between {_signed(lower - zone_ms)} and {_signed(upper - zone_ms)} ahead of"


def _signed(milliseconds: int) -> str:
    return f"{'-' if milliseconds < 0 else ''}{words.duration(abs(milliseconds))}"


def _pairs(row: ClockSegment) -> str:
    count, dropped = row.pairs_count or 0, row.dropped_pairs_count or 0
    if not count and not dropped:
        return "no causal pair ties it to another"
    against = f", {dropped} against the others" if dropped else ", none against the others"
    return f"{words.count(count, 'causal pair')}{against}"


SECTION: Final[Section[tuple[ClockSegment, ...]]] = Section("cluster/clocks", gather, (), view)
