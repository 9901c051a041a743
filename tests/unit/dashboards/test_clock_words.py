"""What the report says of clocks."""

from __future__ import annotations

from typing import Any

from dashboards.sections.cluster.clocks import ClockSegment, clock_sentence


def sentence(**values: Any) -> str:
    row = {
        "broker_id": 2,
        "from_ms": 0.0,
        "to_ms": None,
        "verdict": "agrees",
        "reference": -1,
        "offset_lower_ms": -3,
        "offset_upper_ms": 2,
        "zone_offset_minutes": None,
        "correction_us": None,
        "pairs_count": 140,
        "dropped_pairs_count": 0,
    }
    return clock_sentence(ClockSegment(**(row | values)))


def test_a_clock_that_agrees() -> None:
    assert sentence() == (
        "Broker 2's clock was between -3 ms and 2 ms ahead of ZooKeeper's (140 causal pairs, none against the others);"
        " nothing was corrected."
    )


def test_a_log_in_another_zone() -> None:
    assert sentence(
        verdict="other_zone",
        zone_offset_minutes=-150,
        offset_lower_ms=-9_000_003,
        offset_upper_ms=-8_999_998,
        correction_us=-9_000_000_000,
    ) == (
        "Broker 2's log is in UTC-02:30; but for that its clock was between -3 ms and 2 ms ahead of ZooKeeper's"
        " (140 causal pairs, none against the others); its times were taken 2 h 30 min later before anything was"
        " ordered."
    )


def test_a_clock_that_is_bounded_on_one_side_against_a_broker() -> None:
    assert sentence(verdict="unbounded", reference=1, offset_lower_ms=None, pairs_count=1, dropped_pairs_count=2) == (
        "Broker 2's clock was at most 2 ms ahead of broker 1's (no znodes were given) (1 causal pair, 2 against the"
        " others); nothing was corrected, since nothing proves by how much."
    )


def test_a_clock_of_which_nothing_is_known() -> None:
    assert sentence(verdict="unknown", offset_lower_ms=None, offset_upper_ms=None, pairs_count=0) == (
        "Broker 2's clock cannot be judged: no causal pair ties it to another."
    )
