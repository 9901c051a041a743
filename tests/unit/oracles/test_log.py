"""A log and its lineage of epochs: what an append adds, a truncation takes, and OffsetsForLeaderEpoch answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.replication.log import (
    UNDEFINED,
    EpochEndOffset,
    EpochEntry,
    Record,
    ReplicaLog,
    append,
    assign_epoch,
    end_offset_for,
    end_offset_of_epoch,
    truncate_to,
)
from tests.oracles.replication.segments import IndexEntry, base_offset_of, position_of, segment_of


def log_of(*epochs: int) -> ReplicaLog:
    return append(ReplicaLog(), [Record(epoch, i) for i, epoch in enumerate(epochs)], keeps_lineage=True)


def test_an_append_of_a_new_epoch_begins_a_new_entry() -> None:
    assert log_of(0, 0, 2, 2, 5).lineage == ((0, 0), (2, 2), (5, 4))


def test_before_0_11_a_log_has_no_lineage() -> None:
    assert append(ReplicaLog(), [Record(3, 0)], keeps_lineage=False).lineage == ()


def test_an_epoch_assigned_at_an_election_replaces_one_without_records() -> None:
    assert assign_epoch(assign_epoch(log_of(0, 0), 1), 2).lineage == (EpochEntry(0, 0), EpochEntry(2, 2))


def test_a_truncation_takes_the_entry_of_an_election_at_the_very_end() -> None:
    led = assign_epoch(log_of(0, 0), 1)
    assert truncate_to(led, 2) == log_of(0, 0)


@pytest.mark.parametrize(
    ("epoch", "kip_101", "kip_279"),
    [
        (5, 5, EpochEndOffset(5, 5)),  # the last epoch ends at the log's end
        (2, 4, EpochEndOffset(2, 4)),  # a known one where the next begins
        (3, 4, EpochEndOffset(2, 4)),  # an unknown one between: KIP-279 names the one before it
        (0, 2, EpochEndOffset(0, 2)),
        (6, -1, UNDEFINED),  # later than any known
        (-1, -1, UNDEFINED),
    ],
)
def test_where_an_epoch_ends(epoch: int, kip_101: int, kip_279: EpochEndOffset) -> None:
    log = log_of(0, 0, 2, 2, 5)
    assert (end_offset_of_epoch(log, epoch), end_offset_for(log, epoch)) == (kip_101, kip_279)


def test_an_epoch_below_the_first_known_ends_where_that_begins_since_kip_279_and_is_unknown_before() -> None:
    log = ReplicaLog(lineage=(EpochEntry(3, 7),), log_start_offset=7)
    assert (end_offset_of_epoch(log, 1), end_offset_for(log, 1)) == (-1, EpochEndOffset(1, 7))


@given(st.lists(st.integers(0, 4)).map(sorted), st.integers(-1, 12))
def test_a_truncation_is_the_log_that_never_had_the_rest(epochs: list[int], offset: int) -> None:
    log = truncate_to(log_of(*epochs), offset)
    assert log == log_of(*epochs[: max(offset, 0)])
    assert log.log_end_offset == min(max(offset, 0), len(epochs))


def test_a_lookup_reads_from_the_last_index_entry_not_above_the_target() -> None:
    bases, index = (0, 100, 250), (IndexEntry(20, 4100), IndexEntry(45, 8300))
    assert [segment_of(bases, offset) for offset in (0, 99, 100, 400)] == [0, 0, 100, 250]
    assert segment_of((50,), 10) is None
    assert [position_of(100, index, offset) for offset in (100, 119, 120, 144, 145, 249)] == [
        0,
        0,
        4100,
        4100,
        8300,
        8300,
    ]
    assert base_offset_of("00000000000000000250.log") == 250
    assert base_offset_of("leader-epoch-checkpoint") is None
