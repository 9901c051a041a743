"""Messages that no shape knows, as a list that a user can send in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dashboards.section import Section
from dashboards.source import Source, by_cluster, most_frequent
from ingest.lake.tables import quality


@dataclass(frozen=True)
class UnrecognisedTemplate:
    """A template with its first record; ``groups_total`` and ``records_total`` are of all templates."""

    records: int
    kafka_version: str
    source_kind: str
    logger: str | None
    log_level: str | None
    template: str
    source_file: str
    source_line: int | None
    groups_total: int
    records_total: int


def gather(source: Source) -> Mapping[str, tuple[UnrecognisedTemplate, ...]]:
    """The most frequent templates."""
    templates = source.read(quality.UNRECOGNISED_TEMPLATES).withColumnRenamed("records_count", "records")
    order = ("source_kind", "logger", "template", "kafka_version")
    return by_cluster(UnrecognisedTemplate, most_frequent(source, templates, order))


SECTION: Final[Section[tuple[UnrecognisedTemplate, ...]]] = Section("coverage/unrecognised", gather, ())
