"""The page: escaped, self-contained, complete, and the same for the same data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from dashboards.numbered import Numbered
from dashboards.payload import script_json
from dashboards.render import render
from dashboards.report import summary_lines
from dashboards.source import Limits
from tests.support.lakes.incident import HOSTILE

EMPTY = (
    "files",
    "coverage",
    "clocks",
    "rejected",
    "unrecognised",
    "controllers",
    "liveness",
    "availability",
    "longest",
    "inferred",
    "partitions",
    "segments",
    "assignments",
    "unavailable",
    "finding_counts",
    "rules",
    "findings",
    "curves",
)
PLACE = {"topic": "ledger", "topic_incarnation": "7", "partition_id": 0}


def cluster(**tables):
    span = {"from_ms": 1000, "to_ms": 9000, "first_ms": 0, "last_ms": 9000, "known": True}
    return (
        {"cluster_id": "c", "totals": {}, "span": span, "records": {}, "counts": {}, "unsaid": {"told": [], "more": 0}}
        | {n: [] for n in EMPTY}
        | tables
    )


def data(*clusters):
    return {
        "checks": {"verdicts": {}, "broken": []},
        "clusters": list(clusters),
        "clusters_total": len(clusters),
        "limits": Limits(),
    }


def finding(text, **values):
    return {
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
        "evidence": ["r1"],
        "evidence_count": 1,
    } | values


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
    records = {"r1": {"source_file": text, "source_line": 1, "source_kind": "server_log", "broker_id": 1, "text": text}}
    plain = Tags(render(data(cluster(findings=[finding("x")], records={})), "title"))
    hostile = Tags(render(data(cluster(findings=[finding(text)], records=records, cluster_id=text)), text))
    assert len(hostile.scripts) == len(plain.scripts) == 2
    assert not [tag for tag, _ in hostile.tags if tag == "img"]
    assert not [name for _, attributes in hostile.tags for name in attributes if name.startswith("on")]
    assert json.loads(hostile.scripts[0])["clusters"][0]["findings"][0][0] == 2000


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


def test_an_empty_lake_says_what_to_do():
    page = render(data(), "t")
    assert "The lake holds nothing to report" in page
    assert "This lake was not checked" in page
    assert "Nothing to report" in summary_lines(data())[0]


def test_a_cluster_without_timelines_says_what_is_missing():
    page = render(data(cluster()), "t")
    for said in (
        "Nothing could be judged",
        "no controller.log, state-change.log or znode names a controller",
        "None is known. Leaders come from",
        "neither znode snapshots of /brokers/ids",
        "no file states its version",
    ):
        assert said in page


def test_what_is_cut_off_is_said():
    rows = [
        {
            **PLACE,
            "segments": 900,
            "offline_ms": 0,
            "partitions_total": 5000,
            "topics_total": 40,
            "segments_total": 70_000,
            "without_timeline_total": 0,
        }
    ]
    counts = [
        {
            "severity": "error",
            "rule_id": "R01",
            "divergence_type": "x",
            "findings": 1234,
            "partitions": 3,
            "first_ms": 1,
            "last_ms": 2,
        }
    ]
    page = render(data(cluster(partitions=rows, finding_counts=counts, findings=[finding("x")])), "t")
    assert "1 of 5,000 partitions are drawn" in page
    assert "0 of 70,000 intervals are drawn" in page
    assert "1 of 1,234 findings are told below" in page
    assert "gold.divergences" in page


def test_failed_checks_are_named():
    checked = data(cluster())
    checked["checks"] = {
        "verdicts": {"kept": 4, "broken": 1},
        "broken": [
            {
                "check_id": "silver.x.unique",
                "table_name": "silver.x",
                "severity": "critical",
                "checked_count": 9,
                "broken_count": 2,
                "examples": None,
                "explanation": "Keys are unique.",
            }
        ],
    }
    page = render(checked, "t")
    assert "1 check of these tables failed" in page
    assert "silver.x.unique" in page
    assert "This lake was not checked" not in page
    assert "Great Expectations" not in page
    checked["checks"]["docs"] = "data-docs/index.html"
    assert '<a href="data-docs/index.html">' in render(checked, "t")


def test_the_same_data_gives_the_same_bytes():
    assert render(data(cluster(findings=[finding("x")])), "t") == render(data(cluster(findings=[finding("x")])), "t")


def test_the_script_is_small():
    page = render(data(), "t")
    assert len(page) < 80_000


def test_values_are_numbered_once():
    numbers = Numbered()
    assert [numbers.of([1, 2], (1, 2)), numbers.of([1], (1,)), numbers.of([1, 2], (1, 2))] == [0, 1, 0]
    assert numbers.values == [[1, 2], [1]]


def test_messages_that_no_shape_knows_can_be_copied_without_where_they_come_from():
    row = {
        "records": 1200,
        "kafka_version": "3.9.1",
        "source_kind": "server_log",
        "log_level": "INFO",
        "logger": "kafka.X",
        "template": "moved <partition> by N",
        "source_file": "broker-1/server.log",
        "source_line": 3,
        "groups_total": 1,
        "records_total": 1200,
    }
    page = render(data(cluster(unrecognised=[row])), "t")
    assert "1,200 records in 1 template" in page
    assert "<code>moved &lt;partition&gt; by N</code>" in page
    assert 'data-copies="unrecognised-1"' in page
    assert 'id="unrecognised-1"' in page
    assert "<td data-private><small>broker-1/server.log:3</small></td>" in page


def test_clocks_are_told_with_their_span_where_one_was_set() -> None:
    row = {
        "broker_id": 2,
        "verdict": "skewed",
        "reference": -1,
        "offset_lower_ms": 498,
        "offset_upper_ms": 503,
        "zone_offset_minutes": None,
        "correction_us": 500_500,
        "pairs_count": 9,
        "dropped_pairs_count": 0,
        "from_ms": 0.0,
        "to_ms": 5_000.0,
    }
    once = render(data(cluster(clocks=[row])), "t")
    assert "Broker 2&#39;s clock was between 498 ms and 503 ms ahead of ZooKeeper&#39;s" in once
    assert "as printed" not in once
    assert "as printed" in render(data(cluster(clocks=[row, row])), "t")
