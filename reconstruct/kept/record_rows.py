"""Rows that are made of log records file by file, or of all records of a key: those of files that are what they were at
the last run stay, and those of keys of which no other file has records.

Which files are new, gone or others the rows of ``bronze.ingested_files`` say. What else the rows depend on (clocks,
incarnations) whoever makes them has to know; where that is another, all are made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, side_by_side
from ingest.lake.plans import collect_all, differing, of_files, only, without
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import INGESTED_FILES
from ingest.lake.tables.events import (
    CONTROLLER_EVENTS,
    METADATA_CHANGES,
    REPLICATION_EVENTS,
    STATE_CHANGE_EVENTS,
    ZNODE_CHANGES,
)
from ingest.lake.tables.kept import CLOCK_MARKS, CLOCKS, OFFSET_STATEMENTS, RECORD_COUNTS, RECORD_ROWS_TABLES
from reconstruct.engine.folds import local_rows
from reconstruct.engine.staging import Staging

_FILE: Final = ("cluster_id", "file_id")
Make = Callable[[DataFrame], DataFrame]
OfKeys = Callable[[DataFrame, DataFrame, Sequence[Row] | None], DataFrame]
#: What a run writes and holds against what it was.
_COMPARED: Final = (
    *(CLOCK_MARKS, OFFSET_STATEMENTS, STATE_CHANGE_EVENTS, CONTROLLER_EVENTS, REPLICATION_EVENTS),
    *(ZNODE_CHANGES, METADATA_CHANGES),
)


@dataclass(frozen=True)
class ChangedFiles:
    """The files of which records are new, gone or others: each once in ``keys``. ``names`` are their ids, None where
    they are many; ``is_any_known``: some of them had rows before."""

    keys: DataFrame
    names: tuple[str, ...] | None
    is_any_known: bool

    def of(self, records: DataFrame) -> DataFrame:
        """The records of these files."""
        return of_files(records, self.keys, self.names)


@dataclass(frozen=True)
class OfRecords:
    """How the rows of a table are made of records, file by file; ``is_read_once``: they are asked for once alone."""

    spec: TableSpec
    make: Make
    is_read_once: bool = False


@dataclass(frozen=True)
class Records:
    """What rows are made of, file by file: ``every`` record there is, and those ``changed``, of files that did; None
    where it is not known which these are."""

    every: DataFrame
    changed: DataFrame | None

    def then(self, step: Callable[[DataFrame], DataFrame]) -> Records:
        """The same records after a step."""
        return Records(step(self.every), None if self.changed is None else step(self.changed))


class RecordRows:
    """The tables of a run whose rows are made of records; ``evidence`` has the versions of bronze at the last run, None
    where nothing is kept of it. It is made before the run writes anything."""

    def __init__(self, lake: Lake, stage: Staging, evidence: Mapping[str, int] | None = None) -> None:
        self._lake, self._stage = lake, stage
        # of a small one to make all rows costs less than to keep them
        self.is_kept = not stage.is_in_memory
        known = evidence if evidence and self.is_kept and self._lake.rows_count(CLOCKS) > 0 else {}
        self._changed = self._changed_since(known[INGESTED_FILES.full_name]) if known else None
        # not those that the last run noted: files of these may have been put together since, and deleted
        written = {spec.full_name: lake.newest_version(spec) for spec in _COMPARED} if known else {}
        self._before = {**known, **written}

    def _changed_since(self, version: int) -> ChangedFiles | None:
        """None where Delta has no such version any more."""
        of_file = F.struct("status", "broker_id", "size_bytes", "ingested_bytes", "ingested_at")
        try:
            then = self._lake.read_at(INGESTED_FILES, version).select(*_FILE, of_file.alias("then"))
            now = self._lake.read(INGESTED_FILES).select(*_FILE, of_file.alias("now"))
            # an ingest that was cut off left records without the row of their file, and they were read
            read = self._lake.read(RECORD_COUNTS).select(*_FILE).distinct().withColumn("is_read", F.lit(True))
            changed = now.join(then, list(_FILE), "full_outer").where("NOT now <=> then")
            is_known = F.expr("then IS NOT NULL OR is_read IS NOT NULL").alias("is_known")
            found = changed.join(read, list(_FILE), "left").select(*_FILE, is_known)
            keys, few = self._stage.keep_or_hold(found, "changed_files")
        except (Py4JJavaError, PySparkException):
            return None
        if few is not None:
            names, is_any_known = tuple(row["file_id"] for row in few), any(row["is_known"] for row in few)
            return ChangedFiles(keys.select(*_FILE), names, is_any_known)
        return ChangedFiles(keys.select(*_FILE), None, not keys.where("is_known").isEmpty())

    @property
    def is_any_kept(self) -> bool:
        """Whether it is known which files changed, and what the last run made of the others is kept."""
        return self._changed is not None

    def of_others(self, rows: DataFrame) -> DataFrame:
        """Those of files that did not change, where it is known which did."""
        assert self._changed is not None
        return without(rows, self._changed.keys)

    def records(self, *specs: TableSpec, made: Callable[..., DataFrame] = lambda rows: rows) -> Records:
        """What is ``made`` of the rows of these tables, which are of records, as they are by now."""
        every = made(*map(self._lake.read, specs))
        return Records(every, None if self._changed is None else made(*(self._of_changed(spec) for spec in specs)))

    def _of_changed(self, spec: TableSpec) -> DataFrame:
        """The rows of files that changed; where all these are new, their rows came since the last run."""
        changed, before = self._changed, self._before.get(spec.full_name)
        assert changed is not None
        if before is None or changed.is_any_known:
            return changed.of(self._lake.read(spec))
        return changed.of(self._lake.read_since(spec, before))

    def keep(
        self, wanted: Sequence[OfRecords], records: Records, *, are_others_the_same: bool = True
    ) -> list[DataFrame]:
        """What each gives of the records, in the columns of its table: kept for the next run; of a small lake for this
        one alone, if at all. ``are_others_the_same``: of files that did not change they give what they gave."""
        if self.is_kept:
            self.write(wanted, records, are_others_the_same=are_others_the_same)
            return [self._lake.read(each.spec) for each in wanted]

        def made(each: OfRecords) -> DataFrame:
            rows = each.make(records.every)
            return rows if each.is_read_once else self._stage.keep(rows, each.spec.name)

        return side_by_side(made, wanted)

    def write(self, wanted: Sequence[OfRecords], records: Records, *, are_others_the_same: bool = True) -> None:
        """Bring tables in line with what :meth:`keep` says."""
        changed = self._changed
        if changed is None or records.changed is None or not are_others_the_same:
            self._lake.overwrite_all([(each.spec, each.make(records.every)) for each in wanted])
            return
        rows = [(each.spec, each.make(records.changed)) for each in wanted]
        if changed.is_any_known:
            side_by_side(lambda of_table: self._lake.replace_keys(of_table[1], changed.keys, of_table[0]), rows)
        else:
            self._lake.append_all(rows)

    def keep_of_keys(
        self,
        spec: TableSpec,
        make: Make,
        records: Records,
        keys_of_files: TableSpec,
        *,
        whole: Callable[[DataFrame, DataFrame], DataFrame],
        of_keys: OfKeys = lambda rows, keys, _: only(rows, keys),
        are_others_the_same: bool = True,
    ) -> DataFrame:
        """What ``make`` gives of all records of some keys, wherever they are, in the columns of ``spec``: kept for the
        next run; of a small lake made for this one alone. The key is what ``keys_of_files``, kept too, has beside the
        file: made anew are the keys of which a file that changed has records, or had, and those that ``whole`` gives
        beside them of all there are and were; ``of_keys`` are the records of keys, given too where they are few.
        ``are_others_the_same``: of keys that have none there it gives what it gave."""
        every = records.every
        if not self.is_kept:
            return make(every)
        columns = keys_of_files.column_names
        changed = self._changed
        if changed is None or records.changed is None or not are_others_the_same:
            self._lake.overwrite(every.select(*columns).distinct(), keys_of_files)
            self._lake.overwrite(make(every), spec)
            return self._lake.read(spec)
        key = [name for name in columns if name != "file_id"]
        now = self._stage.keep(records.changed.select(*columns).distinct(), keys_of_files.name)
        before = self._lake.read(keys_of_files)
        known = before.unionByName(now).select(*key)
        keys = whole(changed.of(before).unionByName(now).select(*key), known).distinct()
        keys, few = self._stage.keep_or_hold(keys, f"changed_{spec.name}")
        replaced = [(now, changed.keys, keys_of_files)]
        if few is None or few:
            replaced.append((make(of_keys(every, keys, few)), keys, spec))
        side_by_side(lambda each: self._lake.replace_keys(*each), replaced)
        return self._lake.read(spec)

    def replace_keys(self, spec: TableSpec, make: Make, records: DataFrame, keys: DataFrame) -> None:
        """Have what ``make`` gives of the records of some keys in place of what the table has of these."""
        name = f"changed_{spec.name}"
        changed = self._stage.keep(keys.distinct(), name)
        if self._stage.rows_count(name):
            self._lake.replace_keys(make(only(records, changed)), changed, spec)

    def differing(
        self, *specs: TableSpec, made: Callable[..., DataFrame] = lambda rows: rows, are_others_the_same: bool = True
    ) -> DataFrame | None:
        """What is ``made`` of the rows of files that changed in these tables, written by now, and was not when the last
        run ended, or was and is not; None where that is not known. ``are_others_the_same``: of files that did not
        change it is what it was."""
        changed = self._changed
        if changed is None or not are_others_the_same:
            return None
        now = made(*map(self._of_changed, specs))
        if not changed.is_any_known:
            return now
        then = self.as_they_were(*specs)
        return None if then is None else differing(made(*map(changed.of, then)), now)

    def as_they_were(self, *specs: TableSpec) -> list[DataFrame] | None:
        """Tables as the last run left them, whatever this one wrote since; None where that is not known."""
        try:
            return [self._lake.read_at(spec, self._before[spec.full_name]) for spec in specs]
        except (KeyError, Py4JJavaError, PySparkException):
            return None

    def is_any_written(self, *specs: TableSpec) -> bool:
        """Whether any of the tables is not as the last run left it."""
        return any(self._lake.newest_version(spec) != self._before.get(spec.full_name) for spec in specs)

    def is_the_same(
        self,
        spec: TableSpec,
        rows: DataFrame,
        what_counts: Callable[[Sequence[Any]], Sequence[Any]] = lambda rows: rows,
    ) -> bool:
        """Whether few rows, on which those of records depend, are as at the last run, or what counts of them is; they
        are kept for the next."""
        if not self.is_kept:
            return False
        made = rows.select(*spec.column_names)
        if not self.is_any_kept:
            self._lake.overwrite(made, spec)
            return False
        before, now = collect_all([self._lake.read(spec), made])
        if Counter(before) == Counter(now):
            return True
        self._lake.overwrite(local_rows(self._lake.spark, spec, (row.asDict() for row in now)), spec)
        return Counter(what_counts(before)) == Counter(what_counts(now))

    def forget(self) -> None:
        """Keep nothing of a small lake: what an earlier run kept is of other files."""
        for spec in RECORD_ROWS_TABLES:
            if not self.is_kept and self._lake.rows_count(spec):
                self._lake.overwrite(self._lake.read(spec).where("false"), spec)
