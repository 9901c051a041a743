"""The jars of ZooKeeper and Kafka, of the releases that the lab and its tests run: listed, pinned, fetched once.

The lists in ``jobs/lab/jars`` are whole: nothing is resolved, so that today's run and next year's run the same bytes.
They were made by resolving ``org.apache.kafka:kafka_2.10:0.8.2.2``, ``kafka_2.11:1.1.1``, ``kafka_2.13:2.8.2`` and
``kafka_2.13:3.9.1`` with a binding of slf4j to log4j and, from 2.8, what their ZooKeeper leaves to its user
(``metrics-core``, ``snappy-java``); left out is what 0.8's log4j names and Central does not hold (``jms``,
``jmxtools``, ``jmxri``), and what ZooKeeper 3.4 needs for its tests and its shell. 4.1.0, which has no ZooKeeper, is
for the tests of ``capture``.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from jobs.lab.machines.releases import Release
from jobs.session.caches import cache_dir
from jobs.session.pinned_jars import local_jars

#: Below the cache: one folder of jars for each release.
FOLDER: Final = "kafka"


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
    return local_jars(
        java,
        pinned(release),
        folder,
        whose="Kafka's",
        advice=lambda missing, reason: (
            f"cannot download {missing} of Kafka {release.version}{reason}: the lab's first run needs Maven Central;"
            f" or put the jars that jobs/lab/jars/{release.version}.txt names into {folder}"
        ),
    )
