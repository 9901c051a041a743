"""Segments by hand: when they were there, and which histories break R40 or R41."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ingest.shapes import match
from reconstruct.findings.rule import judge
from reconstruct.findings.verdicts import Verdicts
from reconstruct.segments.evidence import (
    DeletionReason,
    LogChange,
    LogChangeKind,
    SegmentAct,
    SegmentActKind,
    SegmentEvidence,
    SegmentFiles,
)
from reconstruct.segments.lines import SegmentLine, segment_act
from reconstruct.segments.log_ends import log_ends
from reconstruct.segments.rules import RULES
from reconstruct.segments.timeline import segment_timeline

SECOND = 1_000_000


def rolled(at: int, base: int, line: int | None = None) -> SegmentAct:
    return SegmentAct(1, SegmentActKind.ROLLED, at * SECOND, (base,), None, f"roll-{at}", "server.log", line or at)


def files(base: int, *, at: int | None = None, is_last: bool = False, **known: Any) -> SegmentFiles:
    upper = None if at is None else (at + 1) * SECOND
    return SegmentFiles(
        1, base, f"copy-{at}", is_last, None if at is None else at * SECOND, upper, files=(f"{base}-{at}",), **known
    )


def timeline(
    acts: Sequence[SegmentAct] = (), copies: Sequence[SegmentFiles] = (), changes: Sequence[LogChange] = ()
) -> list[tuple[Any, ...]]:
    """(base offset, from, to, closed at, next offset, ended by), in seconds."""
    return [
        (
            span.base_offset,
            span.valid_from // SECOND,
            None if span.valid_to is None else span.valid_to // SECOND,
            None if span.closed_at is None else span.closed_at // SECOND,
            span.next_offset,
            span.ended_by,
        )
        for span in segment_timeline(SegmentEvidence(copies, acts, changes))
    ]


def verdicts(*copies: SegmentFiles, acts: Sequence[SegmentAct] = (), changes: Sequence[LogChange] = ()) -> Verdicts:
    found = Verdicts()
    judge(RULES, SegmentEvidence(copies, acts, changes), found)
    return found


def kinds(found: Verdicts) -> list[str]:
    return [finding.divergence_type.value for finding in found.findings]


def test_a_roll_closes_the_segment_before_and_retention_deletes_the_first():
    deleted = SegmentAct(
        1, SegmentActKind.DELETED, 9 * SECOND, (0,), DeletionReason.RETENTION_SIZE, "d", "server.log", 9
    )
    created = SegmentAct(1, SegmentActKind.REPLICA_CREATED, 1 * SECOND, (), None, "c", "server.log", 1)
    assert timeline([created, rolled(3, 40), rolled(6, 90), deleted]) == [
        (0, 1, 9, 3, 40, DeletionReason.RETENTION_SIZE),
        (40, 3, None, 6, 90, None),
        (90, 6, None, None, None, None),
    ]


def test_a_cut_deletes_the_segments_above_and_the_one_below_is_active_again():
    cut = LogChange(1, LogChangeKind.CUT, 7 * SECOND, 60)
    assert timeline([rolled(3, 40), rolled(6, 90), rolled(9, 70)], changes=[cut]) == [
        (40, 3, None, 9, 70, None),
        (70, 9, None, None, None, None),
        (90, 6, 7, None, None, DeletionReason.TRUNCATION),
    ]


def test_what_a_copy_no_longer_has_before_its_first_segment_is_gone_and_what_it_shows_was_there_by_then():
    copies = [files(0, at=2), files(40, at=2, is_last=True), files(40, at=8), files(80, at=8, is_last=True)]
    assert timeline(copies=copies) == [
        (0, 3, 8, None, None, DeletionReason.NOT_TOLD),
        (40, 3, None, None, None, None),
        (80, 9, None, None, None, None),
    ]


def test_a_segment_that_is_made_anew_in_the_instant_in_which_it_goes_comes_after_it():
    def made(evidence_id: str, line: int) -> SegmentAct:
        act = SegmentActKind.REPLICA_CREATED
        return SegmentAct(1, act, 6 * SECOND, (), None, evidence_id, "server.log", line)

    assert timeline([made("z", 1), made("a", 2)]) == [
        (0, 6, 6, None, None, DeletionReason.REPLICA_DELETED),
        (0, 6, None, None, None, None),
    ]


def test_a_copy_without_a_time_only_describes_what_lines_tell_of():
    copies = [files(0, next_offset=40), files(40, is_last=True, next_offset=70)]
    assert timeline([rolled(3, 40)], copies) == [(40, 3, None, None, 70, None)]


def test_a_listing_proves_that_the_log_had_reached_its_last_segment_and_an_index_what_it_names():
    listed = [files(0, at=2), files(40, at=2, is_last=True)]
    assert [(file.base_offset, offset) for file, offset in log_ends(listed)] == [(40, 40)]
    indexed = [files(40, at=2, is_last=True, last_indexed_offset=55, last_timed_offset=50)]
    assert [offset for _, offset in log_ends(indexed)] == [56]
    assert list(log_ends([files(40, at=2, is_last=True, next_offset=60)])) == []


def test_segments_that_follow_each_other_keep_the_rule_and_overlapping_ones_break_it():
    kept = verdicts(files(0, next_offset=40, valid_bytes=9), files(40, is_last=True))
    assert kept.counts == {("R40", "kept"): 1, ("R41", "kept"): 1, ("R41", "cannot_be_judged"): 1}
    broken = verdicts(files(0, at=5, next_offset=41, valid_bytes=9), files(40, at=5, is_last=True))
    assert [(f.divergence_type, f.severity, f.replica_id) for f in broken.findings] == [
        ("segments_overlap", "error", 1)
    ]
    untimed = verdicts(files(0, next_offset=41, valid_bytes=9), files(40, is_last=True))
    assert [f.severity for f in untimed.findings] == ["warning"]


@pytest.mark.parametrize("kind", [LogChangeKind.CUT, LogChangeKind.DELETED, LogChangeKind.STARTED])
def test_a_copy_of_a_log_that_was_cut_meanwhile_is_not_judged(kind):
    copies = [files(0, at=5, next_offset=41, valid_bytes=9), files(40, at=5, is_last=True)]
    found = verdicts(*copies, changes=[LogChange(1, kind, 5 * SECOND, 30)])
    assert found.findings == []
    assert ("R40", "kept") not in found.counts
    later = verdicts(*copies, changes=[LogChange(1, kind, 60 * SECOND, 30)])
    assert kinds(later) == ["segments_overlap"]


def test_a_roll_below_the_one_before_breaks_the_rule_unless_the_log_may_have_been_cut():
    assert kinds(verdicts(acts=[rolled(3, 40), rolled(6, 30)])) == ["segment_rolled_below"]
    assert verdicts(acts=[rolled(3, 40), rolled(6, 40)]).counts == {("R40", "kept"): 1}
    for kind in LogChangeKind:
        found = verdicts(acts=[rolled(3, 40), rolled(6, 30)], changes=[LogChange(1, kind, 5 * SECOND)])
        assert found.counts == {("R40", "cannot_be_judged"): 1}, kind


def test_rolls_count_in_the_order_of_their_lines_and_only_where_their_times_agree():
    set_back = [rolled(9, 40, line=1), rolled(3, 70, line=2)]
    assert verdicts(acts=set_back).counts == {("R40", "kept"): 1}
    assert verdicts(acts=[rolled(9, 70, line=1), rolled(3, 40, line=2)]).counts == {("R40", "cannot_be_judged"): 1}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"segment_problem": "5 bytes from byte 900 on are no part of the log"}, "segment_damaged"),
        ({"index_problem": "entry 2 does not rise"}, "index_differs_from_segment"),
        ({"last_indexed_position": 900, "last_indexed_offset": 39}, "index_differs_from_segment"),
        ({"last_indexed_position": 800, "last_indexed_offset": 40}, "index_differs_from_segment"),
        ({"last_timed_offset": 40}, "index_differs_from_segment"),
    ],
)
def test_an_index_that_disagrees_with_its_closed_segment_is_a_finding(known, expected):
    whole = {"next_offset": 40, "valid_bytes": 900, **known}
    assert kinds(verdicts(files(0, **whole), files(40, is_last=True))) == [expected]
    active = verdicts(files(0, is_last=True, **whole))
    assert active.findings == [], "the active segment is written to"


@pytest.mark.parametrize(
    ("text", "logger", "expected"),
    [
        (
            "[LocalLog partition=orders-0, dir=/d] Rolled new log segment at offset 33 in 27 ms.",
            "kafka.log.LocalLog",
            (SegmentActKind.ROLLED, (33,), None),
        ),
        (
            "[Log partition=orders-0, dir=/d] Found deletable segments with base offsets [0,25] due to retention size"
            " in bytes 6144 breach",
            "kafka.log.Log",
            (SegmentActKind.DELETED, (0, 25), DeletionReason.RETENTION_SIZE),
        ),
        (
            "[Log partition=orders-0, dir=/d] Scheduling log segment [baseOffset 25, size 1999] for deletion.",
            "kafka.log.Log",
            (SegmentActKind.DELETED, (25,), None),
        ),
        (
            "[UnifiedLog partition=orders-0, dir=/d] Deleting segment LogSegment(baseOffset=25, size=1999,"
            " lastModifiedTime=1, largestRecordTimestamp=2) due to retention size 6144 breach. Log size after deletion"
            " will be 7000.",
            "kafka.log.UnifiedLog",
            (SegmentActKind.DELETED, (25,), DeletionReason.RETENTION_SIZE),
        ),
        (
            "[LocalLog partition=orders-0, dir=/d] Deleting segment files LogSegment(baseOffset=0, size=1),"
            "LogSegment(baseOffset=25, size=2)",
            "kafka.log.LocalLog$",
            (SegmentActKind.DELETED, (0, 25), None),
        ),
        (
            "[LogLoader partition=orders-0, dir=/d] Recovering unflushed segment 56. 2/6 recovered for orders-0.",
            "kafka.log.LogLoader",
            (SegmentActKind.RECOVERED, (56,), None),
        ),
    ],
)
def test_lines_of_real_brokers_name_segments(text, logger, expected):
    matched = match("server_log", logger, text)
    assert matched is not None, text
    act = segment_act(SegmentLine(1, matched.event_type, 0, matched.fields, "id", "server.log", 1))
    assert act is not None
    assert (act.act, act.base_offsets, act.reason) == expected
