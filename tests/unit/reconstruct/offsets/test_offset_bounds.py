"""What single sightings prove of a replica's offsets, and where the proof ends."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reconstruct.model.versions import v
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import (
    EVER_AFTER,
    EVER_BEFORE,
    Drop,
    Fact,
    Step,
    interval_at,
    lower_steps,
    upper_steps,
)
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetBounds,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.losses import DivergingReplica, find_losses
from reconstruct.offsets.messages import logged_replica_events, printed_offsets
from reconstruct.offsets.timeline import bound_offsets

S = 1_000_000
OLD, NEW = v(0, 8, 2), v(3, 9)
COVERED = {broker: [(0, EVER_AFTER)] for broker in (1, 2, 3)}


def checkpoint(replica: int, offset: int, second: int) -> OffsetObservation:
    """A copy of ``replication-offset-checkpoint``, made in the second from ``second`` on."""
    return OffsetObservation(
        replica, oe.HIGH_WATERMARK, offset, second * S, (second + 1) * S, source="replication_offset_checkpoint"
    )


def event(replica: int, kind: str, second: float, offset: int | None = None, leader: int | None = None) -> ReplicaEvent:
    return ReplicaEvent(replica, ReplicaEventKind(kind), int(second * S), offset, leader)


LEADER = [event(1, "started", 0), event(1, "leads", 1)]
FOLLOWER = [event(2, "started", 0), event(2, "follows", 1, leader=1)]


def rows(evidence: OffsetEvidence, replica: int = 1, version=NEW) -> list[OffsetBounds]:
    return [row for row in bound_offsets(evidence, version) if row.replica_id == replica]


def high_watermark_at(bounds: list[OffsetBounds], second: float) -> tuple[int | None, int | None]:
    for row in bounds:
        if row.valid_from <= second * S < (row.valid_to or EVER_AFTER):
            return row.high_watermark_lower, row.high_watermark_upper
    return None, None


def log_end_at(bounds: list[OffsetBounds], second: float) -> tuple[int | None, int | None]:
    for row in bounds:
        if row.valid_from <= second * S < (row.valid_to or EVER_AFTER):
            return row.log_end_offset_lower, row.log_end_offset_upper
    return None, None


# --- steps ----------------------------------------------------------------------------------------------------------


def test_a_lower_bound_holds_on_to_the_next_drop_and_from_there_at_the_drops_floor() -> None:
    facts, drops = [Fact(10, 5), Fact(20, 8)], [Drop(30, 35, 6), Drop(50, 50)]
    assert lower_steps(facts, drops) == [Step(10, 20, 5), Step(20, 30, 8), Step(30, 50, 6)]


def test_an_upper_bound_holds_back_to_the_last_drop() -> None:
    facts, drops = [Fact(20, 8), Fact(10, 9), Fact(60, 20)], [Drop(30, 35, 6)]
    assert upper_steps(facts, drops) == [Step(EVER_BEFORE, 20, 8), Step(35, 60, 20)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=8), st.lists(st.integers(0, 30), max_size=3))
def test_steps_are_what_each_instant_says_on_its_own(seen: list[tuple[int, int]], falls: list[int]) -> None:
    facts, drops = [Fact(at * 2, offset) for at, offset in seen], [Drop(at * 2 + 1, at * 2 + 1) for at in falls]
    lower, upper = lower_steps(facts, drops), upper_steps(facts, drops)
    for instant in range(1, 62, 2):
        before = max((d.end for d in drops if d.end <= instant), default=-1)
        after = min((d.start for d in drops if d.start > instant), default=99)
        least = max((f.offset for f in facts if before <= f.at <= instant), default=None)
        most = min((f.offset for f in facts if instant <= f.at < after), default=None)
        found_lower, found_upper = interval_at(lower, instant), interval_at(upper, instant)
        assert (found_lower.offset if found_lower else None) == least
        assert (found_upper.offset if found_upper else None) == most


# --- checkpoints ----------------------------------------------------------------------------------------------------


def test_a_checkpoint_bounds_from_below_after_its_copy_and_from_above_before_the_copy_that_lacked_it() -> None:
    bounds = rows(
        OffsetEvidence([checkpoint(1, 10, 5), checkpoint(1, 20, 6), checkpoint(1, 30, 7)], LEADER, (), COVERED)
    )
    assert [high_watermark_at(bounds, s) for s in (4.5, 5.5, 6.5, 7.5, 8.5)] == [
        (None, 20),
        (None, 30),
        (None, None),
        (20, None),
        (30, None),
    ]


def test_a_copy_with_the_same_content_is_no_news_but_one_of_a_file_written_anew_is() -> None:
    same = [checkpoint(1, 10, 5), checkpoint(1, 20, 6), checkpoint(1, 20, 9)]
    assert high_watermark_at(rows(OffsetEvidence(same, LEADER, (), COVERED)), 7.5) == (20, None)
    anew = [*same[:2], replace(same[2], written_after=8 * S)]
    assert high_watermark_at(rows(OffsetEvidence(anew, LEADER, (), COVERED)), 7.5) == (20, 20)


def test_the_first_copy_may_be_of_an_earlier_process_and_proves_nothing_of_this_one() -> None:
    bounds = rows(OffsetEvidence([checkpoint(1, 10, 5)], LEADER, (), COVERED))
    assert high_watermark_at(bounds, 7) == (None, None)


def test_a_start_ends_what_was_proven() -> None:
    observations = [checkpoint(1, 10, 5), checkpoint(1, 20, 6)]
    bounds = rows(OffsetEvidence(observations, [*LEADER, event(1, "started", 10)], (), COVERED))
    assert [high_watermark_at(bounds, s)[0] for s in (9, 10)] == [20, None]


def test_where_the_log_does_not_cover_a_replica_nothing_is_carried_on() -> None:
    observations = [checkpoint(1, 10, 5), checkpoint(1, 20, 6)]
    assert rows(OffsetEvidence(observations, LEADER, (), {1: [(0, 8 * S)]}))[-1].valid_to == 8 * S
    assert rows(OffsetEvidence(observations, LEADER, (), {})) == []


# --- followers ------------------------------------------------------------------------------------------------------


def test_a_followers_high_watermark_counts_for_its_leader_only_once_it_surely_fetched() -> None:
    """It starts with 300 of an earlier leader; only a rise after the begin of the role span shows a fetch."""
    stale = [checkpoint(2, 290, 0), checkpoint(2, 300, 2)]
    proven = [*stale, checkpoint(2, 61, 4), checkpoint(2, 80, 6)]
    for observations, expected in ((stale, None), (proven, 80)):
        evidence = OffsetEvidence(observations, [*LEADER, *FOLLOWER], (), COVERED)
        assert high_watermark_at(rows(evidence), 8)[0] == expected


def test_a_follower_is_not_above_its_leader() -> None:
    observations = [checkpoint(2, offset, second) for offset, second in ((1, 2), (5, 3), (9, 4))]
    observations += [checkpoint(1, offset, second) for offset, second in ((2, 6), (30, 7), (31, 8))]
    evidence = OffsetEvidence(observations, [*LEADER, *FOLLOWER], (), COVERED)
    assert high_watermark_at(rows(evidence, 2), 5.5) == (9, 30)


def test_a_member_of_the_isr_has_what_the_leader_committed_in_its_reign() -> None:
    shrunk = OffsetObservation(1, oe.HIGH_WATERMARK, 0, int(1.2 * S), source="log_record")
    observations = [shrunk, checkpoint(1, 10, 5), checkpoint(1, 20, 6)]
    decided = [DecidedState(S, 12 * S, 1, 0, (1, 2)), DecidedState(12 * S, None, 1, 0, (1,))]
    evidence = OffsetEvidence(observations, [*LEADER, *FOLLOWER], decided, COVERED)
    assert log_end_at(rows(evidence, 2), 9) == (20, None)
    assert rows(evidence, 3) == []


def test_what_a_dying_leader_committed_is_in_the_log_with_which_a_member_of_its_isr_succeeds_it() -> None:
    """No file tells how far broker 1 got after its last copy; that broker 2 begins epoch 1 at 42 does."""
    shrunk = OffsetObservation(1, oe.HIGH_WATERMARK, 0, int(1.2 * S), source="log_record")
    begins = OffsetObservation(2, oe.LOG_END_OFFSET, 42, 12 * S, leader_epoch=1, source="log_record")
    events = [*LEADER, *FOLLOWER, event(2, "leads", 12)]
    observations = [shrunk, checkpoint(1, 10, 5), checkpoint(1, 20, 6), begins]
    for isr, known in (((1, 2), 42), ((1,), None)):
        decided = [DecidedState(S, int(11.5 * S), 1, 0, isr), DecidedState(int(11.5 * S), None, 2, 1, (2,))]
        evidence = OffsetEvidence(observations, events, decided, COVERED)
        assert high_watermark_at(rows(evidence), 9) == (20, known)


def test_a_member_that_lost_records_unnoticed_bounds_nothing_until_it_fetches_again() -> None:
    """Broker 2 is back before its session ends; until it fetches, its leader counts it with what it had (KIP-101)."""
    printed = [(0, 1.2), (7, 11.8), (9, 12.5), (10, 17)]
    of_leader = [OffsetObservation(1, oe.HIGH_WATERMARK, hw, int(at * S), source="log_record") for hw, at in printed]
    begins = OffsetObservation(2, oe.LOG_END_OFFSET, 12, 20 * S, leader_epoch=1, source="log_record")
    back = [event(2, "started", 10), event(2, "follows", 10.5, leader=1), event(2, "truncated", 10.6, 6)]
    decided = [DecidedState(S, 19 * S, 1, 0, (1, 2, 3)), DecidedState(19 * S, None, 2, 1, (2, 3))]
    fetched = [checkpoint(2, 6, 12), checkpoint(2, 7, 13), checkpoint(2, 8, 14)]
    for seen, lower, upper in (([], None, None), (fetched, 8, 12)):
        evidence = OffsetEvidence(
            [*of_leader, begins, *seen], [*LEADER, *FOLLOWER, *back, event(2, "leads", 20)], decided, COVERED
        )
        assert log_end_at(rows(evidence, 2), 13)[0] is None
        assert log_end_at(rows(evidence, 2), 18.5)[0] == lower
        assert high_watermark_at(rows(evidence), 18.5) == (10, upper)


def test_a_high_watermark_from_before_the_reign_may_be_above_a_members_log() -> None:
    shrunk = OffsetObservation(1, oe.HIGH_WATERMARK, 50, int(1.2 * S), source="log_record")
    begins = OffsetObservation(2, oe.LOG_END_OFFSET, 42, 12 * S, leader_epoch=1, source="log_record")
    decided = [DecidedState(S, int(11.5 * S), 1, 0, (1, 2)), DecidedState(int(11.5 * S), None, 2, 1, (2,))]
    evidence = OffsetEvidence([shrunk, begins], [*LEADER, *FOLLOWER, event(2, "leads", 12)], decided, COVERED)
    assert high_watermark_at(rows(evidence), 9)[1] == 50


def test_of_equal_facts_the_same_one_is_named_whatever_their_order() -> None:
    facts = [Fact(20, 8, (name,)) for name in "bca"]
    assert lower_steps(facts, ()) == lower_steps(facts[::-1], ()) == [Step(20, EVER_AFTER, 8, ("a",))]
    assert upper_steps(facts, ()) == upper_steps(facts[::-1], ()) == [Step(EVER_BEFORE, 20, 8, ("a",))]


def test_a_truncation_leaves_at_least_its_offset() -> None:
    observations = [OffsetObservation(2, oe.LOG_END_OFFSET, 306, 2 * S, source="log_record")]
    events = [event(2, "started", 0), event(2, "truncated", 4, 289)]
    bounds = rows(OffsetEvidence(observations, events, (), COVERED), 2, OLD)
    assert [log_end_at(bounds, s) for s in (3, 4.5, 9)] == [(306, None), (289, None), (289, None)]


def test_before_2_4_a_truncation_may_leave_the_high_watermark_above_the_log() -> None:
    observations = [checkpoint(2, 290, 0), checkpoint(2, 300, 2), checkpoint(2, 299, 7), checkpoint(2, 301, 8)]
    events = [event(2, "started", 0), event(2, "truncated", 6, 68)]
    for version, expected in ((OLD, 68), (NEW, 301)):
        assert log_end_at(rows(OffsetEvidence(observations, events, (), COVERED), 2, version), 10)[0] == expected


def test_a_probe_meets_the_bounds() -> None:
    probe = OffsetObservation(1, oe.HIGH_WATERMARK, 42, 5 * S, 5 * S)
    observations = [checkpoint(1, 10, 2), checkpoint(1, 20, 3), probe, checkpoint(1, 70, 8), checkpoint(1, 80, 9)]
    bounds = rows(OffsetEvidence(observations, LEADER, (), COVERED))
    assert (high_watermark_at(bounds, 4.999)[1], high_watermark_at(bounds, 5)[0]) == (42, 42)


def test_the_order_of_the_evidence_does_not_matter() -> None:
    observations = [checkpoint(b, 10 * s + b, s) for b in (1, 2) for s in range(3, 20)]
    events = [*LEADER, *FOLLOWER, event(2, "truncated", 3, 0)]
    expected = bound_offsets(OffsetEvidence(observations, events, (), COVERED), NEW)
    for seed in range(5):
        source = random.Random(seed)
        source.shuffle(observations)
        source.shuffle(events)
        assert bound_offsets(OffsetEvidence(observations, events, (), COVERED), NEW) == expected


# --- losses ---------------------------------------------------------------------------------------------------------


def unclean(cut_to: int, *, isr: tuple[int, ...] = (1,)) -> OffsetEvidence:
    """1 leads alone and dies at 306 with a checkpoint of 289; 2, at 74, is elected; 1 returns and cuts its log."""
    observations = [checkpoint(1, 280, 4), checkpoint(1, 289, 6)]
    observations += [
        OffsetObservation(2, oe.LOG_END_OFFSET, 74, 20 * S, source="log_record"),
        OffsetObservation(1, oe.LOG_END_OFFSET, 306, 30 * S, source="log_record"),
    ]
    events = [*LEADER, event(2, "started", 19), event(2, "leads", 21), event(1, "started", 29)]
    events += [event(1, "truncated", 32, cut_to), event(1, "follows", 33, leader=2)]
    decided = [DecidedState(S, 21 * S, 1, 0, isr), DecidedState(21 * S, None, 2, 1, (2,))]
    return OffsetEvidence(observations, events, decided, COVERED)


def test_an_unclean_election_loses_at_least_what_was_checkpointed_and_at_most_the_old_leaders_log() -> None:
    evidence = unclean(74)
    (loss,) = find_losses(evidence, bound_offsets(evidence, OLD))
    assert (loss.cause, loss.leader, loss.previous_leader) == ("unclean_election", 2, 1)
    assert (loss.lost_from_offset, loss.lost_to_offset_lower, loss.lost_to_offset_upper) == (74, 288, 305)
    assert (loss.lost_count_lower, loss.lost_count_upper) == (215, 232)
    assert loss.diverging == ()


def test_the_old_leader_that_cuts_less_keeps_its_own_records() -> None:
    evidence = unclean(289)
    (loss,) = find_losses(evidence, bound_offsets(evidence, OLD))
    assert [(d.replica_id, d.from_offset, d.to_offset) for d in loss.diverging] == [(1, 74, 289)]
    assert isinstance(loss.diverging[0], DivergingReplica)


def test_a_member_of_the_isr_that_lacks_committed_records_is_a_loss_of_a_clean_election() -> None:
    evidence = unclean(74, isr=(1, 2))
    assert [loss.cause for loss in find_losses(evidence, bound_offsets(evidence, OLD))] == ["clean_election"]


def test_a_leader_that_has_everything_loses_nothing() -> None:
    evidence = unclean(306)
    kept = [replace(s, offset=306) if (s.replica_id, s.offset) == (2, 74) else s for s in evidence.observations]
    assert find_losses(replace(evidence, observations=kept), bound_offsets(evidence, OLD)) == []


# --- messages -------------------------------------------------------------------------------------------------------


def test_what_messages_say() -> None:
    fields = {"topic_partitions": "a-0,b-1", "leader": "2", "fetch_offsets": "0,5"}
    follows = list(logged_replica_events(1, 7, "x", "fetcher_added", fields))
    assert [(partition, e.kind, e.leader) for partition, e in follows] == [
        (("a", 0), "follows", 2),
        (("b", 1), "follows", 2),
    ]
    shrink = {"topic": "a", "partition_id": "0", "high_watermark": "68", "log_end_offset": "138"}
    seen = [s for _, s in printed_offsets(1, 7, "x", "isr_shrink_proposed", shrink)]
    assert [(s.offset_kind, s.offset) for s in seen] == [("log_end_offset", 138), ("high_watermark", 68)]


def test_a_high_watermark_of_0_at_loading_may_be_another_brokers_note_and_says_nothing() -> None:
    fields = {"topic": "a", "partition_id": "0", "high_watermark": "0"}
    assert list(printed_offsets(1, 7, "x", "high_watermark_initialised", fields)) == []
    assert len(list(printed_offsets(1, 7, "x", "high_watermark_initialised", {**fields, "high_watermark": "3"}))) == 1
