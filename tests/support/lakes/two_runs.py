"""A lake that evidence came to twice, as two runs left it: whole captures, and one in two slices around them.

Captures with their files renamed and shuffled come between the slices of another one, behind a run that was cut off.
Tests that go on from there copy a folder, since a reconstruction costs half a minute.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.lake.delta import Lake
from ingest.run.pipeline import IngestOptions, ingest_paths
from jobs.session.progress import silent
from reconstruct.pipeline import ReconstructReport, reconstruct
from tests.support.captures.lake import lay_out
from tests.support.captures.packed import unpack
from tests.support.lakes.shared import REORDERED
from tests.support.lakes.slices import Cut, as_of_a_large_lake, cut_off_after, slices

#: The capture that comes in slices to every run of the tests, the truth too.
SLICED: Final = "quiet-3.9.1"
#: Any run with something new commits so often at least.
COMMITS: Final = 15


@dataclass(frozen=True)
class TwoRuns:
    """The lake's folder behind each run, what each run told, and the folder of which the second slice was ingested
    last."""

    folders: tuple[Path, Path]
    told: tuple[ReconstructReport, ReconstructReport]
    sliced: Path

    def copied(self, spark: Any, runs: int, target: Path) -> Lake:
        """The lake behind so many runs, below ``target`` as the test's own."""
        return Lake(spark, str(shutil.copytree(self.folders[runs - 1], target / f"runs-{runs}")))


@pytest.fixture(scope="session")
def two_runs(spark: Any, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> TwoRuns:
    folder = tmp_path_factory.mktemp("two-runs")
    lake = Lake(spark, str(shutil.copytree(empty_lake_dir, folder / "lake")))
    shuffled = random.Random(20261121)
    paths: list[str] = []
    for given in REORDERED:
        capture = lay_out(given, folder / "moved" / given.capture)
        for index, log in enumerate(sorted(capture.glob("broker-*/logs/*.log"))):
            log.rename(log.with_name(f"{99 - index}.txt"))
        paths += map(str, sorted(capture.iterdir()))
    shuffled.shuffle(paths)
    fed = slices(unpack(SLICED, folder / "whole"), folder / "fed", 2, seed=1)
    ingest_paths(lake, [str(next(fed))], IngestOptions(cluster_id=SLICED), silent)
    with pytest.MonkeyPatch.context() as patched:
        as_of_a_large_lake(patched)
        with cut_off_after(patched, random.Random(1).randrange(COMMITS)), pytest.raises(Cut):
            reconstruct(lake, progress=silent)
        ingest_paths(lake, paths, IngestOptions(), silent)
        first = reconstruct(lake, progress=silent)
        behind_one = shutil.copytree(lake.root, folder / "behind-one")
        sliced = next(fed)
        ingest_paths(lake, [str(sliced)], IngestOptions(cluster_id=SLICED), silent)
        second = reconstruct(lake, progress=silent)
    return TwoRuns((behind_one, Path(lake.root)), (first, second), sliced)
