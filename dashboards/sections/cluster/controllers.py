"""Controllers: who held, or claimed, which epoch when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dashboards import words
from dashboards.section import Section
from dashboards.source import Source, by_cluster, latest_of_cluster, spanned, with_total
from ingest.lake.tables import silver


@dataclass(frozen=True)
class Tenure:
    """One controller epoch of one broker; ``total`` counts the cluster's."""

    controller_id: int
    controller_epoch: int
    from_ms: float
    to_ms: float | None
    end_reason: str | None = None
    inferred_from: str | None = None
    total: int = 1


def gather(source: Source) -> Mapping[str, tuple[Tenure, ...]]:
    """The latest tenures, in order."""
    order = ("controller_epoch", "valid_from", "controller_id", "sequence")
    rows = with_total(spanned(source.read(silver.CONTROLLER_EPOCH_TIMELINE)))
    return by_cluster(Tenure, latest_of_cluster(rows, order, source.limits.tenures))


def verdict(tenures: Sequence[Tenure]) -> str:
    """Who was controller when."""
    if not tenures:
        return "Who was controller is unknown: no evidence names one."
    parts = []
    stamp = words.clock if words.same_day(v for row in tenures for v in (row.from_ms, row.to_ms)) else words.instant
    for row in tenures[:3]:
        who = f"broker {row.controller_id}" if row.controller_id >= 0 else "an unknown broker"
        until = f"to {stamp(row.to_ms)}" if row.to_ms is not None else "to the end of the evidence"
        parts.append(f"{who} (epoch {row.controller_epoch}, from {stamp(row.from_ms)} {until})")
    total = tenures[0].total
    more = f", and {words.count(total - 3, 'more tenure')}" if total > 3 else ""
    return f"Controller: {', then '.join(parts)}{more}."


SECTION: Final[Section[tuple[Tenure, ...]]] = Section("cluster/controllers", gather, (), chart=tuple)
