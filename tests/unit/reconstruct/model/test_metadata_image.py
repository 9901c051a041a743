"""The image of a KRaft cluster: replayed from real logs it is what each snapshot holds; each record does its part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconstruct.model.metadata_log.comparison import differences
from reconstruct.model.metadata_log.image import REPLAYED, applied, merged, replay
from reconstruct.model.metadata_log.values import (
    BrokerState,
    ConfigState,
    Image,
    Kind,
    MetadataRecord,
    PartitionState,
    Subject,
    TopicState,
)
from tests.support.metadata_log import NODES, ONE_VOTER, log_of, snapshots_of

EVERY_NODE = (ONE_VOTER, *NODES)
TOPIC = {"name": "t", "topicId": "T"}
PARTITION = {
    "topicId": "T",
    "partitionId": 0,
    "replicas": [1, 2, 3],
    "isr": [1, 2, 3],
    "leader": 1,
    "leaderEpoch": 4,
    "partitionEpoch": 9,
}
BROKER = {"brokerId": 1, "brokerEpoch": 7, "incarnationId": "I", "fenced": True, "logDirs": ["D"]}
OF_PARTITION = Subject(Kind.PARTITION, "T", 0)
OF_BROKER = Subject(Kind.BROKER, "1")


def record(record_type: str, **fields: Any) -> MetadataRecord:
    return MetadataRecord(0, 1, f"{record_type}Record", fields)


def image(*records: MetadataRecord) -> Image:
    return replay(records)


def partition(made: Image) -> PartitionState:
    state = made[OF_PARTITION]
    assert isinstance(state, PartitionState)
    return state


def broker(made: Image) -> BrokerState:
    state = made[OF_BROKER]
    assert isinstance(state, BrokerState)
    return state


CREATED = (record("Topic", **TOPIC), record("Partition", **PARTITION))


@pytest.mark.parametrize("node", EVERY_NODE, ids=lambda node: f"{node.parent.name}-{node.name}")
def test_the_replay_of_a_real_log_is_what_each_snapshot_of_the_node_holds(node: Path) -> None:
    log, snapshots = log_of(node), snapshots_of(node)
    assert len(snapshots) >= 2
    for end, shown in snapshots.items():
        replayed = replay(one for one in log if one.offset < end)
        assert {subject.kind for subject in replayed} >= {Kind.BROKER, Kind.FEATURE, Kind.CONTROLLER}
        assert differences(replayed, replay(shown)) == []


@pytest.mark.parametrize("node", EVERY_NODE, ids=lambda node: f"{node.parent.name}-{node.name}")
def test_every_record_of_a_real_log_fits_what_those_before_it_made(node: Path) -> None:
    log = log_of(node)
    made: Image = {}
    for one in log:
        assert applied(made, one).problem is None, one
        made = replay([one], made)
    assert len({one.record_type for one in log} & REPLAYED) >= 8


@pytest.mark.parametrize("node", EVERY_NODE, ids=lambda node: f"{node.parent.name}-{node.name}")
def test_a_record_that_is_left_out_is_noticed_by_the_next_snapshot(node: Path) -> None:
    """Unless a later one undid it: here those of partitions, which each raise the partition epoch."""
    log, snapshots = log_of(node), snapshots_of(node)
    changes = [one for one in log if one.record_type == "PartitionChangeRecord"]
    assert changes
    noticed = 0
    for left_out in changes:
        end = next((end for end in sorted(snapshots) if end > left_out.offset), None)
        shown = replay(snapshots[end]) if end is not None else {}
        subject = Subject(Kind.PARTITION, left_out.fields["topicId"], left_out.fields["partitionId"])
        if subject not in shown:
            continue
        replayed = replay(one for one in log if one.offset < (end or 0) and one is not left_out)
        assert {found.subject for found in differences(replayed, shown)} == {subject}
        noticed += 1
    assert noticed


def test_two_copies_of_one_log_give_one_image() -> None:
    ends = {max(one.offset for one in log_of(node)) for node in NODES}
    images = [replay(one for one in log_of(node) if one.offset <= min(ends)) for node in NODES]
    assert images[0] == images[1] == images[2]


def test_a_change_keeps_what_it_does_not_name() -> None:
    before = partition(image(*CREATED))
    after = merged(before, {"isr": [1, 2]})
    assert after == replace(before, isr=(1, 2), partition_epoch=10)


def test_a_change_that_names_the_leader_there_is_raises_the_leader_epoch() -> None:
    after = merged(partition(image(*CREATED)), {"leader": 1})
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 5, 10)


def test_a_change_to_no_leader_raises_the_leader_epoch() -> None:
    after = merged(partition(image(*CREATED)), {"leader": -1, "isr": [], "eligibleLeaderReplicas": [1]})
    assert (after.leader, after.leader_epoch, after.isr, after.elr) == (-1, 5, (), (1,))


def test_no_leader_change_written_out_is_none() -> None:
    after = merged(partition(image(*CREATED)), {"leader": -2, "leaderRecoveryState": -1})
    assert (after.leader, after.leader_epoch, after.leader_recovery_state) == (1, 4, 0)


def test_an_unclean_election_marks_the_partition_until_its_leader_has_recovered() -> None:
    elected = merged(partition(image(*CREATED)), {"leader": 2, "isr": [2], "leaderRecoveryState": 1})
    assert elected.leader_recovery_state == 1
    assert merged(elected, {"leaderRecoveryState": 0}).leader_recovery_state == 0


def test_clearing_elr_is_a_change_of_each_partition_that_has_any() -> None:
    with_elr = record("PartitionChange", topicId="T", partitionId=0, isr=[1], eligibleLeaderReplicas=[2])
    for name in ("t", ""):
        made = image(*CREATED, with_elr, record("ClearElr", topicName=name))
        assert (partition(made).elr, partition(made).partition_epoch) == ((), 11)
    assert partition(image(*CREATED, record("ClearElr", topicName="t"))).partition_epoch == 9


def test_a_topic_goes_with_its_partitions_and_its_settings() -> None:
    setting = record("Config", resourceType=2, resourceName="t", name="min.insync.replicas", value="2")
    other = record("Config", resourceType=4, resourceName="", name="min.insync.replicas", value="1")
    made = image(*CREATED, setting, other, record("RemoveTopic", topicId="T"))
    assert made == {Subject(Kind.CONFIG, "4:"): ConfigState((("min.insync.replicas", "1"),))}


def test_a_topic_created_again_is_another() -> None:
    again = record("Topic", name="t", topicId="U")
    made = image(*CREATED, record("RemoveTopic", topicId="T"), again)
    assert made == {Subject(Kind.TOPIC, "U"): TopicState("t", "U")}


def test_a_setting_without_value_is_taken_away() -> None:
    named = {"resourceType": 2, "resourceName": "t", "name": "min.insync.replicas"}
    assert image(record("Config", **named, value="2"), record("Config", **named, value=None)) == {}


@pytest.mark.parametrize(
    ("change", "fenced", "leaving"),
    [
        (record("UnfenceBroker", id=1, epoch=7), False, False),
        (record("FenceBroker", id=1, epoch=7), True, False),
        (record("BrokerRegistrationChange", brokerId=1, brokerEpoch=7, fenced=-1), False, False),
        (record("BrokerRegistrationChange", brokerId=1, brokerEpoch=7, fenced=1), True, False),
        (record("BrokerRegistrationChange", brokerId=1, brokerEpoch=7, inControlledShutdown=1), True, True),
        (record("BrokerRegistrationChange", brokerId=1, brokerEpoch=7), True, False),
    ],
)
def test_a_registration_is_fenced_unfenced_and_shut_down(change: MetadataRecord, fenced: bool, leaving: bool) -> None:
    state = broker(image(record("RegisterBroker", **BROKER), change))
    assert (state.broker_epoch, state.is_fenced, state.is_in_controlled_shutdown) == (7, fenced, leaving)
    assert state.log_dirs == ("D",)


def test_a_broker_that_registers_again_begins_anew() -> None:
    left = record("BrokerRegistrationChange", brokerId=1, brokerEpoch=7, inControlledShutdown=1)
    again = record("RegisterBroker", **{**BROKER, "brokerEpoch": 30, "incarnationId": "J"})
    state = broker(image(record("RegisterBroker", **BROKER), left, again))
    assert (state.broker_epoch, state.is_in_controlled_shutdown, state.incarnation_id) == (30, False, "J")
    assert image(record("RegisterBroker", **BROKER), record("UnregisterBroker", brokerId=1, brokerEpoch=7)) == {}


@pytest.mark.parametrize(
    "misfit",
    [
        record("PartitionChange", topicId="T", partitionId=5, isr=[1]),
        record("RemoveTopic", topicId="nobody"),
        record("UnfenceBroker", id=9, epoch=7),
        record("BrokerRegistrationChange", brokerId=1, brokerEpoch=6, fenced=-1),
        record("ClearElr", topicName="nobody"),
        record("Partition", topicId="T"),
        record("Topic"),
    ],
)
def test_a_record_that_does_not_fit_changes_nothing_and_says_why(misfit: MetadataRecord) -> None:
    before = image(*CREATED, record("RegisterBroker", **BROKER))
    found = applied(before, misfit)
    assert found.changes == ()
    assert found.problem
    assert replay([misfit], before) == before


def test_records_of_other_subjects_change_nothing() -> None:
    before = image(*CREATED)
    for name in ("NoOp", "ProducerIds", "ClientQuota", "ZkMigrationState", "AccessControlEntry"):
        assert applied(before, record(name, anything=1)) == ((), None)


def test_differences_name_subject_and_field() -> None:
    ours = image(*CREATED)
    theirs = replay([record("PartitionChange", topicId="T", partitionId=0, leader=2)], ours)
    found = {(one.subject, one.field, one.replayed, one.shown) for one in differences(ours, theirs)}
    assert found == {
        (OF_PARTITION, "leader", 1, 2),
        (OF_PARTITION, "leader_epoch", 4, 5),
        (OF_PARTITION, "partition_epoch", 9, 10),
    }
    assert [one.field for one in differences(ours, {})] == [None, None]
