"""Every cell of both transition tables, for each era."""

from __future__ import annotations

import pytest

from reconstruct.model.states import (
    PartitionState,
    ReplicaState,
    initial_partition_state,
    initial_replica_state,
    is_legal_partition_transition,
    is_legal_replica_transition,
)
from reconstruct.model.versions import KafkaVersion, VersionRange, v
from tests.support.loops import for_each

#: from: targets that 0.8.1 and later allow (grammar 6.1).
PARTITION = {
    "NonExistentPartition": {"NewPartition"},
    "NewPartition": {"OnlinePartition", "OfflinePartition"},
    "OnlinePartition": {"OnlinePartition", "OfflinePartition"},
    "OfflinePartition": {"OnlinePartition", "OfflinePartition", "NonExistentPartition"},
}
#: from: targets that 2.3 and later allow.
REPLICA = {
    "NonExistentReplica": {"NewReplica"},
    "NewReplica": {"OnlineReplica", "OfflineReplica"},
    "OnlineReplica": {"OnlineReplica", "OfflineReplica"},
    "OfflineReplica": {"OnlineReplica", "OfflineReplica", "ReplicaDeletionStarted", "ReplicaDeletionIneligible"},
    "ReplicaDeletionStarted": {"ReplicaDeletionSuccessful", "ReplicaDeletionIneligible"},
    "ReplicaDeletionSuccessful": {"NonExistentReplica"},
    "ReplicaDeletionIneligible": {"OnlineReplica", "OfflineReplica"},
}


@pytest.mark.parametrize("before", PartitionState)
@pytest.mark.parametrize("after", PartitionState)
def test_partition_transition(before: str, after: str) -> None:
    allowed = after in PARTITION[before]
    assert is_legal_partition_transition(before, after, VersionRange.exactly(v(3, 9))) is allowed
    in_0_8_0 = allowed and (before, after) != ("OfflinePartition", "OfflinePartition")
    assert is_legal_partition_transition(before, after, VersionRange.exactly(v(0, 8, 0))) is in_0_8_0


@for_each(after=ReplicaState, before=ReplicaState)
def test_replica_transition(before: str, after: str) -> None:
    allowed = after in REPLICA[before]
    assert is_legal_replica_transition(before, after, VersionRange.exactly(v(3, 9))) is allowed
    until_2_2 = allowed and (before, after) != ("OfflineReplica", "ReplicaDeletionIneligible")
    assert is_legal_replica_transition(before, after, VersionRange.exactly(v(2, 2, 2))) is until_2_2
    assert is_legal_replica_transition(before, after, VersionRange.exactly(v(0, 8, 1))) is until_2_2


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("NonExistentReplica", "NewReplica", True),
        ("OnlineReplica", "OfflineReplica", True),
        ("OfflineReplica", "OfflineReplica", False),
        ("OfflineReplica", "NonExistentReplica", True),
        ("OfflineReplica", "ReplicaDeletionStarted", False),
    ],
)
def test_replica_transition_before_topic_deletion(before: str, after: str, allowed: bool) -> None:
    assert is_legal_replica_transition(before, after, VersionRange.exactly(v(0, 8, 0))) is allowed


def test_what_only_one_of_the_possible_versions_allows_is_legal() -> None:
    unknown = VersionRange()
    assert is_legal_replica_transition("OfflineReplica", "ReplicaDeletionIneligible", unknown)
    assert is_legal_replica_transition("OfflineReplica", "NonExistentReplica", unknown)
    assert not is_legal_replica_transition("NonExistentReplica", "OnlineReplica", unknown)


def test_a_word_that_is_no_state_is_never_legal() -> None:
    assert not is_legal_partition_transition("Bogus", "OnlinePartition", VersionRange())
    assert not is_legal_partition_transition("NewPartition", "Bogus", VersionRange())


def test_states_of_a_new_controller() -> None:
    assert initial_partition_state(has_state=False, leader_is_live=True) is PartitionState.NEW
    assert initial_partition_state(has_state=True, leader_is_live=True) is PartitionState.ONLINE
    assert initial_partition_state(has_state=True, leader_is_live=False) is PartitionState.OFFLINE
    assert initial_replica_state(True, VersionRange()) is ReplicaState.ONLINE
    assert initial_replica_state(False, VersionRange.exactly(v(1, 1))) is ReplicaState.DELETION_INELIGIBLE
    assert initial_replica_state(False, VersionRange.exactly(v(0, 8, 0))) is ReplicaState.OFFLINE


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.8.2.2", v(0, 8, 2, 2)),
        ("3.9.1-rc0", v(3, 9, 1)),
        ("kafka_2.13-3.9.1", v(3, 9, 1)),
        ("7.5.1-ccs", v(3, 5, 1)),
        ("5.5.3-ce", v(2, 5, 3)),
        ("3.3.1-ccs", v(0, 11, 0, 1)),
        ("unknown", None),
    ],
)
def test_versions_are_read_as_people_write_them(text: str, version: KafkaVersion | None) -> None:
    assert KafkaVersion.parse(text) == version


def test_versions_order_across_the_change_of_numbering() -> None:
    assert v(0, 8, 2) < v(0, 10) < v(0, 11, 0, 3) < v(1, 0) < v(2, 8, 2) < v(3, 9, 1)
    assert v(1, 0) == v(1, 0, 0, 0)
    assert len({v(1, 0), v(1, 0, 0)}) == 1


def test_a_range_says_only_what_is_known() -> None:
    known = VersionRange(v(1, 0), v(2, 2))
    assert known.is_since(v(1, 0))
    assert not known.is_since(v(1, 1))
    assert known.may_be_since(v(2, 2))
    assert not known.may_be_since(v(2, 3))
    assert known.is_before(v(2, 3))
    assert str(VersionRange.exactly(v(3, 9, 1))) == "3.9.1"
