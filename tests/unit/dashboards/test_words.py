"""The report's sentences say what the rows say."""

from __future__ import annotations

import pytest

from dashboards import words
from dashboards.sections import availability, findings
from dashboards.sections.availability import Availability, KindSummary, LongInterval
from dashboards.sections.cluster import controllers
from dashboards.sections.cluster.controllers import Tenure
from dashboards.sections.coverage import certainty
from dashboards.sections.coverage.certainty import Inference
from dashboards.sections.findings import FindingCount, RuleVerdicts

TEN_PAST = 1795255812310.0  # 2026-11-21 10:10:12.310 UTC


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0, "0 ms"),
        (310, "310 ms"),
        (6_610, "6.610 s"),
        (234_700, "3 min 54.7 s"),
        (7_500_000, "2 h 05 min"),
        (273_600_000, "3 d 04 h"),
        (None, "–"),
    ],
)
def test_durations(ms, expected):
    assert words.duration(ms) == expected


def test_instants_are_utc_with_milliseconds():
    assert words.instant(TEN_PAST) == "2026-11-21 10:10:12.310"
    assert words.clock(TEN_PAST) == "10:10:12.310"
    assert words.instant(0.9996) == "1970-01-01 00:00:00.001"
    assert words.instant(None) == "–"


def test_an_instant_before_1970_is_no_crash():
    assert words.instant(-1) == "1969-12-31 23:59:59.999"


def test_hidden_characters_are_spelled_out():
    assert words.visible("a\u202eb\x1b[31m\u2028c") == "a\\u202eb\\x1b[31m\\u2028c"
    assert words.visible("plain\ttext\nin two lines") == "plain\ttext\nin two lines"
    assert words.visible("\ud800") == "\\ud800"


def test_a_listing_counts_what_it_leaves_out():
    assert words.listing([]) == ""
    assert words.listing(["a"]) == "a"
    assert words.listing("abcd") == "a, b, c and d"
    assert words.listing("abcdef") == "a, b, c and 3 more"
    assert words.listing("abcdef", total=310) == "a, b, c and 307 more"
    assert words.listing("ab", total=3) == "a, b and 1 more"
    assert words.listing("abc", total=3) == "a, b and c"


def count(severity, findings):
    return FindingCount(severity, "R08", "unclean_election", findings)


def test_findings_are_counted_by_severity_and_rule():
    rows = [count("error", 2), count("info", 1)]
    assert findings.verdict(rows, True) == "3 findings (2 errors and 1 info): R08 unclean election (3)."


def test_no_finding_is_not_the_same_as_nothing_judged():
    assert "No findings" in findings.verdict([], True)
    assert findings.verdict([], True, [RuleVerdicts("R01", kept=40, broken=0, cannot_be_judged=1)]) == (
        "No findings: 1 rule judged 40 times and kept each time; 1 time the evidence allowed no verdict."
    )
    assert "Nothing could be judged" in findings.verdict([], False)
    assert "No partition was offline" in availability.offline_verdict(Availability(), True, 4)
    assert "unknown" in availability.offline_verdict(Availability(), False, 0)


def test_the_offline_sentence_names_the_worst_and_what_is_still_open():
    summary = KindSummary("offline", intervals=3, partitions=2, total_ms=9_000, longest_ms=6_000, open=1)
    longest = LongInterval("ledger", "7", 0, "offline", lasted_ms=6_000, from_ms=TEN_PAST, to_ms=None)
    assert availability.offline_verdict(Availability((summary,), (longest,)), True, 8) == (
        "2 partitions of 8 had no registered leader, 3 times in all, for 9.000 s together; longest ledger-0, 6.000 s,"
        " from 10:10:12.310 and still at the end of the evidence. 1 partition had no leader when the evidence ends."
    )


def test_the_time_without_a_live_leader_is_a_range_where_only_bounds_are_known():
    registered = KindSummary("offline", intervals=1, partitions=1, total_ms=55, longest_ms=55, open=0)
    live = KindSummary(
        "no_live_leader", 1, 1, total_ms=20, longest_ms=20, open=0, total_most_ms=4400, longest_most_ms=4400
    )
    longest = LongInterval("a", "7", 0, "no_live_leader", 20, TEN_PAST, TEN_PAST + 20, most_ms=4400)
    assert availability.offline_verdict(Availability((live, registered), (longest,)), True, 8) == (
        "1 partition of 8 had no live leader, 1 time in all, for 20 ms to 4.400 s together; longest a-0, 20 ms to"
        " 4.400 s, from 10:10:12.310 or earlier to 10:10:12.330. 1 partition of 8 had no registered leader, 1 time in"
        " all, for 55 ms together."
    )


def test_controllers_in_order_and_the_rest_counted():
    text = controllers.verdict([Tenure(n, n, 0.0, None, total=9) for n in (1, 2, 3, 4)])
    assert text.startswith(
        "Controller: broker 1 (epoch 1, from 00:00:00.000 to the end of the evidence), then broker 2"
    )
    assert text.endswith("and 6 more tenures.")


def test_instants_of_several_days_carry_their_day():
    tenure = Tenure(1, 1, 0.0, 86_400_000.0)
    assert "from 1970-01-01 00:00:00.000 to 1970-01-02 00:00:00.000" in controllers.verdict([tenure])


def test_observed_inferred_and_unknown_are_told_apart():
    assert certainty.sentence([Inference(None, 12), Inference("znode_snapshot", 5)], 2) == (
        "Of 17 leader-and-ISR intervals, 12 were observed and 5 inferred (5 znode snapshot)."
        " Of 2 partitions no leader is known at all."
    )


def test_every_vocabulary_word_has_its_sentence():
    from ingest.lake.tables import gold, shared

    assert set(availability.KIND_WORDS) == set(gold.AVAILABILITY_KINDS)
    assert set(words.INFERRED_WORDS) == set(shared.INFERRED_FROM)
