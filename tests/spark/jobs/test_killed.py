"""Jobs of which something is killed by SIGKILL at some write: the same command completes the lake.

Killed are the driver and its JVM at once, the JVM alone, Python alone, or a worker of Python's. The tables are then
those of a lake that nobody disturbed, row for row. ``make test`` kills one ``ingest``; with ``HYPOTHESIS_PROFILE=hard``
it is 13, and behind each three times a ``reconstruct`` before one may end: 52 kills, at every other write.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.lake.tables.kept import RUNS
from ingest.lake.tables.quality import RUN_METRICS
from jobs import cli
from tests import ROOT
from tests.figures import Figure
from tests.support.budget import IS_HARD
from tests.support.captures.packed import TRUTH, unpack_once
from tests.table_hashes import lake_hashes

pytestmark = pytest.mark.timeout(3600)

_CAPTURE = "quiet-0.8.2.2"
_LAKES = 13 if IS_HARD else 1
#: How often each command is killed before it may end.
_KILLS = {"ingest": 1, "reconstruct": 3} if IS_HARD else {"ingest": 1}
_VICTIMS = ("all", "jvm", "python", "worker")
#: What makes a table.
_FIRST = f"{0:020}.json"
_LOOK_S = 0.005
#: Longer than most writes last: a kill falls into one as often as between two.
_LONGEST_DELAY_S = 0.4
_LONGEST_S = 600


@dataclass(frozen=True)
class Undisturbed:
    """A lake that each command wrote in one go: its rows, and how many commits each command made, all or without those
    that make a table."""

    source: Path
    rows: dict[str, tuple[str, int]]
    commits: dict[str, int]
    writes: dict[str, int]


def _commits(lake: Path, pattern: str = "*.json") -> int:
    return sum(1 for _ in lake.glob(f"*/*/_delta_log/{pattern}"))


def _runs_ended(lake: Path) -> int:
    """How many runs noted that they ended, as one does that is killed only then."""
    notes = lake / RUNS.schema / RUNS.name
    return sum(log.name != _FIRST for log in notes.glob("_delta_log/*.json"))


def _command(name: str, source: Path, lake: Path) -> list[str]:
    return [name, *([str(source)] if name == "ingest" else []), "--lake", str(lake), "--quiet"]


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    source = unpack_once(_CAPTURE, tmp_path_factory, TRUTH)
    lake = tmp_path_factory.mktemp("undisturbed") / "lake"
    commits, writes = {}, {}
    for name in _KILLS:
        before, tables = _commits(lake), _commits(lake, _FIRST)
        assert cli.main(_command(name, source, lake)) == 0
        commits[name] = _commits(lake) - before
        writes[name] = commits[name] - (_commits(lake, _FIRST) - tables)
    return Undisturbed(source, lake_hashes(spark, lake), commits, writes)


def _victims(session: int) -> dict[str, list[int]]:
    """The processes of a session that may be killed, by what they are."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            state, parent, _, its_session = rest.split()[:4]
            if int(its_session) == session and state != "Z":
                parents[int(folder.name)], names[int(folder.name)] = int(parent), name
    jvms = [pid for pid, name in names.items() if name == "java"]
    daemons = [pid for pid, parent in parents.items() if parent in jvms]
    workers = [pid for pid, parent in parents.items() if parent in daemons]
    return {"all": [session, *jvms], "jvm": jvms, "python": [session], "worker": workers}


def _kill(command: list[str], lake: Path, after: int, delay_s: float, victim: str, said: Path) -> bool:
    """Start the command, and kill the victim so long after so many commits of it; whether it ended all the same."""
    begun = _commits(lake)
    with open(said, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jobs.cli", *command],
            cwd=ROOT,
            start_new_session=True,
            stdout=output,
            stderr=output,
        )
    until = time.monotonic() + _LONGEST_S
    killed: list[int] = []
    try:
        while process.poll() is None and _commits(lake) - begun < after:
            assert time.monotonic() < until, f"{command[0]} made no {after} commits"
            time.sleep(_LOOK_S)
        time.sleep(delay_s)
        while process.poll() is None and not killed:
            killed = _victims(process.pid)[victim]
            for pid in killed:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_S)
        process.wait(timeout=_LONGEST_S)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    told = said.read_text()
    assert killed, f"{command[0]} ended before commit {after}, or no {victim} ran after it: {told}"
    # of a worker that had nothing to do nothing depends
    codes = {"all": (-signal.SIGKILL,), "python": (-signal.SIGKILL,), "jvm": (1,), "worker": (0, 1)}
    assert process.returncode in codes[victim], told
    assert told.count("\n") == (1 if process.returncode == 1 else 0), told
    assert "Traceback" not in told
    return process.returncode == 0


def _kills(made: Undisturbed) -> dict[str, list[list[tuple[int, str]]]]:
    """Of each command, and each lake, after which commits what is killed."""
    chosen = random.Random(0)
    planned = {}
    for name, times in _KILLS.items():
        # what begins again has its tables
        spread = [_spread(chosen, made.commits[name] if at == 0 else made.writes[name]) for at in range(times)]
        victims = itertools.cycle(_VICTIMS)
        planned[name] = [[_kill_at(kills[lake], next(victims)) for kills in spread] for lake in range(_LAKES)]
    return planned


def _kill_at(commit: int, victim: str) -> tuple[int, str]:
    """In the first half Python has work to do, so that there is a worker to be killed."""
    return (max(1, commit // 2) if victim == "worker" else commit), victim


def _spread(chosen: random.Random, commits: int) -> list[int]:
    """A commit for each lake, over all of them."""
    after = [1 + (2 * lake + 1) * (commits - 1) // (2 * _LAKES) for lake in range(_LAKES)]
    chosen.shuffle(after)
    return after


@pytest.mark.parametrize("number", range(_LAKES))
def test_the_same_command_completes_what_a_killed_one_left(
    spark, undisturbed, tmp_path: Path, number: int, record_property: Any
) -> None:
    chosen = random.Random(number)
    lake = tmp_path / "lake"
    for name, kills in _kills(undisturbed).items():
        command, has_ended = _command(name, undisturbed.source, lake), False
        for after, victim in kills[number]:
            print(
                f"lake {number}: {name}, {victim} killed at commit {after} of {undisturbed.commits[name]}", flush=True
            )
            # what ended all the same has left nothing to do
            again, ended = [*command, "--full"] if has_ended else command, _runs_ended(lake)
            has_ended = _kill(again, lake, after, chosen.uniform(0, _LONGEST_DELAY_S), victim, tmp_path / "said")
            has_ended = has_ended or _runs_ended(lake) > ended
        assert cli.main(command) == 0
    rows = lake_hashes(spark, lake)
    # a run that was killed after it had published told of itself, too
    for of_runs in (rows, undisturbed.rows):
        of_runs.pop(RUN_METRICS.full_name, None)
    assert rows == undisturbed.rows
    count = sum(count for _, count in undisturbed.rows.values())
    print(f"lake {number}: {len(undisturbed.rows)} tables, {count} rows are the same")
    record_property(Figure.KILLS, sum(_KILLS.values()))
