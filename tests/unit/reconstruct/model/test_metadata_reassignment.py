"""When a quorum's controller ends a reassignment: Kafka's cases (PartitionReassignmentReplicasTest), by release."""

from __future__ import annotations

import pytest

from reconstruct.model.metadata_log.reassignment import Reassigned, ended_reassignment, may_have_ended
from reconstruct.model.versions import ANY_VERSION, KafkaVersion, VersionRange, v

RELEASES = [v(3, 3), v(3, 7), v(3, 8), v(4, 2), v(4, 3)]


def ended(current: list[int], target: list[int], isr: list[int], version: KafkaVersion) -> Reassigned | None:
    """A reassignment from one assignment to another: the target first, then what is removed."""
    removing = [one for one in current if one not in target]
    adding = [one for one in target if one not in current]
    return ended_reassignment([*target, *removing], adding, removing, isr, version)


@pytest.mark.parametrize("version", RELEASES, ids=str)
def test_does_not_complete_reassignment(version: KafkaVersion) -> None:
    assert ended([0, 1, 2], [3, 4, 5], [0, 1, 2, 3, 4], version) is None


@pytest.mark.parametrize("version", RELEASES, ids=str)
def test_does_not_complete_reassignment_if_none_ongoing(version: KafkaVersion) -> None:
    assert ended_reassignment([0, 1, 2], [], [], [0, 1, 2], version) is None


@pytest.mark.parametrize("version", RELEASES, ids=str)
def test_does_complete_reassignment_all_new_replicas(version: KafkaVersion) -> None:
    assert ended([0, 1, 2], [3, 4, 5], [0, 1, 2, 3, 4, 5], version) == ((3, 4, 5), (3, 4, 5))


@pytest.mark.parametrize("version", RELEASES, ids=str)
def test_does_complete_reassignment_some_new_replicas(version: KafkaVersion) -> None:
    assert ended([0, 1, 2], [0, 1, 3], [0, 1, 2, 3], version) == ((0, 1, 3), (0, 1, 3))


@pytest.mark.parametrize("version", RELEASES, ids=str)
def test_the_replicas_that_stay_are_awaited_from_3_8_to_4_2(version: KafkaVersion) -> None:
    """testDoesNotCompleteReassignmentIfIsrDoesNotHaveAllTargetReplicas."""
    found = ended([0, 1, 2], [0, 1, 3], [3], version)
    assert found == (None if v(3, 8) <= version < v(4, 3) else ((0, 1, 3), (3,)))


@pytest.mark.parametrize("version", RELEASES, ids=str)
def test_where_fewer_are_left_all_of_them_are_awaited_since_3_8(version: KafkaVersion) -> None:
    """With [0, 1, 5] of [0, 1, 2, 3, 4] to [2, 3, 4, 5] in sync, the end would leave an ISR of [5]."""
    found = ended([0, 1, 2, 3, 4], [2, 3, 4, 5], [0, 1, 5], version)
    assert found == (None if version >= v(3, 8) else ((2, 3, 4, 5), (5,)))


@pytest.mark.parametrize("version", RELEASES, ids=str)
def test_an_isr_of_removed_replicas_alone_ends_nothing(version: KafkaVersion) -> None:
    assert ended([0, 1, 2], [1], [0, 2], version) is None


def test_of_several_releases_the_mildest_counts() -> None:
    stays_out = ([0, 1, 3, 2], [3], [2], [3])
    assert not may_have_ended(*stays_out, VersionRange(v(3, 8), v(4, 2)))
    assert may_have_ended(*stays_out, VersionRange(v(3, 8), v(4, 3)))
    assert may_have_ended(*stays_out, VersionRange(v(3, 7), v(4, 2)))
    assert may_have_ended(*stays_out, ANY_VERSION)
    assert not may_have_ended([0, 1, 3, 2], [3], [2], [0, 1, 2], ANY_VERSION)
