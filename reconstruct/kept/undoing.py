"""The last run taken back: the lake as the run before left it, whose tables Delta still has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, LakeError, PinnedLake, side_by_side
from ingest.lake.going_back import bring_back, files_missing
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import BRONZE_TABLES, INGESTED_FILES
from ingest.lake.tables.kept import RUNS
from reconstruct.kept.last_run import WRITTEN, as_map, hold_the_same, versions

#: So many of the files that came since are named.
NAMED: Final = 5


@dataclass(frozen=True)
class Undone:
    """The run, by its number and end, that left the tables as they are now; how many tables were brought back; how many
    files were ingested since that run read bronze, with some of their names, and whether they are gone from it."""

    number: int
    ended_at: datetime
    tables: int
    files: int
    names: tuple[str, ...]
    is_bronze_back: bool


def undo(lake: Lake, progress: Callable[[str], None], *, bronze: bool) -> Undone:
    """Bring silver and gold (with ``bronze`` also that) back to what the last run left, where they are not so, as after
    a run that was cut off; else to what the run before left. Raises :class:`LakeError` where there is no such run, or
    upkeep deleted what only it needs, and does nothing then.

    Readers see one run's tables throughout: first the note of the run to be undone goes, so that they read the versions
    that the run before noted, then the tables become these, and at last the note names the new versions. Cut off in
    between it is done by the same call again.
    """
    specs = (*WRITTEN, *(BRONZE_TABLES if bronze else ()))
    notes = _newest_notes(lake)
    now = versions(lake, specs)
    is_as_left = bool(notes) and hold_the_same(lake, specs, _noted(notes[0], specs), now)
    if len(notes) <= is_as_left:
        raise LakeError(f"the lake {lake.root} holds no earlier run that ended well: there is nothing to go back to")
    note = notes[is_as_left]
    then = _noted(note, specs)
    changed = [spec for spec in specs if not hold_the_same(lake, [spec], _only(then, spec), _only(now, spec))]
    _require_files(lake, changed, then)
    files, names = _files_since(lake, note)
    progress(f"bringing {len(changed)} tables back to what run {note['run_number']} left")
    if is_as_left:
        lake.delete(RUNS, f"unix_micros(ended_at) > {note['ended_us']}")
    side_by_side(lambda spec: bring_back(lake.spark, lake.path(spec), then[spec.full_name]), changed)
    _note_again(lake, note["ended_us"], bronze=bronze)
    return Undone(note["run_number"], note["ended_at"], len(changed), files, names, bronze)


def _newest_notes(lake: Lake) -> list[Row]:
    """Of the last two runs that ended well, the last first."""
    if versions(lake, [RUNS])[RUNS.full_name] < 1:
        return []
    until, ended = F.unix_micros("evidence_until").alias("until_us"), F.unix_micros("ended_at").alias("ended_us")
    return PinnedLake(lake).read(RUNS).select("*", until, ended).orderBy(F.desc("ended_at")).limit(2).collect()


def _noted(note: Row, specs: tuple[TableSpec, ...]) -> dict[str, int]:
    """The version of each table as the run left it; of one that came later its first, which is empty."""
    held = {**note["tables"], **note["evidence"]}
    return {spec.full_name: max(held.get(spec.full_name, 0), 0) for spec in specs}


def _only(found: Mapping[str, int], spec: TableSpec) -> dict[str, int]:
    return {spec.full_name: found[spec.full_name]}


def _require_files(lake: Lake, changed: list[TableSpec], then: Mapping[str, int]) -> None:
    def missing(spec: TableSpec) -> bool:
        try:
            return files_missing(lake.spark, lake.path(spec), then[spec.full_name]) > 0
        except (Py4JJavaError, PySparkException):  # Delta's log does not reach back so far
            return True

    lost = [spec.full_name for spec, is_lost in zip(changed, side_by_side(missing, changed), strict=True) if is_lost]
    if lost:
        raise LakeError(
            f"the lake {lake.root} cannot go back: what only the run before needs of {', '.join(lost[:NAMED])} was"
            " deleted (`maintain`); nothing was done. Make a lake anew from the right files"
        )


def _files_since(lake: Lake, note: Row) -> tuple[int, tuple[str, ...]]:
    """How many files were ingested since the run read bronze, and the names of some."""
    came = PinnedLake(lake).read(INGESTED_FILES).where(F.unix_micros("ingested_at") > F.lit(note["until_us"] or 0))
    names = came.select("source_file").orderBy("source_file").limit(NAMED).collect()
    return came.count(), tuple(row["source_file"] for row in names)


def _note_again(lake: Lake, ended_us: int, *, bronze: bool) -> None:
    """Have the note of the run name the versions that its tables have now."""
    of_now: dict[str, Any] = {"tables": as_map(versions(lake, WRITTEN))}
    if bronze:
        of_now["evidence"] = as_map(versions(lake, BRONZE_TABLES))
    is_it = F.unix_micros("ended_at") == F.lit(ended_us)
    rows = lake.read(RUNS).withColumns({n: F.when(is_it, value).otherwise(F.col(n)) for n, value in of_now.items()})
    lake.overwrite(rows, RUNS)
