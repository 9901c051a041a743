"""Whatever way evidence comes to a lake, its rows are those of ``--full``; and what nothing new concerns stays."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from ingest.run.pipeline import IngestOptions, ingest_paths
from reconstruct.engine.last_run import versions
from reconstruct.pipeline import ReconstructReport, reconstruct
from tests.support.captures.packed import TRUTH, capture_names, unpack
from tests.support.lakes.slices import Cut, cut_off_after, hashes, slices

IS_HARD: Final = os.environ.get("HYPOTHESIS_PROFILE") == "hard"
#: (capture, seed): the slices, their order and where a run is cut off follow from them.
FED: Final = [(name, seed) for name in capture_names() for seed in range(3)] if IS_HARD else [("quiet-3.9.1", 1)]
SLICES: Final = 6 if IS_HARD else 2
#: Any run with something new commits so often at least.
_COMMITS: Final = 15
pytestmark = pytest.mark.timeout(1800)


def silent(message: str) -> None:
    """No progress."""


def made(lake: Lake, *, full: bool = False) -> ReconstructReport:
    return reconstruct(lake, progress=silent, full=full)


@pytest.mark.parametrize(("capture", "seed"), FED)
def test_any_slices_in_any_order_with_runs_cut_off_give_the_rows_of_a_full_run(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capture: str, seed: int
) -> None:
    source = unpack(capture, tmp_path / "whole", without=() if seed % 2 else TRUTH)
    cut_in = random.Random(seed).randrange(SLICES)
    if seed % 2:
        monkeypatch.setattr(Lake, "REWRITTEN_BYTES", 0)
    told = []
    for number, folder in enumerate(slices(source, tmp_path / "fed", SLICES, seed)):
        ingest_paths(lake, [str(folder)], IngestOptions(), silent)
        if number == cut_in:
            with cut_off_after(monkeypatch, random.Random(seed).randrange(_COMMITS)), pytest.raises(Cut):
                made(lake)
        told.append(made(lake))
    before = versions(lake, TABLES.values())
    again: list[str] = []
    assert reconstruct(lake, progress=again.append) == told[-1]
    assert (again, versions(lake, TABLES.values())) == ([f"nothing is new since run {SLICES}"], before)
    increments = hashes(lake)
    assert increments["silver.leader_and_isr_timeline"][1] > 0
    full = made(lake, full=True)
    assert full.how == "everything was made anew"
    assert {name: found for name, found in hashes(lake).items() if found != increments[name]} == {}
    assert told[-1] == full


if IS_HARD:

    def test_a_late_file_is_a_matter_of_the_folds_that_it_concerns(lake: Lake, tmp_path: Path) -> None:
        source = unpack("failover-1.1.1", tmp_path, without=TRUTH)
        late = source / "broker-2" / "logs" / "server.log"
        content = late.read_bytes()
        late.unlink()
        ingest_paths(lake, [str(source)], IngestOptions(), silent)
        first = made(lake)
        assert first.how == "everything was made anew"
        late.write_bytes(content)
        ingest_paths(lake, [str(source)], IngestOptions(), silent)
        third: Any = made(lake)
        assert third.how.startswith("folds made again: ")
        increments = hashes(lake)
        assert made(lake, full=True) == third
        assert hashes(lake) == increments
