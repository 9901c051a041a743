"""Cuts of logs: what lines and sightings show of them, and which records went with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconstruct.model.versions import KafkaVersion, VersionRange
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
    TruncationCause,
)
from reconstruct.offsets.timeline import bound_offsets
from reconstruct.offsets.truncations import Truncation, find_truncations
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.truth.offsets import bounds_once, evidence_once, probes

SECOND = 1_000_000
VERSION = KafkaVersion((3, 9, 1))
ALL = [(0, EVER_AFTER)]


def event(replica: int, kind: str, at: float, offset: int | None = None, leader: int | None = None) -> ReplicaEvent:
    epoch = 0 if kind == "leads" and at < 5 else 1 if kind == "leads" else None
    own = replica if kind == "leads" else leader
    id_ = f"{replica}-{kind}-{at:g}"
    return ReplicaEvent(replica, ReplicaEventKind(kind), round(at * SECOND), offset, own, epoch, id_)


def seen(replica: int, kind: str, offset: int, at: float, *, is_line: bool = False) -> OffsetObservation:
    upper = None if is_line else round(at * SECOND) + 1000
    source = "log_record" if is_line else oe.PROBE
    id_ = f"{replica}-{kind}-{at:g}"
    return OffsetObservation(replica, kind, offset, round(at * SECOND), upper, source=source, evidence_id=id_)


#: 1 leads from second 1 and ends at 20 with 15 committed; 2 takes over at second 10, 1 comes back and is cut at 12.
RETURNS = (
    event(1, "leads", 1),
    event(2, "follows", 1, leader=1),
    event(2, "leads", 10),
    event(1, "started", 11),
    event(1, "follows", 12, leader=2),
    event(1, "truncated", 12.1, 15),
)
SEEN = (
    seen(1, oe.HIGH_WATERMARK, 15, 8),
    seen(1, oe.LOG_END_OFFSET, 20, 11.5, is_line=True),
    seen(2, oe.LOG_END_OFFSET, 15, 10, is_line=True),
)
DECIDED = (DecidedState(SECOND, 10 * SECOND, 1, 0, (1, 2)), DecidedState(10 * SECOND, None, 2, 1, (2,)))


def found(
    events: tuple[ReplicaEvent, ...], observations: tuple[OffsetObservation, ...], version: KafkaVersion = VERSION
) -> list[Truncation]:
    evidence = OffsetEvidence(observations, events, DECIDED, {1: ALL, 2: ALL})
    return find_truncations(evidence, bound_offsets(evidence, version), VersionRange.exactly(version))


def test_an_old_leader_s_cut_drops_what_it_had_beyond_its_successor() -> None:
    (cut,) = found(RETURNS, SEEN)
    assert (cut.replica_id, cut.truncated_to, cut.log_end_lower, cut.log_end_upper) == (1, 15, 20, 20)
    assert (cut.leader, cut.leader_epoch, cut.inferred_from) == (2, 1, None)
    assert (cut.dropped_count_lower, cut.dropped_count_upper) == (5, 5)
    assert (cut.committed_count_lower, cut.uncommitted_count_upper) == (0, 5)


def test_a_cut_below_the_replica_s_own_high_watermark_drops_committed_records() -> None:
    lower = (*RETURNS[:-1], event(1, "truncated", 12.1, 12))
    (cut,) = found(lower, SEEN)
    assert (cut.dropped_count_lower, cut.committed_count_lower) == (8, 3)
    assert cut.uncommitted_count_upper == 5


def test_several_lines_of_one_cut_are_one_and_a_cut_at_the_log_s_end_is_none() -> None:
    again = (*RETURNS, event(1, "truncated", 12.2, 15))
    assert [len(cut.evidence) for cut in found(again, SEEN)] == [2]
    assert found((*RETURNS[:-1], event(1, "truncated", 12.1, 20)), SEEN) == []


@pytest.mark.parametrize(
    ("version", "cause"),
    [
        ("0.10.2.2", TruncationCause.UNKNOWN),
        ("1.1.1", TruncationCause.LEADER_EPOCH),
        ("3.9.1", TruncationCause.UNKNOWN),
    ],
)
def test_what_no_line_explains_is_told_by_the_version_where_only_one_cause_has_no_line(
    version: str, cause: TruncationCause
) -> None:
    (cut,) = found(RETURNS, SEEN, KafkaVersion.parse(version) or pytest.fail(version))
    assert cut.cause is cause


def test_up_to_0_10_a_new_follower_cuts_to_its_high_watermark_before_its_fetcher_is_added() -> None:
    before = (*RETURNS[:4], event(1, "truncated", 11.9, 15), event(1, "follows", 12, leader=2))
    (cut,) = found(before, SEEN, KafkaVersion((0, 10, 2, 2)))
    assert cut.cause is TruncationCause.HIGH_WATERMARK


def test_a_log_that_ended_higher_before_a_start_lost_its_end_there() -> None:
    events = (event(2, "leads", 1), event(1, "follows", 1, leader=2), event(1, "started", 6))
    observations = (seen(1, oe.LOG_END_OFFSET, 20, 5), seen(1, oe.LOG_END_OFFSET, 12, 7, is_line=True))
    (cut,) = found(events, observations)
    assert (cut.cause, cut.truncated_to, cut.dropped_count_lower) == (TruncationCause.START, 12, 8)
    assert (cut.inferred_from, cut.dropped_count_upper) == ("replication_rules", None)


def test_a_replica_that_was_deleted_was_not_cut() -> None:
    events = (event(2, "leads", 1), event(1, "follows", 1, leader=2), event(1, "deleted", 6))
    assert found(events, (seen(1, oe.LOG_END_OFFSET, 20, 5), seen(1, oe.LOG_END_OFFSET, 0, 8))) == []


def test_a_lineage_shows_a_cut_of_which_no_line_tells() -> None:
    lineage = OffsetObservation(
        1, oe.EPOCH_START, 15, 0, leader_epoch=1, source="leader_epoch_checkpoint", evidence_id="lineage"
    )
    events = (event(1, "leads", 1), event(1, "follows", 12, leader=2))
    (cut,) = found(events, (seen(1, oe.LOG_END_OFFSET, 20, 5), lineage))
    assert (cut.cause, cut.truncated_to, cut.leader_epoch) == (TruncationCause.LEADER_EPOCH, 15, 1)
    assert cut.evidence == ("1-log_end_offset-5", "lineage")
    line = (*events, event(1, "truncated", 12.1, 15))
    assert [one.inferred_from for one in found(line, (seen(1, oe.LOG_END_OFFSET, 20, 5), lineage))] == [None]


@pytest.fixture(scope="module", params=capture_names())
def capture(request: pytest.FixtureRequest, unpacked: Unpacker) -> Path:
    return unpacked(request.param)


def test_no_cut_of_a_capture_contradicts_what_brokers_answered(capture: Path) -> None:
    known = evidence_once(capture, False)
    bounds = bounds_once(capture, False)
    asked = [probe for probe in probes(capture) if probe.quantity == oe.LOG_END_OFFSET]
    for partition, evidence in known.partitions.items():
        for cut in find_truncations(evidence, bounds[partition], VersionRange.exactly(known.version)):
            own = [p for p in asked if (p.partition, p.replica_id) == (partition, cut.replica_id)]
            before = [p.offset for p in own if p.received_at < cut.truncated_at]
            if cut.log_end_upper is not None and before:
                assert before[-1] <= cut.log_end_upper, (partition, cut)
            assert cut.committed_count_lower <= cut.dropped_count_lower


@pytest.mark.parametrize(("name", "lost"), [("unclean-3.9.1-info", {0: (68, 304), 1: (69, 304)})])
def test_what_an_unclean_election_lost_is_dropped_as_committed_when_the_old_leader_returns(
    unpacked: Unpacker, name: str, lost: dict[int, tuple[int, int]]
) -> None:
    folder = unpacked(name)
    known, bounds = evidence_once(folder, False), bounds_once(folder, False)
    for number, (first, last) in lost.items():
        partition = ("ledger", number)
        cuts = find_truncations(known.partitions[partition], bounds[partition], VersionRange.exactly(known.version))
        (cut,) = [cut for cut in cuts if cut.truncated_to > 0]
        assert (cut.truncated_to, cut.log_end_lower, cut.cause) == (first, last + 1, TruncationCause.LEADER_EPOCH)
        assert cut.committed_count_lower > 200
        assert cut.committed_count_lower + (cut.uncommitted_count_upper or 0) == cut.dropped_count_upper
