"""What Spark starts on one machine to fork its Python workers from: they begin with the modules that all of them need.

A worker that was idle for a minute is ended, and the next one imports everything anew: a second for each core, several
times in a run of a minute. Workers forked from here have it already. Only modules of plain Python are read here: what
starts threads must not be there when a process forks.

Spark has Python find pyspark in a zip, which has no bytecode: to compile it takes longer than to import it. Where that
zip lies within an installed pyspark the latter is taken, which is the same.

As the first list becomes a column of Arrow pyarrow asks whether there is pandas, and imports it to know: 350 modules in
each worker, which no task of ours needs. It asks here, where there is none to be found; where values of pandas are to
be made it imports it all the same.

Two things that pyspark does for each task are spared it, which took more time than the tasks of a small lake: before
it, Python reads the directories of all zips on its path again, of which pyspark's own has a thousand members, though no
zip changes while Spark runs; after it, the garbage collector looks at every object that there is, also at those that
were there before the worker was, and at what came with the modules of earlier tasks (pandas alone: 75,000 objects).
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import PurePath
from types import SimpleNamespace
from typing import Final
from zipimport import zipimporter

NEEDED: Final = (
    "ingest.shapes",
    "reconstruct.partitions.timeline",
    "reconstruct.checkpoints.rules",
    "reconstruct.clocks.timeline",
    "reconstruct.offsets.losses",
    "reconstruct.offsets.rules",
    "reconstruct.requests.rules.book",
)

#: Of pyspark's folder, where the zips of itself and of py4j lie.
_OF_ZIPS: Final = ("pyspark", "python", "lib")

#: Folds make many objects and few cycles: with Python's own 700 the collector takes a twelfth of a worker's time.
_OBJECTS_BETWEEN_COLLECTIONS: Final = 10_000

_modules_left_alone = 0


def without_zips(path: Sequence[str]) -> list[str]:
    """Where modules are looked for, without the zips within a pyspark that is looked at, too, if all is there."""
    folders = {PurePath(place, *_OF_ZIPS) for place in path}
    others = [place for place in path if not (place.endswith(".zip") and PurePath(place).parent in folders)]
    return others if all(PathFinder.find_spec(name, others) for name in ("pyspark", "py4j")) else list(path)


class _NoPandas:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def ask_for_no_pandas() -> None:
    """Have pyarrow ask now whether there is pandas, and find none."""
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(_NoPandas)


def leave_modules_alone() -> None:
    """Collect garbage; what is there then the next collections leave alone, if modules have come since the last."""
    global _modules_left_alone
    gc.collect()
    if len(sys.modules) != _modules_left_alone:
        _modules_left_alone = len(sys.modules)
        gc.freeze()


if __name__ == "__main__":
    sys.path[:] = without_zips(sys.path)
    from pyspark import daemon

    zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]
    for name in NEEDED:
        importlib.import_module(name)
    ask_for_no_pandas()
    leave_modules_alone()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    daemon.__dict__["gc"] = SimpleNamespace(collect=leave_modules_alone)  # what pyspark calls after each task
    daemon.manager()  # type: ignore[no-untyped-call]
