"""The built wheel, installed elsewhere, runs the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (built,) = folder.glob("kafka_state_replay-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_every_data_file_of_the_packages_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    listed = subprocess.run(
        [
            "git",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            "ingest",
            "reconstruct",
            "checks",
            "dashboards",
            "jobs",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    files = {name for name in listed if name and (ROOT / name).is_file()}
    assert files - packed == set()
    assert "jobs/demo_capture/unclean-3.9.1.tar.gz" in packed
    assert not any(name.startswith(("tests/", "docs/")) for name in packed)


def test_the_installed_wheel_runs_the_demo(installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed), "KAFKA_STATE_REPLAY_CACHE": str(ROOT / ".cache")}
    environment.pop("KAFKA_STATE_REPLAY_LAKE", None)
    environment["KAFKA_STATE_REPLAY_DRIVER_MEMORY"] = "2g"
    code = (
        "import sys, jobs.cli; assert jobs.__file__.startswith(sys.argv[1]), jobs.__file__;"
        " sys.exit(jobs.cli.main(sys.argv[2:]))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code, str(installed), "demo", "--lake", "lake", "--master", "local[2]"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    report = tmp_path / "report" / "index.html"
    assert str(report) in finished.stdout
    assert report.stat().st_size > 10_000
    assert '<a href="data-docs/index.html">' in report.read_text()
    assert "gold.leader_elections" in (report.parent / "data-docs" / "index.html").read_text()
    assert (tmp_path / "lake" / "silver" / "leader_and_isr_timeline" / "_delta_log").is_dir()
    summary = finished.stdout
    assert "0 rejected" in summary
    assert "findings" in summary
    assert len(summary.splitlines()) <= 40, "the summary fits one screen"
    assert "WARN" not in finished.stderr
    assert "Exception" not in finished.stderr
