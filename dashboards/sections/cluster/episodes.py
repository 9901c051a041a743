"""Episodes of controllers: how each took over, what it found and did, and what it failed of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dashboards import words
from dashboards.section import Section
from dashboards.source import Source, by_cluster, latest_of_cluster, ms
from ingest.lake.tables.controllers import CONTROLLER_EPISODES

_LATEST: Final = 20
#: The bar of a take-over, in pixels.
WIDTH: Final = 200


@dataclass(frozen=True)
class Step:
    """One step of a take-over as a part of its bar: from ``x``, ``width`` wide, in pixels."""

    name: str
    at_ms: int
    x: float
    width: float


@dataclass(frozen=True)
class Episode:
    """A row of ``gold.controller_episodes``."""

    controller_id: int
    controller_epoch: int
    elected_ms: float
    without_controller_ms: int | None = None
    took_over_ms: int | None = None
    steps: tuple[str, ...] = ()
    found_brokers: tuple[int, ...] | None = None
    found_partitions_count: int | None = None
    found_offline_count: int | None = None
    elections_count: int = 0
    left_leaderless_count: int = 0
    requests_count: int = 0
    requests_not_applied_count: int = 0
    brokers_came_count: int = 0
    brokers_went_count: int = 0
    reassignments_count: int = 0
    deletions_count: int = 0
    trouble: tuple[str, ...] = ()
    resigned_ms: int | None = None

    @property
    def found(self) -> str:
        """What it found when it took over, in words."""
        parts = []
        if self.found_brokers is not None:
            parts.append(f"{words.count(len(self.found_brokers), 'broker')} live")
        if self.found_partitions_count is not None:
            parts.append(f"{words.count(self.found_partitions_count, 'partition')}, {self.found_offline_count} offline")
        return ", ".join(parts) or "–"

    @property
    def did(self) -> str:
        """What it did and noticed, in words: only what there was."""
        parts = (
            (self.elections_count, f"{words.count(self.elections_count, 'election')}"),
            (self.left_leaderless_count, f"{words.count(self.left_leaderless_count, 'partition')} left leaderless"),
            (self.requests_count, f"{words.count(self.requests_count, 'request')}"),
            (self.requests_not_applied_count, f"{self.requests_not_applied_count:,} of them not applied"),
            (self.brokers_came_count, f"{words.count(self.brokers_came_count, 'broker')} came"),
            (self.brokers_went_count, f"{words.count(self.brokers_went_count, 'broker')} went"),
            (self.reassignments_count, f"{words.count(self.reassignments_count, 'partition')} reassigned"),
            (self.deletions_count, f"{words.count(self.deletions_count, 'topic')} deleted"),
            (self.resigned_ms is not None, f"resigned in {words.duration(self.resigned_ms or 0)}"),
        )
        return ", ".join(text for is_there, text in parts if is_there) or "–"

    @property
    def failed(self) -> str:
        """What it failed of or waited for, in words; empty where nothing."""
        return words.listing(
            f"{words.named(name)} {times}" for name, _, times in (one.rpartition(" ") for one in self.trouble)
        )

    @property
    def bar(self) -> tuple[Step, ...]:
        """The steps up to the moment it was ready; none where it is not known how long that took."""
        return tuple(self._bar()) if self.took_over_ms else ()

    def _bar(self) -> Iterator[Step]:
        steps = [(name, int(at)) for name, _, at in (step.rpartition(" +") for step in self.steps)]
        whole = max(1, self.took_over_ms or 1)
        for (name, at), (_, after) in pairwise(steps):
            if at < whole and after > at:
                x = WIDTH * at / whole
                yield Step(
                    words.named(name), at, round(x, 1), round(max(1.0, WIDTH * min(after, whole) / whole - x), 1)
                )


def gather(source: Source) -> Mapping[str, tuple[Episode, ...]]:
    """The latest episodes, in order."""
    order = ("elected_at", "controller_epoch", "controller_id", "sequence")
    rows = source.read(CONTROLLER_EPISODES).withColumn("elected_ms", ms("elected_at"))
    return by_cluster(Episode, latest_of_cluster(rows, order, _LATEST))


SECTION: Final[Section[tuple[Episode, ...]]] = Section("cluster/episodes", gather, ())
