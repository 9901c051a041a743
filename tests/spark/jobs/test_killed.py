"""Jobs that are killed at some write, driver and JVM at once by SIGKILL: the same command completes the lake.

The tables are then those of a lake that nobody disturbed, row for row. ``make test`` kills one ``ingest``; with
``HYPOTHESIS_PROFILE=hard`` it is six, and a ``reconstruct`` behind each.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs import cli
from tests import ROOT
from tests.support.budget import IS_HARD
from tests.support.captures.packed import TRUTH, unpack_once
from tests.table_hashes import lake_hashes

pytestmark = pytest.mark.timeout(3600)

_CAPTURE = "quiet-0.8.2.2"
_COMMANDS = ("ingest", "reconstruct") if IS_HARD else ("ingest",)
_POINTS = range(6 if IS_HARD else 1)
_LOOK_S = 0.005
#: Longer than most writes last: a kill falls into one as often as between two.
_LONGEST_DELAY_S = 0.4
_LONGEST_S = 600


@dataclass(frozen=True)
class Undisturbed:
    """A lake that each command wrote in one go: its rows, and how many commits each command made."""

    source: Path
    rows: dict[str, tuple[str, int]]
    commits: dict[str, int]


def _commits(lake: Path) -> int:
    return sum(1 for _ in lake.glob("*/*/_delta_log/*.json"))


def _command(name: str, source: Path, lake: Path) -> list[str]:
    return [name, *([str(source)] if name == "ingest" else []), "--lake", str(lake), "--quiet"]


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    source = unpack_once(_CAPTURE, tmp_path_factory, TRUTH)
    lake = tmp_path_factory.mktemp("undisturbed") / "lake"
    commits = {}
    for name in _COMMANDS:
        before = _commits(lake)
        assert cli.main(_command(name, source, lake)) == 0
        commits[name] = _commits(lake) - before
    return Undisturbed(source, lake_hashes(spark, lake), commits)


def _kill(name: str, source: Path, lake: Path, after: int, delay_s: float, said: Path) -> None:
    """Start the command, and kill it so long after it has made so many commits."""
    begun = _commits(lake)
    with open(said, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jobs.cli", *_command(name, source, lake)],
            cwd=ROOT,
            start_new_session=True,
            stdout=output,
            stderr=output,
        )
    until = time.monotonic() + _LONGEST_S
    try:
        while process.poll() is None and _commits(lake) - begun < after:
            assert time.monotonic() < until, f"{name} made no {after} commits"
            time.sleep(_LOOK_S)
        time.sleep(delay_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, f"{name} ended before commit {after}: {said.read_text()}"


@pytest.mark.parametrize("point", _POINTS)
def test_the_same_command_completes_what_a_killed_one_left(spark, undisturbed, tmp_path: Path, point: int) -> None:
    chosen = random.Random(point)
    lake = tmp_path / "lake"
    for name in _COMMANDS:
        after = chosen.randrange(1, undisturbed.commits[name])
        _kill(name, undisturbed.source, lake, after, chosen.uniform(0, _LONGEST_DELAY_S), tmp_path / "said.txt")
        print(f"point {point}: {name} killed at commit {after} of {undisturbed.commits[name]}", flush=True)
        assert cli.main(_command(name, undisturbed.source, lake)) == 0
    assert lake_hashes(spark, lake) == undisturbed.rows
    count = sum(count for _, count in undisturbed.rows.values())
    print(f"point {point}: {len(undisturbed.rows)} tables, {count} rows are the same")
