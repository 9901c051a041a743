"""On one machine: some rows of a table replaced, of its files those alone written anew that hold any of them.

For that Delta's own DELETE, MERGE and replaceWhere run four to twelve Spark jobs, however few the rows are; here two,
and one where no row has to go. Where rows go by their keys, as in each run that goes on from the last, one job does it
for several tables: a task reads what stays as Arrow's columns, of which Java would make objects.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial, reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.direct import (
    NEW_FILE_COLUMNS,
    TINY_FILE_BYTES,
    NewFile,
    OpenFile,
    add_action,
    begin,
    commit,
    direct_folder,
    files_of,
    with_broken,
    write_files,
    write_parts,
)
from ingest.lake.pinned import pinned_table
from ingest.lake.plans import map_in_arrow, union
from ingest.lake.tables import TableSpec
from ingest.lake.tables.types import arrow_schema, spark_schema

_FILE: Final = "_file"
#: No table: rows of this name are keys of which all rows go.
_GONE: Final = ""
#: Before the path of a file of rows that is cut or damaged, in the error that says so.
UNREADABLE: Final = "no rows can be read from"
#: What a task says: of files that it wrote, and by their names alone of those whose rows that stay it wrote anew.
_SAID: Final = {**NEW_FILE_COLUMNS, "is_gone": "boolean"}


def rewrite(spark: SparkSession, path: str, spec: TableSpec, rows: DataFrame | None, predicate: str) -> bool:
    """Put ``rows`` in place of those that satisfy ``predicate`` (SQL over the table's columns), in one commit.

    False, and nothing is done, where Delta has to: elsewhere than on this machine, or of a table of many files.
    """
    folder = direct_folder(spark, path)
    if folder is None:
        return False
    transaction = begin(spark, path)
    held = pinned_table(spark, path, transaction.snapshot().version())
    if held is None:
        return False
    transaction.readWholeTable()
    names = set()
    if held.files:
        named = held.frame(spark).select("*", F.col("_metadata.file_name").alias(_FILE))
        names = {row[_FILE] for row in named.where(predicate).select(_FILE).distinct().collect()}
    touched = [file for file, name in zip(held.files, _names(held.files), strict=True) if name in names]
    parts = [] if rows is None else [rows]
    if touched:
        all_rows = replace(held, files=touched).frame(spark)
        parts.append(all_rows.where(f"NOT coalesce({predicate}, false)").select(*spec.column_names))
    come = write_files(parts[0].unionAll(parts[-1]) if len(parts) > 1 else parts[0], folder, spec) if parts else []
    leave = [file for file in files_of(transaction) if file.path() in names]
    if come or leave:
        commit(spark, transaction, map(add_action, come), leave, replaces=bool(leave))
    return True


def replace_keys(
    spark: SparkSession, rows: DataFrame, column: str, gone: DataFrame, tables: Mapping[str, TableSpec]
) -> list[Callable[[], None]] | None:
    """In each of the tables, by their paths, put the rows of which ``column`` names it in place of all that have a key
    of ``gone``, whose columns are the key: one query, and the commits that are given. Files that hold none of these
    stay, and tiny ones become one.

    None, and nothing is done, where Delta has to, as of :func:`rewrite`.
    """
    transactions: dict[str, Any] = {}
    places: dict[str, _Place] = {}
    for path, spec in tables.items():
        folder = direct_folder(spark, path)
        transaction = None if folder is None else begin(spark, path)
        held = None if transaction is None else pinned_table(spark, path, transaction.snapshot().version())
        if folder is None or transaction is None or held is None:
            return None
        transaction.readWholeTable()
        transactions[spec.full_name] = transaction
        sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in _names(held.files)}
        places[spec.full_name] = _Place(folder, spec, sizes, TINY_FILE_BYTES)
    specs = list(tables.values())
    types = {name: specs[0].column(name).type for name in gone.columns}
    keys = gone.select(F.lit(_GONE).alias(column), *(F.col(name).cast(type_) for name, type_ in types.items()))
    at = datetime.now(UTC)

    def replaced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for said in _replaced(batches, column, types, places, at):
            yield pa.RecordBatch.from_pylist([said], schema=arrow_schema(_SAID))

    # a task of its own has all keys
    all_of_them = union([with_broken(rows, column, specs), keys.coalesce(1)])
    come, leave = defaultdict(list), defaultdict(set)
    for said in map_in_arrow(all_of_them, replaced, spark_schema(_SAID)).collect():
        if said["is_gone"]:
            leave[said["table"]].add(said["name"])
        else:
            come[said["table"]].append(NewFile(*said[:-1]))

    def commit_one(name: str) -> None:
        left = [file for file in files_of(transactions[name]) if file.path() in leave[name]]
        commit(spark, transactions[name], map(add_action, come[name]), left, replaces=bool(left))

    return [partial(commit_one, name) for name in transactions if come[name] or leave[name]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a table's files are, and by their names their bytes; fewer than ``tiny`` are."""

    folder: str
    spec: TableSpec
    files: Mapping[str, int]
    tiny: int


def _names(files: Iterable[str]) -> Iterator[str]:
    return (file.rpartition("/")[2] for file in files)


def _replaced(
    batches: Iterable[pa.RecordBatch],
    column: str,
    types: Mapping[str, str],
    places: Mapping[str, _Place],
    at: datetime,
) -> Iterator[dict[str, Any]]:
    """What one task says: of the rows that it was given, and of those that stay where it was given keys."""
    keys: set[tuple[Any, ...]] = set()

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            of_keys = batch.filter(pc.equal(batch.column(column), _GONE))
            keys.update(_values(of_keys, types))
            yield batch

    written = write_parts(noted(), column, {name: (each.folder, each.spec) for name, each in places.items()}, at)
    yield from (asdict(file) | {"is_gone": False} for file in written)
    if keys:
        gone = _Gone(keys, arrow_schema(types))
        for place in places.values():
            yield from _what_stays(place, gone, at)


def _what_stays(place: _Place, gone: _Gone, at: datetime) -> Iterator[dict[str, Any]]:
    """Write anew the rows that stay of files that hold some that go; of tiny files together, those without any too."""
    paths = {name: os.path.join(place.folder, name) for name in place.files}
    tiny = [name for name, size in place.files.items() if size < place.tiny]
    touched = [name for name, path in paths.items() if gone.is_any_in(path)]
    if len(tiny) == 1 and tiny[0] not in touched:
        tiny = []
    groups = [tiny, *([name] for name in touched if name not in tiny)]
    for names in filter(None, groups):
        # an earlier version of the table may have let rows in that this one would not
        with OpenFile(place.folder, place.spec, at, is_new=False) as file:
            for batch in map(gone.without, rows_of_files(paths[name] for name in names)):
                if batch.num_rows:
                    file.add(conformed(batch, place.spec))
        yield from (asdict(new) | {"is_gone": False} for new in file.written)
        yield from ({"table": place.spec.full_name, "name": name, "is_gone": True} for name in names)


def rows_of_files(paths: Iterable[str], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files of this machine. Raises :class:`OSError` where one is cut or damaged, with its name."""
    for path in paths:
        try:
            with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                yield from file.iter_batches(columns=columns)
        except (OSError, pa.ArrowInvalid) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the system says why: it may not be read, or is gone
            raise OSError(f"{UNREADABLE}: {path}: {error}") from error


def conformed(rows: pa.RecordBatch, spec: TableSpec) -> pa.RecordBatch:
    """The rows in the table's columns: one that came later than their file is NULL in them."""
    schema = arrow_schema({column.name: column.type for column in spec.columns})
    held = set(rows.schema.names)
    columns = (
        rows.column(field.name).cast(field.type) if field.name in held else pa.nulls(rows.num_rows, field.type)
        for field in schema
    )
    return pa.RecordBatch.from_arrays(list(columns), schema=schema)


def _values(rows: pa.RecordBatch, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows.column(name).to_pylist() for name in names), strict=True)


class _Gone:
    """The keys of which all rows go."""

    def __init__(self, keys: set[tuple[Any, ...]], schema: pa.Schema) -> None:
        self._keys, self._schema = keys, schema
        self._values = {
            field.name: pa.array({key[number] for key in keys}, type=field.type) for number, field in enumerate(schema)
        }

    def is_any_in(self, path: str) -> bool:
        """Whether a file holds any of these rows."""
        return any(pc.any(self._goes(batch)).as_py() for batch in rows_of_files([path], self._schema.names))

    def without(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of all other keys."""
        return rows.filter(pc.invert(self._goes(rows)))

    def _goes(self, rows: pa.RecordBatch) -> pa.Array:
        columns = [rows.column(field.name).cast(field.type) for field in self._schema]
        among = (
            pc.is_in(column, self._values[field.name]) for field, column in zip(self._schema, columns, strict=True)
        )
        # next to all rows have a value that no key has: the others alone are looked at one by one
        maybe = reduce(pc.and_, among)
        places = pc.indices_nonzero(maybe)
        few = pa.RecordBatch.from_arrays([column.take(places) for column in columns], schema=self._schema)
        found = [key in self._keys for key in _values(few, self._schema.names)]
        return pc.replace_with_mask(maybe, maybe, pa.array(found, type=pa.bool_()))
