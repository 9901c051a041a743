"""The writes of one run: records into their tables, then the files' own rows, compared with what was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.direct import write_file
from ingest.lake.local_frames import local_frame
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import (
    INGESTED_FILES,
    LOG_RECORDS,
    METADATA_RECORDS,
    REJECTED_RECORDS,
    ZNODE_TRANSACTIONS,
)
from ingest.readers.sources import KEPT_TABLES, SOURCE_OF_KIND
from ingest.readers.work import WorkItem
from ingest.run import reading
from ingest.run.accounting import (
    IngestError,
    Written,
    conservation_error,
    file_row,
    file_rows_frame,
    rows_of_files,
    written,
)
from ingest.run.planning import Action, FileKey, Planned, StoredFile
from ingest.run.work_items import work_items

#: Tables are written side by side: a commit is mostly waiting.
_WRITERS: Final = 3
_NOTHING: Final = Written()
_TABLES: Final = (*KEPT_TABLES, REJECTED_RECORDS)
_Place = tuple[int, int]  # byte offset, line


class Writer:
    """Writes what a run takes; the clock is read once."""

    def __init__(
        self,
        lake: Lake,
        rounds: Mapping[tuple[str, int | None], Sequence[int]],
        time_zone: str,
        kafka_version: str | None,
        progress: Callable[[str], None],
    ) -> None:
        self._lake = lake
        self._rounds = rounds
        self._time_zone = time_zone
        self._kafka_version = kafka_version
        self._progress = progress
        self._at = datetime.now(UTC)
        self._now = F.lit(self._at)

    def take(self, taken: Sequence[Planned]) -> list[dict[str, Any]]:
        """Write the records of these files, then their rows in ``bronze.ingested_files``, which are returned.

        Raises :class:`IngestError` where a log's records do not account for each of its bytes.
        """
        forks = [entry for entry in taken if entry.action is Action.FORK]
        others = [entry for entry in taken if entry.action is not Action.FORK]
        return [*self._write(others, are_forks=False), *self._write(forks, are_forks=True)]

    def take_out(self, earlier: Sequence[StoredFile]) -> None:
        """Delete what the lake holds of earlier states of files: their records first, so that a run that is killed in
        between leaves the rows by which the next one finds them."""
        if not earlier:
            return
        read = [row for row in earlier if row.status == "ingested"]
        tables = {SOURCE_OF_KIND[row.kind].table.name: SOURCE_OF_KIND[row.kind].table for row in read}
        for spec in (*tables.values(), REJECTED_RECORDS):
            of_table = [row for row in earlier if spec is REJECTED_RECORDS or _table_name(row) == spec.name]
            if self._holds_rows(spec):
                self._lake.delete(spec, _any_of(of_table))
        self._lake.delete(INGESTED_FILES, _any_of(earlier))

    def _write(self, taken: Sequence[Planned], *, are_forks: bool) -> list[dict[str, Any]]:
        if not taken:
            return []
        spark = self._lake.spark
        keys = [entry.key for entry in taken]
        stored = written(self._lake, self._tables_with_rows(), keys)
        grown = [entry for entry in taken if entry.action is Action.GROWN]
        # where several processes or channels write one file, any of its last records may go on
        resumed = self._resume([entry for entry in grown if not entry.owner.file.is_interleaved])
        resumed |= {entry.key: (0, 1) for entry in grown if entry.owner.file.is_interleaved}
        items = work_items(taken, resumed, self._rounds, self._time_zone)
        forks = _forks_frame(spark, taken) if are_forks else None
        rejected = reading.rejections(spark)

        def write(spec: TableSpec) -> None:
            wanted = [item for item in items if not item.reason and SOURCE_OF_KIND[item.kind].table.name == spec.name]
            if wanted:
                self._progress(f"reading {len({item.file_id for item in wanted})} files into {spec.full_name}")
                stale = _stale(wanted, stored.get(spec.name, {}), resumed)
                folder = self._lake.folder_of_tasks(spec)
                if folder is not None and not stale and forks is None:
                    self._add(spec, folder, wanted, rejected)
                else:
                    self._put(spec, wanted, lambda part: reading.kept_rows(spark, spec, part, rejected), stale, forks)

        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(write, KEPT_TABLES))
        rejecting = [item for item in items if item.reason or item.part in rejected.value]
        stale = _stale(items, stored.get(REJECTED_RECORDS.name, {}), resumed)
        if rejecting or stale:
            self._put(
                REJECTED_RECORDS,
                rejecting,
                lambda part: reading.rejected_rows(spark, part, rejected.value),
                stale,
                forks,
            )
        return self._finish(taken, are_forks)

    def _add(self, spec: TableSpec, folder: str, items: Sequence[WorkItem], rejected: Any) -> None:
        """Add the items' rows to a table whose folder tasks may write into."""
        at = self._at
        files = reading.kept_files(
            self._lake.spark, items, rejected, lambda batches: write_file(batches, folder, spec, at)
        )
        self._lake.add(files, spec)

    def _tables_with_rows(self) -> list[TableSpec]:
        return [spec for spec in _TABLES if self._holds_rows(spec)]

    def _holds_rows(self, spec: TableSpec) -> bool:
        return self._lake.size_bytes(spec) > 0

    def _resume(self, entries: Sequence[Planned]) -> dict[FileKey, _Place]:
        """Where reading goes on in files that have grown: at the last record, which may go on itself."""
        if not entries:
            return {}
        keys = [entry.key for entry in entries]
        sources = [SOURCE_OF_KIND[entry.owner.file.kind] for entry in entries]
        tables = {source.table.name: source.table for source in sources}
        last_record = F.struct("byte_offset", "source_line")
        # a transaction is written whole: reading goes on behind it. So is a batch of the metadata log, of whose records
        # reading can begin at the first alone; where that is the last row's, it may be of a run of NoOps that goes on
        behind = F.struct(
            (F.col("byte_offset") + F.col("byte_length")).alias("byte_offset"),
            (F.col("source_line") + 1).alias("source_line"),
        )
        begins_batch = F.col("offset") == F.col("batch_offset")
        place_of = {
            ZNODE_TRANSACTIONS.name: behind,
            METADATA_RECORDS.name: F.when(begins_batch, last_record).otherwise(behind),
        }
        places = [
            rows_of_files(self._lake, spec, keys)
            .where(F.col("byte_length") > 0)
            .select("cluster_id", "file_id", place_of.get(spec.name, last_record).alias("place"))
            for spec in (*tables.values(), REJECTED_RECORDS)
        ]
        last = reduce(DataFrame.unionAll, places).groupBy("cluster_id", "file_id").agg(F.max("place").alias("place"))
        found = {(row["cluster_id"], row["file_id"]): tuple(row["place"]) for row in last.collect()}
        return {key: found.get(key, (0, 1)) for key in keys}

    def _put(
        self,
        spec: TableSpec,
        items: Sequence[WorkItem],
        rows_of: Callable[[Sequence[WorkItem]], DataFrame],
        stale: Mapping[FileKey, int],
        forks: DataFrame | None,
    ) -> None:
        """Write the items' rows: added, but in place of what the table holds of ``stale`` files from that byte on."""
        replaced = [item for item in items if (item.cluster_id, item.file_id) in stale]
        fresh = [item for item in items if (item.cluster_id, item.file_id) not in stale]
        if stale:
            places = " OR ".join(
                f"(cluster_id = {_text(cluster)} AND file_id = {_text(file_id)} AND byte_offset >= {offset})"
                for (cluster, file_id), offset in sorted(stale.items())
            )
            self._lake.replace_where(self._stamped(rows_of(replaced), spec, forks), spec, places)
        if fresh:
            self._lake.append(self._stamped(rows_of(fresh), spec, forks), spec)

    def _stamped(self, rows: DataFrame, spec: TableSpec, forks: DataFrame | None) -> DataFrame:
        return (rows if forks is None else self._not_there(rows, spec, forks)).withColumn("ingested_at", self._now)

    def _not_there(self, rows: DataFrame, spec: TableSpec, forks: DataFrame) -> DataFrame:
        """Of logs that start like others: the records that no other file has given, each once. The last record of
        a log that was cut off in it is there, longer and of the same time, at the same place of the other log."""
        key = ["cluster_id", "record_id"]
        time = F.col("event_time_text") if spec is LOG_RECORDS else F.lit("")
        table = self._lake.read(spec).select(*key, "file_id", "byte_offset", "byte_length", time.alias("stored_time"))
        there = rows.select(*key, "file_id").join(table.select(*key, F.col("file_id").alias("other")), key)
        place = ["cluster_id", "base_id", "byte_offset"]
        same_place = table.withColumnRenamed("file_id", "base_id").select(
            *place, "stored_time", F.col("byte_length").alias("stored_length")
        )
        last = rows.join(F.broadcast(forks), ["cluster_id", "file_id"]).where("byte_offset + byte_length = end")
        cut = (
            last.withColumn("time", time)
            .join(same_place, place)
            .where("stored_length > byte_length AND stored_time = time")
        )
        first = rows.groupBy(*key).agg(F.min("file_id").alias("file_id"))
        known = there.where("file_id != other").select(*key).unionAll(cut.select(*key))
        return rows.join(known, key, "left_anti").join(first, [*key, "file_id"], "left_semi")

    def _finish(self, taken: Sequence[Planned], are_forks: bool) -> list[dict[str, Any]]:
        counts = written(self._lake, self._tables_with_rows(), [entry.key for entry in taken])
        rows = []
        for entry in taken:
            source = SOURCE_OF_KIND.get(entry.owner.file.kind)
            kept = counts.get(source.table.name, {}).get(entry.key, _NOTHING) if source else _NOTHING
            rejected = counts.get(REJECTED_RECORDS.name, {}).get(entry.key, _NOTHING)
            if are_forks and kept.records + rejected.records == 0:
                continue  # a shorter copy of a log that is known
            row = file_row(entry, kept, rejected, time_zone=self._time_zone, kafka_version=self._kafka_version)
            problem = None if are_forks else conservation_error(entry, row, kept.bytes + rejected.bytes)
            if problem is not None:
                raise IngestError(problem)
            rows.append(row)
        if not rows:
            return rows
        frame = file_rows_frame(self._lake.spark, rows).withColumn("ingested_at", self._now)
        grown = [_text(entry.owner.file_id) for entry in taken if entry.action is Action.GROWN]
        if grown:
            is_grown = f"file_id IN ({', '.join(grown)})"
            self._lake.replace_where(frame.where(is_grown), INGESTED_FILES, is_grown)
            frame = frame.where(f"NOT {is_grown}")
        if len(grown) < len(rows):
            self._lake.append(frame, INGESTED_FILES)
        return rows


def _forks_frame(spark: SparkSession, forks: Sequence[Planned]) -> DataFrame:
    """Of each fork: the log it starts like, and where it ends."""
    values = [
        (entry.owner.cluster_id, entry.owner.file_id, entry.base_id, entry.owner.file.ingestible_bytes)
        for entry in forks
    ]
    return local_frame(spark, "cluster_id string, file_id string, base_id string, end bigint", values)


def _stale(
    items: Sequence[WorkItem], stored: Mapping[FileKey, Written], resumed: Mapping[FileKey, _Place]
) -> dict[FileKey, int]:
    """The files of which the table holds rows already, and from which byte on they are written again: files that
    have grown, and files that a killed run left behind."""
    keys = {(item.cluster_id, item.file_id) for item in items}
    return {key: resumed.get(key, (0, 1))[0] for key in keys if key in stored}


def _table_name(row: StoredFile) -> str | None:
    return SOURCE_OF_KIND[row.kind].table.name if row.status == "ingested" else None


def _any_of(rows: Sequence[StoredFile]) -> str:
    """The condition that a table's row is of one of these files."""
    files: dict[str, list[str]] = {}
    for row in rows:
        files.setdefault(row.cluster_id, []).append(_text(row.file_id))
    return " OR ".join(
        f"(cluster_id = {_text(cluster)} AND file_id IN ({', '.join(ids)}))" for cluster, ids in sorted(files.items())
    )


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
