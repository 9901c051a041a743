"""The page of 10,000 partitions with 1,000 findings, which holds as much as any page may, in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboards.render import render
from dashboards.sections.findings import FindingCount, Findings
from dashboards.sections.incidents import Event, Incident
from dashboards.sections.timelines.partitions import Assignment, Lane, Segment, Unavailable
from dashboards.sections.timelines.topics import Topic
from dashboards.sections.timelines.trouble import Count, CountedKind
from dashboards.source import Limits
from ingest.lake.tables.incidents import INCIDENT_EVENT_KINDS
from ingest.lake.tables.shared import HARMS
from tests.support.browser import Browser
from tests.unit.dashboards.test_render import cluster, data, finding

LIMITS = Limits()
HOURS_MS = 6 * 3_600_000.0
PARTITIONS, FOUND = 10_000, 1_000
MOST_BYTES, MOST_MS = 15_000_000, 2_000
#: A4 within the margins of 1 cm that browsers print with.
PRINTED_PX = 718, 1_047
SAYS = "orders.{0}-{1} was led by broker 3 at leader epoch 12 while broker 2 went on as its leader, "


def lane(number: int) -> Lane:
    each = LIMITS.segments_each(LIMITS.lanes)
    width = HOURS_MS / each
    segments = tuple(
        Segment(k * width, (k + 1) * width, k % 6, k, (1, 2, 3), 5, k, "controller", None, f"{number:08x}{k:024x}")
        for k in range(each)
    )
    offline = Unavailable("offline", HOURS_MS / 2 + number * 1000, HOURS_MS / 2 + number * 2000, "e1", "e2")
    return Lane(
        topic=f"orders.{number // 20}",
        topic_incarnation="1",
        partition_id=number % 20,
        partitions_total=PARTITIONS,
        topics_total=500,
        segments_total=PARTITIONS * each,
        segments_count=each,
        offline_ms=number * 1000.0,
        errors=1,
        segments=segments,
        assignments=(Assignment(0, None, (1, 2, 3)),),
        unavailable=(offline,),
    )


def topic(number: int) -> Topic:
    counts = tuple(Count(HOURS_MS * k / 200, (k * number) % 20) for k in range(200))
    kinds = tuple(CountedKind(kind, counts) for kind in ("offline", "under_min_isr", "under_replicated"))
    return Topic(f"orders.{number}", 20, 500, errors=20, kinds=kinds)


def incident(number: int) -> Incident:
    kinds = [INCIDENT_EVENT_KINDS[k % len(INCIDENT_EVENT_KINDS)] for k in range(50)]
    events = tuple(
        Event(k * 1000.0, None, kind, SAYS.format(number, k), 20, tuple(f"orders.{k}-{p}" for p in range(20)), number)
        for k, kind in enumerate(kinds)
    )
    summary = (SAYS * 6).format(number, 0)[:300]
    return Incident(f"{number:032x}", summary, "broker_absent", "high", HARMS[0], 0, None, 20, 40, 6e6, 1, 9, events)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tuple(
        finding(
            f"f{number:031x}",
            topic=f"orders.{number // 20}",
            partition_id=number % 20,
            rule_id="R08",
            at_ms=number,
            explanation=SAYS.format(number // 20, number % 20),
            evidence=tuple(f"{number:08x}{k:024x}" for k in range(5)),
        )
        for number in range(LIMITS.findings)
    )
    full = cluster(
        findings=Findings((FindingCount("error", "R08", "unclean_election", FOUND, FOUND, 0, HOURS_MS),), found),
        incidents=tuple(incident(number) for number in range(20)),
        timelines__partitions=tuple(lane(number) for number in range(LIMITS.lanes)),
        timelines__topics=tuple(topic(number) for number in range(50)),
    )
    path = tmp_path_factory.mktemp("full") / "index.html"
    full = replace(full, span=replace(full.span, from_ms=0, to_ms=HOURS_MS))
    path.write_text(render(data(full), "Full"), encoding="utf-8")
    return path


def test_it_is_small_enough_and_painted_at_once(page_file: Path, tmp_path: Path) -> None:
    with Browser() as browser:
        page = browser.open(page_file)
        page.wait_for("document.documentElement.dataset.ready !== undefined")
        ready = float(page.value("document.documentElement.dataset.ready"))
        paint = page.value("Math.max(0, ...performance.getEntriesByType('paint').map(entry => entry.startTime))")
        size = page_file.stat().st_size
        print(f"\n{size:,} bytes, first paint after {paint:.0f} ms, ready after {ready:.0f} ms")
        assert (page.errors, page.requests) == ([], [])
        assert "of 10,000 partitions are drawn" in page.value("document.body.textContent")
        page.screenshot(tmp_path / "page.png")
        page.pdf(tmp_path / "page.pdf")
    assert size < MOST_BYTES
    assert paint < MOST_MS


def test_the_first_two_pages_say_it_all_and_no_column_is_cut(page_file: Path) -> None:
    """Printed: what was found and lost, each incident in its words, and how many findings there are of each rule."""
    with Browser() as browser:
        page = browser.open(page_file, *PRINTED_PX)
        page.wait_for("document.documentElement.dataset.ready !== undefined")
        browser.call("Emulation.setEmulatedMedia", page._session, media="print")
        page.settle()
        bottom = page.value("document.querySelector('#findings-0 table').getBoundingClientRect().bottom")
        height = page.value("document.documentElement.scrollHeight")
        print(f"\nfindings are counted {bottom / PRINTED_PX[1]:.2f} pages down, of {height / PRINTED_PX[1]:.0f}")
        assert bottom < 2 * PRINTED_PX[1]
        shown = "[...document.querySelectorAll('{0}')].filter(one => one.getClientRects().length).length"
        assert page.value(shown.format(".incident")) == 20
        assert page.value(shown.format(".incident[open] tbody tr")) == 5
        assert page.value(shown.format(".finding")) == 20
        assert page.value(shown.format(".incident[open] .printed, .list + .printed")) == 2, (
            "the page says what is not printed"
        )
        wide = "[...document.querySelectorAll('table')].every(one => one.getBoundingClientRect().right <= innerWidth)"
        assert page.value(wide)
