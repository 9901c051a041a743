"""Fixtures that every test may use, and how the suite behaves."""

from __future__ import annotations

import gc
import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests import ROOT
from tests.figures import Figure
from tests.support.captures.packed import unpacked

__all__ = ["unpacked"]

TESTS = ROOT / "tests"
#: Lakes that many tests read, each of which is made once in a process.
SHARED = frozenset({"shared_lake", "two_runs"})
#: Modules that run in the same process as those tests, so that the processes of ``make test`` take equally long.
BESIDE_SHARED = frozenset({"test_planted_text.py", "test_redaction.py"})

# by default the collector looks at what is new at every 700 objects more, some 5 % of the time of plain Python here
gc.set_threshold(100_000, 50, 100)

_EXAMPLES = DirectoryBasedExampleDatabase(ROOT / ".cache" / "hypothesis")
# derandomize: the same commit gives the same verdict; "hard" looks further, with new examples every time.
settings.register_profile("default", derandomize=True, database=None, deadline=None, max_examples=100)
settings.register_profile("hard", deadline=None, database=_EXAMPLES, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fail-on-skip", action="store_true", help="fail the run if any test was skipped")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (TESTS / "spark") in item.path.parents:
            item.add_marker(pytest.mark.spark)
        if item.path.name in BESIDE_SHARED or not SHARED.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.shared)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """How many examples a property test tried, as Hypothesis describes it."""
    if call.when == "call" and (described := getattr(item, "hypothesis_statistics", "")):
        item.user_properties.append((Figure.EXAMPLES, sum(map(int, re.findall(r"(\d+) passing", described)))))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if session.config.getoption("--fail-on-skip") and skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"\nERROR: {len(skipped)} skipped, and --fail-on-skip was given", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest):
    """The one local session of this test process. Where the shared lake is made and asked it shuffles in two parts, so
    that nothing passes by the order that one part gives; else in one, which takes less of the processors."""
    from jobs.session.session import build_session

    is_shared = any("shared_lake" in getattr(item, "fixturenames", ()) for item in request.session.items)
    session = build_session(
        "kafka-state-replay-tests",
        master="local[2]",
        writes=True,
        config={
            "spark.sql.shuffle.partitions": "2" if is_shared else "1",
            "spark.driver.memory": "3g",
            # Java's second compiler takes half of the processors' time in a run of a minute; in one of a quarter of an
            # hour, if it is given only what is used eight times as often as by default, it saves an eighth; large pages
            # of memory, where the machine gives them, some 3 %
            "spark.driver.extraJavaOptions": (
                "-Duser.timezone=UTC -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -Xmn1g -XX:MetaspaceSize=512m"
                " -XX:+UseTransparentHugePages"
                " -XX:Tier4InvocationThreshold=40000 -XX:Tier4MinInvocationThreshold=8000"
                " -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=400000"
            ),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def empty_lake_dir(spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with every table and no row, made once: making the tables takes seconds, copying them does not."""
    from ingest.lake.delta import Lake

    folder = tmp_path_factory.mktemp("empty") / "lake"
    Lake(spark, str(folder)).ensure()
    return folder


@pytest.fixture
def lake(spark, empty_lake_dir: Path, tmp_path: Path):
    """An empty lake of the test's own, its tables made."""
    from ingest.lake.delta import Lake

    shutil.copytree(empty_lake_dir, tmp_path / "lake")
    return Lake(spark, str(tmp_path / "lake"))
