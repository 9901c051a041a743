"""The report from lakes made by hand: what it gathers, what it says, and what a real browser makes of the page."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from dashboards.gather import gather
from dashboards.render import render
from dashboards.report import write_report
from dashboards.scope import NothingInScope, Scope
from dashboards.sections import findings
from dashboards.sections.findings import RuleVerdicts
from dashboards.sections.timelines import partitions, topics, trouble
from dashboards.source import Limits, Source, ms
from ingest.lake.delta import Lake
from ingest.lake.tables.gold import AVAILABILITY_INTERVALS
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.lake.tables.silver import ASSIGNMENT_TIMELINE, LEADER_AND_ISR_TIMELINE
from tests.support.browser import Browser
from tests.support.lakes import incident
from tests.support.lakes.rows import at
from tests.support.lakes.story import CLUSTER

DAY = "2026-11-21"
#: The lanes that are shown, by name.
SHOWN = "[...document.querySelectorAll('.lanes .row')].filter(r => !r.hidden).map(r => r.dataset.name)"
#: When ledger-0 was given another leader, ms since 1970.
LEDGER = at(252.31).timestamp() * 1000


@pytest.fixture(scope="module")
def made(spark, empty_lake_dir, tmp_path_factory):
    """A lake by the name of its writer, made once."""
    lakes: dict[str, Lake] = {}

    def of(name: str) -> Lake:
        if name not in lakes:
            folder = tmp_path_factory.mktemp(name) / "lake"
            shutil.copytree(empty_lake_dir, folder)
            lakes[name] = Lake(spark, str(folder))
            if name != "empty":
                getattr(incident, f"write_{name}")(lakes[name])
        return lakes[name]

    return of


@pytest.fixture(scope="module")
def gathered(made):
    return gather(made("incident"), lambda _: None)


@pytest.fixture(scope="module")
def pages(made, tmp_path_factory):
    """The report's page of a lake, written once; beside the path, what the terminal shows."""
    written = {}

    def of(name: str):
        if name not in written:
            report = write_report(made(name), str(tmp_path_factory.mktemp("out")), progress=lambda _: None)
            written[name] = (Path(report.path), report.summary)
        return written[name]

    return of


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


def test_what_was_read_is_read_once_for_the_same_clusters_and_scope(made):
    source = Source(made("incident"), Limits(), (CLUSTER,))
    rows = source.read(LEADER_AND_ISR_TIMELINE)
    assert source.read(LEADER_AND_ISR_TIMELINE) is replace(source, totals={}).read(LEADER_AND_ISR_TIMELINE) is rows
    topics_of = {row["topic"] for row in rows.select("topic").collect()}
    assert len(topics_of) > 1
    others = (
        (replace(source, scope=Scope(topic="ledger")), {"ledger"}),
        (replace(source, clusters=("another",)), set()),
        (source, topics_of),
    )
    for other, expected in others:
        assert {row["topic"] for row in other.read(LEADER_AND_ISR_TIMELINE).select("topic").collect()} == expected


def test_what_the_terminal_shows(pages):
    path, summary = pages("incident")
    text = "\n".join(summary)
    assert path.name == "index.html"
    assert 8 <= len(summary) <= 20
    for part in (
        "3 brokers (1, 2 and 3), Kafka 1.1.1",
        "4,106 read, 4,104 kept, 2 rejected",
        "4 partitions of 2 topics",
        "2 controller tenures",
        "2 partitions of 4 had no registered leader",
        "3 findings (1 error, 1 warning and 1 info)",
        "error R08 at 2026-11-21 10:04:12.310, ledger-0:",
        "Not checked",
    ):
        assert part in text


def test_the_same_lake_gives_the_same_bytes(gathered, pages):
    path = pages("incident")[0]
    assert path.read_text(encoding="utf-8") == render(gathered, f"Kafka state replay: {CLUSTER}, {DAY} 10:00")
    assert [p.name for p in path.parent.iterdir()] == ["index.html"]


def test_limits_bound_what_reaches_the_driver_and_the_page_says_so(made):
    limits = Limits(lanes=12, segments=60, findings=4, findings_per_type=3)
    data = gather(made("wide"), lambda _: None, limits)
    lanes, found = data.clusters[0].of(partitions.SECTION), data.clusters[0].of(findings.SECTION)
    assert len(lanes) == 12
    assert len(found.worst) == 4
    assert {lane.partitions_total for lane in lanes} == {200}
    # The partitions in trouble come first: ten have findings, and those with errors lead.
    assert [lane.errors for lane in lanes] == [1] * 5 + [0] * 7
    assert [lane.warnings for lane in lanes] == [0] * 5 + [1] * 5 + [0] * 2
    # Five intervals for each lane, the latest.
    timeline = made("wide").read(LEADER_AND_ISR_TIMELINE).where("sequence >= 5")
    latest = {tuple(row) for row in timeline.select(*PARTITION_KEY[1:], ms("valid_from")).collect()}
    assert {len(lane.segments) for lane in lanes} == {5}
    assert {
        (lane.topic, lane.topic_incarnation, lane.partition_id, segment.from_ms)
        for lane in lanes
        for segment in lane.segments
    } <= latest
    page = render(data, "t")
    assert "12 of 200 partitions are drawn" in page
    assert "12 lanes show only the latest" in page
    assert "60 of 2,000 intervals are drawn" in page
    assert "4 of 10 findings are shown below" in page


def test_a_scope_shows_its_topic_broker_and_time_and_counts_as_sql_does(made):
    wide, show = made("wide"), lambda _: None
    of_topic = gather(wide, show, scope=Scope(topic="orders.04")).clusters[0]
    lanes = of_topic.of(partitions.SECTION)
    assert {lane.topic for lane in lanes} == {"orders.04"}
    assert (len(lanes), lanes[0].partitions_total, lanes[0].topics_total) == (20, 20, 1)
    assert {finding.topic for finding in of_topic.of(findings.SECTION).worst} == {"orders.04"}
    of_broker = gather(wide, show, scope=Scope(broker=2)).clusters[0].of(partitions.SECTION)
    here = wide.read(ASSIGNMENT_TIMELINE).where("array_contains(replicas, 2)").select(*PARTITION_KEY).distinct()
    assert of_broker[0].partitions_total == here.count() == 101
    begin, end = at(305), at(312.5)
    data = gather(wide, show, scope=Scope(begin=begin, end=end))
    offline = {lane.name: lane.offline_ms for lane in data.clusters[0].of(partitions.SECTION) if lane.offline_ms}
    clipped = wide.read(AVAILABILITY_INTERVALS).where("kind = 'offline'").where(F.col("valid_from") < end)
    rows = clipped.where(F.col("valid_to") > begin).collect()
    assert offline == {
        f"{row.topic}-{row.partition_id}": pytest.approx(
            (
                min(row.valid_to, end.replace(tzinfo=None)) - max(row.valid_from, begin.replace(tzinfo=None))
            ).total_seconds()
            * 1000
        )
        for row in rows
    }
    assert len(offline) == 6
    assert (data.clusters[0].span.from_ms, data.clusters[0].span.to_ms) == (
        begin.timestamp() * 1000,
        end.timestamp() * 1000,
    )
    page = render(data, "t")
    assert "Only from 2026-11-21 10:05:05.000, before 2026-11-21 10:05:12.500 is shown" in page


def test_a_scope_that_nothing_is_in_is_refused_with_the_nearest_name(made):
    with pytest.raises(
        NothingInScope, match=r"no cluster of the lake has a topic 'order\.04'; did you mean orders\.04 or"
    ):
        gather(made("wide"), lambda _: None, scope=Scope(topic="order.04"))
    with pytest.raises(NothingInScope, match=r"no cluster of the lake has a broker 77$"):
        gather(made("wide"), lambda _: None, scope=Scope(topic="orders.04", broker=77))


def test_topics_of_many_partitions_have_a_strip_each_the_worst_first(made, gathered):
    assert gathered.clusters[0].of(topics.SECTION) == ()  # four partitions
    found = gather(made("wide"), lambda _: None).clusters[0].of(topics.SECTION)
    assert [topic.errors for topic in found] == [1] * 5 + [0] * 5
    assert [topic.warnings for topic in found] == [0] * 5 + [1] * 5
    assert {(topic.partitions, topic.topics_total) for topic in found} == {(20, 10)}
    rows = made("wide").read(AVAILABILITY_INTERVALS).where("kind = 'under_replicated'").collect()
    for topic in found:
        most = {row.kind: max(step.partitions for step in row.counts) for row in topic.kinds}
        spans = [(row.valid_from, row.valid_to) for row in rows if row.topic == topic.topic]
        at_once = max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)
        assert most == {"offline": 1, "under_replicated": at_once}


def test_counts_over_time_are_exact_where_they_change(gathered):
    counts = {row.kind: row.counts for row in gathered.clusters[0].of(trouble.SECTION)}
    most = {kind: max(step.partitions for step in steps) for kind, steps in counts.items()}
    assert most == {"offline": 2, "under_replicated": 4}
    assert counts["offline"][-1].partitions == 0
    assert abs(counts["offline"][0].at_ms - at(245.7).timestamp() * 1000) <= 1500


def test_the_verdicts_are_those_of_the_latest_run(gathered):
    assert gathered.clusters[0].of(findings.SECTION).rules == (RuleVerdicts("R02", 41, 0, 0),)


def test_evidence_is_found_by_record_and_what_is_not_there_is_said(pages):
    page = pages("incident")[0].read_text(encoding="utf-8")
    assert "broker-2/logs/controller.log:31" in page
    assert "No broker in ISR is alive for ledger-0." in page
    assert "record lost-record: not found among the bronze records" in page


def test_the_messages_that_no_shape_knows_are_listed_by_template(pages):
    page = pages("incident")[0].read_text(encoding="utf-8")
    assert "Something new happened to &lt;partition&gt; at offset N" in page
    assert 'data-copies="unrecognised-1"' in page


def test_an_empty_lake_and_one_of_missing_tables(pages, spark, tmp_path):
    assert "The lake holds nothing to report" in pages("empty")[0].read_text(encoding="utf-8")
    report = write_report(Lake(spark, str(tmp_path / "none")), str(tmp_path / "out"), progress=lambda _: None)
    assert "Nothing to report" in report.summary[0]


def test_several_clusters_have_a_section_each(spark, empty_lake_dir, tmp_path):
    shutil.copytree(empty_lake_dir, tmp_path / "lake")
    lake = Lake(spark, str(tmp_path / "lake"))
    for name in ("east", "west"):
        incident.write_incident(lake, name, f"topic.{name}")
    data = gather(lake, lambda _: None)
    assert [c.cluster_id for c in data.clusters] == ["east", "west"]
    assert {lane.topic for lane in data.clusters[1].of(partitions.SECTION)} == {"topic.west", "safe"}
    assert {row.findings for c in data.clusters for row in c.of(findings.SECTION).counts} == {1}


@pytest.mark.parametrize("name", ["incident", "wide", "hostile", "empty"])
def test_the_page_opens_without_error_and_without_network(browser, pages, name):
    path = pages(name)[0]
    began = time.monotonic()
    page = browser.open(path)
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    ready = page.value("document.documentElement.dataset.ready")
    size = path.stat().st_size
    print(
        f"\n{name}: {size:,} bytes, ready {ready} ms after the navigation, open after {time.monotonic() - began:.1f} s"
    )
    assert page.errors == []
    assert page.requests == []
    assert size < 1_000_000


def test_two_hundred_partitions_are_shown_fifty_at_a_time(browser, pages):
    page = browser.open(pages("wide")[0])
    count, more = "document.querySelector('.filter-count').textContent", "document.querySelector('.more')"
    assert page.value("document.querySelectorAll('.lanes .row').length") == 200
    assert page.value(count) == "50 of 200 lanes"
    page.value("document.querySelector('.topics button').click()")
    assert page.value(count) == "20 of 200 lanes"
    assert page.value(f"[{more}.hidden, new Set({SHOWN}.map(name => name.split('-')[0])).size]") == [True, 1]
    page.value("(t => { t.value = ''; t.dispatchEvent(new Event('input')); })(document.querySelector('.filter-text'))")
    for _ in range(3):
        page.value(f"{more}.click()")
    assert page.value(f"[{count}, {more}.hidden]") == ["200 of 200 lanes", True]
    page.value("document.querySelector('#lane-0-199').scrollIntoView()")
    page.settle()
    painted = "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0))"
    page.wait_for(f"{painted}(document.querySelector('#lane-0-199 canvas'))")


def test_hostile_texts_are_shown_and_not_executed(browser, pages, tmp_path):
    written = pages("hostile")[0].read_text(encoding="utf-8")
    # The escaping must hold alone, not only behind the policy.
    bare = tmp_path / "bare.html"
    bare.write_text(written.replace('http-equiv="Content-Security-Policy"', 'name="none"'), encoding="utf-8")
    for path in (pages("hostile")[0], bare):
        page = browser.open(path)
        page.settle()
        assert page.errors == []
        assert page.value("document.title").startswith("Kafka state replay: </script>")
        assert page.value("document.querySelectorAll('script').length") == 2
        assert page.value("document.querySelectorAll('img').length") == 0
        labels = page.value("[...document.querySelectorAll('.lanes .label b')].map(n => n.textContent)")
        assert sorted(labels)[:2] == ["<!--<script>document.title='PWNED'//-1", incident.HOSTILE[0] + "-0"]
        page.value("document.querySelector('.lanes .label').click()")
        assert page.value("document.title").startswith("Kafka state replay: ")


def test_the_policy_refuses_scripts_and_the_network(browser, pages):
    page = browser.open(pages("incident")[0])
    page.value(
        "(() => { const s = document.createElement('script'); s.textContent = 'document.title = \"PWNED\"';"
        " document.body.append(s); const i = new Image(); i.src = 'https://example.invalid/x.png'; })()"
    )
    page.settle()
    assert page.value("document.title") != "PWNED"
    assert "Content Security Policy" in " ".join(page.errors)


def test_lanes_are_filtered_by_text_and_by_severity(browser, pages):
    page = browser.open(pages("incident")[0], fragment="#q=ledger")
    assert sorted(page.value(SHOWN)) == ["ledger-0", "ledger-1", "ledger-2"]
    page.value(
        "(s => { s.value = 'error'; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector('.filter-severity'))"
    )
    assert page.value(SHOWN) == ["ledger-0"]
    assert page.value("location.hash") == "#cluster=0&q=ledger&severity=error"
    assert page.value("[...document.querySelectorAll('.finding')].filter(f => !f.hidden).length") == 1


def test_a_finding_leads_to_its_lane_and_marks_the_instant(browser, pages):
    page = browser.open(pages("incident")[0])
    page.value("document.querySelector('#finding-0-0 button').click()")
    page.settle()
    assert page.value("document.activeElement.dataset.name") == "ledger-0"
    assert page.value("document.activeElement.row.mark + document.activeElement.row.chart.base") == pytest.approx(
        LEDGER
    )
    top = page.value("document.activeElement.getBoundingClientRect().top")
    assert 0 < top < 900


def test_hover_says_the_exact_values(browser, pages):
    page = browser.open(pages("incident")[0])
    page.value("document.querySelector('#lane-0-0').scrollIntoView({block: 'center'})")
    page.settle()
    x, y = page.value(
        "(r => { const b = r.plot.getBoundingClientRect();"
        f" return [b.left + r.chart.view.x({LEDGER} + 4000 - r.chart.base, b.width), b.top + 15]; }})"
        "(document.querySelector('#lane-0-0').row)"
    )
    page.point(x, y)
    page.settle()
    text = page.value("document.querySelector('.tip.shown').innerText")
    for part in (
        "ledger-0: leader 2",
        "[2], out: 1, 3",
        "2026-11-21 10:04:12.310",
        "2026-11-21 10:04:20.000",
        "observed",
        "broker-2/logs/state-change.log:212",
    ):
        assert part in text


def test_keys_step_through_a_lane_zoom_and_list_it(browser, pages):
    page = browser.open(pages("incident")[0])
    page.value("document.querySelector('#lane-0-0').focus()")
    page.settle()  # the focus scrolls the page, and scrolling hides what is shown of a lane
    page.press("ArrowRight")
    page.wait_for("document.querySelector('.tip.shown') !== null")
    assert "ledger-0: leader 1" in page.value("document.querySelector('.tip.shown').innerText")
    span = "document.querySelector('#lane-0-0').row.chart.view.span"
    before = page.value(span)
    page.press("+")
    assert page.value(span) == pytest.approx(before * 0.6)
    page.press("0")
    assert page.value(span) == pytest.approx(before)
    page.press("Enter")
    assert page.value("document.querySelectorAll('.intervals tbody tr').length") == 6
    page.press("ArrowDown")
    assert page.value("document.activeElement.id") == "lane-0-1"


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False), (390, True)])
def test_it_fits_the_window_and_is_looked_at(browser, pages, tmp_path, width, dark):
    page = browser.open(pages("incident")[0], width, 900, dark=dark)
    assert page.value("document.documentElement.scrollWidth") <= width
    luminance = page.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (luminance < 60) == dark
    page.screenshot(tmp_path / "page.png", whole=True)
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_it_prints(browser, pages, tmp_path):
    page = browser.open(pages("wide")[0])
    page.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 50_000
    # Every lane shown was painted for the printer, also those that were never on the screen.
    shown = page.value("[...document.querySelectorAll('.lanes .row:not([hidden]) canvas')].map(c => c.width)")
    assert len(shown) == 50
    assert min(shown) > 300
