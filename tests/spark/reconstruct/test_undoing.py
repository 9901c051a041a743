"""A bad run taken back: tables, readers, what the next run makes, and what cannot be undone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ingest.lake import going_back
from ingest.lake.delta import Lake, LakeError
from ingest.lake.maintenance import maintain
from ingest.lake.tables import TABLES
from ingest.lake.tables.bronze import BRONZE_TABLES
from ingest.run.pipeline import IngestOptions, ingest_paths
from jobs.undoing import job as undo_job
from reconstruct.kept import undoing
from reconstruct.kept.last_run import WRITTEN, published
from reconstruct.kept.undoing import Undone, undo
from reconstruct.pipeline import reconstruct
from tests.support.budget import IS_HARD
from tests.support.lakes.slices import as_of_a_large_lake
from tests.support.lakes.two_runs import SLICED, TwoRuns
from tests.table_hashes import rows_of_tables, table_hashes

pytestmark = pytest.mark.timeout(1800)
#: Tables that both runs change, as a reader asks for them.
_ASKED = ("silver.state_change_events", "silver.leader_and_isr_timeline", "gold.propagation_delays")

State = dict[str, tuple[str, int]]


class Killed(Exception):
    """The process ends here."""


def silent(message: str) -> None:
    """No progress."""


def state(lake: Lake, specs: Any = WRITTEN) -> State:
    return table_hashes(rows_of_tables(lake, specs))


def asked(lake: Lake) -> State:
    return state(lake, [spec for spec in WRITTEN if spec.full_name in _ASKED])


def files(lake: Lake, specs: Any = WRITTEN) -> dict[str, set[str]]:
    """The files that hold a table's rows, each of which is never written again: the same ones are the same rows."""
    pinned = lake.pinned()  # Delta itself is asked for the files of a table by a Spark job
    return {spec.full_name: {Path(name).name for name in pinned.read(spec).inputFiles()} for spec in specs}


def test_a_run_taken_back_leaves_the_tables_of_the_run_before_and_the_next_goes_on_from_them(
    spark: Any, two_runs: TwoRuns, empty_lake_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none, one = Lake(spark, str(empty_lake_dir)), two_runs.copied(spark, 1, tmp_path)
    with pytest.raises(LakeError, match=r"holds no earlier run that ended well"):
        undo(none, silent, bronze=False)
    first, first_bronze, before = files(one), files(one, BRONZE_TABLES), asked(one)
    with pytest.raises(LakeError, match=r"holds no earlier run"):
        undo(one, silent, bronze=False)
    assert files(one) == first
    lake, second_run = two_runs.copied(spark, 2, tmp_path), two_runs.told[1]
    second_bronze, after = files(lake, BRONZE_TABLES), asked(lake)
    second = state(lake) if IS_HARD else {}
    opened = published(Lake(spark, lake.root))
    assert [name for name in _ASKED if before[name] == after[name]] == []

    _killed_in_its_midst(lake, monkeypatch)
    assert asked(published(lake)) == before
    assert asked(opened) == after, "who had opened the lake before still reads the run that is taken back"
    undone = undo(lake, silent, bronze=False)
    assert (undone.number, undone.is_bronze_back, undone.files > 0) == (1, False, True)
    assert files(lake) == files(published(lake)) == first
    by_delta = {name: {Path(file).name for file in lake.read(TABLES[name]).inputFiles()} for name in _ASKED}
    assert by_delta == {name: first[name] for name in _ASKED}
    assert asked(published(lake)) == before
    assert asked(opened) == after
    assert files(lake, BRONZE_TABLES) == second_bronze
    if not IS_HARD:
        return  # each further run costs half a minute

    as_of_a_large_lake(monkeypatch)  # as both runs were: of a small one nothing is kept of records
    assert reconstruct(lake, progress=silent) == second_run
    assert state(lake) == second

    undone = undo(lake, silent, bronze=True)
    assert (undone.number, undone.is_bronze_back, undone.files > 0) == (1, True, True)
    assert (files(lake), files(lake, BRONZE_TABLES)) == (first, first_bronze)
    told: list[str] = []
    reconstruct(lake, progress=told.append)
    assert told == ["nothing is new since run 1"]
    ingest_paths(lake, [str(two_runs.sliced)], IngestOptions(SLICED), silent)
    assert reconstruct(lake, progress=silent) == second_run
    assert asked(lake) == after

    maintain(lake, 0, silent)
    with pytest.raises(LakeError, match=r"what only the run before needs of .* was deleted .*; nothing was done"):
        undo(lake, silent, bronze=True)
    assert asked(published(lake)) == after


def _killed_in_its_midst(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some tables were brought back, of which readers ask for one."""
    left = [len(WRITTEN) // 3]

    def counted(*given: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        going_back.bring_back(*given)

    with monkeypatch.context() as patched:
        patched.setattr(undoing, "bring_back", counted)
        with pytest.raises(Killed):
            undo(lake, silent, bronze=False)


def test_the_summary_says_which_files_came_since_and_what_became_of_them() -> None:
    ended = datetime(2026, 11, 25, 3, 0, 1, 500, UTC)
    assert undo_job.summary_of(Undone(7, ended, 3, 0, (), False)) == (
        "silver and gold are as run 7 left them (2026-11-25 03:00:01 UTC); tables brought back: 3",
    )
    for is_back, told in ((False, "are still in bronze, and the next"), (True, "were taken out: `ingest` those again")):
        _, files = undo_job.summary_of(Undone(7, ended, 3, 4, ("a.log", "b.log"), is_back))
        assert files.startswith(f"files ingested since, 4, {told}")
        assert files.endswith(": a.log, b.log and 2 more")
