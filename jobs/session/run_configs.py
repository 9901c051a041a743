"""How Java is started for what a run reads: its compilers and its collector of garbage.

In a run of a minute or two on a capture of a megabyte Java's second compiler takes 45 of 92 seconds of the processors'
time, and what it makes is not used often enough: there the first works alone, which starts faster. On much text the
second wins that back, where it is worked on: not where a command looks into it, or goes on from what a run kept of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.session.planning import PLANNED_WITH_CARE

#: Parquet's files are read by threads, and Java keeps, outside of the heap, the buffers that each of them read into:
#: none larger than this.
JAVA_OPTIONS: Final = "-Duser.timezone=UTC -Djdk.nio.maxCachedBufferSize=262144"
SHORT_RUN_CONFIG: Final[Mapping[str, str]] = {
    # with that compiler alone Java sets aside 48 MiB for compiled code, which Spark fills: then nothing is compiled
    "spark.driver.extraJavaOptions": (
        f"{JAVA_OPTIONS} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m"
        # from the first: while the heap grows to that, Java collects garbage a hundred times more, and all of it before
        # each growth of what is old
        " -XX:+UseSerialGC -Xmn512m -XX:OldSize=640m -XX:MetaspaceSize=256m"
    )
}
#: For next to nothing: one task for each step. With two every step has twice the tasks, and each sort a job of its own
#: that finds where to cut.
TINY_RUN_CONFIG: Final[Mapping[str, str]] = {**SHORT_RUN_CONFIG, "spark.sql.shuffle.partitions": "1"}
#: Java's own choice for two processors and more lets the heap grow for as long as it may: 4.2 GiB with all processes
#: where a reconstruction of 122 MB of logs needs 2.6, in the same time (2 processors).
_COLLECTOR: Final = " -XX:+UseSerialGC" if (os.cpu_count() or 1) <= 2 else ""
#: Less is put together into one method than by default, loops are hardly unrolled: Spark's methods are long already. Of
#: 950 MB of logs the second compiler takes 93 of the processors' seconds in place of 121, and tasks as long.
_SHORTER_METHODS: Final = " -XX:FreqInlineSize=150 -XX:InlineSmallCode=1200 -XX:LoopUnrollLimit=16"
LONG_RUN_CONFIG: Final[Mapping[str, str]] = {
    **PLANNED_WITH_CARE,
    "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS}{_COLLECTOR}{_SHORTER_METHODS}",
}
#: More bytes, or more files, are not read in a minute or two. Archives hold some ten times their size.
MOST_BYTES: Final = 64 << 20
#: What a run knows counts so much less, up to some 1.1 GB of logs: of 950 MB a reconstruction with one in a hundred
#: more takes a fifth less of the processors with the first compiler alone, and no longer; checks and reports as much.
KNOWN_COUNTS: Final = 24
#: Of more than this two processors are better than one.
TINY_BYTES: Final = 12 << 20
MOST_FILES: Final = 20_000
_ARCHIVES: Final = (".gz", ".tgz", ".zip", ".zst", ".xz", ".bz2", ".snappy", ".parquet")


def config_for(paths: Sequence[str], known_until: float | None = None) -> Mapping[str, str]:
    """The settings of a run that reads what lies at and below the paths; what came before ``known_until``, seconds of
    the epoch, it knows."""
    if is_short(paths, MOST_BYTES):
        return TINY_RUN_CONFIG if is_short(paths, TINY_BYTES) else SHORT_RUN_CONFIG
    return {**PLANNED_WITH_CARE, **SHORT_RUN_CONFIG} if is_short(paths, MOST_BYTES, known_until) else LONG_RUN_CONFIG


def is_short(paths: Sequence[str], most_bytes: int, known_until: float | None = None) -> bool:
    """Whether all that lies at and below the paths is no more than that. Paths that are not of this machine are not
    looked at: who knows what is there."""
    left = most_bytes
    for number, path in enumerate(_files(paths)):
        try:
            found = os.stat(path)
        except OSError:
            continue
        size = 10 * found.st_size if path.endswith(_ARCHIVES) else found.st_size
        # not when it was last written, which whoever copies logs keeps
        is_known = known_until is not None and found.st_ctime < known_until
        left -= size // KNOWN_COUNTS if is_known else size
        if left < 0 or number > MOST_FILES:
            return False
    return all(os.path.isabs(path) for path in paths)


def _files(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            for folder, _, names in os.walk(path):
                yield from (os.path.join(folder, name) for name in names)
        else:
            yield path
