"""What several copies of one metadata log prove of its records."""

from __future__ import annotations

from reconstruct.model.metadata_log.commitment import (
    Commitment,
    Copy,
    Lineage,
    Span,
    bases_of,
    lineage_of,
    one_log,
    without_effect,
)
from tests.support.metadata_log import NODES, copy_of

VOTERS = frozenset({1, 2, 3})


def copy(node_id: int, *spans: tuple[int, int, int], snapshot_ends: tuple[int, ...] = ()) -> Copy:
    return Copy(node_id, tuple(Span(*span) for span in spans), snapshot_ends)


def test_the_copies_of_a_real_quorum_are_one_log_and_what_two_of_three_have_is_committed() -> None:
    copies = [copy_of(node) for node in NODES]
    assert len({one.spans[-1].end for one in copies}) == 2
    lineage = lineage_of(copies, VOTERS)
    assert lineage.spans == copies[0].spans
    assert [span.epoch for span in lineage.spans] == [1, 2, 3, 4]
    assert lineage.runs == [(0, 169)]
    assert lineage.committed_end == 169


def test_of_a_real_quorum_one_copy_proves_what_its_snapshots_hold() -> None:
    lineage = lineage_of([copy_of(NODES[0])], VOTERS)
    assert lineage.committed_end == 115
    assert (lineage.of(114, 3), lineage.of(115, 3)) == (Commitment.COMMITTED, Commitment.TAIL)


def test_the_only_voter_commits_what_it_appends() -> None:
    assert lineage_of([copy(1, (0, 50, 1))], frozenset({1})).committed_end == 50


def test_a_copy_of_a_broker_that_is_no_voter_is_no_part_of_a_majority() -> None:
    copies = [copy(1, (0, 50, 1)), copy(7, (0, 50, 1)), copy(8, (0, 50, 1))]
    assert lineage_of(copies, VOTERS).committed_end == 0


def test_without_voters_nothing_is_known_of_a_majority() -> None:
    assert lineage_of([copy(1, (0, 50, 1)), copy(2, (0, 50, 1), snapshot_ends=(20,))]).committed_end == 20


def test_a_tail_of_an_epoch_that_another_took_over_is_truncated() -> None:
    deposed = copy(1, (0, 60, 1))
    lineage = lineage_of([deposed, copy(2, (0, 50, 1), (50, 70, 2)), copy(3, (0, 50, 1), (50, 65, 2))], VOTERS)
    assert lineage.of(55, 1) is Commitment.TRUNCATED
    assert lineage.of(55, 2) is Commitment.COMMITTED
    assert lineage.of(66, 2) is Commitment.TAIL
    assert lineage.committed_end == 65


def test_an_epoch_that_lost_its_election_again_is_truncated_though_it_is_higher_than_what_stays() -> None:
    """Epoch 3 began at 50 on one node only; the leader of epoch 4 had epoch 2's records there."""
    lineage = lineage_of([copy(1, (0, 50, 2), (50, 52, 3)), copy(2, (0, 58, 2), (58, 70, 4))], VOTERS)
    assert lineage.of(51, 3) is Commitment.TRUNCATED
    assert lineage.of(51, 2) is not Commitment.TRUNCATED


def test_what_the_followed_copy_has_deleted_is_taken_from_another() -> None:
    lineage = lineage_of([copy(1, (40, 70, 2), snapshot_ends=(40,)), copy(2, (0, 30, 1), (30, 60, 2))], VOTERS)
    assert lineage.spans == (Span(0, 30, 1), Span(30, 40, 2), Span(40, 70, 2))
    assert lineage.runs == [(0, 70)]


def test_a_majority_does_not_reach_beyond_where_copies_part() -> None:
    copies = [copy(1, (0, 50, 1), (50, 80, 3)), copy(2, (0, 60, 1)), copy(3, (0, 60, 1))]
    assert lineage_of(copies, VOTERS).committed_end == 50


def test_of_copies_of_one_node_from_before_and_after_it_cut_its_log_back_the_later_is_its_log() -> None:
    before, after = [Span(0, 40, 1), Span(40, 60, 2)], [Span(0, 40, 1), Span(40, 50, 2), Span(50, 70, 4)]
    assert one_log([*before, Span(50, 70, 4)]) == tuple(after)
    assert one_log([Span(0, 60, 1), Span(30, 90, 3), Span(80, 85, 2)]) == (Span(0, 30, 1), Span(30, 90, 3))
    assert one_log([Span(0, 20, 1), Span(10, 40, 1), Span(40, 41, 1)]) == (Span(0, 41, 1),)
    assert one_log([Span(0, 20, 1), Span(35, 40, 1), Span(50, 60, 2)])[:2] == (Span(0, 20, 1), Span(35, 40, 1))


def test_no_copies_prove_nothing() -> None:
    assert lineage_of([]) == Lineage()
    assert Lineage().of(0, 1) is Commitment.TRUNCATED


def test_an_aborted_transaction_has_no_effect_nor_has_one_that_does_not_end() -> None:
    begin, end, abort = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")
    assert without_effect([(1, begin), (7, end)]) == []
    assert without_effect([(1, begin), (7, abort), (9, begin), (12, end)]) == [(1, 8)]
    assert without_effect([(1, begin), (7, end), (20, begin)]) == [(20, None)]
    assert without_effect([(3, end)]) == []


def test_a_log_without_its_beginning_is_applied_from_a_snapshot_on() -> None:
    assert bases_of([(0, 70)], [40]) == [(0, 70)]
    assert bases_of([(40, 70)], [20, 40, 60]) == [(40, 70)]
    assert bases_of([(40, 70)], [55]) == [(55, 70)]
    assert bases_of([(40, 70)], []) == []
    assert bases_of([(0, 30), (50, 70)], [60]) == [(0, 30), (60, 70)]
    assert bases_of([(0, 30)], [90]) == [(0, 30), (90, 90)]
    assert bases_of([], [90]) == [(90, 90)]


def test_update_high_watermark_quorum_size_one() -> None:
    """Kafka's own cases, here and below (LeaderStateTest, 4.3): the end that is committed is the high watermark."""
    assert lineage_of([copy(1, (0, 16, 1))], frozenset({1})).committed_end == 16


def test_update_high_watermark_quorum_size_two() -> None:
    leader = copy(1, (0, 10, 1), (10, 13, 3))
    for follower, committed in ((0, 0), (10, 10), (11, 11), (13, 13)):
        other = copy(2, (0, min(10, follower), 1), *([(10, follower, 3)] if follower > 10 else []))
        assert lineage_of([leader, other], frozenset({1, 2})).committed_end == committed


def test_update_high_watermark_quorum_size_three() -> None:
    """A leader counts only what it appended itself: the begin of its epoch proves nothing of the records before it."""
    begun = [copy(1, (0, 10, 1), (10, 15, 3)), copy(2, (0, 10, 1))]
    assert lineage_of(begun, VOTERS).committed_end == 0
    assert lineage_of([*begun, copy(3, (0, 10, 1))], VOTERS).committed_end == 10
    assert lineage_of([*begun, copy(3, (0, 10, 1), (10, 15, 3))], VOTERS).committed_end == 15


def test_high_watermark_does_increase_from_new_voter() -> None:
    copies = [copy(1, (0, 17, 1)), copy(2, (0, 15, 1)), copy(3, (0, 10, 1))]
    assert lineage_of(copies, frozenset({1, 2})).committed_end == 15
    assert lineage_of(copies, VOTERS).committed_end == 15
    assert lineage_of([*copies[:2], copy(3, (0, 17, 1))], VOTERS).committed_end == 17


def test_update_high_watermark_removing_follower_from_voter_states() -> None:
    copies = [copy(1, (0, 15, 1)), copy(2, (0, 15, 1)), copy(3, (0, 10, 1))]
    assert lineage_of(copies, VOTERS).committed_end == 15
    assert lineage_of(copies, frozenset({1, 3})).committed_end == 10


def test_what_a_majority_has_may_still_be_truncated_by_the_leader_of_an_epoch_unseen() -> None:
    """Node 3 led epoch 2, and nobody has its records; node 1, of epoch 3, gave those of epoch 1 to node 2, and died
    before it had one of its own there: node 3 may win again."""
    copies = [copy(1, (0, 50, 1), (50, 51, 3)), copy(2, (0, 50, 1))]
    assert lineage_of(copies, VOTERS).committed_end == 0
    lineage = lineage_of([*copies, copy(3, (0, 40, 1), (40, 60, 4))], VOTERS)
    assert lineage.of(45, 1) is Commitment.TRUNCATED
    # without an epoch between nobody else can have led, and who led had the record
    assert lineage_of([copy(1, (0, 50, 1), (50, 51, 2)), copy(2, (0, 50, 1))], VOTERS).committed_end == 50
