"""What a section of the report is, and a cluster's data as the sections read it.

A section is a module under ``dashboards/sections`` with its data as frozen dataclasses and the queries that fill them,
and a template of the same name beside it. ``docs/add-a-section.md`` says how one is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from dashboards import words
from dashboards.records import Record
from dashboards.source import FileTotals, Source

D = TypeVar("D")


@dataclass(frozen=True)
class Partition:
    """The partition that a row is about; without its cluster, since a section shows one cluster at a time."""

    topic: str
    topic_incarnation: str
    partition_id: int

    @property
    def name(self) -> str:
        """``topic-0``"""
        return words.partition(self.topic, self.partition_id)


@dataclass(frozen=True)
class Span:
    """The span of the evidence (``from_ms``, ``to_ms``) and of everything shown (``first_ms``, ``last_ms``)."""

    from_ms: float = 0
    to_ms: float = 0
    first_ms: float = 0
    last_ms: float = 0
    is_known: bool = False

    @property
    def is_one_day(self) -> bool:
        return words.same_day([self.from_ms, self.to_ms])

    def stamp(self, value: float | None) -> str:
        """An instant, without its day where all of the evidence lies on one."""
        return words.clock(value) if self.is_one_day else words.instant(value)


@dataclass(frozen=True)
class Cluster:
    """One cluster of the report: the data of each section by the section's name, and what several sections need."""

    number: int
    cluster_id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    totals: FileTotals = field(default_factory=FileTotals)
    span: Span = field(default_factory=Span)
    records: Mapping[str, Record] = field(default_factory=dict)

    def of(self, section: Section[D]) -> D:
        """The section's data of this cluster."""
        found: D = self.data.get(section.name, section.empty)
        return found


@dataclass(frozen=True)
class Section(Generic[D]):
    """A part of the report about each cluster.

    ``name`` is the path below ``dashboards/sections`` of its template, without ``.html.j2``. ``gather`` gives the data
    by cluster; a cluster that it leaves out has ``empty``. The template reads them as ``s``, or what ``view`` makes of
    them and the rest of the cluster's. ``chart`` gives dataclasses for the page's script, which finds them as
    ``chart.data.<last part of the name>``. ``is_long``: its queries take longest, as they follow each other, and begin
    before those of others.
    """

    name: str
    gather: Callable[[Source], Mapping[str, D]]
    empty: D
    view: Callable[[Cluster, D], Any] | None = None
    chart: Callable[[D], Any] | None = None
    is_long: bool = False

    @property
    def key(self) -> str:
        """The name without its folder."""
        return self.name.rpartition("/")[2]
