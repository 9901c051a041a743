"""The report's curves: which partitions, how their steps are thinned, and what a real browser draws and says."""

from __future__ import annotations

import json
import shutil
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

import pytest

from dashboards.gather import gather
from dashboards.report import write_report
from dashboards.sections.offsets import offsets
from dashboards.sections.offsets.rows import OwnRecords
from dashboards.sections.offsets.steps import BOUNDS
from dashboards.source import Limits, ms
from ingest.lake.delta import Lake
from ingest.lake.tables.silver import REPLICA_OFFSET_TIMELINE
from tests.support.browser import Browser
from tests.support.lakes.losses import BUSY_ROWS, CUT, ELECTED, write_losses
from tests.support.lakes.rows import at

LIMITS = Limits(curves=3, curve_steps=900, groups=4)
ELECTED_MS, CUT_MS = (at(seconds).timestamp() * 1000 for seconds in (ELECTED, CUT))


@pytest.fixture(scope="module")
def lake(spark, empty_lake_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("losses") / "lake"
    shutil.copytree(empty_lake_dir, folder)
    made = Lake(spark, str(folder))
    write_losses(made)
    return made


@pytest.fixture(scope="module")
def curves(lake):
    """By topic, what is gathered of each partition that is drawn or listed."""
    rows = gather(lake, lambda _: None, LIMITS).clusters[0].of(offsets.SECTION)
    return {row.topic: row for row in rows}


@pytest.fixture(scope="module")
def page(lake, tmp_path_factory):
    with Browser() as browser:
        report = write_report(lake, str(tmp_path_factory.mktemp("out")), progress=lambda _: None, limits=LIMITS)
        opened = browser.open(Path(report.path))
        opened.wait_for("document.documentElement.dataset.ready !== undefined")
        yield opened


def test_losses_come_first_then_unclean_elections_then_the_busiest_and_some_others_are_listed(curves):
    assert [topic for topic, row in curves.items() if row.is_drawn] == ["ledger", "maybe", "clicks"]
    assert [topic for topic, row in curves.items() if not row.is_drawn] == [
        "quiet00",
        "quiet01",
        "quiet02",
        "quiet03",
    ]
    assert all(not row.steps for row in curves.values() if not row.is_drawn)
    totals = {(row.curves_total, row.losing_total, row.lost_lower_total) for row in curves.values()}
    assert totals == {(15, 1, 200)}


def test_the_loss_is_there_with_its_true_range(curves):
    loss = curves["ledger"].losses[0]
    assert loss.at_ms == ELECTED_MS
    assert [getattr(loss, f"lost_{name}") for name in ("from_offset", "to_offset_lower", "to_offset_upper")] == [
        100,
        299,
        309,
    ]
    assert (loss.lost_count_lower, loss.lost_count_upper) == (200, 210)
    assert loss.own_records == (OwnRecords(1, 100, 289),)


def test_elections_leaders_and_truncations_of_a_partition(curves):
    ledger = curves["ledger"]
    elections = [(r.observed_leader, r.leader_epoch, r.is_unclean) for r in ledger.elections]
    assert elections == [(1, 0, False), (2, 1, True)]
    # Two states of one leader epoch are one leader; the last is open.
    assert [(r.leader, r.from_ms, r.to_ms) for r in ledger.leaders] == [
        (1, at(5).timestamp() * 1000, ELECTED_MS),
        (2, ELECTED_MS, None),
    ]
    # Two lines that tell of one truncation are one.
    assert [(r.replica_id, r.to_offset, r.at_ms) for r in ledger.truncations] == [(1, 290, CUT_MS)]


def test_few_rows_are_kept_as_they_are(curves):
    own = [row for row in curves["ledger"].steps if row.replica_id == 1]
    assert [tuple(getattr(row, name) for name in BOUNDS) for row in own] == [
        (None, 120, 40, None),
        (300, None, 300, 310),
        (300, 310, 310, 310),
        (290, None, 290, None),
    ]
    assert {row.rows for row in own} == {1}
    # Nothing is known between 245 s and 480 s.
    assert own[1].to_ms < own[2].from_ms
    assert 300 in {curves["ledger"].observations[number].offset for number in own[1].observations}


def test_thinning_bounds_the_steps_and_moves_no_bound(lake, curves):
    """Every row of the timeline lies in a step whose bounds hold for it too, and whose gaps are the timeline's."""
    steps = [row for row in curves["clicks"].steps if row.replica_id == 2]
    # Of 900 steps the others need 8; each of three replicas may have 297 slices of the span, half of which it fills.
    assert 140 <= len(steps) <= 297
    assert sum(row.rows for row in steps) == BUSY_ROWS == steps[0].rows_total
    starts = [row.from_ms for row in steps]
    timeline = lake.read(REPLICA_OFFSET_TIMELINE).where("topic = 'clicks' AND replica_id = 2")
    rows = timeline.select(ms("valid_from").alias("from_ms"), ms("valid_to").alias("to_ms"), *BOUNDS)
    for row in rows.orderBy("from_ms").collect():
        step = steps[bisect_right(starts, row["from_ms"]) - 1]
        assert step.from_ms <= row["from_ms"] <= row["to_ms"] <= step.to_ms
        for name in BOUNDS:
            if row[name] is None:
                assert getattr(step, name) is None
            else:
                assert getattr(step, name) <= row[name] if name.endswith("_lower") else getattr(step, name) >= row[name]
    gaps = [(a.to_ms, b.from_ms) for a, b in pairwise(steps) if a.to_ms < b.from_ms]
    assert gaps == [(at(250.02).timestamp() * 1000, at(250.1).timestamp() * 1000)]


def test_more_than_the_budget_never_reaches_the_driver(lake):
    tight = gather(lake, lambda _: None, Limits(curves=2, curve_steps=40, groups=4)).clusters[0].of(offsets.SECTION)
    drawn = [row for row in tight if row.is_drawn]
    assert len(drawn) == 2
    assert sum(len(row.steps) for row in drawn) <= 40


def test_a_lake_without_offsets_has_no_curves(spark, empty_lake_dir, tmp_path):
    shutil.copytree(empty_lake_dir, tmp_path / "lake")
    assert gather(Lake(spark, str(tmp_path / "lake")), lambda _: None).clusters == ()


def test_the_page_says_what_was_lost_and_its_data_stay_small(page):
    verdict = page.value("document.querySelector('.verdict p').innerText")
    assert "at least 200, at most 210 records in 1 partition: ledger-0 at 10:04:12.310" in verdict
    data = page.value("document.querySelector('#data').textContent")
    assert len(json.dumps(json.loads(data)["clusters"][0]["offsets"])) < 60_000
    assert page.errors == []
    assert page.requests == []
    assert "3 of 15 partitions are drawn" in page.value("document.querySelector('.timelines').innerText")


PANELS = "[...document.querySelectorAll('#curve-0-0 .panel')]"


def test_a_panel_per_replica_is_drawn_with_the_lost_range_and_the_own_records(page):
    assert page.value(f"{PANELS}.map(n => n.querySelector('.label').innerText.replace(/\\s+/g, ' '))") == [
        "replica 1 differs: own records 100–289",
        "replica 2",
        "replica 3",
    ]
    page.value("document.querySelector('#curve-0-0').scrollIntoView()")
    page.settle()
    reddish = """(row, seconds, offset) => {
      const { chart, canvas } = row, curve = chart.data.offsets[0], range = offsetRange(chart, curve);
      const scale = canvas.width / row.plot.clientWidth, height = canvas.height / scale;
      const x = chart.view.x(seconds * 1000 + START - chart.base, row.plot.clientWidth);
      const y = height - 3 - ((offset - range.low) / (range.high - range.low)) * (height - 6);
      const [r, g, b] = canvas.getContext('2d').getImageData(Math.round(x * scale), Math.round(y * scale), 1, 1).data;
      return r - b > 25 && r - g > 25;
    }""".replace("START", str(at(0).timestamp() * 1000))
    page.wait_for(f"({reddish})({PANELS}[2].row, 310, 250)")  # lost, and after the election
    assert not page.value(f"({reddish})({PANELS}[2].row, 210, 250)")  # before it
    assert not page.value(f"({reddish})({PANELS}[2].row, 310, 60)")  # offsets that were not lost


def test_hover_gives_bounds_evidence_and_the_loss(page):
    page.value("document.querySelector('#curve-0-0').scrollIntoView({block: 'center'})")
    page.settle()
    x, y = page.value(
        f"(r => {{ const b = r.plot.getBoundingClientRect();"
        f" return [b.left + r.chart.view.x({at(150).timestamp() * 1000} - r.chart.base, b.width), b.top + 40]; }})"
        f"({PANELS}[0].row)"
    )
    page.point(x, y)
    page.settle()
    text = page.value("document.querySelector('.tip.shown').innerText")
    for part in (
        "ledger-0, replica 1",
        "epoch 0 from 10:00:05.000 to 10:04:12.310",
        "300 to 310",
        "300 or more",
        "2026-11-21 10:01:00.000",
        "high watermark 300 of replica 1, seen 10:00:59.500 to 10:01:00.500, replication offset checkpoint",
    ):
        assert part in text
    after = page.value(f"{PANELS}[1].row.plot.getBoundingClientRect().top")
    page.point(x + 400, after + 40)
    page.settle()
    text = page.value("document.querySelector('.tip.shown').innerText")
    for part in ("Lost: at least 200, at most 210", "from offset", "at least 299, at most 309", "unclean election"):
        assert part in text


def test_keys_step_through_a_panel_and_list_it(page):
    page.value(f"{PANELS}[0].focus()")
    page.settle()
    page.press("ArrowRight")
    page.wait_for("document.querySelector('.tip.shown') !== null")
    assert "Leader 1 elected at epoch 0" in page.value("document.querySelector('.tip.shown').innerText")
    page.press("ArrowRight")
    assert "40 or more" in page.value("document.querySelector('.tip.shown').innerText")
    page.press("Enter")
    assert page.value("document.querySelectorAll('#curve-0-0 .intervals tbody tr').length") == 4
    page.press("Enter")
    page.press("ArrowDown")
    page.press("ArrowDown")
    page.press("ArrowDown")
    # The closed partitions' panels are passed over.
    assert page.value("document.activeElement.id") == "lane-0-0"


def test_a_row_of_the_text_shows_its_instant_in_the_curves(page):
    page.value("document.querySelector('#curve-0-0 [data-zoom]').focus()")
    button = f"document.querySelector('#curve-0-0 [data-zoom^=\"{ELECTED_MS:.0f}\"]')"
    page.value(f"{button}.click()")
    page.settle()
    shown = page.value(f"(r => [r.chart.view.from + r.chart.base, r.chart.view.to + r.chart.base])({PANELS}[0].row)")
    assert shown[0] < ELECTED_MS < shown[1]
    assert shown[1] - shown[0] == pytest.approx(20_000)
    # The scale of offsets follows the window: what is shown now begins higher than zero.
    assert page.value(f"offsetRange({PANELS}[0].row.chart, {PANELS}[0].row.chart.data.offsets[0]).low") > 0
    page.value("document.querySelector('[data-act=home]').click()")
