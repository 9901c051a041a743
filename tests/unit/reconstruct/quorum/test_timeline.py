"""Who led a quorum, since when and why no longer: of real quorums, and case by case."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from reconstruct.metadata_log.evidence import ClusterLog, CopySpan, LogRow, SnapshotFile
from reconstruct.quorum.evidence import QuorumFact, QuorumFactKind
from reconstruct.quorum.timeline import QuorumSpan, quorum_timeline
from tests.support.metadata_log import NODES, cluster_log
from tests.support.quorum import OUTAGE, facts_of
from tests.support.quorum_records import SECOND, leader_change, log_of, record, voters

NOTHING = ClusterLog("c")


def state(at: int, node: int, name: str, epoch: int, **given: Any) -> QuorumFact:
    """A line of a node, at a second: it came into a state."""
    return fact(QuorumFactKind.STATE, at, node, epoch=epoch, state=name, **given)


def fact(kind: QuorumFactKind, at: float, node: int, source: str = "node_log", **given: Any) -> QuorumFact:
    return QuorumFact(kind, round(at * SECOND), f"{kind}@{at}:{node}", source, node, **given)


def told(spans: Sequence[QuorumSpan]) -> list[tuple[Any, ...]]:
    """Epoch, leader, what began it, when (s), and why the leader's time ended."""
    return [
        (
            span.interval.value.epoch,
            span.interval.value.leader_id,
            span.interval.value.began_by,
            span.interval.start / SECOND,
            span.leadership_end.end_reason,
        )
        for span in spans
    ]


def test_without_evidence_there_is_nothing() -> None:
    assert quorum_timeline([], NOTHING) == []


def test_a_real_log_alone_tells_leaders_votes_and_offsets() -> None:
    log, _ = cluster_log(NODES)
    spans = quorum_timeline([], log.of_quorum)
    values = [span.interval.value for span in spans]
    assert [(v.epoch, v.leader_id, v.granted_by, v.offset) for v in values] == [
        (1, 1, (1, 2), 0),
        (2, 3, (2, 3), 62),
        (3, 2, (1, 2), 72),
        (4, 1, (1, 3), 166),
    ]
    assert {(v.voters, v.voter_directory_ids, v.kraft_version) for v in values} == {((1, 2, 3), None, 0)}
    assert {span.interval.inferred_from for span in spans} == {None}
    assert [span.leadership_end.end_reason for span in spans] == ["superseded", "superseded", "superseded", None]
    assert [one.interval.end for one in spans[:-1]] == [one.interval.start for one in spans[1:]]


def test_the_lines_of_a_real_outage_tell_elections_and_the_end() -> None:
    spans = quorum_timeline(facts_of(OUTAGE), NOTHING)
    assert [(v[0], v[1], v[2], v[4]) for v in told(spans)] == [
        (1, None, "election_started", None),
        (1, 103, "leader_elected", "majority_lost"),
        (1, None, "leader_resigned", None),
        (2, None, "election_started", None),
        (3, None, "election_started", None),
        (3, 103, "leader_elected", None),
    ]
    assert {span.interval.inferred_from for span in spans} == {None}
    assert all(one.interval.end == after.interval.start for one, after in pairwise(spans))


def test_the_order_of_the_evidence_does_not_matter() -> None:
    facts = facts_of(OUTAGE)
    expected = quorum_timeline(facts, NOTHING)
    shuffler = random.Random(19)
    for _ in range(20):
        shuffler.shuffle(facts)
        assert quorum_timeline(facts, NOTHING) == expected


def test_a_leader_that_was_paused_resigns_too_late_to_count() -> None:
    """Up to its last word the zombie believes to lead; the voters had given it up long before."""
    facts = [
        state(10, 1, "Leader", 1, leader_id=1),
        fact(QuorumFactKind.DOUBTED, 20, 2),
        state(21, 2, "Candidate", 2, previous_epoch=1),
        state(22, 2, "Leader", 2, leader_id=2),
        fact(QuorumFactKind.MAJORITY_LOST, 40, 1),
        state(40.5, 1, "Resigned", 1),
        state(41, 1, "Follower", 2, leader_id=2),
    ]
    spans = quorum_timeline(facts, NOTHING)
    assert told(spans) == [
        (1, 1, "leader_elected", 10, "voters_timed_out"),
        (2, None, "election_started", 21, None),
        (2, 2, "leader_elected", 22, None),
    ]
    assert spans[0].leadership_end.doubted_at == 20 * SECOND


def test_a_node_that_starts_as_resigned_had_been_killed_as_leader() -> None:
    facts = [
        state(10, 1, "Leader", 1, leader_id=1),
        fact(QuorumFactKind.DOUBTED, 15, 2),
        fact(QuorumFactKind.DOUBTED, 25, 2),
        state(30, 1, "Resigned", 1, is_first=True),
    ]
    spans = quorum_timeline(facts, NOTHING)
    assert told(spans) == [(1, 1, "leader_elected", 10, "process_ended"), (1, None, "leader_resigned", 30, None)]
    assert spans[0].leadership_end.doubted_at == 15 * SECOND
    assert spans[1].interval.inferred_from == "effect_logged"


def test_doubts_that_passed_are_none_at_the_end() -> None:
    facts = [
        state(10, 1, "Leader", 1, leader_id=1),
        fact(QuorumFactKind.DOUBTED, 20, 2),
        fact(QuorumFactKind.STOPPING, 500, 1),
        state(501, 1, "Resigned", 1),
        state(502, 2, "Leader", 2, leader_id=2),
    ]
    first = quorum_timeline(facts, NOTHING)[0]
    assert (first.leadership_end.end_reason, first.leadership_end.doubted_at) == ("shut_down", None)


def test_a_voter_that_starts_again_begins_no_election() -> None:
    facts = [
        state(10, 1, "Unattached", 3, is_first=True),
        state(11, 1, "Follower", 3, leader_id=2, voters=(3, 2, 1), high_watermark=40),
    ]
    (span,) = quorum_timeline(facts, NOTHING)
    assert told([span]) == [(3, 2, "leader_elected", 11, None)]
    assert (span.interval.inferred_from, span.interval.value.voters) == ("effect_logged", (1, 2, 3))
    assert span.high_watermark == 40


def test_a_controllers_line_tells_of_an_election_where_it_knew_an_epoch_before() -> None:
    named, active = QuorumFactKind.NAMED, QuorumFactKind.ACTIVE
    facts = [fact(named, 10, 1, epoch=1, leader_id=2), fact(named, 20, 1, epoch=2), fact(active, 22, 3, epoch=2)]
    assert told(quorum_timeline(facts, NOTHING)) == [
        (1, 2, "leader_elected", 10, "superseded"),
        (2, None, "election_started", 20, None),
        (2, 3, "leader_elected", 22, None),
    ]
    assert told(quorum_timeline(facts[1:], NOTHING)) == [(2, 3, "leader_elected", 22, None)]


def test_answers_tell_members_and_how_far_the_log_is_committed() -> None:
    def described(at: int, mark: int, *observers: int) -> QuorumFact:
        given = {"epoch": 4, "leader_id": 1, "voters": (1, 2, 3), "observers": observers, "high_watermark": mark}
        return fact(QuorumFactKind.DESCRIBED, at, 1, "description", **given)

    spans = quorum_timeline([described(10, 5, 7), described(11, 9, 7), described(20, 8, 7, 6)], NOTHING)
    assert [(s.interval.value.observers, s.high_watermark) for s in spans if s.interval.value.observers] == [
        ((7,), 9),
        ((6, 7), 8),
    ]
    assert spans[0].interval.inferred_from == "effect_logged"
    assert {s.interval.value.source for s in spans} == {"description"}


def test_a_quorum_state_file_names_a_leader_whom_nothing_else_does() -> None:
    known = fact(QuorumFactKind.NAMED, 30, 2, "quorum_state", epoch=7, leader_id=3, voters=(1, 2, 3))
    (span,) = quorum_timeline([known], NOTHING)
    assert (told([span])[0][:3], span.interval.value.source) == ((7, 3, "leader_elected"), "quorum_state")
    assert span.interval.inferred_from == "effect_logged"


def test_voters_come_and_go_by_records() -> None:
    """KIP-853: a new quorum's leader writes version and voters behind its first record, in one batch; a leader that is
    taken out of the voters resigns."""
    log = log_of(
        leader_change(0, 1, 10, 1, (1, 2, 3)),
        record(1, 1, "KRaftVersionRecord", 10, 0, kRaftVersion=1),
        record(2, 1, "VotersRecord", 10, 0, voters=voters(1, 2, 3)),
        record(50, 1, "VotersRecord", 20, 50, voters=voters(1, 2, 3, 4)),
        record(60, 1, "VotersRecord", 30, 60, voters=voters(2, 3, 4)),
        leader_change(70, 2, 35, 2, (2, 3, 4)),
    )
    spans = quorum_timeline([state(31, 1, "Resigned", 1, previous_epoch=1)], log)
    assert told(spans) == [
        (1, 1, "leader_elected", 10, None),
        (1, 1, "voters_changed", 20, None),
        (1, 1, "voters_changed", 30, "removed"),
        (1, None, "leader_resigned", 31, None),
        (2, 2, "leader_elected", 35, None),
    ]
    values = [span.interval.value for span in spans]
    assert [v.voters for v in values] == [(1, 2, 3), (1, 2, 3, 4), (2, 3, 4), (2, 3, 4), (2, 3, 4)]
    assert [v.offset for v in values] == [0, 50, 60, None, 70]
    assert {v.kraft_version for v in values} == {1}
    assert values[1].voter_directory_ids == ("dir-1", "dir-2", "dir-3", "dir-4")
    assert spans[0].interval.evidence == ("0@1", "1@1", "2@1")
    assert {span.interval.inferred_from for span in spans} == {None}


def test_voters_that_no_majority_is_proven_to_have_are_inferred() -> None:
    rows = (
        leader_change(0, 1, 10, 1, (1, 2, 3)),
        record(50, 1, "VotersRecord", 20, 50, voters=voters(1, 2)),
    )
    log = ClusterLog("c", (CopySpan(1, 1, 0, 51), CopySpan(2, 1, 0, 50), CopySpan(3, 1, 0, 50)), (), rows)
    assert [span.interval.inferred_from for span in quorum_timeline([], log)] == [None, "commit_not_proven"]


def test_what_a_snapshot_shows_is_the_begin_where_the_log_before_it_is_gone() -> None:
    shown = [
        LogRow("v", 0, 5, "KRaftVersionRecord", json.dumps({"kRaftVersion": 1}), 0, None, 1, 1, 100),
        LogRow("w", 1, 5, "VotersRecord", json.dumps({"voters": voters(1, 2, 3)}), 0, None, 1, 1, 100),
    ]
    snapshot = SnapshotFile(1, 100, 5, 40 * SECOND, "s")
    log = log_of(*shown, record(100, 5, "VotersRecord", 50, 100, voters=voters(1, 2)), start=100, snapshots=(snapshot,))
    first, then = quorum_timeline([], log)
    assert (first.interval.value.began_by, first.interval.value.leader_id) == ("first_seen", None)
    assert (first.interval.value.voters, first.interval.value.kraft_version) == ((1, 2, 3), 1)
    assert (first.interval.inferred_from, first.interval.evidence) == ("retention_boundary", ("s", "v", "w"))
    assert (then.interval.value.began_by, then.interval.value.voters) == ("voters_changed", (1, 2))
