"""What is unknown of clocks, and what it leaves of the bounds and of the rules, on histories small enough to read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconstruct.findings.verdicts import CANNOT_BE_JUDGED
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import (
    CAPTURER,
    DECISIONS,
    NEGLIGIBLE_US,
    UNBOUNDED_US,
    OffsetClocks,
    remaining_us,
)
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetBounds,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.losses import find_losses
from reconstruct.offsets.rules import OffsetCase
from reconstruct.offsets.spark.context import covered_spans, uncertain_clocks
from reconstruct.offsets.timeline import bound_offsets
from tests.unit.reconstruct.offsets.test_offset_bounds import (
    COVERED,
    FOLLOWER,
    LEADER,
    NEW,
    checkpoint,
    event,
    high_watermark_at,
    log_end_at,
    rows,
)
from tests.unit.reconstruct.offsets.test_offset_rules import HIGH_FALLS, case, said, seen, started, verdicts_of

S = 1_000_000


def segment(broker: int, verdict: str, lower: int | None, upper: int | None, correction: int | None = None) -> Any:
    return {
        "broker_id": broker,
        "verdict": verdict,
        "offset_lower_ms": lower,
        "offset_upper_ms": upper,
        "correction_us": correction,
        "is_disputed": False,
    }


# --- what is unknown ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "correction", "verdict", "expected"),
    [
        (-3, 40, None, "agrees", 40_000),
        (-60_010, -59_980, -59_995_000, "skewed", 15_000),
        (1_000, 9_000, 2_000_000, "skewed", 7_000_000),
        (7_199_990, 7_200_020, 7_200_000_000, "other_zone", 20_000),
        (None, 40, None, "unbounded", UNBOUNDED_US),
        (60_000, None, None, "skewed", UNBOUNDED_US),
        (None, None, None, "unknown", UNBOUNDED_US),
        (-3, 40, None, "unknown", UNBOUNDED_US),
    ],
)
def test_what_remains_unknown_of_a_clock_is_the_further_bound_from_its_correction(
    lower: int | None, upper: int | None, correction: int | None, verdict: str, expected: int
) -> None:
    assert remaining_us(lower, upper, correction, verdict) == expected


def test_of_a_clock_that_was_set_the_least_known_segment_counts() -> None:
    clocks = uncertain_clocks(
        [segment(1, "agrees", -3, 3), segment(2, "agrees", -9, 9), segment(1, "skewed", 2000, 2400, 2_200_000)]
    )
    assert clocks == OffsetClocks({1: 200_000, 2: 9_000})


def test_nothing_is_known_of_a_clock_that_was_set_as_likely_as_another() -> None:
    clocks = uncertain_clocks([segment(1, "agrees", -3, 3), segment(2, "agrees", -9, 9) | {"is_disputed": True}])
    assert clocks == OffsetClocks({1: 3_000, 2: UNBOUNDED_US})


def test_two_clocks_are_as_far_apart_as_both_are_uncertain_and_one_clock_is_not() -> None:
    clocks = OffsetClocks({1: 2 * S, 2: 3 * S, 3: NEGLIGIBLE_US})
    assert clocks.between_us(1, 2) == 5 * S
    assert clocks.between_us(1, 1) == 0
    assert clocks.between_us(1, CAPTURER) == 2 * S
    assert clocks.between_us(3, CAPTURER) == 0, "the slack between a line and its value covers it"
    assert clocks.between_us(9, CAPTURER) == 0
    assert clocks.between_us(3, DECISIONS) == 3 * S, "any broker may have told of a decision first"
    assert not OffsetClocks({1: UNBOUNDED_US}).is_bounded(1)


def test_a_registration_that_may_be_later_than_the_log_ends_what_it_covers() -> None:
    files, registered = [(0, 100 * S)], [150 * S]
    assert covered_spans(files, registered, told=[99 * S]) == [(0, EVER_AFTER)]
    assert covered_spans(files, registered, 20 * S, [99 * S]) == [(0, 100 * S)]


def test_a_registration_without_a_start_before_it_is_a_hole_in_the_log() -> None:
    files, registered = [(0, 500 * S)], [2 * S, 300 * S]
    assert covered_spans(files, registered, told=[1 * S, 290 * S]) == [(0, EVER_AFTER)]
    assert covered_spans(files, registered, told=[1 * S]) == [(0, 240 * S), (300 * S, EVER_AFTER)]
    assert covered_spans(files, registered, 5 * S, [1 * S]) == [(0, 235 * S), (305 * S, EVER_AFTER)]
    assert covered_spans(files, registered, told=[290 * S]) == [(2 * S, EVER_AFTER)]
    assert covered_spans(files, [2 * S, 30 * S], told=[1 * S]) == [(30 * S, EVER_AFTER)]


# --- bounds ---------------------------------------------------------------------------------------------------------


def led(*events: ReplicaEvent, slack: int) -> OffsetEvidence:
    """Broker 1 leads; its files were copied at 6, 10, 13 and 20; ``slack`` seconds are unknown of its clock."""
    copies = [checkpoint(1, 5, 6), checkpoint(1, 10, 10), checkpoint(1, 20, 13), checkpoint(1, 30, 20)]
    return OffsetEvidence(copies, [*LEADER, *events], covered=COVERED, clocks=OffsetClocks({1: slack * S}))


@pytest.mark.parametrize("slack", [0, 4])
def test_what_copies_prove_is_as_narrow_where_nothing_happened_nearby(slack: int) -> None:
    bounds = rows(led(slack=slack))
    assert high_watermark_at(bounds, 12) == (10, 30)
    assert high_watermark_at(bounds, 15) == (20, None)


def test_a_start_ends_what_was_known_wherever_it_may_have_been() -> None:
    sure, unsure = rows(led(event(1, "started", 16), slack=0)), rows(led(event(1, "started", 16), slack=1))
    assert high_watermark_at(sure, 15.5) == (20, None)
    assert high_watermark_at(sure, 16.5)[0] is None
    assert high_watermark_at(unsure, 14.5)[0] == 20
    assert high_watermark_at(unsure, 15.5)[0] is None


def printed(second: float, offset: int) -> OffsetObservation:
    return OffsetObservation(1, oe.LOG_END_OFFSET, offset, int(second * S), source="log_record")


@pytest.mark.parametrize(("slack", "known_from"), [(0, 16.2), (3, 19.2), (30, 46.2)])
def test_two_lines_of_one_log_keep_their_order(slack: int, known_from: float) -> None:
    """What a broker loads after its start is of after its start, whatever its clock showed."""
    evidence = led(event(1, "started", 16), slack=slack)
    bounds = rows(replace(evidence, observations=[printed(16.1, 7)]))
    assert log_end_at(bounds, known_from)[0] == 7
    assert log_end_at(bounds, known_from - 0.1)[0] is None


def test_nothing_is_claimed_of_a_replica_whose_clock_nothing_bounds_but_what_it_answered() -> None:
    evidence = replace(led(slack=0), clocks=OffsetClocks({1: UNBOUNDED_US}))
    assert rows(evidence) == []
    answer = OffsetObservation(1, oe.LOG_END_OFFSET, 40, 30 * S, 30 * S + 10, source=oe.PROBE, evidence_id="p")
    (row,) = rows(replace(evidence, observations=[*evidence.observations, answer]))
    assert (row.valid_from, row.log_end_offset_lower, row.log_end_offset_upper) == (row.valid_to, 40, 40)


def followed(clocks: OffsetClocks) -> list[OffsetBounds]:
    copies = [checkpoint(2, 10, 10), checkpoint(2, 20, 13), checkpoint(2, 30, 20)]
    return rows(OffsetEvidence(copies, [*LEADER, *FOLLOWER], covered=COVERED, clocks=clocks), replica=1)


def test_a_followers_offset_bounds_its_leaders_as_far_as_both_clocks_allow() -> None:
    assert high_watermark_at(followed(OffsetClocks()), 22) == (30, None)
    assert high_watermark_at(followed(OffsetClocks({1: 2 * S, 2: 2 * S})), 22) == (30, None)
    assert high_watermark_at(followed(OffsetClocks({1: 20 * S})), 22) == (None, None)
    assert followed(OffsetClocks({2: UNBOUNDED_US})) == []


# --- losses and rules -----------------------------------------------------------------------------------------------


def test_a_loss_is_counted_only_from_what_was_committed_before_on_any_clock() -> None:
    copies = [checkpoint(1, 10, 10), checkpoint(1, 20, 13), checkpoint(1, 30, 17)]
    began = ReplicaEvent(2, ReplicaEventKind.LEADS, 20 * S, None, 2, 1, "leads")
    begin = OffsetObservation(2, oe.LOG_END_OFFSET, 5, 20 * S, None, 1, "log_record", evidence_id="leads")
    decided = [DecidedState(1 * S, 20 * S, 1, 0, (1,)), DecidedState(20 * S, None, 2, 1, (2,))]
    lost = {}
    for slack in (0, 4, UNBOUNDED_US // S):
        evidence = OffsetEvidence(
            [*copies, begin],
            [*LEADER, event(2, "started", 0), began],
            decided,
            COVERED,
            clocks=OffsetClocks({2: slack * S}),
        )
        (loss,) = find_losses(evidence, bound_offsets(evidence, NEW))
        assert (loss.cause, loss.lost_from_offset) == ("unclean_election", 5), "epochs need no clock"
        lost[slack] = loss.lost_count_lower
    assert list(lost.values()) == [25, 15, 0]


def uncertain(given: OffsetCase, **slack: float) -> OffsetCase:
    """The case with so many seconds unknown of the clocks of ``broker_N``."""
    clocks = OffsetClocks({int(name.removeprefix("broker_")): round(by * S) for name, by in slack.items()})
    return replace(given, evidence=replace(given.evidence, clocks=clocks))


def test_a_fall_is_an_error_only_where_no_start_may_have_been_between() -> None:
    given = case(*HIGH_FALLS, events=[started(1, 20)])
    assert said(uncertain(given, broker_1=5)) == [("high_watermark_decreased", "error")]
    found = verdicts_of(uncertain(given, broker_1=13))
    assert [(f.divergence_type, f.severity) for f in found.findings] == [("high_watermark_rolled_back", "info")]
    assert verdicts_of(uncertain(given, broker_1=UNBOUNDED_US / S)).findings == []


@pytest.mark.parametrize("which", ["broker_1", "broker_2"])
def test_a_member_of_the_isr_is_behind_only_where_both_clocks_say_so(which: str) -> None:
    behind = case(seen(1, oe.HIGH_WATERMARK, 10, 5), seen(2, oe.LOG_END_OFFSET, 8, 7))
    assert said(uncertain(behind, **{which: 0.01})) == [("isr_member_behind_high_watermark", "error")]
    judged = verdicts_of(uncertain(behind, **{which: 30}))
    assert judged.findings == []
    assert judged.counts["R33", CANNOT_BE_JUDGED] == 0, "the member was none for all that is known"


def test_a_line_of_a_follower_says_nothing_of_where_its_leaders_epoch_began() -> None:
    own_end = OffsetObservation(2, oe.LOG_END_OFFSET, 12, S // 2, None, 1, "log_record", evidence_id="follows")
    begins = OffsetObservation(1, oe.LOG_END_OFFSET, 10, S, None, 1, "log_record", evidence_id="leads")
    entry = OffsetObservation(1, oe.EPOCH_START, 10, 9 * S, 9 * S, 1, "leader_epoch_checkpoint", evidence_id="entry")
    assert ("epoch_lineage_conflict", "error") not in said(case(own_end, begins, entry))
    assert ("epoch_lineage_conflict", "error") in said(case(own_end, replace(begins, offset=11), entry))
