"""Real clusters for the tests: played, measured, ended; their logs kept where a test fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.lab.machines.releases import BY_NAME, Release, kafka_jars
from jobs.lab.play import Played, play
from jobs.lab.scenarios.catalogue import SCENARIOS
from jobs.session.java import find_java
from jobs.session.pinned_jars import JarsMissing
from tests.cluster.measuring import HEAD, Measured, line
from tests.cluster.processes import processes_of

Player = Callable[[str, str], Played]


class Figures:
    """Prints a line of figures for each scenario at the end of the run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, measured: Measured) -> None:
        self.lines.append(line(measured))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.lines:
            terminalreporter.section("captures of live clusters against ZooKeeper's log and the brokers' answers")
            terminalreporter.write_line("\n".join([HEAD, *self.lines]))


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Figures:
    made = Figures()
    pytestconfig.pluginmanager.register(made, "cluster-figures")
    return made


def require_jars(release: Release) -> None:
    """Skip, with the sentence that says what is missing, where the release cannot be had."""
    try:
        kafka_jars(find_java(), release)
    except JarsMissing as error:
        pytest.skip(str(error))


@pytest.fixture
def player(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Player]:
    """``player(scenario, version)`` plays it on a new cluster below the test's folder.

    Afterwards no process may be left. Of a test that failed, all that the cluster wrote and all that was captured stays
    in ``.cache/cluster-failures`` under the test's name.
    """

    def played(scenario: str, version: str) -> Played:
        require_jars(BY_NAME[version])
        return play(SCENARIOS[scenario], BY_NAME[version], tmp_path / "lab", say=print)

    yield played
    left = processes_of(tmp_path)
    report = getattr(request.node, "called", None)
    if left or report is None or report.failed:
        kept = request.config.rootpath / ".cache" / "cluster-failures" / request.node.name.replace("/", "_")
        shutil.rmtree(kept, ignore_errors=True)
        if (tmp_path / "lab").is_dir():
            shutil.copytree(tmp_path / "lab", kept)
            print(f"the cluster's logs and what was captured are in {kept}")
    assert left == {}, "processes outlived their cluster"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the fixture know how its test ended."""
    report = yield
    if report.when == "call":
        item.called = report  # type: ignore[attr-defined]
    return report
