"""Upkeep of a lake that grows: the small files of many runs put together, and files of old versions deleted."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from delta.tables import DeltaTable

from ingest.lake.delta import Lake, side_by_side
from ingest.lake.direct import (
    TINY_FILE_BYTES,
    NewFile,
    add_action,
    begin,
    commit,
    direct_folder,
    files_listed,
    write_file,
)
from ingest.lake.file_system import file_system_of
from ingest.lake.pinned import newest_version, pinned_table
from ingest.lake.rewriting import conformed, rows_of_files
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables.kept import INSPECTED_FILES, KEPT_TABLES

#: Tables of fewer files are left as they are: to put them together costs more than to read them.
FEWEST_FILES: Final = 8
#: So many of them a table may have: each scan opens all of them, and of more files Spark's plan takes longer too.
MOST_TINY_FILES: Final = 16


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done for one table: ``files`` of its newest version, and ``stored_bytes`` of all versions that are kept
    (Delta's log is not counted), before and after."""

    table: str
    files_before: int
    files_after: int
    stored_bytes_before: int
    stored_bytes_after: int

    @property
    def changed(self) -> bool:
        return (self.files_before, self.stored_bytes_before) != (self.files_after, self.stored_bytes_after)


def maintain(
    lake: Lake,
    keep_hours: float,
    progress: Callable[[str], None],
    specs: Iterable[TableSpec] = (*TABLES.values(), *KEPT_TABLES, INSPECTED_FILES),
) -> list[Upkeep]:
    """Put small files together (Delta's OPTIMIZE), then delete what only versions of more than ``keep_hours`` ago need
    (VACUUM). No row changes. Who reads such an old version while this runs may miss files of it.

    Gives what was done, by table, in the order of ``specs``; tables that the lake lacks are left out.
    """
    there = [spec for spec in specs if lake.exists(spec)]
    # Delta refuses less than a week, for fear of writers that are not done: who calls this is the only one
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    before = side_by_side(lambda spec: _measured(lake, spec), there)
    progress(f"putting together the small files of {len(there)} tables")
    side_by_side(lambda spec: _compact(lake, spec), there)
    progress(f"deleting what only versions of more than {keep_hours:g} hours ago need")
    side_by_side(lambda spec: _vacuum(lake, spec, keep_hours), there)
    after = side_by_side(lambda spec: _measured(lake, spec), there)
    return [
        Upkeep(spec.full_name, files, files_now, stored, stored_now)
        for spec, (files, stored), (files_now, stored_now) in zip(there, before, after, strict=True)
    ]


def _compact(lake: Lake, spec: TableSpec) -> None:
    if _files_count(lake, spec) >= FEWEST_FILES:
        DeltaTable.forPath(lake.spark, lake.path(spec)).optimize().executeCompaction()


def put_tiny_files_together(lake: Lake, specs: Iterable[TableSpec]) -> None:
    """On one machine put the tiny files of each table that has many together, those of each cluster into one, in a
    commit that changes no row: what run after run adds to is then read as what was written at once. Larger files stay
    as they are."""
    side_by_side(lambda spec: _put_tiny_together(lake, spec), [spec for spec in specs if lake.exists(spec)])


def _put_tiny_together(lake: Lake, spec: TableSpec) -> None:
    path = lake.path(spec)
    folder = direct_folder(lake.spark, path)
    if folder is None or not _has_many_tiny(newest_version(lake.spark, path).checksum):
        return
    transaction = begin(lake.spark, path)
    if pinned_table(lake.spark, path, transaction.snapshot().version(), sys.maxsize) is None:
        return
    come: list[NewFile] = []
    gone: list[Any] = []
    at = datetime.now(UTC)
    for files in _tiny_files(transaction.snapshot()):
        paths = (os.path.join(folder, file.path()) for file in files)
        # an earlier version of the table may have let rows in that this one would not
        come += write_file((conformed(rows, spec) for rows in rows_of_files(paths)), folder, spec, at, is_new=False)
        gone += files
    if gone:
        commit(lake.spark, transaction, map(add_action, come), gone, replaces=False, changes_rows=False)


def _has_many_tiny(checksum: Mapping[str, Any] | None) -> bool:
    files = (checksum or {}).get("allFiles") or ()
    return len([file for file in files if file["size"] < TINY_FILE_BYTES]) > MOST_TINY_FILES


def _tiny_files(snapshot: Any) -> list[list[Any]]:
    """Those of a table that has many, by cluster: by its files is known of which clusters a table's rows changed. None
    where the commit's own checksum file lists no files, as of a table of some fifty and more."""
    listed = files_listed(snapshot) or ()
    tiny = [file for file in listed if file.size() < TINY_FILE_BYTES] if len(listed) > MOST_TINY_FILES else []
    by_clusters: dict[tuple[str | None, ...], list[Any]] = {}
    for file in tiny if len(tiny) > MOST_TINY_FILES else ():
        by_clusters.setdefault(_clusters_of(file), []).append(file)
    return [files for files in by_clusters.values() if len(files) > 1]


def _clusters_of(file: Any) -> tuple[str | None, ...]:
    """The first and the last of the clusters that its rows are of, as far as Delta's log says it."""
    stats = json.loads(file.stats() or "{}")
    return tuple(stats.get(ends, {}).get("cluster_id") for ends in ("minValues", "maxValues"))


def _vacuum(lake: Lake, spec: TableSpec, keep_hours: float) -> None:
    # each VACUUM is several Spark jobs: not for a folder that holds the newest version alone, or files that all stay
    stored = _stored_files(lake, spec)
    oldest_kept_ms = 1000 * (time.time() - 3600 * keep_hours)
    is_any_old = any(status.getModificationTime() < oldest_kept_ms for status in stored)
    if is_any_old and len(stored) > _files_count(lake, spec):
        DeltaTable.forPath(lake.spark, lake.path(spec)).vacuum(keep_hours)


def _measured(lake: Lake, spec: TableSpec) -> tuple[int, int]:
    files = _files_count(lake, spec)
    return files, sum(status.getLen() for status in _stored_files(lake, spec))


def _files_count(lake: Lake, spec: TableSpec) -> int:
    """How many files the newest version has; without a Spark job where the commit's own checksum file says so."""
    newest = newest_version(lake.spark, lake.path(spec))
    return int(newest.snapshot.numOfFiles() if newest.checksum is None else newest.checksum["numFiles"])


def _stored_files(lake: Lake, spec: TableSpec) -> list[Any]:
    """The files of rows in the table's folder, of all its versions: no table of ours is partitioned."""
    files, folder = file_system_of(lake.spark, lake.path(spec))
    return [status for status in files.listStatus(folder) if status.getPath().getName().endswith(".parquet")]
