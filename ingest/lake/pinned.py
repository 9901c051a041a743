"""Small Delta tables read without asking Delta again: what a commit's own checksum file says is enough.

Each scan of a Delta table is a Spark job that looks for the files to read, and a table without any row is planned like
one with many. For a lake on one machine that costs more than the rows do. Delta writes what a table is, and the list of
a small table's files, with the number of rows in each, beside every commit (``_delta_log/VERSION.crc``): from it such a
table is read as the Parquet files it is, or as no rows at all; and until something is written Delta need not begin.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ingest.lake.file_system import local_path, modified_ms, read_text

#: Of more files Spark lists the folders in a job of its own.
MOST_FILES: Final = 32
#: Parquet of some ten times as much text.
TINY_BYTES: Final = 512 << 10
#: The logs of the tables of two lakes: those that this module need not ask Delta for.
_MOST_LOGS: Final = 128
#: Whether there is a later version Delta finds by listing the log, and a run asks three hundred times. To ask for two
#: files takes less: always on this machine, elsewhere from so many versions on, of which each left four files there.
LISTED_VERSIONS: Final = 30
#: What Delta calls the file of a commit.
_COMMIT: Final = re.compile(r"\d{20}[.]json")
#: What Delta calls its files where nothing about the table is special; and what Spark takes for a pattern in a path.
_PLAIN_NAME: Final = re.compile(r"[\w.-]+")
_PATTERN: Final = re.compile(r"[*?\[\]{}\\']")
#: Readers of this version of Delta's protocol find rows in the files as they are: nothing renamed, nothing struck out.
_PLAIN_READER: Final = 1


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """The files of one version of a table, and its schema as Delta's log writes it; ``is_tiny``: one task reads them
    best."""

    files: Sequence[str]
    rows_count: int | None
    schema: str
    is_tiny: bool

    @property
    def struct(self) -> T.StructType:
        """The schema as Delta declares it: with its NOT NULL, of which :meth:`frame` knows nothing."""
        return T.StructType.fromJson(json.loads(self.schema))

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows of that version."""
        jvm, session = spark._jvm, spark._jsparkSession
        assert jvm is not None
        schema = session.parseDataType(self.schema)
        if not self.files:
            return DataFrame(session.createDataFrame(jvm.java.util.ArrayList(), schema), spark)
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        paths = gateway.new_array(jvm.java.lang.String, len(self.files))
        for index, path in enumerate(self.files):
            paths[index] = path
        rows = DataFrame(session.read().schema(schema).parquet(paths), spark)
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
    """A table's newest version when its log was looked at last: its number (-1: there is no table), when it was
    committed, and what Delta wrote of it beside that commit (``checksum``, see :func:`_checksum`)."""

    number: int
    written_ms: int
    checksum: Mapping[str, Any] | None
    _spark: SparkSession
    _path: str

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What Delta's log says of the table itself, by the names of its PROTOCOL.md: schema and properties."""
        if self.checksum is not None:
            return cast("Mapping[str, Any]", self.checksum["metadata"])
        return cast("Mapping[str, Any]", json.loads(self.snapshot.metadata().json())["metaData"])

    @property
    def snapshot(self) -> Any:
        """Delta's own object of the version, or of a later one: to have it takes longer than all else that is asked."""
        return _delta_s_newest(self._spark, self._path)


@dataclass(slots=True)
class _KnownTable:
    """What a table's log told last, and Delta's object of that log."""

    newest: NewestVersion | None = None
    log: Any = None


def newest_version(spark: SparkSession, path: str) -> NewestVersion:
    """The newest version of the table at ``path``, of which no Spark job is needed."""
    known = _known_table(spark, path)
    held = known.newest
    if held is not None and _is_newest(spark, path, held):
        return held
    number, written_ms = _newest_commit(spark, path)
    if held is not None and (held.number, held.written_ms) == (number, written_ms):
        return held
    checksum = None if number < 0 else _checksum(spark, path, number)
    newest = NewestVersion(number, written_ms, checksum, spark, path)
    if checksum is None and number >= 0:
        _ = newest.snapshot  # raises where there is a log that Delta cannot read
    known.newest = newest
    return newest


def _newest_commit(spark: SparkSession, path: str) -> tuple[int, int]:
    """The number of the newest commit, -1 for none, and when it was written: where the log is a folder of this machine
    that has commits, by their names."""
    folder = f"{path}/_delta_log"
    local = local_path(spark, folder)
    try:
        names = sorted(filter(_COMMIT.fullmatch, os.listdir(local))) if local is not None else []
    except OSError:
        names = []
    if names and (written_ms := modified_ms(spark, folder, names[-1])) is not None:
        return int(names[-1].partition(".")[0]), written_ms
    snapshot = _delta_s_newest(spark, path)
    return int(snapshot.version()), int(snapshot.logSegment().lastCommitFileModificationTimestamp())


def _delta_s_newest(spark: SparkSession, path: str) -> Any:
    none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    return delta_log(spark, path).update(False, none, none)


def _checksum(spark: SparkSession, path: str, number: int) -> Mapping[str, Any] | None:
    """What Delta wrote beside a commit: the table's metadata and protocol then, how many files and bytes it had, and,
    of a small one, which files. None where it wrote nothing, or nothing whole."""
    text = read_text(spark, f"{path}/_delta_log", f"{number:020d}.crc")
    try:
        said = json.loads(text or "null")
    except ValueError:
        return None
    is_whole = isinstance(said, dict) and {"metadata", "protocol", "numFiles", "tableSizeBytes"} <= said.keys()
    return said if is_whole else None


def commit_actions(spark: SparkSession, path: str, number: int) -> list[Mapping[str, Any]] | None:
    """What a commit did, by the names of Delta's PROTOCOL.md; None where its file is there no longer, as after Delta's
    month, or is not whole."""
    text = read_text(spark, f"{path}/_delta_log", f"{number:020d}.json")
    try:
        return None if text is None else [json.loads(line) for line in text.split("\n") if line.strip()]
    except ValueError:
        return None


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
    known = _known_table(spark, path)
    if known.log is None:
        # Delta looks for a log it knows by a file system, for which it copies all of Hadoop's settings
        known.log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    return known.log


@lru_cache(maxsize=_MOST_LOGS)
def _known_table(spark: SparkSession, path: str) -> _KnownTable:
    del spark, path
    return _KnownTable()


def is_worth_it(spark: SparkSession) -> bool:
    """Whether the session runs on this machine alone: elsewhere a job is cheap and a look at a file is not."""
    return (spark.sparkContext.master or "").startswith("local")


def pinned_table(
    spark: SparkSession,
    path: str,
    version: int | None = None,
    most_files: int = MOST_FILES,
    *,
    without: PinnedTable | None = None,
) -> PinnedTable | None:
    """The table at ``path``, at its newest version or another; of its files not those that it had ``without`` what came
    since. None where its files are more, or not to be read as they are, or where Delta keeps nothing of the version
    beside its commit, as of one that is long ago."""
    newest = newest_version(spark, path)
    checksum = newest.checksum if version in (None, newest.number) else _checksum(spark, path, version)
    if checksum is None or not isinstance(files := checksum.get("allFiles"), list):
        return None
    is_plain = (
        checksum["protocol"]["minReaderVersion"] == _PLAIN_READER and not checksum["metadata"]["partitionColumns"]
    )
    if not is_plain or len(files) > most_files or len(files) != checksum["numFiles"]:
        return None
    local = local_path(spark, path)
    folder = path if local is None else f"file:{local}"
    if _PATTERN.search(folder) or not all(_PLAIN_NAME.fullmatch(file["path"]) for file in files):
        return None
    known = set() if without is None else set(without.files)
    places = {place: file for file in files if (place := f"{folder}/{file['path']}") not in known}
    counts = [json.loads(file.get("stats") or "{}").get("numRecords") for file in places.values()]
    rows = None if None in counts else sum(counts)
    is_tiny = sum(file["size"] for file in places.values()) <= TINY_BYTES
    return PinnedTable(list(places), rows, checksum["metadata"]["schemaString"], is_tiny)
