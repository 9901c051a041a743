"""The sections of the report, card by card, in the order in which the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dashboards.section import Section
from dashboards.sections import availability, findings, incidents
from dashboards.sections.cluster import brokers, clocks, controllers, episodes, stops
from dashboards.sections.coverage import attribution, certainty, files, limits, rejected, unrecognised
from dashboards.sections.offsets import offsets
from dashboards.sections.timelines import evidence, partitions, replicas, topics, trouble

CARDS: Final[Mapping[str, tuple[Section[Any], ...]]] = {
    "incidents": (incidents.SECTION,),
    "findings": (findings.SECTION,),
    "timelines": (
        trouble.SECTION,
        topics.SECTION,
        controllers.SECTION,
        episodes.SECTION,
        brokers.SECTION,
        replicas.SECTION,
        offsets.SECTION,
        partitions.SECTION,
        evidence.SECTION,
        clocks.SECTION,
    ),
    "availability": (availability.SECTION, stops.SECTION),
    "coverage": (
        files.SECTION,
        attribution.SECTION,
        limits.SECTION,
        certainty.SECTION,
        rejected.SECTION,
        unrecognised.SECTION,
    ),
}
SECTIONS: Final = tuple(section for sections in CARDS.values() for section in sections)
