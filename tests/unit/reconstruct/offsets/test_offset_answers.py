"""Where the answers of brokers stand in the timeline, and that they claim nothing of any instant."""

from __future__ import annotations

import pytest

from reconstruct.model.versions import v
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import (
    OffsetBounds,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.probe_answers import with_probe_answers
from reconstruct.offsets.timeline import bound_offsets
from reconstruct.offsets.widest_bounds import widest_bounds

OLD, NEW = v(0, 8, 2), v(3, 9)


def answer(
    offset: int, asked: int, answered: int, kind: str = oe.HIGH_WATERMARK, replica: int = 1, name: str = "p"
) -> OffsetObservation:
    return OffsetObservation(replica, kind, offset, asked, answered, source=oe.PROBE, evidence_id=name)


def known(start: int, end: int | None, low: int | None, high: int | None) -> OffsetBounds:
    return OffsetBounds(1, start, end, high_watermark_lower=low, high_watermark_upper=high, evidence=("e",))


def spans(rows: list[OffsetBounds]) -> list[tuple[int, int | None, int | None, int | None]]:
    return [(row.valid_from, row.valid_to, row.high_watermark_lower, row.high_watermark_upper) for row in rows]


@pytest.mark.parametrize(
    ("rows", "shown", "expected"),
    [
        # in the middle of asking and answering; the row around it is divided
        ([(0, 100, 1, 9)], [(5, 40, 60)], [(0, 50, 1, 9), (50, 50, 5, 5), (50, 100, 1, 9)]),
        # of nothing else, too
        ([], [(5, 40, 60)], [(50, 50, 5, 5)]),
        ([(0, 10, 1, 9), (90, None, 1, 9)], [(5, 40, 60)], [(0, 10, 1, 9), (50, 50, 5, 5), (90, None, 1, 9)]),
        # where a row begins it stands before it
        ([(0, 50, 1, 9), (50, None, 2, 9)], [(5, 40, 60)], [(0, 50, 1, 9), (50, 50, 5, 5), (50, None, 2, 9)]),
        # as near to the middle as the bounds allow
        (
            [(0, 44, 1, 5), (44, None, 6, 9)],
            [(5, 40, 60)],
            [(0, 43, 1, 5), (43, 43, 5, 5), (43, 44, 1, 5), (44, None, 6, 9)],
        ),
        ([(0, 55, 1, 4), (55, 99, 4, 9)], [(5, 40, 60)], [(0, 55, 1, 4), (55, 55, 5, 5), (55, 99, 4, 9)]),
        # between rows of which both contradict it
        ([(0, 45, 1, 4), (58, 99, 6, 9)], [(5, 40, 60)], [(0, 45, 1, 4), (50, 50, 5, 5), (58, 99, 6, 9)]),
        # not where the bounds meet anyway, if only at the last instant
        ([(0, 60, 1, 9), (60, None, 5, 5)], [(5, 40, 60)], [(0, 60, 1, 9), (60, None, 5, 5)]),
        # not where every instant contradicts it
        ([(0, None, 6, 9)], [(5, 40, 60)], [(0, None, 6, 9)]),
        # several, in order, also at one instant
        (
            [(0, None, 1, 9)],
            [(7, 70, 80), (5, 40, 60), (6, 40, 60)],
            [(0, 50, 1, 9), (50, 50, 5, 5), (50, 50, 6, 6), (50, 75, 1, 9), (75, 75, 7, 7), (75, None, 1, 9)],
        ),
        # asked and answered at one instant
        ([(0, None, 1, 9)], [(5, 40, 40)], [(0, 40, 1, 9), (40, 40, 5, 5), (40, None, 1, 9)]),
    ],
)
def test_where_an_answer_stands(rows: list[tuple], shown: list[tuple], expected: list[tuple]) -> None:
    made = with_probe_answers(1, [known(*row) for row in rows], [answer(*one) for one in shown])
    assert spans(made) == expected
    assert all("p" in row.evidence for row in made if row.valid_from == row.valid_to)


def test_only_answers_about_this_replica_are_shown_and_only_what_is_bounded_from_both_sides() -> None:
    others = [
        answer(5, 40, 60, replica=2),
        answer(5, 40, 60, kind=oe.LOG_START_OFFSET),
        OffsetObservation(1, oe.HIGH_WATERMARK, 5, 40, 60, source="replication_offset_checkpoint"),
    ]
    assert with_probe_answers(1, [known(0, None, 1, 9)], others) == [known(0, None, 1, 9)]


def test_an_answer_is_shown_beside_what_else_is_known_then() -> None:
    (_, row, _) = with_probe_answers(1, [known(0, None, 1, 9)], [answer(12, 40, 60, kind=oe.LOG_END_OFFSET)])
    assert row == OffsetBounds(1, 50, 50, 1, 9, 12, 12, evidence=("e", "p"))


def test_answers_alone_claim_nothing_of_any_time() -> None:
    answers = [answer(5, 40, 60, name="a"), answer(5, 140, 160, name="b")]
    rows = bound_offsets(OffsetEvidence(answers), NEW)
    assert spans(rows) == [(50, 50, 5, 5), (150, 150, 5, 5)]


def test_between_two_equal_answers_of_a_running_broker_the_bounds_meet() -> None:
    started = ReplicaEvent(1, ReplicaEventKind.STARTED, 0)
    leads = ReplicaEvent(1, ReplicaEventKind.LEADS, 1)
    answers = [answer(5, 40, 60, name="a"), answer(5, 140, 160, name="b")]
    rows = bound_offsets(OffsetEvidence(answers, [started, leads], (), {1: [(0, EVER_AFTER)]}), NEW)
    assert spans(rows) == [
        (0, 60, None, 5),
        (60, 140, 5, 5),
        (140, 150, 5, None),
        (150, 150, 5, 5),
        (150, None, 5, None),
    ]


def test_an_answer_holds_by_either_of_two_rule_sets() -> None:
    evidence = OffsetEvidence(
        [answer(5, 40, 60, name="a"), answer(6, 40, 60, oe.LOG_END_OFFSET, name="b"), answer(9, 140, 160, name="c")],
        [ReplicaEvent(1, ReplicaEventKind.STARTED, 0), ReplicaEvent(1, ReplicaEventKind.LEADS, 1)],
        (),
        {1: [(0, EVER_AFTER)]},
    )
    one, other = bound_offsets(evidence, NEW), bound_offsets(evidence, OLD)
    found = widest_bounds(one, other)
    assert found == one == other
    assert [row.valid_from for row in found if row.valid_from == row.valid_to] == [50, 50, 150]
    assert [row.valid_from for row in widest_bounds(one, [row for row in other if row.valid_from != row.valid_to])] == [
        row.valid_from for row in one if row.valid_from != row.valid_to
    ]


def test_where_answers_contradict_all_else_the_bounds_are_made_without_them() -> None:
    """A prober whose clock is slow: what it says of second 5 was so after the line of second 10."""
    second = 1_000_000
    line = OffsetObservation(1, oe.LOG_END_OFFSET, 100, 10 * second, source="log_record", evidence_id="line")
    events = [ReplicaEvent(1, ReplicaEventKind.STARTED, 0), ReplicaEvent(1, ReplicaEventKind.LEADS, second)]
    covered = {1: [(0, EVER_AFTER)]}
    late = answer(150, 5 * second, 5 * second + 9, kind=oe.LOG_END_OFFSET)
    later = answer(200, 15 * second, 15 * second + 9, kind=oe.LOG_END_OFFSET)
    without = bound_offsets(OffsetEvidence([line], events, (), covered), NEW)
    assert bound_offsets(OffsetEvidence([line, late], events, (), covered), NEW) == without
    (shown,) = (
        row
        for row in bound_offsets(OffsetEvidence([line, late, later], events, (), covered), NEW)
        if row.valid_from == row.valid_to
    )
    assert (shown.log_end_offset_lower, shown.log_end_offset_upper) == (200, 200)
    (row,) = (r for r in bound_offsets(OffsetEvidence([line, later], events, (), covered), NEW) if r.valid_to is None)
    assert row.log_end_offset_lower == 200
