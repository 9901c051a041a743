"""The capturer is killed at any moment, again and again, while the cluster has an incident: nothing of what it wrote is
spoilt, nothing is taken twice, and what is lost is what happened while it did not run."""

from __future__ import annotations

import json
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from jobs.lab.load import Load
from jobs.lab.machines.releases import BY_NAME
from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.lab.play import Played
from jobs.lab.stage import ORDERS, Scenario
from jobs.lab.waiting import wait_for
from tests.cluster.capturer import INTERVAL_S, Capturer, gaps
from tests.cluster.conftest import Figures, require_jars
from tests.cluster.measuring import measure_played
from tests.cluster.processes import processes_of
from tests.cluster.reading_whole import read_whole
from tests.cluster.test_scenarios import is_good

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

KILLS: Final = 8
#: From the start of the process to its first round, on a machine with too much to do.
START_S: Final = 4.0
#: What a round may be late by, besides.
LATE_S: Final = 1.5
#: Until a session is there again, once ZooKeeper serves.
RECONNECT_S: Final = 6.0
#: Longer than the capturer's session with ZooKeeper.
FROZEN_S: Final = 13.0


class Story:
    """A cluster under load to which something happens in each run of a capturer that is killed meanwhile."""

    def __init__(self, cluster: ZooKeeperCluster, capturer: Capturer, seed: int) -> None:
        self.cluster = cluster
        self.capturer = capturer
        self._random = random.Random(seed)
        #: Spans in which ZooKeeper could not be read, and those in which the capturer stood still.
        self.outages: list[tuple[float, float]] = []
        self.frozen: list[tuple[float, float]] = []
        self._zookeeper_died = 0.0
        self._started: dict[int, Callable[[], object]] = {
            1: lambda: cluster.admin.create_topic("later", {0: (2, 3, 1), 1: (3, 1, 2)}),
            2: lambda: cluster.kill(2),
            3: lambda: cluster.wait_until_gone(2),
            4: lambda: cluster.start(2),
            5: self._kill_zookeeper,
            6: self._start_zookeeper,
            7: lambda: cluster.admin.create_topic("last", {0: (1, 2)}),
        }

    def play(self) -> None:
        """Kill the capturer as often as told, each time a random while after the incident of that run began."""
        for number in range(KILLS):
            self.capturer.start()
            killer = threading.Timer(self._random.uniform(0.2, 6.0), self.capturer.end, (signal.SIGKILL,))
            killer.start()
            self._started.get(number, lambda: None)()
            killer.join()
            time.sleep(self._random.uniform(0.0, 1.0))
        self._freeze()
        self._survive_all()

    def _freeze(self) -> None:
        """It stands still past its session, goes on, and is asked to end."""
        self.capturer.start()
        self._let_capture()
        began = time.time()
        self.capturer.send(signal.SIGSTOP)
        time.sleep(FROZEN_S)
        self.capturer.send(signal.SIGCONT)
        self.frozen.append((began, time.time() + RECONNECT_S))
        self._let_capture()
        assert self.capturer.end(signal.SIGTERM) == 0, self.capturer.printed[-1]

    def _survive_all(self) -> None:
        """It goes on while ZooKeeper and a broker die together."""
        self.capturer.start()
        self._let_capture()
        self.cluster.kill(3)
        self._kill_zookeeper()
        time.sleep(1)
        self._start_zookeeper()
        self.cluster.wait_until_gone(3)
        self.cluster.start(3)
        self.cluster.wait_for_full_isr()
        self._let_capture()

    def _let_capture(self) -> None:
        before = len(self.capturer.rounds())
        wait_for("four more rounds", lambda: len(self.capturer.rounds()) >= before + 4)

    def _kill_zookeeper(self) -> None:
        self._zookeeper_died = time.time()
        self.cluster.kill_zookeeper()

    def _start_zookeeper(self) -> None:
        self.cluster.start_zookeeper()
        self.outages.append((self._zookeeper_died, time.time() + RECONNECT_S))


@pytest.mark.parametrize(("version", "seed"), [("1.1.1", 11), ("3.9.1", 39)])
def test_what_was_captured_stays_good_and_goes_on(version: str, seed: int, tmp_path: Path, figures: Figures) -> None:
    require_jars(BY_NAME[version])
    cluster = ZooKeeperCluster(BY_NAME[version], tmp_path / "cluster")
    capturer = Capturer(cluster, tmp_path / f"capturer_killed-{version}")
    try:
        with cluster:
            cluster.admin.create_topic("orders", ORDERS)
            cluster.wait_for_full_isr()
            story = Story(cluster, capturer, seed)
            with Load(cluster, [("orders", number) for number in ORDERS], acks=1) as load:
                load.wait_for_more(5)
                story.play()
            sizes = {path: path.stat().st_size for path in logs_of(cluster)}
            assert capturer.end(signal.SIGINT) == 0, capturer.printed[-1]
            problems = [*log_problems(cluster, capturer.folder, sizes)]
    finally:
        if capturer.is_running:
            capturer.end(signal.SIGKILL)
    problems += file_problems(capturer.folder)
    problems += gap_problems(capturer, story)
    problems += reading_problems(cluster, capturer.folder, tmp_path / "truth", figures)
    assert problems == []
    assert processes_of(tmp_path) == {}


def logs_of(cluster: ZooKeeperCluster) -> list[Path]:
    return sorted(path for broker in cluster.brokers.values() for path in broker.logs.glob("*.log"))


def log_problems(cluster: ZooKeeperCluster, capture: Path, sizes: dict[Path, int]) -> list[str]:
    """Each log has one copy, which is its beginning, as long at least as the log was when the last run was to end."""
    found = []
    for broker in cluster.brokers.values():
        copies = sorted((capture / f"broker-{broker.broker_id}" / "logs").glob("*"))
        names = [path.name for path in copies]
        if names != sorted(path.name for path in broker.logs.glob("*.log")):
            found.append(f"broker {broker.broker_id} has copies of its logs that are called {names}")
        for copy in copies:
            log = broker.logs / copy.name
            content = copy.read_bytes()
            if not log.read_bytes().startswith(content):
                found.append(f"{copy} is no beginning of {log}")
            whole = log.read_bytes()[: sizes.get(log, 0)].rfind(b"\n") + 1
            if len(content) < whole:
                found.append(f"{copy} has {len(content)} bytes of the {whole} that the log had")
    return found


def file_problems(capture: Path) -> list[str]:
    """Every line is whole, every snapshot and every copy of a checkpoint, and nothing unfinished is left."""
    found = [f"{path} was left unfinished" for path in capture.rglob(".*")]
    for path in capture.rglob("*.jsonl"):
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            found.append(f"{path} ends in the middle of a line")
        for number, line in enumerate(content.splitlines(), 1):
            try:
                json.loads(line)
            except ValueError:
                found.append(f"line {number} of {path} is none: {line[:80]!r}")
    roots = set()
    for path in (capture / "znodes").iterdir():
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        names = [row["path"] for row in rows]
        if {row["captured_at"] for row in rows} != {int(path.stem)} or names != sorted(set(names)):
            found.append(f"{path} is not one snapshot")
        roots.add(frozenset(name for name in names if name.count("/") == 1) - {"/controller"})
    if len(roots) != 1:  # Kafka has them all before the first capture, and removes none
        found.append(f"there are snapshots with other znodes below the root: {roots}")
    for path in (*capture.glob("broker-*/checkpoints/*/*"), *capture.glob("broker-*/leader-epoch-checkpoint/*")):
        version, count, *entries = path.read_text().splitlines() or ["0", "0"]
        if version != "0" or int(count) != len(entries):
            found.append(f"{path} is not a whole checkpoint")
    return found


def gap_problems(capturer: Capturer, story: Story) -> list[str]:
    """Between two rounds lies an interval, besides the time in which no capturer ran or ZooKeeper did not."""
    runs = capturer.runs
    away = [(before.ended, after.started + START_S) for before, after in pairwise(runs)]
    found = []
    for what, instants, excused in (
        ("rounds", capturer.rounds(), [*story.frozen, *story.outages]),
        ("answers of broker 1", capturer.answers(1), story.frozen),
    ):
        all_gaps = gaps(instants, [*away, *excused])
        longest = max(all_gaps, key=lambda gap: gap.unexcused)
        first = [min((i for i in instants if i >= run.started), default=run.ended) - run.started for run in runs]
        begun = [seconds for seconds, run in zip(first, runs, strict=True) if run.started + seconds < run.ended]
        print(
            f"{what}: {len(instants)}, longest gap while it ran {longest.unexcused:.2f} s;"
            f" first {sorted(round(seconds, 2) for seconds in begun)} s after the start"
        )
        found += [
            f"{what}: nothing from {gap.begin:.3f} to {gap.end:.3f}, of which {gap.unexcused:.2f} s are not excused"
            for gap in all_gaps
            if gap.unexcused > INTERVAL_S + LATE_S
        ]
        for run in runs:
            last = max((instant for instant in instants if run.started <= instant <= run.ended), default=None)
            is_excused = any(begin <= run.ended and (last or 0) <= end for begin, end in excused)
            if last is not None and not is_excused and run.ended - last > INTERVAL_S + LATE_S:
                found.append(f"{what}: the last is of {last:.3f}, and it ran until {run.ended:.3f}")
    return found


def reading_problems(cluster: ZooKeeperCluster, capture: Path, truth: Path, figures: Figures) -> list[str]:
    """Nothing is rejected, and what is read is what ZooKeeper's log says."""
    reading = read_whole(capture)
    found = [*reading.rejected, *reading.not_read]
    expected = {
        "znode_snapshot",
        "offset_probe",
        "cluster_description",
        "capture_gap",
        "state_change_log",
        "server_log",
    }
    found += [f"no record of {kind} was read" for kind in sorted(expected) if not reading.read[kind]]
    truth.mkdir()
    shutil.copytree(cluster.zookeeper.transactions, truth / "zk-version-2")
    shutil.copy(cluster.events.file, truth / "events.jsonl")
    name = Scenario("capturer-killed", "the capturer is killed", lambda stage: None)
    measured = measure_played(Played(name, cluster.release, capture, truth, None))
    figures.add(measured)
    for subject, score in measured.scores.items():
        if not is_good(score, one_more=True):
            found.append(f"{subject}: recall {score.recall:.1%}, extras {score.extras:.1%}\n{score.diff()}")
    found += [f"{probe} is not in [{low:g}, {high:g}]" for probe, low, high in measured.probes.outside]
    found += [f"error that nothing explains: {error}" for error in measured.unexplained_errors]
    found += [f"{partition} is said to have lost records" for partition in measured.losses]
    return found
