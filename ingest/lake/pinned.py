"""Small Delta tables read without asking Delta again: what a commit's own checksum file says is enough.

Each scan of a Delta table is a Spark job that looks for the files to read, and a table without any row is planned like
one with many. For a lake on one machine that costs more than the rows do. Delta writes the list of a small table's
files, with the number of rows in each, beside every commit (``_delta_log/VERSION.crc``): from it such a table is read
as the Parquet files it is, or as no rows at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ingest.lake.file_system import local_path, modified_ms

#: Of more files Spark lists the folders in a job of its own.
MOST_FILES: Final = 32
#: Parquet of some ten times as much text.
TINY_BYTES: Final = 512 << 10
#: The logs of the tables of two lakes: those that this module need not ask Delta for.
_MOST_LOGS: Final = 128
#: Whether there is a later version Delta finds by listing the log, and a run asks three hundred times. To ask for two
#: files takes less: always on this machine, elsewhere from so many versions on, of which each left four files there.
LISTED_VERSIONS: Final = 30
#: What Delta calls its files where nothing about the table is special; and what Spark takes for a pattern in a path.
_PLAIN_NAME: Final = re.compile(r"[\w.-]+")
_PATTERN: Final = re.compile(r"[*?\[\]{}\\']")
#: Readers of this version of Delta's protocol find rows in the files as they are: nothing renamed, nothing struck out.
_PLAIN_READER: Final = 1


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """The files of one version of a table, and its schema, which is Java's; ``is_tiny``: one task reads them best."""

    files: Sequence[str]
    rows_count: int | None
    schema: Any
    is_tiny: bool

    @property
    def struct(self) -> T.StructType:
        """The schema as Delta declares it: with its NOT NULL, of which :meth:`frame` knows nothing."""
        return T.StructType.fromJson(json.loads(self.schema.json()))

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows of that version."""
        jvm, session = spark._jvm, spark._jsparkSession
        assert jvm is not None
        if not self.files:
            return DataFrame(session.createDataFrame(jvm.java.util.ArrayList(), self.schema), spark)
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        paths = gateway.new_array(jvm.java.lang.String, len(self.files))
        for index, path in enumerate(self.files):
            paths[index] = path
        rows = DataFrame(session.read().schema(self.schema).parquet(paths), spark)
        # of rows that are known to be in one part Spark moves none to group or to order them
        return rows.coalesce(1) if self.is_tiny else rows

    def name(self, spark: SparkSession, view: str, table: str) -> bool:
        """Name the rows ``view`` in SQL; those of files are then of ``table``. False where a file is gone, over which
        Spark would pass: then nothing is named."""
        types = {field.name: field.dataType.simpleString() for field in self.struct.fields}
        if self.files:
            folder = self.files[0].rpartition("/")[0]
            names = ",".join(path.removeprefix(f"{folder}/") for path in self.files)
            place = f"{folder}/{{{names}}}" if len(self.files) > 1 else self.files[0]
            columns = ", ".join(f"`{name}` {type_}" for name, type_ in types.items())
            spark.sql(f"CREATE TABLE {table} ({columns}) USING PARQUET LOCATION '{place}'")
            if len(spark.table(table).inputFiles()) < len(self.files):
                spark.sql(f"DROP TABLE {table}")
                return False
            rows = f"{'/*+ COALESCE(1) */ ' if self.is_tiny else ''}* FROM {table}"
        else:
            rows = ", ".join(f"CAST(NULL AS {type_}) AS `{name}`" for name, type_ in types.items()) + " WHERE FALSE"
        spark.sql(f"CREATE VIEW {view} AS SELECT {rows}")
        return True


@dataclass(slots=True)
class NewestVersion:
    """A table's newest version when Delta was asked last: Delta's own object, its number (-1: there is no table), when
    it was committed, and the table as it is then, of which :func:`pinned_table` asks Delta once."""

    snapshot: Any
    number: int
    written_ms: int
    pinned: PinnedTable | None = None
    is_asked: bool = False


@dataclass(slots=True)
class _KnownTable:
    """Delta's log of a table, and what it told last."""

    log: Any
    newest: NewestVersion | None = None


def newest_version(spark: SparkSession, path: str) -> NewestVersion:
    """The newest version of the table at ``path``, of which no Spark job is needed."""
    known = _known_table(spark, path)
    if known.newest is not None and _is_newest(spark, path, known.newest):
        return known.newest
    none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    snapshot = delta_log(spark, path).update(False, none, none)
    written_ms = int(snapshot.logSegment().lastCommitFileModificationTimestamp())
    known.newest = newest = NewestVersion(snapshot, int(snapshot.version()), written_ms)
    return newest


def _is_newest(spark: SparkSession, path: str, held: NewestVersion) -> bool:
    """Whether the table's log goes on to that version and no further, as two files say: versions have no holes."""
    folder = f"{path}/_delta_log"
    if held.number < LISTED_VERSIONS and local_path(spark, folder) is None:
        return False
    own, later = (f"{number:020d}.json" for number in (held.number, held.number + 1))
    # a table that was deleted and made anew may have come as far
    return modified_ms(spark, folder, later) is None and modified_ms(spark, folder, own) == held.written_ms


def delta_log(spark: SparkSession, path: str) -> Any:
    """Delta's log of the table at ``path``, for this thread: what it reads of a checkpoint it asks the thread's own
    session for, and a thread of ours has none. A table that was restored has one."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    return _known_table(spark, path).log


@lru_cache(maxsize=_MOST_LOGS)
def _known_table(spark: SparkSession, path: str) -> _KnownTable:
    """Delta looks for a log it knows by a file system, for which it copies all of Hadoop's settings."""
    jvm: Any = spark._jvm
    return _KnownTable(jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path))


def is_worth_it(spark: SparkSession) -> bool:
    """Whether the session runs on this machine alone: elsewhere a job is cheap and a look at a file is not."""
    return (spark.sparkContext.master or "").startswith("local")


def pinned_table(spark: SparkSession, path: str, version: int | None = None) -> PinnedTable | None:
    """The table at ``path``, at its newest version or another; None where its files are many, or not to be read as they
    are, or Delta's log goes no longer so far back."""
    newest = newest_version(spark, path)
    if version not in (None, newest.number):
        none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
        try:
            snapshot = delta_log(spark, path).getSnapshotAt(version, none, none, False)
        except Py4JJavaError:
            return None
        return table_of_files(snapshot)
    if not newest.is_asked:
        newest.pinned, newest.is_asked = table_of_files(newest.snapshot), True
    return newest.pinned


def table_of_files(snapshot: Any, most_files: int = MOST_FILES) -> PinnedTable | None:
    """A version of a table, Delta's own object; None as :func:`pinned_table` gives it."""
    checksum = snapshot.checksumOpt()
    if snapshot.version() < 0 or checksum.isEmpty() or checksum.get().allFiles().isEmpty():
        return None
    files = checksum.get().allFiles().get()
    count = files.size()
    is_plain = (
        snapshot.protocol().minReaderVersion() == _PLAIN_READER and snapshot.metadata().partitionColumns().isEmpty()
    )
    if not is_plain or count > most_files or count != checksum.get().numFiles():
        return None
    folder = snapshot.deltaLog().dataPath().toString()
    named = [files.apply(index) for index in range(count)]
    names = [file.path() for file in named]
    if _PATTERN.search(folder) or not all(map(_PLAIN_NAME.fullmatch, names)):
        return None
    counts = [file.numLogicalRecords() for file in named]
    rows = None if any(each.isEmpty() for each in counts) else sum(each.get() for each in counts)
    is_tiny = checksum.get().tableSizeBytes() <= TINY_BYTES
    return PinnedTable([f"{folder}/{name}" for name in names], rows, snapshot.schema(), is_tiny)
