"""Intermediate rows of one run, kept as files beside the lake's tables while the run lasts; of a small lake on one
machine in its memory.

What several steps use is made once and read back. A cached DataFrame would be as fast to read, but carries the plan
that made it into the plan of everything made of it: those grow with every step until the driver does little but plan,
and its memory holds little else. Files are there for every executor, however many are lost. Of next to nothing to write
and to read them costs more than the rows do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.file_system import file_system_of, local_path
from ingest.lake.local_frames import local_frame
from ingest.lake.pinned import is_worth_it
from ingest.lake.plans import MOST_NAMED
from ingest.lake.tables import TABLES
from reconstruct.engine.rows import TABLE

#: No table's place: schemas have other names.
FOLDER: Final = "_staging"
#: What a run that was killed left is removed by the first run that begins this much later.
ABANDONED_AFTER_S: Final = 86_400
#: Of no more bytes of bronze on one machine, 8 to 20 MB of logs, memory holds whatever is made of them.
IN_MEMORY_BYTES: Final = 2 << 20


class Staging:
    """The intermediate rows of one run, in one folder of its own."""

    def __init__(self, lake: Lake, run_id: str) -> None:
        self._spark = lake.spark
        self._all = f"{lake.root}/{FOLDER}"
        self._folder = f"{self._all}/{run_id}"
        #: None while they are made.
        self._kept: dict[str, DataFrame | None] = {}
        bronze = (lake.size_bytes(spec) for spec in TABLES.values() if spec.schema == "bronze")
        self.is_in_memory = is_worth_it(lake.spark) and sum(bronze) <= IN_MEMORY_BYTES

    def keep(self, rows: DataFrame, name: str) -> DataFrame:
        """The same rows, made now, once, and read from where they are kept by all that is made of them."""
        if name in self._kept:
            raise ValueError(f"{name} is kept already")
        self._kept[name] = None
        self._kept[name] = kept = self._made(rows, name)
        return kept

    def keep_or_hold(self, rows: DataFrame, name: str) -> tuple[DataFrame, list[Row] | None]:
        """The same rows, to be read more than once: few are held here, and given; many are made as by :meth:`keep`."""
        few = rows.limit(MOST_NAMED + 1).collect()
        if len(few) > MOST_NAMED:
            return self.keep(rows, name), None
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema.fields)
        return local_frame(self._spark, columns, few), few

    def _made(self, rows: DataFrame, name: str) -> DataFrame:
        if self.is_in_memory:
            # what it makes of them keeps no plan, unlike a cached one
            return rows.localCheckpoint(eager=True)
        place = f"{self._folder}/{name}"
        rows.write.parquet(place)
        return self._spark.read.schema(rows.schema).parquet(place)

    def rows_count(self, name: str, *tables: str) -> int:
        """How many rows are kept by that name, of these tables alone where some are named: of files on this machine
        they say it themselves."""
        folder = None if self.is_in_memory or not is_worth_it(self._spark) else local_path(self._spark, self._folder)
        if folder is None:
            kept = self._kept[name]
            assert kept is not None, f"{name} is not made yet"
            return (kept.where(F.col(TABLE).isin(*tables)) if tables else kept).count()
        files = list(Path(folder, name).glob("*.parquet"))
        if not tables:
            return sum(pq.read_metadata(path).num_rows for path in files)
        among = pc.field(TABLE).isin(tables)
        return sum(pq.read_table(path, columns=[TABLE], filters=among).num_rows for path in files)

    def remove_abandoned(self) -> None:
        """Remove what runs that were killed long ago left here."""
        files, folder = file_system_of(self._spark, self._all)
        if not files.exists(folder):
            return
        oldest = 1000 * (time.time() - ABANDONED_AFTER_S)
        for status in files.listStatus(folder):
            if status.getModificationTime() < oldest:
                files.delete(status.getPath(), True)

    def remove(self) -> None:
        """Remove all that was kept, and the place of all runs where no other run is in it."""
        for rows in self._kept.values() if self.is_in_memory else ():
            if rows is not None:
                rows._jdf.queryExecution().logical().rdd().unpersist(False)
        files, folder = file_system_of(self._spark, self._folder)
        files.delete(folder, True)
        above = folder.getParent()
        if files.exists(above) and not files.listStatus(above):
            files.delete(above, False)


@contextmanager
def staging(lake: Lake, run_id: str) -> Iterator[Staging]:
    """A place for a run's intermediate rows; removed whatever happens."""
    stage = Staging(lake, run_id)
    stage.remove_abandoned()
    try:
        yield stage
    finally:
        stage.remove()
