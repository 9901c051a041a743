"""The releases of Kafka that the lab runs: their jars, and what differs between them for whoever starts and drives one.

The lists in ``jobs/lab/jars`` are whole: nothing is resolved, so that today's run and next year's run the same bytes.
They were made by resolving ``org.apache.kafka:kafka_2.10:0.8.2.2``, ``kafka_2.11:1.1.1``, ``kafka_2.13:2.8.2`` and
``kafka_2.13:3.9.1``, and those between them (2.11 up to 0.11, 2.12 up to 2.3), with a binding of slf4j to log4j and,
from 2.4, what their ZooKeeper leaves to its user (``metrics-core``, ``snappy-java``). Up to 0.11 they have
``jaxb-api``, which Java no longer has; 2.0 and 2.3 have the ZooKeeper 3.4.10 of 1.1, since the clients of 3.4.13 and
3.4.14 reach no server on Java 17. Left out is what 0.8's log4j names and Central does not hold (``jms``,
``jmxtools``, ``jmxri``), and what ZooKeeper 3.4 needs for its tests and its shell. ``kafka_2.13`` from 4.0.2
on comes with log4j 2 and its binding.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from jobs.session.caches import cache_dir
from jobs.session.pinned_jars import local_jars

#: Below the cache: one folder of jars for each release.
FOLDER: Final = "kafka"


@dataclass(frozen=True, order=True)
class Release:
    """One release of Kafka, with the ZooKeeper it depends on or, where it ``is_kraft``, a quorum of controllers."""

    number: tuple[int, ...]
    is_kraft: bool = False

    @property
    def version(self) -> str:
        return ".".join(map(str, self.number))

    @property
    def name(self) -> str:
        """The version; ``3.9.2-kraft`` where it could have a ZooKeeper and has none."""
        return f"{self.version}-kraft" if self.is_kraft and self.number < (4,) else self.version

    @property
    def has_log4j2(self) -> bool:
        """KIP-653, 4.0."""
        return self.number >= (4,)

    @property
    def has_listeners(self) -> bool:
        """``listeners`` in place of ``port`` and ``host.name`` (KIP-2, 0.9)."""
        return self.number >= (0, 9)

    @property
    def client_api(self) -> tuple[int, int, int] | None:
        """The protocol version to tell kafka-python; None where the broker answers ApiVersions (KIP-35, 0.10)."""
        return None if self.number >= (0, 10) else (0, 8, 2)

    @property
    def floods_fetch_errors(self) -> bool:
        """A follower of a dead leader tries again without waiting (before KAFKA-1461, 0.9): 30,000 lines a second."""
        return self.number < (0, 9)

    @property
    def leader_resigns(self) -> bool:
        """The leader of a quorum that hears no more of a majority of the voters resigns (since KAFKA-15489, 3.7)."""
        return self.number >= (3, 7)


#: With ZooKeeper: those that every test of clusters is about.
RELEASES: Final = tuple(Release(number) for number in ((0, 8, 2, 2), (1, 1, 1), (2, 8, 2), (3, 9, 1)))
#: With ZooKeeper too: those between them that say, send or decide something in another way than either neighbour.
BETWEEN: Final = tuple(
    Release(number) for number in ((0, 10, 2, 2), (0, 11, 0, 3), (2, 0, 1), (2, 3, 1), (2, 4, 1), (3, 3, 2), (3, 6, 2))
)
KRAFT_RELEASES: Final = tuple(Release(number, is_kraft=True) for number in ((3, 9, 2), (4, 1, 1), (4, 3, 1)))
KRAFT_BETWEEN: Final = tuple(
    Release(number, is_kraft=True) for number in ((3, 3, 2), (3, 6, 2), (3, 7, 2), (4, 0, 2), (4, 2, 0))
)
BY_NAME: Final = {
    release.name: release for release in (*sorted((*RELEASES, *BETWEEN)), *sorted((*KRAFT_RELEASES, *KRAFT_BETWEEN)))
}
OLDEST: Final = RELEASES[0]
NEWEST: Final = RELEASES[-1]


def pinned(release: Release) -> dict[str, str]:
    """``group:artifact:version`` of each jar of a release, and the SHA-256 of its bytes."""
    text = (resources.files("jobs.lab") / "jars" / f"{release.version}.txt").read_text(encoding="utf-8")
    return dict(line.split() for line in text.splitlines() if line and not line.startswith("#"))


def kafka_jars(java: str, release: Release, cache: Path | None = None) -> tuple[Path, ...]:
    """The jars of a release as local files, downloaded at the first call.

    ``java`` is the Java program that runs Ivy.

    :raises JarsMissing: where they are neither in the cache nor to be had; the message says what to do.
    """
    folder = (cache or cache_dir()) / FOLDER / release.version
    return local_jars(java, pinned(release), folder, f"the jars that jobs/lab/jars/{release.version}.txt names")
