"""On one machine: Parquet files that tasks write in Python, from Arrow's columns, and one commit of them all.

Rows that Python made go one by one to Java, through a plan, past Delta's constraints and statistics, and into Parquet,
which takes longer than to make them; and to write ten rows Delta runs two queries, to replace ten rows four. So a task
writes its file itself, beside the table's, and Delta's own transaction adds the files of all tasks, or none: what a
task that failed has written is in no version of the table, and goes with its next VACUUM. What Delta would ask of each
row is asked here: that nothing is missing, that words are of their vocabulary, that the table's own conditions hold.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.file_system import local_path
from ingest.lake.pinned import delta_log, is_worth_it
from ingest.lake.plans import beside_each_other, map_in_arrow
from ingest.lake.tables import TableSpec
from ingest.lake.tables.types import arrow_schema, spark_schema

#: Arrow's bytes in one row group.
_GROUP_BYTES: Final = 64 << 20
#: The column that names a condition of its table which the row breaks.
_BROKEN: Final = "_broken"
NEW_FILE_COLUMNS: Final = dict.fromkeys(("table", "name"), "string") | {
    **dict.fromkeys(("size", "modified_ms"), "bigint"),
    "stats": "string",
}
_NEW_FILE: Final = arrow_schema(NEW_FILE_COLUMNS)
#: Files of fewer bytes are tiny: what one of many runs adds to a table.
TINY_FILE_BYTES: Final = 1 << 20
#: Of a longer text Delta keeps its beginning only: of a column that has one nothing is said.
_LONGEST_TEXT: Final = 32


class RowError(Exception):
    """Rows that the table must not hold: a fault of this program."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file in a table's folder that no version of the table has yet; ``stats`` as Delta's log writes them."""

    table: str
    name: str
    size: int
    modified_ms: int
    stats: str


def direct_folder(spark: SparkSession, path: str) -> str | None:
    """The table's folder, where tasks may write into it: on this machine, as a session that has no other. None where
    Spark must write."""
    return local_path(spark, path) if is_worth_it(spark) else None


def write_file(
    batches: Iterable[pa.RecordBatch], folder: str, spec: TableSpec, at: datetime, *, is_new: bool = True
) -> Iterator[NewFile]:
    """Write the rows into one new file, none where there are none; ``at`` is our clock. Raises :class:`RowError` where
    the table must not hold one; of rows that it holds already (not ``is_new``) nothing is asked."""
    with OpenFile(folder, spec, at, is_new=is_new) as file:
        for batch in batches:
            file.add(batch)
    yield from file.written


def write_parts(
    batches: Iterable[pa.RecordBatch], column: str, folders: Mapping[str, tuple[str, TableSpec]], at: datetime
) -> Iterator[NewFile]:
    """Write the rows of several tables, which ``column`` names, into a new file of each; those of others go. See
    :func:`write_file`."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(OpenFile(*place, at, len(folders))) for name, place in folders.items()}
        for batch in batches:
            names = batch.column(column)
            for name in pc.unique(names).to_pylist():
                if name in files:
                    files[name].add(batch, pc.equal(names, name))
    for file in files.values():
        yield from file.written


def write_known(rows: pa.Table, folder: str, spec: TableSpec, *, is_new: bool = True) -> list[NewFile]:
    """Write rows that are here; of the table's own conditions (:func:`_broken`) Spark is to have judged them. See
    :func:`write_file`."""
    return list(write_file(rows.to_batches(), folder, spec, datetime.now(UTC), is_new=is_new))


def write_files(rows: DataFrame, folder: str, spec: TableSpec, *, is_new: bool = True) -> list[NewFile]:
    """Have Spark's tasks write these rows of the table's columns, a file each; rows that Spark's driver has are written
    here. Raises as :func:`write_file` does."""
    checked = _with_own_broken(rows, spec) if is_new else rows
    if _is_local(checked):
        return write_known(checked.toArrow(), folder, spec, is_new=is_new)
    at = datetime.now(UTC)
    return _by_tasks(checked, lambda batches: write_file(batches, folder, spec, at, is_new=is_new))


def write_files_of(
    rows: DataFrame, column: str, folders: Mapping[str, tuple[str, TableSpec]]
) -> Mapping[str, list[NewFile]]:
    """Have Spark's tasks write the rows of several tables, in one query; ``column`` names the table of each row. Gives
    the files of each table."""
    at = datetime.now(UTC)
    specs = [spec for _, spec in folders.values()]
    # rows of other tables, and columns of theirs, would be handed over to be left out
    names = {column, *(name for spec in specs for name in spec.column_names)}
    ours = rows.where(F.col(column).isin(*folders)).select(*(name for name in rows.columns if name in names))
    checked = with_broken(ours, column, specs)
    files: dict[str, list[NewFile]] = {name: [] for name in folders}
    for file in _by_tasks(checked, lambda batches: write_parts(batches, column, folders, at)):
        files[file.table].append(file)
    return files


def write_files_together(tables: Sequence[tuple[DataFrame, str, TableSpec]]) -> Mapping[str, list[NewFile]]:
    """Have Spark's tasks write rows of several tables' columns, each with its folder, in one query: as
    :func:`write_files_of`, of tables whose columns of one name may be of other types."""
    at = datetime.now(UTC)
    folders = [(folder, spec) for _, folder, spec in tables]

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[NewFile]:
        with ExitStack() as stack:
            of_tables = [stack.enter_context(OpenFile(*place, at, len(folders))) for place in folders]
            for batch in batches:
                for file, rows in zip(of_tables, batch.columns, strict=True):
                    if rows.null_count < len(rows):
                        file.add(pa.RecordBatch.from_struct_array(rows.drop_null()))
        for file in of_tables:
            yield from file.written

    checked = beside_each_other([_with_own_broken(rows, spec) for rows, _, spec in tables])
    files: dict[str, list[NewFile]] = {spec.full_name: [] for _, spec in folders}
    for file in _by_tasks(checked, written):
        files[file.table].append(file)
    return files


def with_broken(rows: DataFrame, column: str, specs: Iterable[TableSpec]) -> DataFrame:
    """Rows of several tables, which ``column`` names, with what :class:`OpenFile` asks them for: which condition of its
    table each breaks."""
    broken = [F.when(F.col(column) == spec.full_name, each) for spec in specs for each in _broken(spec)]
    return rows.withColumn(_BROKEN, F.coalesce(*broken)) if broken else rows


def _with_own_broken(rows: DataFrame, spec: TableSpec) -> DataFrame:
    broken = _broken(spec)
    return rows.select("*", F.coalesce(*broken).alias(_BROKEN)) if broken else rows


def _broken(spec: TableSpec) -> list[Column]:
    """Of each of the table's own conditions its name, where the row breaks it."""
    return [
        F.when(~F.coalesce(F.expr(condition), F.lit(False)), F.lit(name))
        for name, condition in spec.constraints.items()
    ]


def _by_tasks(rows: DataFrame, write: Callable[[Iterable[pa.RecordBatch]], Iterable[NewFile]]) -> list[NewFile]:
    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in write(batches):
            yield pa.RecordBatch.from_pylist([asdict(file)], schema=_NEW_FILE)

    found = map_in_arrow(rows, written, spark_schema(NEW_FILE_COLUMNS)).collect()
    return [NewFile(*row) for row in found]


def _is_local(rows: DataFrame) -> bool:
    """Whether the driver has the rows already: no task is needed to make them."""
    query = rows._jdf.queryExecution()
    leaves = query.analyzed().collectLeaves()
    # only then: Spark optimises no plan twice for this
    of_driver = leaves.size() == 1 and leaves.head().nodeName() == "LocalRelation"
    return bool(of_driver and query.optimizedPlan().nodeName() == "LocalRelation")


def commit_files(
    spark: SparkSession,
    path: str,
    files: Sequence[NewFile],
    *,
    replaces_all: bool,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Add the files to the table in one commit, beside those that it has or in place of all of them. ``metadata``: what
    of the table's own becomes another, by the names of Delta's PROTOCOL.md."""
    transaction = begin(spark, path, metadata)
    gone: list[Any] = []
    if replaces_all:
        transaction.readWholeTable()  # who adds rows meanwhile is told so, instead of losing them
        gone = files_of(transaction)
    if files or gone or metadata:
        commit(spark, transaction, map(add_action, files), gone, replaces=replaces_all)


def begin(spark: SparkSession, path: str, metadata: Mapping[str, Any] | None = None) -> Any:
    """Delta's own transaction on the table at ``path``; ``metadata`` as :func:`commit_files` has it."""
    none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    transaction = delta_log(spark, path).startTransaction(none, none)
    if metadata:
        held = json.loads(transaction.snapshot().metadata().json())
        transaction.updateMetadata(_action(spark, {"metaData": held["metaData"] | metadata}), False)
    return transaction


def commit(
    spark: SparkSession,
    transaction: Any,
    come: Iterable[Mapping[str, Any]],
    gone: Iterable[Any],
    *,
    replaces: bool,
    changes_rows: bool = True,
) -> None:
    """End a transaction: files ``come``, as Delta's log writes them, and others, Delta's own objects, are ``gone``.
    Unless it ``changes_rows``, those that come hold the rows of those that are gone: what Delta calls OPTIMIZE."""
    jvm: Any = spark._jvm
    none, modes, now = jvm.scala.Option.empty(), jvm.org.apache.spark.sql.SaveMode, time.time_ns() // 10**6
    actions = [_action(spark, {"add": {**file, "dataChange": changes_rows}}) for file in come]
    actions += [file.removeWithTimestamp(now, changes_rows) for file in gone]
    operations, nothing = jvm.org.apache.spark.sql.delta, jvm.PythonUtils.toSeq([])
    if changes_rows:
        operation = getattr(operations, "DeltaOperations$Write")(
            modes.Overwrite if replaces else modes.Append, *[none] * 8
        )
    else:
        operation = getattr(operations, "DeltaOperations$Optimize")(nothing, nothing, True, none, False)
    transaction.commit(jvm.PythonUtils.toSeq(actions), operation)


def files_of(transaction: Any) -> list[Any]:
    """The table's files as the transaction sees them: from the checksum file of a small table, else by a query."""
    listed = files_listed(transaction.snapshot())
    return _of_scala(transaction.filterFiles()) if listed is None else listed


def files_listed(snapshot: Any) -> list[Any] | None:
    """The files that the checksum file of a version lists; None where it does not: the table is not a small one."""
    checksum = snapshot.checksumOpt()
    is_listed = checksum.isDefined() and checksum.get().allFiles().isDefined()
    return _of_scala(checksum.get().allFiles().get()) if is_listed else None


def _of_scala(values: Any) -> list[Any]:
    return [values.apply(index) for index in range(values.size())]


def _action(spark: SparkSession, action: Mapping[str, Any]) -> Any:
    jvm: Any = spark._jvm
    return getattr(getattr(jvm.org.apache.spark.sql.delta.actions, "Action$"), "MODULE$").fromJson(json.dumps(action))


def add_action(file: NewFile) -> dict[str, Any]:
    """The file as Delta's log adds it."""
    return {
        "path": file.name,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modified_ms,
        "dataChange": True,
        "stats": file.stats,
    }


class OpenFile:
    """A new file of a table while its rows come; there is none until there is a row. ``written`` holds it, once it is
    closed. ``among`` so many are open at once."""

    def __init__(self, folder: str, spec: TableSpec, at: datetime, among: int = 1, *, is_new: bool = True) -> None:
        self.written: list[NewFile] = []
        self._name = f"part-{uuid.uuid4()}.zstd.parquet"
        self._path = os.path.join(folder, self._name)
        self._spec, self._at, self._group_bytes = spec, at, _GROUP_BYTES // among
        self._schema = arrow_schema({column.name: column.type for column in spec.columns})
        self._wanted = {*spec.column_names, _BROKEN}
        self._summary = _Summary(spec, is_new)
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def __enter__(self) -> OpenFile:
        return self

    def add(self, batch: pa.RecordBatch, is_ours: pa.Array | None = None) -> None:
        """Its rows, or those that are ours."""
        own = batch.select([name for name in batch.schema.names if name in self._wanted])
        self._waiting.append(own if is_ours is None else own.filter(is_ours))
        self._waiting_bytes += self._waiting[-1].nbytes
        if self._waiting_bytes >= self._group_bytes:
            self._write()

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and self._waiting:
                self._write()
        finally:
            if self._writer is not None:
                self._writer.close()
        if kind is None and self._writer is not None:
            found = os.stat(self._path)
            modified_ms = found.st_mtime_ns // 10**6
            self.written.append(
                NewFile(self._spec.full_name, self._name, found.st_size, modified_ms, self._summary.stats())
            )

    def _write(self) -> None:
        rows = pa.Table.from_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        if _BROKEN in rows.column_names and (names := pc.unique(rows.column(_BROKEN).drop_null()).to_pylist()):
            condition = self._spec.constraints[names[0]]
            raise RowError(f"a row of {self._spec.full_name} breaks {names[0]}: {condition}")
        table = _with_clock(rows, self._schema, self._at)
        self._summary.take(table)
        order = self._spec.sorted_by
        if order:
            table = table.sort_by([(name, "ascending") for name in order])
        self._writer = self._writer or pq.ParquetWriter(
            self._path, self._schema, compression="zstd", write_page_index=bool(order)
        )
        self._writer.write_table(table, row_group_size=table.num_rows)


def _with_clock(rows: pa.Table, schema: pa.Schema, at: datetime) -> pa.Table:
    """The table's columns: those that the rows lack are our clock's."""
    return pa.Table.from_arrays(
        [
            rows.column(field.name).cast(field.type)
            if field.name in rows.column_names
            else pa.chunked_array([pa.repeat(pa.scalar(at, type=field.type), rows.num_rows)])
            for field in schema
        ],
        schema=schema,
    )


class _Summary:
    """What Delta's log says of a file: how many rows, and of some columns the least, the greatest and the NULLs."""

    def __init__(self, spec: TableSpec, is_new: bool) -> None:
        self._spec, self._is_new = spec, is_new
        self._rows = 0
        self._nulls = dict.fromkeys(spec.filtered_columns, 0)
        self._least: dict[str, Any] = {}
        self._greatest: dict[str, Any] = {}

    def take(self, table: pa.Table) -> None:
        for column in self._spec.columns if self._is_new else ():
            values = table.column(column.name)
            if not column.nullable and values.null_count:
                raise RowError(f"{self._spec.full_name}.{column.name} is NULL in {values.null_count} rows")
            if column.vocabulary:
                others = set(pc.unique(values).to_pylist()) - {None, *column.vocabulary}
                if others:
                    raise RowError(f"{self._spec.full_name}.{column.name} cannot be {sorted(others)[0]!r}")
        self._rows += table.num_rows
        for name, nulls in self._nulls.items():
            values = table.column(name)
            self._nulls[name] = nulls + values.null_count
            ends = pc.min_max(values).as_py()
            if ends["min"] is not None:
                self._least[name] = min(ends["min"], self._least.get(name, ends["min"]))
                self._greatest[name] = max(ends["max"], self._greatest.get(name, ends["max"]))

    def stats(self) -> str:
        short = {name for name in self._least if all(_is_short(ends[name]) for ends in (self._least, self._greatest))}
        return json.dumps(
            {
                "numRecords": self._rows,
                "minValues": {name: _shown(value) for name, value in self._least.items() if name in short},
                "maxValues": {name: _shown(value) for name, value in self._greatest.items() if name in short},
                "nullCount": self._nulls,
            }
        )


def _is_short(value: Any) -> bool:
    return not isinstance(value, str) or len(value) <= _LONGEST_TEXT


def _shown(value: Any) -> Any:
    """Instants as Delta's log prints them: whole milliseconds, which its readers know of."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
