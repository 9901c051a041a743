"""Jobs that meet at one lake: no record is lost or there twice, and who reads sees one run's tables.

``make test`` has two ingests wait for one another in one process, and ``test_publication.py`` readers between two runs;
with ``HYPOTHESIS_PROFILE=hard`` readers come in the midst of a run, and commands meet as processes, in several orders.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ingest.lake.delta import Lake
from ingest.lake.lease import only_writer
from ingest.lake.tables.bronze import BRONZE_TABLES
from ingest.lake.tables.quality import RUN_METRICS
from ingest.run.pipeline import IngestOptions, IngestReport, ingest_paths
from jobs import cli
from kafka_state_replay import open_lake
from reconstruct.kept.last_run import WRITTEN, published
from reconstruct.pipeline import reconstruct
from tests import ROOT
from tests.figures import Figure
from tests.support.budget import IS_HARD
from tests.support.captures.packed import TRUTH, unpack_once
from tests.table_hashes import lake_hashes, table_hashes

pytestmark = pytest.mark.timeout(3600)

_CAPTURE = "quiet-0.8.2.2"
_CLUSTER = "met"
_LONGEST_S = 900
#: The run is to get on, too.
_BETWEEN_READINGS_S = 2
#: What a reader asks of several tables at once; each run changes each of them.
_ASKED = (
    *("silver.state_change_events", "silver.leader_and_isr_timeline", "silver.broker_liveness_timeline"),
    *("gold.leader_elections", "gold.propagation_delays"),
)


State = dict[str, tuple[str, int]]


def silent(message: str) -> None:
    """No progress."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """Paths for two ingests: all of a capture is in one of them, and some of it in both."""
    each = sorted(str(path) for path in unpack_once(_CAPTURE, tmp_path_factory, TRUTH).iterdir())
    assert len(each) >= 3
    return each[:2], each[1:]


@pytest.fixture(scope="module")
def by_one(spark: Any, parts: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake that one ingest of all makes."""
    lake = tmp_path_factory.mktemp("by_one") / "lake"
    ingest_paths(Lake(spark, str(lake)), sorted({*parts[0], *parts[1]}), IngestOptions(_CLUSTER), silent)
    return lake


def together(actions: Sequence[Any]) -> None:
    """All at once, to their ends; what one of them raised is raised."""
    failed: list[BaseException] = []

    def guarded(action: Any) -> None:
        try:
            action()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed:
        raise error


def test_two_ingests_of_overlapping_folders_take_each_record_once(spark, by_one, parts, tmp_path, record_property):
    lake, told, done = Lake(spark, str(tmp_path / "lake")), [], []

    def ingest(paths: list[str]) -> None:
        with only_writer(lake, "ingest", _LONGEST_S, told.append):
            done.append(ingest_paths(lake, paths, IngestOptions(_CLUSTER), silent))

    together([lambda given=given: ingest(given) for given in parts])
    assert [sentence for sentence in told if sentence.startswith("waiting for `ingest` (process ")] == told
    assert len(told) == 1, "one of them waits, and says so"
    assert lake_hashes(spark, tmp_path / "lake") == lake_hashes(spark, by_one)
    _counts_agree(done, lake)
    record_property(Figure.MEETINGS, len(parts))


def _counts_agree(done: list[IngestReport], lake: Lake) -> None:
    kept = sum(lake.rows_count(spec) for spec in BRONZE_TABLES if spec.name not in ("ingested_files",))
    assert sum(report.records_read for report in done) == kept
    assert all(report.files_known for report in done[1:]), "what is in both is known to the second"


def _state(lake: Lake) -> State:
    return table_hashes({spec.full_name: lake.read(spec) for spec in WRITTEN if spec.full_name in _ASKED})


def _counts_by_name(state: State) -> dict[str, int]:
    return {name: state[name][1] for name in _ASKED}


def _counts(state: State) -> str:
    return ",".join(str(state[name][1]) for name in _ASKED)


def _asked(capsys: Any, root: str) -> str:
    counted = ", ".join(f"(SELECT count(*) FROM {name})" for name in _ASKED)
    capsys.readouterr()
    assert cli.main(["sql", "--lake", root, "--quiet", "--format", "csv", f"SELECT {counted}"]) == 0
    return capsys.readouterr().out.splitlines()[-1]


if IS_HARD:

    def test_who_reads_while_a_run_publishes_sees_one_run_s_tables(spark, parts, tmp_path, capsys, record_property):
        """By each way to read: a lake opened before the run or in its midst, a table after the other, a query."""
        lake = Lake(spark, str(tmp_path / "lake"))
        ingest_paths(lake, parts[0], IngestOptions(_CLUSTER), silent)
        reconstruct(lake, progress=silent)
        opened = open_lake(lake.root, spark)
        states = [_state(published(lake))]
        ingest_paths(lake, parts[1], IngestOptions(_CLUSTER), silent)
        frames = {name: opened.table(name) for name in _ASKED}
        seen, asked = [], []
        running = threading.Thread(target=lambda: reconstruct(lake, progress=silent))
        running.start()
        while running.is_alive():
            seen.append(_state(published(Lake(spark, lake.root))))
            asked.append(_asked(capsys, lake.root))
            running.join(_BETWEEN_READINGS_S)
        states.append(_state(published(lake)))
        assert [name for name in _ASKED if states[0][name] == states[1][name]] == []
        assert all(state in states for state in seen), "a reader saw one table before and another after"
        assert states[0] in seen
        assert set(asked) <= set(map(_counts, states))
        assert {name: frame.count() for name, frame in frames.items()} == _counts_by_name(states[0])
        assert _counts_by_name(states[1]) == {name: open_lake(lake.root, spark).table(name).count() for name in _ASKED}
        record_property(Figure.READINGS, (len(seen) + len(asked)) * len(_ASKED))

    @pytest.mark.parametrize("seed", range(3))
    def test_commands_that_meet_as_processes_leave_what_they_leave_one_after_the_other(
        spark: Any, by_one: Path, parts: tuple[list[str], list[str]], tmp_path: Path, seed: int, record_property: Any
    ) -> None:
        """Two ingests and a reconstruct, begun at once or nearly; one that does not wait is told who writes."""
        lake, chance = tmp_path / "lake", random.Random(seed)
        options = ["--lake", str(lake), "--quiet"]
        waits = ["--wait", str(_LONGEST_S)]
        commands = [["ingest", *given, "--cluster", _CLUSTER, *waits, *options] for given in parts]
        assert cli.main(["ingest", parts[0][0], "--cluster", _CLUSTER, *options]) == 0
        commands += [["reconstruct", *waits, *options], ["check", *options]]
        chance.shuffle(commands)
        begun = []
        for command in commands:
            begun.append((command, _begin(command, tmp_path / f"said-{len(begun)}.txt")))
            time.sleep(chance.uniform(0, 3))
        ended = {command[0]: process.wait(_LONGEST_S) for command, process in begun if command[0] != "ingest"}
        assert [process.wait(_LONGEST_S) for command, process in begun if command[0] == "ingest"] == [0, 0]
        assert (ended["reconstruct"], ended["check"] in (0, 3, 4)) == (0, True)
        said = [path.read_text() for path in sorted(tmp_path.glob("said-*.txt"))]
        assert all("Traceback" not in text for text in said), said
        print(f"seed {seed}: {[command[0] for command, _ in begun]}, check ended with {ended['check']}")
        bronze = {name: found for name, found in lake_hashes(spark, lake).items() if name.startswith("bronze.")}
        assert bronze == lake_hashes(spark, by_one)
        assert cli.main(["reconstruct", *options]) == 0
        made = _rows_of_the_last_run(spark, lake)
        assert cli.main(["reconstruct", "--full", *options]) == 0
        assert _rows_of_the_last_run(spark, lake) == made
        record_property(Figure.MEETINGS, len(commands))


def _rows_of_the_last_run(spark: Any, lake: Path) -> State:
    """Of all tables but the one that tells of each run."""
    return {name: found for name, found in lake_hashes(spark, lake).items() if name != RUN_METRICS.full_name}


def _begin(command: Sequence[str], said: Path) -> subprocess.Popen[bytes]:
    with open(said, "wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "jobs.cli", *command], cwd=ROOT, stdout=output, stderr=output, start_new_session=True
        )
