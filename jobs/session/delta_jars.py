"""Delta's two jars: named, pinned, fetched once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jobs.session.caches import cache_dir
from jobs.session.pinned_jars import file_name, local_jars

#: ``group:artifact:version`` of each jar and the SHA-256 of its bytes. They belong to ``delta-spark`` of the same
#: version; the artifact's name carries the Spark and Scala versions it was built for.
DELTA_JARS: Final[Mapping[str, str]] = {
    "io.delta:delta-spark_4.1_2.13:4.4.0": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "io.delta:delta-storage:4.4.0": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
#: What ``spark-submit --packages`` takes.
DELTA_PACKAGES: Final = ",".join(DELTA_JARS)


def delta_jars(java: str, cache: Path | None = None) -> tuple[Path, ...]:
    """The jars as local files, downloaded at the first call.

    ``java`` is the Java program that runs Ivy.

    :raises JarsMissing: where they are neither in the cache nor to be had; the message says what to do.
    """
    folder = (cache or cache_dir()) / "jars"
    names = " and ".join(map(file_name, DELTA_JARS))
    return local_jars(
        java,
        DELTA_JARS,
        folder,
        whose="Delta's",
        advice=lambda _, reason: (
            f"cannot download Delta's jars{reason}: the first start needs Maven Central; or put {names} into {folder}"
        ),
    )
