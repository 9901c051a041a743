"""What tests tell of is summed over the files of all lanes, and a property test tells of its examples by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.figures import Figure, main, sums

TOLD = """<testsuites><testsuite tests="2" failures="1" errors="0" skipped="0" time="61.4"><testcase name="a" time="1">
<properties><property name="{name}" value="{value}"/><property name="of another" value="many"/></properties>
</testcase><testcase name="b" time="1"/></testsuite></testsuites>"""
#: Of a property test, which is quick.
ONE = "tests/unit/ingest/readers/logs/test_streams.py"


def test_figures_are_summed_over_all_lanes_and_lanes_that_failed_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("first", 1_200), ("second", 34)):
        (tmp_path / f"{name}.xml").write_text(TOLD.format(name=Figure.KILLS, value=value))
    main([str(tmp_path / name) for name in ("first.xml", "second.xml", "not there.xml")])
    assert capsys.readouterr().out.splitlines() == [
        "",
        "tried:",
        f"       1,234 {Figure.KILLS}",
        "first: 2 tests, 1 failed, 0 skipped, 1 min 1 s",
        "second: 2 tests, 1 failed, 0 skipped, 1 min 1 s",
    ]


def test_a_property_test_tells_how_many_examples_it_tried(tmp_path: Path) -> None:
    told = tmp_path / "told.xml"
    command = [sys.executable, "-m", "pytest", "-q", ONE, "--junitxml", str(told)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert sums([told])[Figure.EXAMPLES] >= 100
