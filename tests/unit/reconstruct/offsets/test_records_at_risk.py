"""What the death of a leader would cost: small made-up partitions, and what unclean elections really lost."""

from __future__ import annotations

import pytest

from reconstruct.model.versions import ANY_VERSION, KafkaVersion, VersionRange
from reconstruct.offsets.evidence import DecidedState, OffsetBounds
from reconstruct.offsets.losses import find_losses
from reconstruct.offsets.records_at_risk import AssignedReplicas, RecordsAtRisk, Span, records_at_risk
from tests.support.captures.packed import Unpacker
from tests.support.truth.offsets import bounds_of, read_evidence

ASSIGNED = [AssignedReplicas(0, None, (1, 2, 3))]


def bound(replica: int, hw: tuple[int | None, int | None], leo: tuple[int | None, int | None]) -> OffsetBounds:
    return OffsetBounds(replica, 0, None, hw[0], hw[1], leo[0], leo[1], evidence=(f"r{replica}",))


def risks(
    decided: list[DecidedState],
    bounds: list[OffsetBounds],
    assigned: list[AssignedReplicas] | None = None,
    live: dict[int, list[Span]] | None = None,
    version: str = "3.9.1",
) -> list[RecordsAtRisk]:
    parsed = KafkaVersion.parse(version)
    assert parsed is not None
    exactly = VersionRange.exactly(parsed)
    return records_at_risk(decided, bounds, ASSIGNED if assigned is None else assigned, live or {}, exactly)


def test_a_leader_of_a_full_isr_risks_what_the_next_in_the_assignment_lacks() -> None:
    (risk,) = risks(
        [DecidedState(0, None, 1, 4, (1, 3, 2))],
        [bound(1, (90, 92), (100, 105)), bound(2, (80, 90), (95, 98)), bound(3, (80, 90), (99, 105))],
    )
    assert (risk.leader, risk.last_leader, risk.leader_epoch, risk.isr) == (1, 1, 4, (1, 3, 2))
    assert (risk.uncommitted_lower, risk.uncommitted_upper) == (8, 15)
    assert risk.held_by == (1, 2, 3)
    assert (risk.next_leader, risk.clean_from_offset) == (2, 95)
    assert (risk.clean_lost_lower, risk.clean_lost_upper) == (2, 10)
    assert (risk.worst_replica, risk.unclean_lost_lower, risk.unclean_lost_upper) == (None, None, None)
    assert (risk.truncation, risk.evidence) == ("by_epoch_lineage", ("r1", "r2"))


def test_a_leader_alone_in_its_isr_has_no_clean_successor() -> None:
    (risk,) = risks(
        [DecidedState(0, None, 1, 4, (1,))],
        [bound(1, (90, 92), (100, 105)), bound(2, (60, 70), (70, 75)), bound(3, (60, 70), (80, 82))],
        version="0.10.2.1",
    )
    assert (risk.next_leader, risk.clean_lost_lower, risk.clean_lost_upper) == (None, None, None)
    assert risk.held_by == (1,)
    assert (risk.worst_replica, risk.unclean_from_offset) == (2, 70)
    assert (risk.unclean_lost_lower, risk.unclean_lost_upper) == (15, 22)
    assert risk.truncation == "to_high_watermark"


def test_a_leader_alone_in_its_isr_is_followed_by_an_eligible_replica() -> None:
    """``PartitionChangeBuilderTest.testEligibleLeaderReplicas_ElrCanBeElected``: it has what
    was committed, so that nothing is lost of that; the third replica would have lost some."""
    bounds = [bound(1, (90, 92), (100, 105)), bound(2, (80, 90), (92, 98)), bound(3, (60, 70), (70, 75))]
    (risk,) = risks([DecidedState(0, None, 1, 4, (1,), (2,))], bounds, version="4.1.0")
    assert (risk.isr, risk.elr, risk.next_leader) == ((1,), (2,), 2)
    assert (risk.clean_lost_lower, risk.clean_lost_upper) == (2, 13)
    assert (risk.worst_replica, risk.unclean_lost_lower, risk.unclean_lost_upper) == (3, 15, 22)
    (risk,) = risks([DecidedState(0, None, 1, 4, (1,), (2,))], bounds, live={2: [(-9, -1)]}, version="4.1.0")
    assert (risk.next_leader, risk.worst_replica) == (None, 3), "it may come back, and is no unclean choice then"
    (risk,) = risks([DecidedState(0, None, 1, 4, (1, 3), (2,))], bounds, version="4.1.0")
    assert risk.next_leader == 3, "the ISR comes first, whatever the assignment says"


def test_what_is_not_bounded_is_null_and_an_unknown_log_may_be_the_shortest() -> None:
    (risk,) = risks(
        [DecidedState(0, None, 1, 4, (1, 2))], [bound(1, (90, None), (100, None)), bound(2, (None, None), (90, None))]
    )
    assert (risk.uncommitted_lower, risk.uncommitted_upper) == (None, None)
    assert (risk.clean_lost_lower, risk.clean_lost_upper) == (0, None)
    assert risk.held_by == ()
    assert (risk.worst_replica, risk.unclean_lost_lower, risk.unclean_lost_upper) == (None, 0, None)
    (risk,) = risks(
        [DecidedState(0, None, 1, 4, (1,))],
        [bound(1, (90, 90), (90, 90)), bound(2, (60, 60), (70, 70)), bound(3, (None, None), (None, 65))],
    )
    assert (risk.worst_replica, risk.unclean_lost_lower, risk.unclean_lost_upper) == (None, 0, None)


def test_without_the_assignment_any_member_of_the_isr_may_be_next() -> None:
    (risk,) = risks(
        [DecidedState(0, None, 1, 4, (1, 2, 3))],
        [bound(1, (90, 90), (100, 100)), bound(2, (80, 90), (95, 98)), bound(3, (80, 90), (99, 99))],
        assigned=[],
    )
    assert risk.next_leader is None
    assert (risk.clean_from_offset, risk.clean_lost_lower, risk.clean_lost_upper) == (95, 1, 5)


def test_the_dead_are_not_elected() -> None:
    bounds = [bound(r, (90, 90), (100 - r, 100 - r)) for r in (1, 2, 3)]
    before, after = risks([DecidedState(0, None, 1, 4, (1, 2, 3))], bounds, live={2: [(0, 5)]})
    assert (before.next_leader, before.valid_to) == (2, 5)
    assert (after.next_leader, after.valid_from, after.valid_to) == (3, 5, None)


def test_a_replica_that_is_down_and_out_of_sync_may_come_back_first() -> None:
    bounds = [bound(1, (90, 90), (90, 90)), bound(2, (0, 0), (70, 70)), bound(3, (90, 90), (90, 90))]
    (risk,) = risks([DecidedState(2, None, 1, 4, (1, 3))], bounds, live={2: [(0, 1)]})
    assert (risk.worst_replica, risk.unclean_lost_lower, risk.unclean_lost_upper) == (2, 20, 20)


def test_without_a_leader_the_last_ones_high_watermark_counts() -> None:
    bounds = [bound(1, (90, 92), (100, 105)), bound(2, (60, 70), (70, 75))]
    state = [DecidedState(0, 5, 1, 4, (1,)), DecidedState(5, None, -1, 5, (1,))]
    _, offline = risks(state, bounds, [AssignedReplicas(0, None, (1, 2))], {1: [(0, 5)]})
    assert (offline.leader, offline.last_leader) == (-1, 1)
    assert (offline.worst_replica, offline.unclean_lost_lower, offline.unclean_lost_upper) == (2, 15, 22)
    assert offline.next_leader is None


def test_neighbours_that_say_the_same_are_one_and_rows_without_length_say_nothing() -> None:
    rows = [
        OffsetBounds(1, 0, 4, 9, 9, 9, 9),
        OffsetBounds(1, 4, 4, 9, 9, 7, 7),
        OffsetBounds(1, 4, None, 9, 9, 9, 9),
    ]
    (risk,) = risks([DecidedState(0, None, 1, 4, (1,))], rows, [AssignedReplicas(0, None, (1,))])
    assert (risk.valid_from, risk.valid_to, risk.uncommitted_upper) == (0, None, 0)


def test_nothing_is_said_before_anything_was_decided_or_of_a_partition_that_never_had_a_leader() -> None:
    assert risks([], [bound(1, (1, 1), (1, 1))]) == []
    assert risks([DecidedState(5, 9, -1, 0, ())], [bound(1, (1, 1), (1, 1))]) == []
    assert records_at_risk([DecidedState(5, 9, 1, 0, (1,))], [], [], {}, ANY_VERSION) == [
        RecordsAtRisk(5, 9, 1, 1, 0, (1,))
    ]


@pytest.mark.parametrize(("name", "said_at_least"), [("unclean-0.8.2.2", 60), ("unclean-3.9.1-info", 230)])
def test_what_an_unclean_election_lost_was_said_before_it(unpacked: Unpacker, name: str, said_at_least: int) -> None:
    """At most, while the leader answered; at least, once the replica that was elected had come back."""
    found = read_evidence(unpacked(name), with_probes=True)
    bounds = bounds_of(found)
    seen = 0
    for partition, evidence in found.partitions.items():
        made = records_at_risk(evidence.decided, bounds[partition], [], {}, VersionRange.exactly(found.version))
        for loss in find_losses(evidence, bounds[partition]):
            before = [risk for risk in made if risk.valid_from < loss.event_at and risk.isr == (loss.previous_leader,)]
            assert {risk.last_leader for risk in before} == {loss.previous_leader}
            assert {risk.worst_replica for risk in before} <= {loss.leader, None}
            lower = max(risk.unclean_lost_lower or 0 for risk in before)
            upper = max(risk.unclean_lost_upper or 0 for risk in before)
            assert loss.lost_count_upper is not None
            assert said_at_least <= lower <= loss.lost_count_upper
            assert 0.9 * loss.lost_count_lower <= upper
            seen += 1
    assert seen == 2
