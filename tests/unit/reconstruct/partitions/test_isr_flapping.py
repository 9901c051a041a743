"""Departures from the ISR and returns to it, counted by replica and window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.shapes import match
from reconstruct.partitions.assignment import Assignment
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.isr_flapping import IsrFlapping, isr_flapping
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Change, Interval, close_intervals
from tests.support.captures.packed import Unpacker
from tests.support.evidence.partitions import plain_capture

SECOND = 1_000_000
ASSIGNED = [Interval(0, None, Assignment((1, 2, 3)), ())]
Step = tuple[int, int, tuple[int, ...], str]


def decided(*steps: Step) -> list[Interval[LeaderAndIsrState]]:
    """(second, leader epoch, ISR, who asked) of each state; 1 leads."""
    return close_intervals(
        Change(at * SECOND, LeaderAndIsrState(1, epoch, isr, written_by=by), (f"s{at}",))
        for at, epoch, isr, by in steps
    )


def flapping(*steps: Step, facts: tuple[Evidence, ...] = ()) -> list[IsrFlapping]:
    return isr_flapping(decided((0, 0, (1, 2, 3), "controller"), *steps), ASSIGNED, facts)


def test_departures_and_returns_of_one_window_are_counted_by_who_asked() -> None:
    (found,) = flapping(
        (10, 0, (1, 2), "leader"),
        (14, 0, (1, 2, 3), "leader"),
        (30, 1, (1, 2), "controller"),
        (60, 1, (1, 2, 3), "leader"),
        (70, 1, (1, 2), "leader"),
    )
    assert (found.replica_id, found.start, found.end) == (3, 10 * SECOND, None)
    assert (found.shrink_count, found.expand_count) == (3, 2)
    assert (found.shrinks_by_leader_count, found.shrinks_by_controller_count) == (2, 1)
    assert (found.longest_absence_ms, found.period_ms) == (30_000, 30_000)
    assert found.leaders == (1,)


def test_what_is_ten_minutes_apart_is_another_window() -> None:
    steps = ((10, 0, (1, 2), "leader"), (14, 0, (1, 2, 3), "leader"), (700, 0, (1, 2), "leader"))
    assert [(f.start // SECOND, f.shrink_count) for f in flapping(*steps)] == [(10, 1), (700, 1)]


def test_a_replica_that_returns_late_returns_in_the_window_of_its_departure() -> None:
    (found,) = flapping((10, 0, (1, 2), "leader"), (2_000, 0, (1, 2, 3), "leader"))
    assert (found.end, found.longest_absence_ms) == (2_000 * SECOND, 1_990_000)


def test_what_a_reassignment_takes_out_did_not_depart() -> None:
    states = decided((0, 0, (1, 2, 3), "controller"), (10, 1, (1, 2), "controller"))
    moved = [Interval(0, 9 * SECOND, Assignment((1, 2, 3)), ()), Interval(9 * SECOND, None, Assignment((1, 2)), ())]
    assert isr_flapping(states, moved, ()) == []


@pytest.mark.parametrize(
    ("printed", "lag_count", "lag_ms"),
    [
        ("(brokerId: 2, endOffset: 90) (brokerId: 3, endOffset: 60)", 40, None),
        ("(brokerId: 3, endOffset: 60, lastCaughtUpTimeMs: 4000)", 40, 6_000),
        ("(brokerId: 3, endOffset: unknown, lastCaughtUpTimeMs: unknown)", None, None),
        ("(brokerId: 2, endOffset: 90)", None, None),
    ],
)
def test_how_far_behind_it_was_is_what_the_leader_s_line_prints(
    printed: str, lag_count: int | None, lag_ms: int | None
) -> None:
    text = (
        "[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 60, endOffset: 100)."
        f" Out of sync replicas: {printed}."
    )
    matched = match("server_log", "kafka.cluster.Partition", text)
    assert matched is not None
    fields = matched.fields
    line = Evidence(
        "line",
        matched.event_type,
        10 * SECOND,
        log_end_offset=int(fields["log_end_offset"]),
        out_of_sync=fields["out_of_sync"],
    )
    (found,) = flapping((10, 0, (1, 2), "leader"), facts=(line,))
    assert (found.lag_count_max, found.lag_ms_max) == (lag_count, lag_ms)
    # by the clock that the line was printed by, not as that is corrected
    slow = replace(line, logged_at=7 * SECOND)
    (found,) = flapping((10, 0, (1, 2), "leader"), facts=(slow,))
    assert found.lag_ms_max == (None if lag_ms is None else 3_000)
    assert ("line" in found.evidence) is (lag_count is not None or "3," in printed)


def test_a_paused_follower_of_a_capture_left_once_and_came_back(unpacked: Unpacker) -> None:
    """failover-3.9.1: broker 2 is paused, orders-0 shrinks and expands, and the line prints how far it was behind."""
    case = plain_capture(unpacked("failover-3.9.1")).fold_one(("orders", 0))
    first = case.isr_flapping[1] if case.isr_flapping[0].replica_id != 2 else case.isr_flapping[0]
    assert first.replica_id == 2
    assert first.shrinks_by_leader_count >= 1
    assert first.lag_count_max == 1
    assert first.lag_ms_max is not None
    assert 3_000 <= first.lag_ms_max < 10_000
