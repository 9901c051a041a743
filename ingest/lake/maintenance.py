"""Upkeep of a lake that grows: the small files of many runs put together, and files of old versions deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from delta.tables import DeltaTable

from ingest.lake.delta import Lake, side_by_side
from ingest.lake.file_system import file_system_of
from ingest.lake.pinned import newest_version
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables.kept import INSPECTED_FILES, KEPT_TABLES

#: Tables of fewer files are left as they are: to put them together costs more than to read them.
FEWEST_FILES: Final = 8


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


def _vacuum(lake: Lake, spec: TableSpec, keep_hours: float) -> None:
    # each VACUUM is several Spark jobs: not for a folder that holds the newest version alone
    if len(_stored_files(lake, spec)) > _files_count(lake, spec):
        DeltaTable.forPath(lake.spark, lake.path(spec)).vacuum(keep_hours)


def _measured(lake: Lake, spec: TableSpec) -> tuple[int, int]:
    files = _files_count(lake, spec)
    return files, sum(status.getLen() for status in _stored_files(lake, spec))


def _files_count(lake: Lake, spec: TableSpec) -> int:
    """How many files the newest version has; without a Spark job where the commit's own checksum file says so."""
    snapshot = newest_version(lake.spark, lake.path(spec)).snapshot
    checksum = snapshot.checksumOpt()
    return int(snapshot.numOfFiles() if checksum.isEmpty() else checksum.get().numFiles())


def _stored_files(lake: Lake, spec: TableSpec) -> list[Any]:
    """The files of rows in the table's folder, of all its versions: no table of ours is partitioned."""
    files, folder = file_system_of(lake.spark, lake.path(spec))
    return [status for status in files.listStatus(folder) if status.getPath().getName().endswith(".parquet")]
