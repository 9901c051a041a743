"""Great Expectations over measurements made by hand, its pages included; no Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from checks.catalog import WARNING, Check
from checks.data_docs import make_offline, rewrite
from checks.expectations import example_table
from checks.gate import GateError, judge
from checks.measure import Measurement
from checks.pipeline import gate_sentence, write_data_docs
from checks.registry import registry
from checks.results import CheckReport
from tests.support.browser import Browser

NOW = datetime(2026, 11, 26, tzinfo=UTC)
HOSTILE = (
    "</script><script>document.title='PWNED'</script><img src=x onerror=\"document.title='PWNED'\">$explanation{{7*7}}"
)
SOUND = Check("silver.assignment_timeline", "unique_key", "no two rows share a key", "copies > 1")
BROKEN = Check("silver.assignment_timeline", "order", "valid_from <= valid_to", "valid_from > valid_to")
WARNED = Check("gold.divergences", "unique_key", "no two rows share a key", "copies > 1", severity=WARNING)
METRIC = Check(
    "quality.run_metrics", "kept_ratio_trend", f"share kept: {HOSTILE}: 0.1", "value below 0.9", severity=WARNING
)
BLIND = Check("bronze.log_records", "unique_key", "no two rows share a key", "copies > 1")
MEASUREMENTS = (
    Measurement(SOUND, 12, 0),
    Measurement(BROKEN, 12, 2, (json.dumps({"topic": HOSTILE, "sequence": 3}), '{"topic":"cut off in the mid')),
    Measurement(WARNED, 5, 1, ('{"divergence_id":"d1","copies":2}',)),
    Measurement(BLIND, None, None),
    Measurement(METRIC, 3, 1, ('{"subject":"3.9.1","value":0.1}',)),
)


def test_a_check_holds_where_it_was_judged_and_no_case_breaks_it() -> None:
    assert judge(MEASUREMENTS) == {
        SOUND.check_id: True,
        BROKEN.check_id: False,
        WARNED.check_id: False,
        BLIND.check_id: False,
        METRIC.check_id: False,
    }


def test_the_first_page_of_the_data_docs_lists_the_runs_before(tmp_path: Path) -> None:
    runs = [{check.check_id: True for check in (SOUND, WARNED)}, {SOUND.check_id: False, WARNED.check_id: True}]
    for broken, expected in zip((0, 1), runs, strict=True):
        assert judge((Measurement(SOUND, 12, broken), Measurement(WARNED, 5, 0)), str(tmp_path)) == expected
    listed = re.findall(r"validations/[^ '\"]*\.html", (tmp_path / "index.html").read_text())
    assert len(set(listed)) == 4
    assert all((tmp_path / page).is_file() for page in listed)


def test_the_data_docs_name_every_table_that_is_checked(tmp_path: Path) -> None:
    """Of a sound lake: whether they say what the report says is asserted as they are written."""
    found = tuple(Measurement(check, 1, 0) for check in registry().checks)
    told: list[str] = []
    page = Path(write_data_docs(CheckReport("r", NOW, "f", (), (), found), str(tmp_path / "docs"), told.append))
    text = page.read_text()
    assert {check.table for check in registry().checks if check.table not in text} == set()
    assert told


def test_telemetry_is_off_before_great_expectations_is_there() -> None:
    code = (
        "import os, sys, checks; assert 'great_expectations' not in sys.modules;"
        " assert os.environ['GX_ANALYTICS_ENABLED'] == 'false'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "GX_ANALYTICS_ENABLED": "true"})


def test_an_expectation_that_raises_is_no_verdict() -> None:
    with pytest.raises(GateError, match=r"silver\.assignment_timeline\.unique_key could not be run.*2 times"):
        judge((MEASUREMENTS[0], MEASUREMENTS[0]))


def test_a_gate_says_table_expectation_count_and_first_row() -> None:
    sentence = gate_sentence(Measurement(BROKEN, 12, 2, ('{"topic":"orders","sequence":3}',)))
    assert sentence == (
        "silver.assignment_timeline: order is broken by 2 of 12 (valid_from <= valid_to);"
        ' the first: {"topic":"orders","sequence":3}. To do: ingest into a new lake and run again; if it fails again,'
        " please report this sentence"
    )
    assert "cannot be judged" in gate_sentence(MEASUREMENTS[3])
    assert len(gate_sentence(Measurement(BROKEN, 1, 1, ("x" * 9000,)))) < 600


def test_examples_become_a_table_of_escaped_cells() -> None:
    header, rows = example_table([json.dumps({"a": HOSTILE, "b": None}), json.dumps({"c": [1, 2]}), "{cut"])
    assert header == ["a", "b", "c", "example"]
    assert rows[0][0].startswith("&lt;/script&gt;")
    assert rows[0][1:] == ["NULL", "NULL", "NULL"]
    assert rows[1] == ["NULL", "NULL", "[1, 2]", "NULL"]
    assert rows[2][3] == "{cut"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    judge(MEASUREMENTS, str(folder))
    assert make_offline(str(folder)) == str(folder / "index.html")
    return folder


def test_data_docs_load_nothing_from_elsewhere(docs: Path) -> None:
    pages = sorted(docs.rglob("*.html"))
    assert len(pages) == 9, "a page per suite, a page per validation, the index"
    loaded = re.compile(r"<(?:link|script|img)\b[^>]*?(?:href|src)=[\"']([^\"']+)")
    for page in pages:
        targets = loaded.findall(page.read_text(encoding="utf-8"))
        assert any(target.endswith("bootstrap.min.css") for target in targets)
        for target in targets:
            assert not re.match(r"(https?:)?//", target), target
            assert (page.parent / target).resolve().is_file(), target


def test_data_docs_show_verdict_examples_and_no_markup_of_a_log(docs: Path) -> None:
    (page,) = docs.rglob("validations/**/*silver.assignment_timeline*.html")
    text = page.read_text(encoding="utf-8")
    assert "2 of 12 cases break it" in text
    assert "&lt;/script&gt;&lt;script&gt;document.title=" in text
    assert "<script>document.title" not in text
    assert "valid_from &lt;= valid_to" in text
    for page in docs.rglob("*quality.run_metrics*.html"):  # its explanation names subjects, which come from logs
        assert "<script>document.title" not in page.read_text(encoding="utf-8")


def test_every_page_of_the_data_docs_runs_without_errors_network_or_text_that_is_obeyed(docs: Path) -> None:
    with Browser() as browser:
        for path in sorted(docs.rglob("*.html")):
            page = browser.open(path)
            assert page.errors == [], path
            assert [url for url in page.requests if not url.startswith("file:")] == [], path
            assert page.value("document.title").startswith("Data "), path
            assert page.value("document.querySelectorAll('img[src=x], footer').length") == 0, path
            assert page.value("document.documentElement.scrollWidth <= innerWidth"), path


def test_pages_lose_what_has_no_copy_and_keep_the_rest() -> None:
    page = (
        '<link rel="stylesheet" href="https://cdn.example/x@1/bootstrap.min.css"/>'
        '<script src="//cdn.example/vega@5"></script><p>a text</p><a href="https://example.org/">a link</a>'
        '<script src="https://cdn.example/jquery-3.7.1.min.js" integrity="sha384-x" crossorigin="anonymous"></script>'
    )
    assert rewrite(page, "../") == (
        '<link rel="stylesheet" href="../assets/css/bootstrap.min.css"><p>a text</p>'
        '<a href="https://example.org/">a link</a><script src="../assets/js/jquery.min.js"></script>'
    )
