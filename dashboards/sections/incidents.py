"""Incidents: what happened, its cause and all that followed, the worst first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from dashboards.section import Section
from dashboards.source import Source, by_cluster, grouped, ms, spanned, top, with_total
from ingest.lake.tables.incidents import INCIDENT_EVENTS, INCIDENTS
from ingest.lake.tables.shared import HARMS
from reconstruct.incidents.story import count_range

_SHOWN: Final = 20


@dataclass(frozen=True)
class Event:
    """One event of an incident; ``to_ms`` is None while it lasts."""

    from_ms: float
    to_ms: float | None
    event_kind: str
    description: str
    partitions_count: int
    partitions: tuple[str, ...]
    broker_id: int | None = None
    finding_types: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        """Its partitions: those that it names, the others counted."""
        rest = self.partitions_count - len(self.partitions)
        return ", ".join(self.partitions) + (f" and {rest:,} more" if self.partitions and rest > 0 else "")


@dataclass(frozen=True)
class Incident:
    """One incident with its events in order; the cluster has ``total``, of which ``lasting`` are not over, and the last
    ended at ``last_ms``."""

    incident_id: str
    summary: str
    cause: str
    confidence: str
    harm: str
    from_ms: float
    to_ms: float | None
    total: int
    unavailable_partitions_count: int = 0
    unavailable_ms: float | None = 0
    lost_count_lower: int = 0
    lost_count_upper: int | None = 0
    events: tuple[Event, ...] = ()
    lasting: int = 0
    last_ms: float | None = None

    @property
    def lost(self) -> str:
        """How many committed records were lost; empty where none were."""
        return "" if self.lost_count_upper == 0 else count_range(self.lost_count_lower, self.lost_count_upper)


def gather(source: Source) -> Mapping[str, tuple[Incident, ...]]:
    """The worst incidents of each cluster, and of those the earliest first."""
    order = [F.array_position(F.array(*map(F.lit, HARMS)), F.col("harm")), F.col("valid_from"), F.col("incident_id")]
    of_cluster = Window.partitionBy("cluster_id")
    ends = {
        "lasting": F.count_if(F.col("valid_to").isNull()).over(of_cluster),
        "last_ms": F.max(ms("valid_to")).over(of_cluster),
    }
    shown = top(with_total(source.read(INCIDENTS)).withColumns(ends), ["cluster_id"], order, _SHOWN)
    events = source.read(INCIDENT_EVENTS).join(
        F.broadcast(shown.select("cluster_id", "incident_id")), ["cluster_id", "incident_id"]
    )
    timed = events.withColumns({"from_ms": ms("began_at"), "to_ms": ms("ended_at")})
    of_incident = grouped(Event, timed.orderBy("cluster_id", "incident_id", "sequence"), ("cluster_id", "incident_id"))
    found = by_cluster(Incident, spanned(shown).orderBy("cluster_id", *order))
    return {
        cluster: tuple(replace(one, events=of_incident.get((cluster, one.incident_id), ())) for one in incidents)
        for cluster, incidents in found.items()
    }


SECTION: Final[Section[tuple[Incident, ...]]] = Section("incidents", gather, ())
