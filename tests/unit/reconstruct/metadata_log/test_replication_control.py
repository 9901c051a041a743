"""What Kafka's own cases of a controller's actions expect (ReplicationControlManagerTest, 4.0): the simulated quorum,
by which rules are tried elsewhere, comes to the same states, and none of its records breaks a rule. Each test has the
name of Kafka's. What leaves no record is left out (``docs/kraft-cases.md``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.metadata_log.image import replay
from reconstruct.model.metadata_log.values import BrokerState, ConfigState, Kind, Subject
from reconstruct.model.versions import KafkaVersion, v
from tests.support.simulated_quorum import LEVELS, NOBODY, SimulatedQuorum

THREE: Final = ((1, 2, 3), (2, 3, 4), (0, 2, 1))
WITHOUT_ELR: Final = tuple(LEVELS)
WITH_ELR: Final = tuple(release for release in LEVELS if release >= v(4, 0))


class Quorum(SimulatedQuorum):
    """What these cases do, in Kafka's words."""

    def __init__(self, release: KafkaVersion, *assignments: Sequence[int], **options: Any) -> None:
        known = {"has_elr": False, "is_unclean": False, "min_isr": 1, "brokers": range(6)} | options
        super().__init__(0, release, assignments=assignments, **known)

    def fence_all(self, *brokers: int) -> None:
        for broker in brokers:
            if broker not in self.fenced:
                self.fence(broker)

    def unfence_all(self, *brokers: int) -> None:
        for broker in brokers:
            self.unfence(broker)

    def change_partition(self, number: int, **fields: Any) -> None:
        self.write([("PartitionChangeRecord", {"topicId": "T", "partitionId": number, **fields})])

    def config(self) -> dict[str, str]:
        """What is set of the topic."""
        image = replay(row.record for row in self.topic_rows)
        return {
            name: value for state in image.values() if isinstance(state, ConfigState) for name, value in state.settings
        }

    def alter_partition(self, number: int, isr: Sequence[int]) -> None:
        self.write_if_any(self.built(number, isr))

    def elect(self, kind: str, *numbers: int) -> None:
        for number in numbers:
            of = self.partitions[number]
            if (of.leader == NOBODY) if kind == "unclean" else (of.leader != of.replicas[0]):
                self.write_if_any(self.built(number, of.isr, election=kind))

    def stands(self, number: int = 0) -> tuple[int, list[int]]:
        """Leader and ISR."""
        return self.partitions[number].leader, sorted(self.partitions[number].isr)

    def eligible(self, number: int = 0) -> tuple[list[int], list[int]]:
        """ELR and last known leaders."""
        return sorted(self.partitions[number].elr), list(self.partitions[number].last_known_elr)


@pytest.fixture(params=WITHOUT_ELR, ids=str)
def release(request: pytest.FixtureRequest) -> KafkaVersion:
    made: KafkaVersion = request.param
    return made


@pytest.fixture(params=WITH_ELR, ids=str)
def of_elr(request: pytest.FixtureRequest) -> KafkaVersion:
    made: KafkaVersion = request.param
    return made


@pytest.fixture(autouse=True)
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At the end of each case: its records make each partition what it is said to be, and none breaks a rule."""
    played: list[SimulatedQuorum] = []
    made = SimulatedQuorum.__init__

    def remembered(quorum: SimulatedQuorum, *given: Any, **options: Any) -> None:
        made(quorum, *given, **options)
        played.append(quorum)

    monkeypatch.setattr(SimulatedQuorum, "__init__", remembered)
    yield
    assert played
    for quorum in played:
        image = replay(row.record for row in quorum.topic_rows)
        partitions = {subject.partition_id: state for subject, state in image.items() if subject.kind is Kind.PARTITION}
        assert partitions == quorum.partitions
        for rows, log in ((quorum.rows, quorum.log), (quorum.topic_rows, quorum.log.of_quorum)):
            verdicts = replay_rows(rows, log).verdicts
            assert [finding.explanation for finding in verdicts.findings] == []
            assert sum(count for (_, verdict), count in verdicts.counts.items() if verdict == "kept") > 0


def test_create_topics(release: KafkaVersion) -> None:
    quorum = Quorum(release, (1, 2, 0), brokers=range(3))
    of = quorum.partitions[0]
    assert (of.replicas, of.isr, of.leader, of.leader_epoch, of.partition_epoch) == ((1, 2, 0), (1, 2, 0), 1, 0, 0)


@pytest.mark.parametrize(
    "is_added", [False, True], ids=["testCreateTopicsISRInvariants", "testCreatePartitionsISRInvariants"]
)
def test_a_new_partition_begins_without_those_who_may_not_lead(release: KafkaVersion, is_added: bool) -> None:
    quorum = Quorum(release, *([(0, 1, 2)] if is_added else []), brokers=range(3), fenced=[] if is_added else [2])
    if is_added:
        quorum.fence(2)
    quorum.shut_down(1)
    quorum.add([(0, 1, 2)]) if is_added else quorum.create([(1, 0, 2)])
    assert quorum.stands(int(is_added)) == (0, [0])


def test_create_topics_with_configs(release: KafkaVersion) -> None:
    quorum = Quorum(release)
    quorum.create([(0, 1, 2)], foo="notNull")
    assert quorum.config() == {"foo": "notNull"}


def test_create_partitions(release: KafkaVersion) -> None:
    quorum = Quorum(release, (0, 1))
    quorum.add([(1, 3), (3, 0)])
    assert [quorum.stands(number) for number in range(3)] == [(0, [0, 1]), (1, [1, 3]), (3, [0, 3])]


def test_delete_topics(release: KafkaVersion) -> None:
    quorum = Quorum(release)
    quorum.create([(0, 1), (1, 0), (0, 1)], **{"cleanup.policy": "compact"})
    quorum.delete()
    assert quorum.partitions == {}
    assert quorum.config() == {}


def test_eligible_leader_replicas_delete_topic(of_elr: KafkaVersion) -> None:
    quorum = Quorum(of_elr, (0, 1, 2), has_elr=True, min_isr=2)
    quorum.alter_partition(0, [0])
    assert quorum.eligible() == ([1, 2], [])
    quorum.delete()
    assert quorum.partitions == {}


def test_handle_assign_replicas_to_dirs(release: KafkaVersion) -> None:
    """A replica in a directory that is lost, or not its broker's, leads no more: records of their own follow."""
    quorum = Quorum(release, (1, 2), (1, 2), (1, 2))
    for number, directory in enumerate(["dir1b1", "dir2b1", "lost"]):
        quorum.change_partition(number, directories=[directory, "dir1b2"])
    quorum.change_partition(2, isr=[2], leader=2)
    assert [(of.leader, of.isr, of.directories) for of in quorum.partitions.values()] == [
        (1, (1, 2), ("dir1b1", "dir1b2")),
        (1, (1, 2), ("dir2b1", "dir1b2")),
        (2, (2,), ("lost", "dir1b2")),
    ]


def test_handle_directories_offline(release: KafkaVersion) -> None:
    """Its broker stays, and leads what is in its other directory."""
    quorum = Quorum(release, (1, 2), (1, 2))
    quorum.change_partition(0, directories=["dir1b1", "dir1b2"])
    quorum.change_partition(1, directories=["dir2b1", "dir2b2"])
    quorum.change_partition(0, isr=[2], leader=2)
    quorum.write([quorum.change(1, logDirs=["dir2b1"])])
    assert [quorum.stands(number) for number in range(2)] == [(2, [2]), (1, [1, 2])]
    broker = replay(row.record for row in quorum.rows)[Subject(Kind.BROKER, "1")]
    assert isinstance(broker, BrokerState)
    assert (broker.log_dirs, broker.is_fenced) == (("dir2b1",), False)


def test_remove_leaderships(release: KafkaVersion) -> None:
    quorum = Quorum(release, (0, 1, 2), (1, 2, 3), (2, 3, 0), (0, 2, 1))
    quorum.fence(0)
    assert [of.leader for of in quorum.partitions.values()] == [1, 1, 2, 2]
    assert all(0 not in of.isr for of in quorum.partitions.values())


def test_shrink_and_expand_isr(release: KafkaVersion) -> None:
    quorum = Quorum(release, (0, 1, 2))
    quorum.alter_partition(0, [0, 1])
    assert quorum.stands() == (0, [0, 1])
    quorum.alter_partition(0, [0, 1, 2])
    assert quorum.stands() == (0, [0, 1, 2])
    assert (quorum.partitions[0].leader_epoch, quorum.partitions[0].partition_epoch) == (0, 2)


def test_eligible_leader_replicas_shrink_and_expand_isr(of_elr: KafkaVersion) -> None:
    quorum = Quorum(of_elr, (0, 1, 2), has_elr=True, min_isr=2)
    quorum.alter_partition(0, [0])
    assert quorum.eligible() == ([1, 2], [])
    quorum.alter_partition(0, [0, 1])
    assert quorum.eligible() == ([], [])


def test_eligible_leader_replicas_broker_fence(of_elr: KafkaVersion) -> None:
    quorum = Quorum(of_elr, (0, 1, 2, 3), has_elr=True, min_isr=3)
    quorum.fence_all(2, 3)
    assert quorum.eligible() == ([3], [])
    quorum.fence_all(1, 2, 3)
    assert quorum.eligible() == ([1, 3], [])
    quorum.unfence_all(1, 2, 3)
    assert quorum.eligible() == ([1, 3], [])


def test_eligible_leader_replicas_effective_min_isr(of_elr: KafkaVersion) -> None:
    """Five are asked of three replicas: all three count, so that one that leaves is eligible."""
    quorum = Quorum(of_elr, (0, 1, 2), has_elr=True, min_isr=5)
    assert quorum.eligible() == ([], [])
    quorum.fence(2)
    assert quorum.eligible() == ([2], [])


def test_eligible_leader_replicas_clean_election(of_elr: KafkaVersion) -> None:
    quorum = Quorum(of_elr, (0, 1, 2, 3), has_elr=True, min_isr=3)
    quorum.fence_all(1, 2, 3)
    assert quorum.eligible() == ([2, 3], [])
    quorum.unfence(2)
    quorum.fence_all(0, 1)
    assert quorum.stands() == (2, [2])
    assert quorum.eligible() == ([0, 3], [])


def test_eligible_leader_replicas_unclean_shutdown(of_elr: KafkaVersion) -> None:
    quorum = Quorum(of_elr, (0, 1, 2, 3), has_elr=True, min_isr=3)
    quorum.fence_all(1, 2, 3)
    quorum.register(3, is_clean=False)
    assert quorum.eligible() == ([2], [])
    quorum.register(0, is_clean=False)
    assert quorum.eligible() == ([2], [0])


def test_fence_multiple_brokers(release: KafkaVersion) -> None:
    quorum = Quorum(release, *THREE)
    quorum.fence_all(2, 3)
    assert [quorum.stands(number) for number in range(3)] == [(1, [1]), (4, [4]), (0, [0, 1])]


def test_elect_unclean_leaders_without_elr(release: KafkaVersion) -> None:
    quorum = Quorum(release, *THREE)
    quorum.fence_all(2, 3)
    quorum.fence_all(1)
    assert [quorum.stands(number) for number in range(3)] == [(NOBODY, [1]), (4, [4]), (0, [0])]
    quorum.elect("unclean", 0, 1, 2)
    assert quorum.stands(0) == (NOBODY, [1])
    quorum.unfence(2)
    quorum.alter_partition(1, [2, 4])
    quorum.elect("unclean", 0, 1, 2)
    assert [quorum.stands(number) for number in range(3)] == [(2, [2]), (4, [2, 4]), (0, [0])]
    assert quorum.partitions[0].leader_recovery_state == 1


def test_preferred_election_does_not_trigger_unclean_election(release: KafkaVersion) -> None:
    quorum = Quorum(release, (1, 2, 3))
    quorum.fence_all(2, 3, 1)
    quorum.unfence(2)
    assert quorum.stands() == (NOBODY, [1])
    quorum.elect("preferred", 0)
    assert quorum.stands() == (NOBODY, [1])


def test_elect_preferred_leaders(release: KafkaVersion) -> None:
    quorum = Quorum(release, brokers=range(5), fenced=[0])
    quorum.shut_down(1)
    quorum.create(THREE)
    assert [quorum.stands(number) for number in range(3)] == [(2, [2, 3]), (2, [2, 3, 4]), (2, [2])]
    quorum.elect("preferred", 0, 1, 2)
    assert [quorum.stands(number)[0] for number in range(3)] == [2, 2, 2]
    quorum.register(1, is_clean=True)
    quorum.unfence_all(0, 1)
    quorum.alter_partition(0, [1, 2, 3])
    quorum.alter_partition(2, [0, 2, 1])
    quorum.elect("preferred", 0, 1, 2)
    assert [quorum.stands(number) for number in range(3)] == [(1, [1, 2, 3]), (2, [2, 3, 4]), (0, [0, 1, 2])]


def test_balance_partition_leaders(release: KafkaVersion) -> None:
    quorum = Quorum(release, *THREE, brokers=range(5), fenced=[0, 1])
    assert [quorum.stands(number)[0] for number in range(3)] == [2, 2, 2]
    quorum.unfence(1)
    quorum.alter_partition(0, [1, 2, 3])
    quorum.elect("preferred", 0, 1, 2)
    assert [quorum.stands(number)[0] for number in range(3)] == [1, 2, 2]
    quorum.unfence(0)
    quorum.alter_partition(2, [0, 2, 1])
    quorum.elect("preferred", 0, 1, 2)
    assert [quorum.stands(number)[0] for number in range(3)] == [1, 2, 0]


@pytest.mark.parametrize("is_unclean", [True, False])
def test_maybe_trigger_unclean_leader_election_for_leaderless_partitions(
    release: KafkaVersion, is_unclean: bool
) -> None:
    quorum = Quorum(release, (1, 2, 4), (1, 3, 4), (0, 2, 4), brokers=range(5), is_unclean=is_unclean)
    quorum.fence_all(0, 1, 2, 3, 4)
    assert [quorum.stands(number) for number in range(3)] == [(NOBODY, [4])] * 3
    quorum.unfence(2)
    elected = (2, [2]) if is_unclean else (NOBODY, [4])
    assert [quorum.stands(number) for number in range(3)] == [elected, (NOBODY, [4]), elected]


def test_process_broker_heartbeat_in_controlled_shutdown(release: KafkaVersion) -> None:
    quorum = Quorum(release, (0, 1, 2), brokers=range(3))
    quorum.shut_down(0)
    assert quorum.stands() == (1, [1, 2])


def test_reassign_partitions(release: KafkaVersion) -> None:
    quorum = Quorum(release, (1, 2, 3), (3, 2, 1))
    quorum.move(0, [3, 2, 1])
    assert (quorum.partitions[0].replicas, quorum.partitions[0].is_reassigned) == ((3, 2, 1), False)
    quorum.move(1, [0, 2, 1])
    of = quorum.partitions[1]
    assert (of.replicas, of.adding_replicas, of.removing_replicas) == ((0, 2, 1, 3), (0,), (3,))
    quorum.alter_partition(1, [3, 0, 2, 1])
    assert (quorum.partitions[1].replicas, quorum.stands(1)) == ((0, 2, 1), (0, [0, 1, 2]))


def test_cancel_reassign_partitions(release: KafkaVersion) -> None:
    quorum = Quorum(release, (1, 2, 3, 4), (0, 1, 2, 3), (4, 3, 2))
    quorum.fence(3)
    quorum.move(0, [1, 2, 4])
    of = quorum.partitions[0]
    assert (of.replicas, of.isr, of.leader_epoch, of.partition_epoch) == ((1, 2, 4), (1, 2, 4), 1, 2)
    quorum.move(1, [1, 2, 3, 0])
    of = quorum.partitions[1]
    assert (of.replicas, of.isr, of.leader_epoch, of.partition_epoch) == ((1, 2, 3, 0), (0, 1, 2), 0, 2)
    quorum.move(2, [1, 2, 3, 4, 0])
    of = quorum.partitions[2]
    assert (of.adding_replicas, of.removing_replicas, of.isr, of.leader_epoch) == ((0, 1), (), (4, 2), 0)
    quorum.call_back(2)
    of = quorum.partitions[2]
    assert (of.leader, of.isr, of.leader_epoch, of.partition_epoch) == (4, (4, 2), 1, 3)
    assert (sorted(of.replicas), of.is_reassigned) == ([2, 3, 4], False)


def test_reassign_partitions_handles_new_reassignment_that_removes_previously_adding_replicas(
    release: KafkaVersion,
) -> None:
    quorum = Quorum(release, (0, 1))
    quorum.move(0, [2, 3])
    of = quorum.partitions[0]
    assert (of.replicas, of.adding_replicas, of.removing_replicas) == ((2, 3, 0, 1), (2, 3), (0, 1))
    quorum.alter_partition(0, [0, 1, 2])
    quorum.elect("preferred", 0)
    assert quorum.partitions[0].leader == 2
    quorum.move(0, [4, 5])
    of = quorum.partitions[0]
    assert (of.replicas, of.adding_replicas, of.removing_replicas) == ((4, 5, 0, 1, 2, 3), (4, 5), (0, 1, 2, 3))
    assert of.leader == 2
    quorum.alter_partition(0, [0, 1, 2, 3, 4, 5])
    of = quorum.partitions[0]
    assert (of.leader, of.replicas, of.is_reassigned) == (4, (4, 5), False)
