"""Brokers: when each was registered in ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from dashboards import words
from dashboards.section import Section
from dashboards.source import Source, by_cluster, ms, spanned, top, with_total
from ingest.lake.tables import silver


@dataclass(frozen=True)
class Registration:
    """One registration; ``ended_before_ms`` is the latest instant at which it can have ended, ``total`` counts the
    cluster's."""

    broker_id: int
    from_ms: float
    to_ms: float | None
    end_reason: str | None = None
    ended_before_ms: float | None = None
    inferred_from: str | None = None
    total: int = 1


def gather(source: Source) -> Mapping[str, tuple[Registration, ...]]:
    """The latest registrations, in order."""
    rows = with_total(spanned(source.read(silver.BROKER_LIVENESS_TIMELINE)))
    order = [F.col("valid_from").desc(), F.col("broker_id"), F.col("sequence").desc()]
    latest = top(rows, ["cluster_id"], order, source.limits.liveness)
    return by_cluster(
        Registration,
        latest.withColumn("ended_before_ms", ms("ended_before")).orderBy(
            "cluster_id", "broker_id", "valid_from", "sequence"
        ),
    )


def verdict(registrations: Sequence[Registration]) -> str:
    """Which registrations ended, and how; empty where nothing is known of any."""
    if not registrations:
        return ""
    ended = sorted((row.to_ms, row.broker_id, row.end_reason or "") for row in registrations if row.to_ms is not None)
    if not ended:
        return f"No registration of {words.count(len({row.broker_id for row in registrations}), 'broker')} ended."
    stamp = words.clock if words.same_day(at for at, _, _ in ended) else words.instant
    parts = [
        f"broker {broker} at {stamp(at)} ({words.named(reason or 'reason unknown')})" for at, broker, reason in ended
    ]
    return f"{words.count(len(ended), 'registration')} ended: {words.listing(parts)}."


SECTION: Final[Section[tuple[Registration, ...]]] = Section("cluster/brokers", gather, (), chart=tuple)
