"""Topics of a cluster with many partitions: how many of each were in trouble at once, the worst topics first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from dashboards.section import Section
from dashboards.sections.timelines import partitions, trouble
from dashboards.source import Source, by_cluster

#: Of fewer partitions the lanes show it all.
_FEWEST: Final = 40
#: Topics that are drawn, and slices of time.
_MOST: Final = 50
_SLICES: Final = 200


@dataclass(frozen=True)
class Topic:
    """A topic with what ranks it, as of its partitions together; ``topics_total`` is of its cluster."""

    topic: str
    partitions: int
    topics_total: int
    errors: int = 0
    warnings: int = 0
    offline_ms: float = 0
    under_min_isr_ms: float = 0
    kinds: tuple[trouble.CountedKind, ...] = ()


def gather(source: Source) -> Mapping[str, tuple[Topic, ...]]:
    """The worst topics of each cluster that has many partitions, in the order in which its partitions are drawn."""
    found = by_cluster(Topic, partitions.worst_topics(source, _FEWEST, _MOST))
    if not found:
        return {}
    names = [(cluster, topic.topic) for cluster, topics in found.items() for topic in topics]
    by = ("cluster_id", "topic")
    kinds = trouble.counted(source, by, _SLICES, source.keys(by, names, (pa.string(), pa.string())))
    return {
        cluster: tuple(replace(topic, kinds=kinds.get((cluster, topic.topic), ())) for topic in topics)
        for cluster, topics in found.items()
    }


SECTION: Final[Section[tuple[Topic, ...]]] = Section("timelines/topics", gather, (), chart=tuple)
