"""What Spark starts on one machine to fork its Python workers from: they begin with the modules that all of them need.

A worker that was idle for a minute is ended, and the next one imports everything anew: a second for each core, several
times in a run of a minute. Workers forked from here have it already. Only modules of plain Python are read here: what
starts threads must not be there when a process forks.
"""

from __future__ import annotations

import importlib
from typing import Final

from pyspark.daemon import manager

NEEDED: Final = (
    "ingest.shapes",
    "reconstruct.partitions.timeline",
    "reconstruct.checkpoints.rules",
    "reconstruct.clocks.timeline",
    "reconstruct.offsets.losses",
    "reconstruct.offsets.rules",
    "reconstruct.requests.rules.book",
)

if __name__ == "__main__":
    for name in NEEDED:
        importlib.import_module(name)
    manager()  # type: ignore[no-untyped-call]
