"""The one place that writes Delta tables.

A lake is a folder, on any file system that Spark reaches, with a table at ``LAKE/<schema>/<table>``.
Tables are made from their :class:`~ingest.lake.tables.spec.TableSpec`; a lake made by another version of the
specs is refused with a sentence, or brought to this version, never half-read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final, TypeVar

import pyarrow as pa
from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.creation import create_table
from ingest.lake.direct import (
    NewFile,
    commit_files,
    direct_folder,
    write_files,
    write_files_of,
    write_files_together,
    write_known,
)
from ingest.lake.pinned import NewestVersion, PinnedTable, commit_actions, is_worth_it, newest_version, pinned_table
from ingest.lake.plans import without
from ingest.lake.renewal import (
    VERSION_PROPERTY,
    Standing,
    has_rows_files,
    is_from_sources,
    renew,
    standing_of,
    what_to_do,
)
from ingest.lake.rewriting import replace_keys, rewrite
from ingest.lake.tables import SCHEMAS, TABLES, TableSpec
from ingest.lake.tables.kept import RUNS
from ingest.lake.tables.spec import literals
from ingest.lake.tables.types import arrow_schema, spark_type

_Each = TypeVar("_Each")
_Result = TypeVar("_Result")
#: A commit at a time Delta sums up a table's log in a checkpoint, by default at each tenth: a run that meets it in all
#: tables took twice the processors' time. What a log of so many entries says, each a file, is read in one go.
COMMITS_PER_CHECKPOINT: Final = 50
#: Operations of Delta that change no row; one that brings back what was.
UPKEEP: Final = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})
RESTORED: Final = "RESTORE"
#: The column that names the table of rows that are replaced.
_TABLE: Final = "_table"
#: The schema of the tables behind those names that are views: of files, or of an older version.
_BEHIND: Final = "behind_views"


class LakeError(Exception):
    """The lake cannot be used as it is; the message says what to do."""


class Lake:
    """The tables under one path."""

    #: A table of less is written anew as a whole where Spark has to replace some of its rows: that costs less than to
    #: look for the files that hold them.
    REWRITTEN_BYTES: ClassVar = 32 << 20
    #: Of tables of less one task replaces rows, one after the other: to plan a query for each costs more.
    TOGETHER_BYTES: ClassVar = 4 << 20

    def __init__(self, spark: SparkSession, root: str, versions: Mapping[str, int] | None = None) -> None:
        """``versions``: by table the version that is read, or the newest where what was done since changed no row or
        restored one; of other tables it is the newest whenever rows are asked for."""
        self.spark = spark
        self.root = root.rstrip("/")
        self.versions = versions or {}

    def path(self, spec: TableSpec) -> str:
        """Where the table lives."""
        return f"{self.root}/{spec.schema}/{spec.name}"

    def exists(self, spec: TableSpec) -> bool:
        """Whether there is such a table; :class:`LakeError` where there was, and what is left of it cannot be read."""
        return self.newest_version(spec) >= 0

    def ensure(self, specs: Iterable[TableSpec] = tuple(TABLES.values()), *, renews: bool = False) -> list[str]:
        """Make the tables that are missing; raise :class:`LakeError`, and do nothing, where one is another version's or
        broken.

        ``renews``: one of an earlier version becomes one of this version instead (:mod:`ingest.lake.renewal`), where it
        needs no sources for that; a sentence is given of each. Who asks for it writes the tables anew.
        """
        listed = list(specs)
        standings = side_by_side(self._standing, listed)
        for spec, standing in zip(listed, standings, strict=True):
            problem = None if standing is None else standing.problem(spec, renews=renews)
            if problem:
                raise LakeError(f"the lake {self.root} holds {problem}")
        self._refuse_lost([spec for spec, standing in zip(listed, standings, strict=True) if standing is None])
        waiting = [pair for pair in zip(listed, standings, strict=True) if pair[1] is None or not pair[1].is_same]
        return [told for told in side_by_side(lambda pair: self._make(*pair), waiting) if told]

    def _refuse_lost(self, missing: Iterable[TableSpec]) -> None:
        """Raise :class:`LakeError` where the last run read one of the tables: made anew it would be empty."""
        from_sources = [spec for spec in missing if is_from_sources(spec)]
        if not from_sources or self.newest_version(RUNS) < 1:  # version 0 is the empty table
            return
        (last,) = self.read(RUNS).agg(F.max_by("evidence", "ended_at").alias("evidence")).collect()
        for spec in from_sources:
            if last["evidence"].get(spec.full_name, -1) >= 0:
                raise LakeError(f"{self.path(spec)} is gone, which the last run read: {what_to_do(spec)}")

    def _standing(self, spec: TableSpec) -> Standing | None:
        """How the table stands to its spec; None where there is none."""
        newest = self._newest(spec)
        return standing_of(spec, newest.metadata) if newest.number >= 0 else None

    def _make(self, spec: TableSpec, standing: Standing | None) -> str:
        """Make the table, or bring it to its spec, and say so."""
        if standing is None:
            create_table(self.spark, self.path(spec), spec, _properties(spec))
            return ""
        renew(self.spark, self.path(spec), spec, _properties(spec), keeps_rows=standing.keeps_rows)
        return standing.told(spec)

    def _newest(self, spec: TableSpec) -> NewestVersion:
        """The table's newest version; :class:`LakeError` where Delta's log of it is broken."""
        try:
            newest = newest_version(self.spark, self.path(spec))
            if newest.number < 0 and has_rows_files(self.spark, self.path(spec)):
                raise LakeError(f"{self.path(spec)} has lost its _delta_log: {what_to_do(spec)}")
            return newest
        except (Py4JJavaError, PySparkException) as error:
            said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
            reason = (str(said or "").splitlines() or [""])[0]
            raise LakeError(
                f"{self.path(spec)}/_delta_log cannot be read ({reason[:200]}): {what_to_do(spec)}"
            ) from error

    def read(self, spec: TableSpec) -> DataFrame:
        """The table as it is now; one of :attr:`versions` stays so, whatever is written before rows are asked for."""
        version = self.version_read(spec)
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path(spec))

    def read_at(self, spec: TableSpec, version: int) -> DataFrame:
        """The table as it was at a version, which Delta may have no longer: then it raises when rows are asked for."""
        return self.spark.read.format("delta").option("versionAsOf", version).load(self.path(spec))

    def read_since(self, spec: TableSpec, version: int) -> DataFrame:
        """Of the rows that :meth:`read` gives at least those that came after a version, which Delta may have no longer;
        on one machine hardly others."""
        del version
        return self.read(spec)

    def version_read(self, spec: TableSpec) -> int | None:
        """The version of a table to be read; None where nothing says which, or there is no table."""
        noted = self.versions.get(spec.full_name)
        newest = -1 if noted is None else self.newest_version(spec)
        if noted is None or newest < 0:
            return None
        operations = operations_since(self, spec, noted, newest)
        return newest if operations <= UPKEEP or RESTORED in operations else noted

    def state_read(self, spec: TableSpec) -> tuple[int, int]:
        """The version that :meth:`read` reads now, and when the newest was committed (ms): a table that was deleted and
        made anew may have come as far. No Spark job is needed."""
        version, newest = self.version_read(spec), self._newest(spec)
        return newest.number if version is None else version, newest.written_ms

    def newest_version(self, spec: TableSpec) -> int:
        """As Delta counts them; -1 where there is no table. No Spark job is needed."""
        return self._newest(spec).number

    def pinned(self) -> Lake:
        """The lake as it is when a table of it is read first; see :class:`PinnedLake`."""
        return PinnedLake(self)

    def rows_count(self, spec: TableSpec) -> int:
        """How many rows the table has; without a Spark job where Delta's log says so."""
        pinned = pinned_table(self.spark, self.path(spec), self.version_read(spec))
        return self.read(spec).count() if pinned is None or pinned.rows_count is None else pinned.rows_count

    def append(self, rows: DataFrame, spec: TableSpec) -> None:
        """Add rows."""
        rows, folder = self.conformed(rows, spec), direct_folder(self.spark, self.path(spec))
        if folder is None:
            rows.write.format("delta").mode("append").save(self.path(spec))
        else:
            self.add(write_files(rows, folder, spec), spec)

    def append_all(self, tables: Sequence[tuple[TableSpec, DataFrame]]) -> None:
        """Add rows to several tables, a commit each; on one machine one query writes them all."""
        places = [direct_folder(self.spark, self.path(spec)) for spec, _ in tables]
        together = [
            (self.conformed(rows, spec), folder, spec)
            for (spec, rows), folder in zip(tables, places, strict=True)
            if folder is not None
        ]
        if len(together) < max(2, len(tables)):
            side_by_side(lambda table: self.append(table[1], table[0]), tables)
            return
        files = write_files_together(together)
        side_by_side(lambda table: self.add(files[table[0].full_name], table[0]), tables)

    def append_known(self, rows: Sequence[Mapping[str, Any]], spec: TableSpec) -> None:
        """Add rows that are here, and few, each with all of the table's columns."""
        table = pa.Table.from_pylist(list(rows), arrow_schema({column.name: column.type for column in spec.columns}))
        folder = self.folder_of_tasks(spec)
        if folder is None:
            self.append(self.spark.createDataFrame(table), spec)
        else:
            self.add(write_known(table, folder, spec), spec)

    def folder_of_tasks(self, spec: TableSpec) -> str | None:
        """The folder of this machine into which tasks may write files for :meth:`add`; None where Spark must write."""
        return None if spec.constraints else direct_folder(self.spark, self.path(spec))

    def add(self, files: Sequence[NewFile], spec: TableSpec) -> None:
        """Add the rows of files that tasks wrote (:func:`ingest.lake.direct.write_file`), in one commit."""
        commit_files(self.spark, self.path(spec), files, replaces_all=False)

    def overwrite(self, rows: DataFrame, spec: TableSpec) -> None:
        """Replace every row, in one commit."""
        rows, folder = self.conformed(rows, spec), direct_folder(self.spark, self.path(spec))
        if folder is None:
            rows.write.format("delta").mode("overwrite").save(self.path(spec))
        else:
            commit_files(self.spark, self.path(spec), write_files(rows, folder, spec), replaces_all=True)

    def overwrite_parts(self, rows: DataFrame, column: str, specs: Sequence[TableSpec]) -> None:
        """Replace every row of several tables, a commit each, by the rows of which ``column`` names the table. On one
        machine one query writes all of them."""
        folders = {spec.full_name: direct_folder(self.spark, self.path(spec)) for spec in specs}
        places = {spec.full_name: (folder, spec) for spec in specs if (folder := folders[spec.full_name]) is not None}
        if len(places) < max(2, len(specs)):
            self.overwrite_all([(spec, rows.where(F.col(column) == spec.full_name)) for spec in specs])
            return
        files = write_files_of(rows, column, places)
        side_by_side(
            lambda spec: commit_files(self.spark, self.path(spec), files[spec.full_name], replaces_all=True), specs
        )

    def overwrite_all(self, tables: Sequence[tuple[TableSpec, DataFrame]]) -> None:
        """Replace every row of several tables, a commit each; side by side, since small commits wait more than work."""
        side_by_side(lambda table: self.overwrite(table[1], table[0]), tables)

    def replace_keys(self, rows: DataFrame, gone: DataFrame, spec: TableSpec) -> None:
        """Replace the rows of some keys, in one commit: those of ``gone``, whose columns are the key, go, and ``rows``
        come."""
        named = self.conformed(rows, spec).withColumn(_TABLE, F.lit(spec.full_name))
        self._replace_keys(named, _TABLE, gone, [spec])

    def replace_keys_of_parts(self, rows: DataFrame, column: str, gone: DataFrame, specs: Sequence[TableSpec]) -> None:
        """As :meth:`replace_keys` in several tables, a commit each; ``column`` names the table of each row. On one
        machine one query does it for all that are small."""
        sizes = {spec.full_name: self.size_bytes(spec) for spec in specs}
        small = [spec for spec in specs if sizes[spec.full_name] <= self.TOGETHER_BYTES]
        groups = [small, *([spec] for spec in specs if spec not in small)]
        side_by_side(lambda group: self._replace_keys(rows, column, gone, group), filter(None, groups))

    def _replace_keys(self, rows: DataFrame, column: str, gone: DataFrame, specs: Sequence[TableSpec]) -> None:
        ours = rows.where(F.col(column).isin([spec.full_name for spec in specs]))
        commits = replace_keys(self.spark, ours, column, gone, {self.path(spec): spec for spec in specs})
        if commits is None and len(specs) > 1:
            side_by_side(lambda spec: self._replace_keys(rows, column, gone, [spec]), specs)
            return
        side_by_side(lambda commit: commit(), commits or ())
        for spec in specs if commits is None else ():
            own = self.conformed(rows.where(F.col(column) == spec.full_name), spec)
            if self.size_bytes(spec) <= self.REWRITTEN_BYTES:
                self.overwrite(without(self.read(spec), gone).unionByName(own), spec)
            else:
                self._merge(own, gone, spec)

    def _merge(self, rows: DataFrame, gone: DataFrame, spec: TableSpec) -> None:
        key = gone.columns
        come = rows.select("*", *(F.lit(None).alias(f"gone_{name}") for name in key))
        go = (
            gone.select(*(F.col(name).alias(f"gone_{name}") for name in key))
            .distinct()
            .withColumn("is_gone", F.lit(True))
        )
        changes = come.withColumn("is_gone", F.lit(False)).unionByName(go, allowMissingColumns=True)
        matches = " AND ".join(["change.is_gone", *(f"held.`{name}` <=> change.gone_{name}" for name in key)])
        values: dict[str, str | SparkColumn] = {f"`{name}`": F.col(f"change.`{name}`") for name in spec.column_names}
        merge = DeltaTable.forPath(self.spark, self.path(spec)).alias("held").merge(changes.alias("change"), matches)
        merge.whenMatchedDelete().whenNotMatchedInsert("NOT change.is_gone", values).execute()

    def size_bytes(self, spec: TableSpec) -> int:
        """How large the files are that hold the table's rows; of a table that is not there none are."""
        newest = newest_version(self.spark, self.path(spec))
        if newest.number < 0:
            return 0
        # where no checksum file says it, Delta goes through its whole log, two jobs of Spark's
        return int(newest.snapshot.sizeInBytes() if newest.checksum is None else newest.checksum["tableSizeBytes"])

    def replace_where(self, rows: DataFrame, spec: TableSpec, predicate: str) -> None:
        """Replace the rows that satisfy ``predicate`` (SQL over the table's columns), in one commit."""
        rows = self.conformed(rows, spec)
        if not rewrite(self.spark, self.path(spec), spec, rows, predicate):
            writer = rows.write.format("delta").mode("overwrite")
            writer.option("replaceWhere", predicate).save(self.path(spec))

    def delete(self, spec: TableSpec, predicate: str) -> None:
        """Delete the rows that satisfy ``predicate`` (SQL over the table's columns), in one commit."""
        if not rewrite(self.spark, self.path(spec), spec, None, predicate):
            DeltaTable.forPath(self.spark, self.path(spec)).delete(predicate)

    def register(self, specs: Iterable[TableSpec] = tuple(TABLES.values()), *, stays: bool = False) -> None:
        """Name these tables of the lake ``schema.table`` in this session, for SQL. ``stays``: small ones on one machine
        (see :mod:`ingest.lake.pinned`) and those of :attr:`versions` are then views of the version that is read now,
        else only where it is not the newest.

        The catalog lives in memory: names of another lake, registered before, are replaced.
        """
        for schema in (*SCHEMAS, _BEHIND) if stays or self.versions else SCHEMAS:
            self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
        side_by_side(lambda spec: self._register_one(spec, stays), specs)

    def _register_one(self, spec: TableSpec, stays: bool) -> None:
        standing = self._standing(spec)
        if standing is None:
            return
        if standing.is_newer:
            raise LakeError(f"the lake {self.root} holds {standing.problem(spec, renews=False)}")
        version = self.version_read(spec)
        pinned = pinned_table(self.spark, self.path(spec), version) if stays and is_worth_it(self.spark) else None
        if not stays and version == self.newest_version(spec):
            version = None
        name = f"{_BEHIND}.{spec.schema}_{spec.name}" if stays or version is not None else spec.full_name
        self._forget(spec.full_name)
        self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        if pinned is not None and pinned.name(self.spark, spec.full_name, name):
            return
        name = name if version is not None else spec.full_name
        self.spark.sql(f"CREATE TABLE {name} USING DELTA LOCATION '{_quoted(self.path(spec))}'")
        if version is not None:
            self.spark.sql(f"CREATE VIEW {spec.full_name} AS SELECT * FROM {name} VERSION AS OF {version}")

    def _forget(self, name: str) -> None:
        if self.spark.catalog.tableExists(name):
            kind = "VIEW" if self.spark.catalog.getTable(name).tableType == "VIEW" else "TABLE"
            self.spark.sql(f"DROP {kind} {name}")

    @staticmethod
    def conformed(rows: DataFrame, spec: TableSpec) -> DataFrame:
        """The rows with the table's columns in its order and types; raises :class:`ValueError` where one is missing."""
        given = {field.name: field.dataType for field in rows.schema.fields}
        missing = [name for name in spec.column_names if name not in given]
        if missing:
            raise ValueError(f"rows for {spec.full_name} lack {', '.join(missing)}")
        wanted = {column.name: spark_type(column.type) for column in spec.columns}
        if list(given.items()) == list(wanted.items()):
            return rows  # each step of a plan has Spark go through all of it
        return rows.select(*(name if given[name] == type_ else _cast(spec, name) for name, type_ in wanted.items()))


class PinnedLake(Lake):
    """A lake whose tables are read as they are when :meth:`read` is called, whatever is written to them afterwards.

    On one machine small tables are read from their files, which saves a Spark job for each scan. Their columns may
    then all hold NULL for all that Spark knows; what they do hold is the same.
    """

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake.spark, lake.root, lake.versions)
        self._pins = is_worth_it(lake.spark)

    def read(self, spec: TableSpec) -> DataFrame:
        """The table as it is now, and stays."""
        rows = self._pinned_rows(spec, self.version_read(spec))
        return super().read(spec) if rows is None else rows

    def read_at(self, spec: TableSpec, version: int) -> DataFrame:
        """The table as it was at a version, which Delta may have no longer: then it raises, at once or when rows are
        asked for."""
        rows = self._pinned_rows(spec, version)
        return super().read_at(spec, version) if rows is None else rows

    def read_since(self, spec: TableSpec, version: int) -> DataFrame:
        """Of the table as it is now, and stays, the rows of the files that it has not had at a version."""
        then = pinned_table(self.spark, self.path(spec), version) if self._pins else None
        rows = None if then is None else self._pinned_rows(spec, self.version_read(spec), then)
        return self.read(spec) if rows is None else rows

    def _pinned_rows(
        self, spec: TableSpec, version: int | None, without: PinnedTable | None = None
    ) -> DataFrame | None:
        pinned = pinned_table(self.spark, self.path(spec), version, without=without) if self._pins else None
        return None if pinned is None else pinned.frame(self.spark)


class OfClusters(PinnedLake):
    """Some clusters of a lake: of a table that has a ``cluster_id`` their rows are read, and theirs alone replaced."""

    def __init__(self, lake: Lake, cluster_ids: Iterable[str]) -> None:
        super().__init__(lake)
        self.whole: Lake = lake.whole if isinstance(lake, OfClusters) else lake.pinned()
        self.cluster_ids = frozenset(cluster_ids)

    def pinned(self) -> Lake:
        """The same clusters."""
        return self

    def read(self, spec: TableSpec) -> DataFrame:
        """Their rows of the table as it is now, and stays."""
        return super().read(spec).where(self._is_theirs(spec))

    def read_at(self, spec: TableSpec, version: int) -> DataFrame:
        """Their rows of the table as it was at a version."""
        return super().read_at(spec, version).where(self._is_theirs(spec))

    def overwrite_parts(self, rows: DataFrame, column: str, specs: Sequence[TableSpec]) -> None:
        """Replace every row of theirs in several tables: each has others' rows beside them."""
        self.overwrite_all([(spec, rows.where(F.col(column) == spec.full_name)) for spec in specs])

    def read_since(self, spec: TableSpec, version: int) -> DataFrame:
        """Their rows of the files that the table has not had at a version."""
        return super().read_since(spec, version).where(self._is_theirs(spec))

    def others(self, spec: TableSpec) -> DataFrame:
        """The rows of all other clusters."""
        return super().read(spec).where(~self._is_theirs(spec))

    def overwrite(self, rows: DataFrame, spec: TableSpec) -> None:
        """Replace every row of theirs, in one commit."""
        if self.size_bytes(spec) <= self.REWRITTEN_BYTES:
            super().overwrite(self.others(spec).unionByName(self.conformed(rows, spec)), spec)
        else:
            named = ", ".join(f"'{_quoted(cluster_id)}'" for cluster_id in sorted(self.cluster_ids))
            self.replace_where(rows, spec, f"cluster_id IN ({named})")

    def _is_theirs(self, spec: TableSpec) -> SparkColumn:
        is_of_clusters = "cluster_id" in spec.column_names
        return F.col("cluster_id").isin(sorted(self.cluster_ids)) if is_of_clusters else F.lit(True)


#: Commits at a time: a small one is mostly waiting for the driver and the file system.
_COMMITS_AT_A_TIME: Final = 4


def side_by_side(action: Callable[[_Each], _Result], each: Iterable[_Each]) -> list[_Result]:
    """Run a Spark action for each; the first failure is raised when those that run have ended. An interrupt is raised
    at once: what runs ends with its session."""
    pool = ThreadPoolExecutor(max_workers=_COMMITS_AT_A_TIME)
    is_awaited = True
    try:
        return list(pool.map(action, each))
    except KeyboardInterrupt:
        is_awaited = False
        raise
    finally:
        pool.shutdown(wait=is_awaited, cancel_futures=not is_awaited)


def operations_since(lake: Lake, spec: TableSpec, version: int, newest: int) -> frozenset[str]:
    """What was done to a table since a version of it, up to its newest one, as Delta names operations: that it was
    restored where it has no such version any more."""
    count = newest - version
    if count <= 0:
        return frozenset({RESTORED} if count else ())
    commits = side_by_side(
        lambda number: commit_actions(lake.spark, lake.path(spec), number), range(version + 1, newest + 1)
    )
    told = [[action["commitInfo"] for action in commit or () if "commitInfo" in action] for commit in commits]
    # of a commit that is there no longer, or says nothing of itself, anything may be
    return frozenset(infos[0].get("operation", "") if infos else "" for infos in told)


def _cast(spec: TableSpec, name: str) -> SparkColumn:
    return F.col(f"`{name}`").cast(spec.column(name).type).alias(name)


def _properties(spec: TableSpec) -> dict[str, str]:
    properties = {
        VERSION_PROPERTY: str(spec.version),
        "delta.dataSkippingStatsColumns": ",".join(spec.filtered_columns),
        "delta.checkpointInterval": str(COMMITS_PER_CHECKPOINT),
    }
    return properties | {f"delta.constraints.{name}": condition for name, condition in _constraints(spec).items()}


def _constraints(spec: TableSpec) -> dict[str, str]:
    """The spec's own constraints and one for each closed vocabulary."""
    vocabularies = {
        f"{column.name}_vocabulary": f"{column.name} IS NULL OR {column.name} IN ({literals(column.vocabulary)})"
        for column in spec.columns
        if column.vocabulary
    }
    return vocabularies | dict(spec.constraints)


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace("'", "\\'")
