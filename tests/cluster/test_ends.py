"""However a cluster ends, no process is left, and what it wrote is there to be looked at."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.lab.machines.releases import NEWEST, OLDEST, Release
from jobs.lab.play import play
from jobs.lab.stage import Scenario, Stage
from jobs.lab.waiting import NeverHappened, wait_for
from tests.cluster.conftest import require_jars
from tests.cluster.processes import processes_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PLAYS = """
import sys
from pathlib import Path
from jobs.lab.play import play
from jobs.lab.machines.releases import NEWEST
from jobs.lab.scenarios.catalogue import SCENARIOS
play(SCENARIOS["produce"], NEWEST, Path(sys.argv[1]), say=lambda sentence: print(sentence, flush=True))
"""


def breaks(stage: Stage) -> None:
    """Kill one broker, freeze another, and fail."""
    stage.create("orders", {0: (1, 2)})
    stage.kill(1)
    stage.cluster.pause(2)
    raise NeverHappened("the moon is blue: not within 1 s")


@pytest.mark.parametrize("release", [OLDEST, NEWEST], ids=lambda release: release.version)
def test_a_scenario_that_fails_leaves_its_logs_and_no_process(release: Release, tmp_path: Path) -> None:
    require_jars(release)
    with pytest.raises(NeverHappened, match="moon"):
        play(Scenario("breaks", "it fails", breaks, broker_ids=(1, 2)), release, tmp_path)
    assert processes_of(tmp_path) == {}
    for broker in (1, 2):
        assert (tmp_path / "cluster" / f"broker-{broker}" / "logs" / "server.log").stat().st_size > 0
    assert "SIGKILL" in (tmp_path / "cluster" / "events.jsonl").read_text()


def test_a_broker_that_cannot_start_is_said_with_its_last_words(tmp_path: Path) -> None:
    require_jars(NEWEST)
    wrong = Scenario("wrong", "it never starts", lambda stage: None, (), frozenset(), (1,), {"broker.id": "no number"})
    with pytest.raises(NeverHappened, match=r"broker 1 ended while it started:(.|\n)*broker\.id"):
        play(wrong, NEWEST, tmp_path)
    assert processes_of(tmp_path) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("after", ["starting ZooKeeper", "producing to"])
def test_a_program_that_is_stopped_leaves_no_process(number: signal.Signals, after: str, tmp_path: Path) -> None:
    require_jars(NEWEST)
    with subprocess.Popen(
        [sys.executable, "-c", PLAYS, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as program:
        assert program.stdout is not None
        assert any(line.startswith(after) for line in program.stdout)
        wait_for(
            "its servers run", lambda: any("kafka.Kafka" in command for command in processes_of(tmp_path).values())
        )
        program.send_signal(number)
        program.stdout.read()
    assert program.returncode != 0
    wait_for("no process is left", lambda: not processes_of(tmp_path))
