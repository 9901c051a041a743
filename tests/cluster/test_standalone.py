"""A Spark cluster of processes, a master and two workers on loopback: the rows are those of one process, also where a
worker is killed in the middle.

Nothing is shared but the file system. It is the operator's settings that make the cluster small; ours are untouched.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.lab.machines.ports import free_ports
from jobs.lab.waiting import wait_for
from tests import ROOT
from tests.support.captures.packed import TRUTH, unpack
from tests.table_hashes import lake_hashes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

CAPTURE: Final = "quiet-0.8.2.2"
#: Where it is killed: behind it are shuffles, folds in Python and all of gold.
KILLED_AT: Final = "controllers and brokers"
_DEFAULTS: Final = """
spark.sql.shuffle.partitions 2
spark.default.parallelism 2
spark.databricks.delta.snapshotPartitions 1
spark.sql.codegen.wholeStage false
spark.sql.codegen.factoryMode NO_CODEGEN
spark.executor.memory 1g
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
"""


@dataclass
class Standalone:
    """The cluster's address, its workers, each of which leads a process group, and what every process is given."""

    url: str
    folder: Path
    environment: dict[str, str]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, source: Path, lake: Path) -> subprocess.Popen[str]:
        """``run`` on the cluster; its stages are lines of its standard error."""
        program = [sys.executable, "-m", "jobs.cli", "run", str(source), "--lake", str(lake)]
        options = ["--out", str(lake.with_suffix(".report")), "--master", self.url]
        return subprocess.Popen(
            program + options,
            cwd=ROOT,
            env=self.environment,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    import pyspark

    home = Path(pyspark.__file__).parent
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(_DEFAULTS)
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    port, *pages = free_ports(4)
    cluster = Standalone(f"spark://127.0.0.1:{port}", tmp_path, environment)
    program = str(home / "bin" / "spark-class")

    def start(stack: ExitStack, name: str, of: str, *options: str) -> subprocess.Popen[bytes]:
        log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
        command = [program, f"org.apache.spark.deploy.{of}", "--host", "127.0.0.1", *options]
        own = environment | {"SPARK_WORKER_DIR": str(tmp_path / name)}
        process = subprocess.Popen(command, env=own, stdout=log, stderr=log, start_new_session=True)
        stack.callback(end, process)
        return process

    with ExitStack() as stack:
        start(stack, "master", "master.Master", "--port", str(port), "--webui-port", str(pages[0]))
        wait_for("the master is there", lambda: said(tmp_path / "master.log", "New state: ALIVE"))
        for number in (1, 2):
            name, page = f"worker-{number}", str(pages[number])
            resources = ("--cores", "1", "--memory", "1g", "--webui-port", page)
            cluster.workers.append(start(stack, name, "worker.Worker", *resources, cluster.url))
            log = tmp_path / f"{name}.log"
            wait_for(f"{name} is there", lambda log=log: said(log, "Successfully registered"))
        yield cluster


def said(log: Path, words: str) -> bool:
    return words in log.read_text(errors="replace")


def end(process: subprocess.Popen[Any]) -> None:
    """With all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return unpack(CAPTURE, tmp_path / "captures", without=TRUTH)


@pytest.fixture
def rows_of_one_process(spark: Any, source: Path, tmp_path: Path) -> dict[str, tuple[str, int]]:
    from jobs import cli

    lake = tmp_path / "alone"
    assert cli.main(["run", str(source), "--lake", str(lake), "--out", str(tmp_path / "alone.report")]) == 0
    return lake_hashes(spark, lake)


def test_a_master_and_two_workers_make_the_rows_of_one_process(
    standalone: Standalone, source: Path, spark: Any, rows_of_one_process: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    run = standalone.run(source, tmp_path / "two")
    _, told = run.communicate()
    assert run.returncode == 0, told
    assert all(list((tmp_path / f"worker-{number}").glob("app-*/*/stderr")) for number in (1, 2)), "both had tasks"
    assert lake_hashes(spark, tmp_path / "two") == rows_of_one_process
    assert (tmp_path / "two.report" / "index.html").stat().st_size > 100_000


def test_a_worker_killed_in_the_middle_changes_nothing(
    standalone: Standalone, source: Path, spark: Any, rows_of_one_process: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    run = standalone.run(source, tmp_path / "one")
    assert run.stderr is not None
    told = []
    for line in run.stderr:
        told.append(line)
        if KILLED_AT in line and standalone.workers[1].poll() is None:
            end(standalone.workers[1])
    assert run.wait() == 0, "".join(told)
    assert standalone.workers[1].returncode == -signal.SIGKILL
    assert said(tmp_path / "master.log", "Removing worker"), "the cluster lost it"
    assert lake_hashes(spark, tmp_path / "one") == rows_of_one_process
