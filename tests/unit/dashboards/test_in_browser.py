"""Pages made of data at hand, in a real browser: no errors, no network, and what their script or style adds."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta

import pytest

from dashboards.questions.question import questions
from dashboards.records import Record
from dashboards.render import render
from dashboards.sections.findings import Findings
from dashboards.trends.drawing import WIDTH, draw
from dashboards.trends.gather import CHARTS, ClusterTrends
from dashboards.trends.page import render as render_trends
from dashboards.words import visible
from jobs.sql.output import no_formula
from tests.support.browser import Browser
from tests.support.lakes.incident import HOSTILE
from tests.unit.dashboards.test_render import cluster, data, finding, with_finding
from tests.unit.dashboards.test_trends import FIRST, point


@pytest.fixture
def browser(monkeypatch):
    """A browser of somebody in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    with Browser() as started:
        yield started


def test_a_reader_elsewhere_is_told_the_local_time_beside_utc(browser, tmp_path):
    (tmp_path / "index.html").write_text(render(data(cluster(findings=with_finding("x"))), "title"), encoding="utf-8")
    page = browser.open(tmp_path / "index.html")
    assert page.value("document.querySelector('[data-local]').textContent").endswith(" here")
    assert page.value("[...document.querySelectorAll('.contents a')].every(a => document.querySelector(a.hash))")
    assert page.errors == []


def test_findings_are_saved_as_csv_and_json_in_which_all_text_is_text(browser, tmp_path):
    found = [
        finding(text, topic=text, at_ms=2000.125, alternatives=(text,), harm="possible", evidence=("r1",))
        for text in (*HOSTILE, "-1", "x")
    ]
    records = {"r1": Record("a.log", 1, "server_log", 1, "line")}
    clusters = data(cluster("=c", records, findings=Findings(worst=tuple(found))))
    (tmp_path / "index.html").write_text(render(clusters, "title"), encoding="utf-8")
    (tmp_path / "saved").mkdir()
    browser.saves_to(tmp_path / "saved")
    page = browser.open(tmp_path / "index.html")
    rows = json.loads(page.saved("[data-saves=json]", tmp_path / "saved" / "findings-1.json"))
    assert [row["explanation"] for row in rows] == [visible(one.explanation) for one in found]
    first = rows[-1]
    assert (first["cluster_id"], first["detected_at"]) == ("=c", "1970-01-01T00:00:02.000125Z")
    assert (first["partition_id"], first["replica_id"], first["evidence"]) == (0, None, ["r1"])
    assert first.keys() > set(re.findall(r"\w+", questions()["findings"].sql.partition("FROM")[0])) - {"SELECT"}
    text = page.saved("[data-saves=csv]", tmp_path / "saved" / "findings-1.csv")
    header, *lines = csv.reader(io.StringIO(text))
    assert header == list(first)
    for line, row in zip(lines, rows, strict=True):
        plain = (
            value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for value in row.values()
        )
        texts = ["" if value == "null" else no_formula(value) for value in plain]
        assert line == texts
    page.value(
        "(t => { t.value = 'x-0'; t.dispatchEvent(new Event('input')); })(document.querySelector('.filter-text'))"
    )
    assert len(json.loads(page.saved("[data-saves=json]", tmp_path / "saved" / "findings-1.json"))) == 1
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith("blob:")] == []


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_over_time_is_drawn_inside_its_charts_and_loads_nothing(browser, tmp_path, dark):
    last = FIRST + timedelta(days=40)
    drawn = tuple(
        draw(chart, [point(day, f"series {day % 8}", 1 + day % 5) for day in range(41)], FIRST, last)
        for chart in CHARTS
    )
    page_file = tmp_path / "trends.html"
    page_file.write_text(render_trends([ClusterTrends("prod", drawn, (), FIRST, last)], "over time"), encoding="utf-8")
    page = browser.open(page_file, dark=dark)
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith("file:")] == []
    boxes = "[...document.querySelectorAll('svg rect, svg circle')].map(m => m.getBBox())"
    assert page.value(f"{boxes}.every(b => b.x >= 0 && b.x + b.width <= {WIDTH} + 3 && b.height > 0)")
    # the seven colours, and that of the others, differ
    fills = "new Set([...document.querySelectorAll('svg rect')].map(m => getComputedStyle(m).fill)).size"
    assert page.value(fills) == 8
    assert page.value("[...document.querySelectorAll('polyline')].every(p => getComputedStyle(p).fill === 'none')")
    assert page.value("document.documentElement.scrollWidth <= innerWidth")
