"""The charts of the page over time, without Spark: what is drawn where, and that text of logs is text in it."""

from __future__ import annotations

import html
import re
from datetime import date, timedelta

import pytest

from dashboards.questions.question import questions
from dashboards.trends.drawing import HEIGHT, LEFT, OTHERS, WIDTH, Chart, Point, _nice, draw, figure
from dashboards.trends.gather import CHARTS, ClusterTrends, _trends
from dashboards.trends.page import render
from tests.support.lakes.incident import HOSTILE

FIRST = date(2026, 11, 1)
STACKED = Chart("Minutes", "outages-by-day", "minutes", "kind")
LINES = Chart("Delay", "propagation-by-day", "p50_ms", "request_kind", adds_up=False)
_ELEMENTS = r"html|head|meta|title|style|body|header|h1|h2|h3|p|code|main|section|div|svg|line|text|rect|span|i|small"


def point(day: int, series: str, value: float) -> Point:
    return Point(FIRST + timedelta(days=day), series, value)


def test_every_chart_asks_a_question_by_day_that_has_its_columns():
    for chart in CHARTS:
        sql = questions()[chart.question].sql
        assert chart.value in sql
        assert chart.series is None or chart.series in sql
        assert " day" in sql


def test_bars_of_a_day_stand_on_each_other_and_the_scale_holds_the_highest():
    drawn = draw(STACKED, [point(0, "a", 30), point(0, "b", 12), point(2, "a", 3)], FIRST, FIRST + timedelta(days=2))
    assert drawn.top == 50
    assert drawn.series == (("a", 33), ("b", 12))
    first, second, third = drawn.marks
    assert first.y + first.height == pytest.approx(HEIGHT)
    assert first.height == pytest.approx(30 / 50 * HEIGHT)
    assert second.y + second.height == pytest.approx(first.y)
    assert LEFT < first.x == second.x < third.x < WIDTH
    assert [mark.label for mark in drawn.marks] == ["2026-11-01, a: 30", "2026-11-01, b: 12", "2026-11-03, a: 3"]


def test_what_does_not_add_up_is_drawn_as_lines_from_day_to_day():
    drawn = draw(LINES, [point(0, "a", 3), point(1, "a", 8), point(1, "b", 4)], FIRST, FIRST + timedelta(days=1))
    assert (drawn.top, drawn.series) == (10, (("a", None), ("b", None)))
    assert [len(points.split()) for _, points in drawn.lines()] == [2, 1]


def test_days_of_our_own_runs_are_an_axis_of_their_own():
    of_runs = next(chart for chart in CHARTS if chart.of_runs)
    told = [(point(1, "a", 2),) if chart.question == "elections-by-day" else () for chart in CHARTS]
    told[CHARTS.index(of_runs)] = (point(400, "rejected_records", 0.25), point(402, "rejected_records", 0.5))
    made = _trends("c", CHARTS, told, None)
    assert made.first == made.last == FIRST + timedelta(days=1)
    days = {drawing.chart: drawing.days for drawing in made.drawings}
    assert [days[of_runs][0], days[of_runs][-1]] == [FIRST + timedelta(days=400), FIRST + timedelta(days=402)]
    assert {days[chart] for chart in CHARTS if chart is not of_runs} == {(made.first,)}
    assert "rejected records" in render([made], "t")


def test_many_days_are_drawn_as_weeks():
    points = [point(day, "", 1) for day in range(200)]
    last = FIRST + timedelta(days=199)
    drawn = draw(STACKED, points, FIRST, last)
    assert len(drawn.days) == len(drawn.marks) == 29
    assert drawn.marks[0].label == "2026-11-01, 7"
    assert max(mark.label for mark in draw(LINES, points, FIRST, last).marks).endswith(", 1")


def test_the_others_come_last_however_large():
    drawn = draw(STACKED, [point(0, OTHERS, 100), point(0, "a", 1)], FIRST, FIRST)
    assert [name for name, _ in drawn.series] == ["a", OTHERS]


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.003, 0.005), (0.2, 0.2), (1, 1), (1.1, 2), (7, 10), (42, 50), (501, 1000)]
)
def test_a_scale_ends_at_a_round_number(value, top):
    assert _nice(value) == pytest.approx(top)


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.125, "0.125"), (2.0, "2"), (1234.56, "1,235"), (1.5, "1.5")]
)
def test_figures(value, shown):
    assert figure(value) == shown


def test_text_of_logs_is_text_and_nothing_runs():
    chart = Chart("Under-replicated", "outages-by-day", "minutes", "topic")
    drawn = draw(chart, [point(0, HOSTILE, 3)], FIRST, FIRST)
    empty = draw(STACKED, [], FIRST, FIRST)
    page = render([ClusterTrends(HOSTILE, (drawn, empty), (), FIRST, FIRST)], HOSTILE)
    assert "<script" not in page
    assert not re.search(rf"</?(?!(?:{_ELEMENTS})\b)\w", page)
    assert "None." in page
    assert "default-src 'none'" in html.unescape(page)


def test_a_lake_without_timelines_says_what_to_do():
    assert "kafka-state-replay reconstruct" in render([], "t")
