"""The page: escaped, self-contained, complete, and the same for the same data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import pytest
from jinja2 import Environment

from dashboards.gather import ReportData
from dashboards.payload import Packing, script_json
from dashboards.records import Record
from dashboards.render import _environment as page_templates
from dashboards.render import compile_templates, marked, render, tracked
from dashboards.report import summary_lines
from dashboards.section import Cluster, Span
from dashboards.sections.checks import BrokenCheck, Checks
from dashboards.sections.cluster.clocks import ClockSegment
from dashboards.sections.coverage.attribution import AttributedFiles
from dashboards.sections.coverage.files import AmbiguousCluster
from dashboards.sections.coverage.unrecognised import UnrecognisedTemplate
from dashboards.sections.findings import Finding, FindingCount, Findings, RuleVerdicts
from dashboards.sections.timelines.partitions import Lane
from dashboards.source import FileTotals
from dashboards.texts.numbers import address
from tests.support.lakes.incident import HOSTILE

PLACE = {"topic": "ledger", "topic_incarnation": "7", "partition_id": 0}


def cluster(cluster_id="c", records=None, totals=None, **sections):
    """A cluster with the data of these sections, by the section's name with ``__`` for a slash."""
    named = {name.replace("__", "/"): data for name, data in sections.items()}
    span = Span(1000, 9000, 0, 9000, is_known=True)
    return Cluster(0, cluster_id, named, totals or FileTotals(), span, records or {})


def data(*clusters, **values):
    return ReportData(clusters, len(clusters), **values)


def finding(text, **values):
    made = {
        **PLACE,
        "divergence_id": text,
        "broker_id": 1,
        "replica_id": None,
        "rule_id": text,
        "divergence_type": text,
        "severity": "error",
        "at_ms": 2000,
        "expected": text,
        "observed": text,
        "explanation": text,
        "known_issue": text,
        "rule_source": text,
        "inferred_from": None,
        "evidence": ("r1",),
        "evidence_count": 1,
    }
    return Finding(**(made | values))


def with_finding(text, **values):
    return Findings(worst=(finding(text, **values),))


class Tags(HTMLParser):
    """Every element with its attributes, and the texts of scripts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.scripts, self._in = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._in = None

    def handle_data(self, text):
        if self._in == "script":
            self.scripts[-1] += text


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_from_a_log_adds_no_element(text):
    records = {"r1": Record(text, 1, "server_log", 1, text)}
    plain = Tags(render(data(cluster(findings=with_finding("x"))), "title"))
    hostile = Tags(render(data(cluster(text, records, findings=with_finding(text))), text))
    assert len(hostile.scripts) == len(plain.scripts) == 2
    assert not [tag for tag, _ in hostile.tags if tag == "img"]
    assert not [name for _, attributes in hostile.tags for name in attributes if name.startswith("on")]
    assert json.loads(hostile.scripts[0])["clusters"][0]["findings"]["columns"]["at_ms"] == [2000]


def test_json_in_a_script_element_cannot_end_it_and_reads_back():
    value = {"a": [*HOSTILE, "\u2028\u2029", None, 1.5]}
    text = script_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_the_policy_allows_this_script_and_this_style_and_nothing_else():
    page = render(data(), "t")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1).replace("&#39;", "'")
    script = page.rsplit("<script>", 1)[1].split("</script>")[0]
    style = page.split("<style>")[1].split("</style>")[0]
    hashes = [
        "'sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() + "'" for t in (script, style)
    ]
    assert policy == (
        f"default-src 'none'; script-src {hashes[0]}; style-src {hashes[1]}; base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_loaded_from_elsewhere():
    tags = Tags(render(data(cluster()), "t")).tags
    assert not [a for _, a in tags if "src" in a or a.get("href", "#")[:1] != "#" or "style" in a]


def test_no_template_is_left_to_be_compiled_when_the_page_is_rendered(monkeypatch):
    page_templates.cache_clear()
    compile_templates()
    monkeypatch.setattr(Environment, "compile", lambda *_, **__: pytest.fail("compiled again"))
    assert "<html" in render(data(cluster()), "t")


def test_an_empty_lake_says_what_to_do():
    page = render(data(), "t")
    assert "The lake holds nothing to report" in page
    assert "This lake was not checked" in page
    assert "Nothing to report" in summary_lines(data())[0]


def test_a_cluster_without_timelines_says_what_is_missing():
    page = render(data(cluster()), "t")
    for text in (
        "Nothing could be judged",
        "no controller.log, state-change.log or znode names a controller",
        "None is known. Leaders come from",
        "neither znode snapshots of /brokers/ids",
        "no file states its version",
    ):
        assert text in page


def test_what_is_cut_off_is_said():
    lane = Lane(**PLACE, segments_count=900, partitions_total=5000, topics_total=40, segments_total=70_000)
    found = Findings((FindingCount("error", "R01", "x", 1234, 3, 1, 2),), (finding("x"),))
    page = render(data(cluster(timelines__partitions=(lane,), findings=found)), "t")
    assert "1 of 5,000 partitions are drawn" in page
    assert "0 of 70,000 intervals are drawn" in page
    assert "1 of 1,234 findings are shown below" in page
    assert "gold.divergences" in page


def test_failed_checks_are_named():
    broken = BrokenCheck("silver.x.unique", "silver.x", "critical", 9, 2, None, "Keys are unique.")
    checks = Checks({"kept": 4, "broken": 1}, (broken,))
    page = render(data(cluster(), checks=checks), "t")
    assert "1 check of these tables failed" in page
    assert "silver.x.unique" in page
    assert "This lake was not checked" not in page
    assert "Great Expectations" not in page
    with_docs = data(cluster(), checks=replace(checks, docs="data-docs/index.html"))
    assert '<a href="data-docs/index.html">' in render(with_docs, "t")


def test_the_same_data_gives_the_same_bytes():
    assert render(data(cluster(findings=with_finding("x"))), "t") == render(
        data(cluster(findings=with_finding("x"))), "t"
    )


def test_the_script_is_small():
    page = render(data(), "t")
    assert len(page) < 80_000


@dataclass(frozen=True)
class Row:
    from_ms: float
    isr: tuple[int, ...]
    evidence: str | None = None


def test_rows_are_sent_as_columns_and_repeated_values_once():
    packed = Packing(1000, {"r": Record("a.log", 7)}).value(
        (Row(1000.0, (1, 2), "r"), Row(1500.5, (1, 2)), Row(3000.0, (1, 2)), Row(4000.0, (1, 2)))
    )
    assert packed == {
        "columns": {
            "from_ms": [0, 500.5, 2000, 3000],
            "isr": {"values": [[1, 2]], "rows": [0, 0, 0, 0]},
            "file": {"values": ["a.log", None], "rows": [0, 1, 1, 1]},
            "line": [7, None, None, None],
        }
    }


def test_messages_that_no_shape_knows_can_be_copied_without_where_they_come_from():
    row = UnrecognisedTemplate(
        1200, "3.9.1", "server_log", "kafka.X", "INFO", "moved <partition> by N", "broker-1/server.log", 3, 1, 1200
    )
    page = render(data(cluster(coverage__unrecognised=(row,))), "t")
    assert "1,200 records in 1 template" in page
    assert "<code>moved &lt;partition&gt; by N</code>" in page
    assert 'data-copies="unrecognised-1"' in page
    assert 'id="unrecognised-1"' in page
    assert "<td data-private><small>broker-1/server.log:3</small></td>" in page


def test_clocks_are_told_with_their_span_where_one_was_set() -> None:
    row = ClockSegment(2, 0.0, 5_000.0, "skewed", -1, 498, 503, None, 500_500, 9, 0)
    once = render(data(cluster(cluster__clocks=(row,))), "t")
    assert "Broker 2&#39;s clock was between 498 ms and 503 ms ahead of ZooKeeper&#39;s" in once
    assert "as printed" not in once
    assert "as printed" in render(data(cluster(cluster__clocks=(row, row))), "t")


def test_proven_harm_comes_first_and_only_it_is_red() -> None:
    lost = finding("lost", severity="warning", harm="records_lost", alternatives=("copy_without_a_time",))
    cheap = finding("cheap", harm="none")
    counts = (
        FindingCount("warning", "R08", "unclean_election", 2, 1, 1, 2, "records_lost"),
        FindingCount("error", "R37", "checkpoint_missing", 1, 1, 1, 2, "none"),
        FindingCount("info", "R08", "unclean_election", 1, 1, 1, 2, "possible"),
    )
    harmed = data(cluster(findings=Findings(counts, (lost, cheap))))
    page = render(harmed, "t")
    card = page.split('<div class="card verdict harm">')[1]
    sentence = "Harm is proven: committed records were lost (2 findings)."
    assert card.lstrip().startswith(f'<p class="bad">{sentence}</p>')
    listed = re.findall(r'<details class="finding".*?</summary>', page, re.DOTALL)
    assert 'data-severity="warning harm"' in listed[0]
    assert '<span class="badge harm">records lost</span><span class="badge warning">' in listed[0]
    assert 'data-severity="error"' in listed[1]
    assert "no harm" in listed[1]
    assert "badge harm" not in listed[1]
    assert "<small>harm possible</small>" in page
    assert "copy without a time (possible, with no rule broken)" in page
    terminal = summary_lines(harmed)
    assert sentence in terminal
    assert any(line.startswith("  records lost, warning lost at ") for line in terminal)


def test_an_error_without_proven_harm_is_no_harm() -> None:
    found = Findings((FindingCount("error", "R01", "x", 1, 1, 1, 2),), (finding("x"),))
    page = render(data(cluster(findings=found)), "t")
    assert '<div class="card verdict error">' in page
    assert "Harm is proven" not in page
    assert "badge harm" not in page.split("</style>")[1]


def test_what_was_judged_says_of_which_severity_the_broken_ones_are() -> None:
    counts = (FindingCount("error", "R08", "x", 1), FindingCount("warning", "R08", "x", 2, harm="possible"))
    judged = (RuleVerdicts("R08", 7, 3, 1), RuleVerdicts("R12", 7, 0, 0))
    page = render(data(cluster(findings=Findings(counts, (finding("x"),), judged))), "t")
    assert '<td class="n">3<br><small>1 error and 2 warnings</small></td>' in page
    assert '<td class="n">0</td>' in page
    assert "Broken means an error" not in page


def test_warnings_of_the_checks_say_that_the_tables_are_whole_and_what_to_do() -> None:
    name = "quality.run_metrics.rejected_records_ratio_warning"
    warning = BrokenCheck(name, "quality.run_metrics", "warning", 9, 2, None, "share of the records read")
    checks = Checks({"kept": 4, "broken": 1}, (warning,))
    assert checks.verdict == (
        f"1 warning of the checks: {name}. The tables are whole; less can be said from what was given."
    )
    page = render(data(cluster(), checks=checks), "t")
    assert checks.verdict in page
    assert "To do: the report lists them by reason under Coverage" in page
    assert checks.verdict in summary_lines(data(cluster(), checks=checks))


def test_files_of_unknown_clusters_are_told_and_crowd_nothing() -> None:
    rows = (AttributedFiles("time", 2, "b1/server.log"), AttributedFiles("nothing", 1, "x.log"))
    ambiguous = tuple(AmbiguousCluster(f"unknown-{n}", 1, 1, 7, 1, 2, f"logs/{n}.log") for n in range(60))
    unread = AmbiguousCluster("unknown", 3, 0, 0, None, None, "logs/notes.txt")
    page = render(data(cluster(coverage__attribution=rows), ambiguous=(*ambiguous, unread)), "t")
    assert "3 files that were not read: counted with no cluster" in page
    assert "2 files in a folder of several clusters: taken for the one" in page
    assert "1 file of which neither the file nor one beside it says the cluster" in page
    assert page.count("--broker ID=PATH") == 2
    assert "60 logs may be of several clusters" in page
    assert page.count('<section class="cluster"') == 1
    assert "unknown-49" in page
    assert "The first 50 are listed" in page


def test_of_several_clusters_the_first_lines_say_where_harm_is_proven() -> None:
    counts = (FindingCount("warning", "R35", "committed_records_lost", 2, 1, 1000, 1000, harm="records_lost"),)
    harmed = cluster("<b>a", findings=Findings(counts))
    both = render(data(replace(cluster("quiet"), number=0), replace(harmed, number=1)), "t")
    listed = both.split('id="clusters"')[1].split("</ul>")[0]
    assert listed.count("<li>") == 2
    assert '<a href="#cluster-0">quiet</a>: no finding proves harm. No incident.' in listed
    assert '<a href="#cluster-1">&lt;b&gt;a</a>: <span class="bad">Harm is proven: ' in listed
    assert 'id="clusters"' not in render(data(harmed), "t")


def test_an_issue_of_kafka_s_tracker_is_a_link_and_what_is_beside_it_is_text():
    link = '<a href="https://issues.apache.org/jira/browse/KAFKA-3410" rel="noreferrer">KAFKA-3410</a>'
    assert str(tracked("KAFKA-3410; <b>")) == f"{link}; &lt;b&gt;"
    assert str(tracked("KAFKA-x\x1b")) == "KAFKA-x\\x1b"


def test_a_finding_s_texts_link_kafka_s_issues_and_proposals():
    text = "up to 2.0 (KIP-279), see KAFKA-7128 and KIP-9999"
    page = render(data(cluster(findings=with_finding("R36", explanation=text))), "t")
    said = page.split('data-field="explanation">')[1].split("</span>")[0]
    assert re.findall(r'<a href="([^"]+)" rel="noreferrer">([^<]+)</a>', said) == [
        (address("KIP-279"), "KIP-279"),
        ("https://issues.apache.org/jira/browse/KAFKA-7128", "KAFKA-7128"),
    ]
    assert "KIP-279%3A+Fix+log+divergence" in said
    assert said.endswith("and KIP-9999")
    assert str(marked("*error* (KIP-101)")).startswith('<em>error</em> (<a href="')
