"""Pages made of data at hand, in a real browser: no errors, no network, and what their script or style adds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboards.render import render
from dashboards.trends.drawing import WIDTH, draw
from dashboards.trends.gather import CHARTS, ClusterTrends
from dashboards.trends.page import render as render_trends
from tests.support.browser import Browser
from tests.unit.dashboards.test_render import cluster, data, with_finding
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
