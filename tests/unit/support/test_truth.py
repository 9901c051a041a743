"""The truth of a cluster from its transactions: hand-made histories, and known counts of the packed captures."""

from __future__ import annotations

import json

import pytest

from ingest.readers.zookeeper.transactions import Op, Operation
from tests.support.captures.packed import capture_names
from tests.support.truth.decisions import Truth, Write, read_truth, truth_of

STATE = "/brokers/topics/orders/partitions/0/state"

#: Capture -> writes of partition states, partitions, topics, assignments, registrations, controllers, deletions.
KNOWN = {
    "checkpoints-1.1.1": (18, 3, 1, 3, 6, [1, 3], 0),
    "failover-0.8.2.2": (31, 5, 2, 5, 6, [1, 2, 3], 0),
    "failover-1.1.1": (37, 5, 2, 5, 6, [1, 3, 2], 0),
    "failover-3.9.1": (41, 5, 2, 5, 6, [1, 2, 3], 0),
    "lifecycle-0.8.2.2": (86, 12, 5, 16, 7, [1, 2, 3, 2], 4),
    "lifecycle-1.1.1": (89, 12, 5, 16, 7, [1, 2, 1], 4),
    "lifecycle-3.9.1": (86, 12, 5, 16, 7, [1, 3, 1], 4),
    "quiet-0.8.2.2": (5, 5, 2, 5, 3, [1], 0),
    "quiet-3.9.1": (5, 5, 2, 5, 3, [1], 0),
    "reassign_busy-1.1.1": (58, 8, 1, 22, 5, [1], 0),
    "unclean-0.8.2.2": (17, 5, 3, 5, 5, [1, 3], 0),
    "unclean-3.9.1-info": (21, 5, 3, 5, 5, [1, 3], 0),
}


def history(*steps: tuple[Op, str, object]) -> Truth:
    """The truth of operations, one transaction each: (operation, path, content), zxid from 1, 10 ms apart."""
    return truth_of(
        Operation(zxid, 0, zxid * 10, 7, zxid, op, path, json.dumps(content).encode(), zxid if op is Op.SET_DATA else 0)
        for zxid, (op, path, content) in enumerate(steps, start=1)
    )


def state(leader: int, leader_epoch: int, *isr: int) -> dict[str, object]:
    return {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": list(isr)}


def test_states_carry_znode_version_and_the_incarnation_of_their_topic() -> None:
    truth = history(
        (Op.CREATE, "/brokers/topics/orders", {"version": 1, "partitions": {"0": [1, 2]}}),
        (Op.CREATE, STATE, state(1, 0, 1, 2)),
        (Op.SET_DATA, STATE, state(1, 0, 1)),
        (Op.DELETE, STATE, None),
        (Op.DELETE, "/brokers/topics/orders", None),
        (Op.CREATE, "/brokers/topics/orders", {"version": 1, "partitions": {"0": [2, 1]}}),
        (Op.CREATE, STATE, state(2, 0, 2, 1)),
    )
    assert [(s.topic_incarnation, s.partition_epoch, s.state) for s in truth.states] == [
        (1, 0, (1, 0, frozenset({1, 2}))),
        (1, 3, (1, 0, frozenset({1}))),
        (6, 0, (2, 0, frozenset({1, 2}))),
    ]
    assert [(p.created.zxid, p.deleted.zxid if p.deleted else None) for p in truth.partitions] == [(2, 4), (7, None)]
    assert [(t.topic_incarnation, t.deleted.zxid if t.deleted else None) for t in truth.topics] == [(1, 5), (6, None)]


def test_assignments_are_kept_where_they_change() -> None:
    truth = history(
        (Op.CREATE, "/brokers/topics/orders", {"version": 1, "partitions": {"0": [1, 2], "1": [2, 1]}}),
        (
            Op.SET_DATA,
            "/brokers/topics/orders",
            {"version": 3, "topic_id": "abc", "partitions": {"0": [1, 2], "1": [2, 1]}},
        ),
        (
            Op.SET_DATA,
            "/brokers/topics/orders",
            {
                "version": 3,
                "partitions": {"0": [3, 1, 2], "1": [2, 1]},
                "adding_replicas": {"0": [3]},
                "removing_replicas": {"0": [2]},
            },
        ),
    )
    assert [(a.partition_id, a.replicas, a.adding_replicas, a.removing_replicas) for a in truth.assignments] == [
        (0, (1, 2), (), ()),
        (1, (2, 1), (), ()),
        (0, (3, 1, 2), (3,), (2,)),
    ]
    assert truth.topics[0].topic_id == "abc"


def test_the_controller_epoch_that_is_created_as_zero_is_no_election() -> None:
    truth = history(
        (Op.CREATE, "/controller_epoch", 0),
        (Op.CREATE, "/controller", {"brokerid": 3}),
        (Op.SET_DATA, "/controller_epoch", 1),
        (Op.DELETE, "/controller", None),
        (Op.CREATE, "/controller", {"brokerid": 1}),
        (Op.SET_DATA, "/controller_epoch", 2),
    )
    tenures = [(c.controller_id, c.controller_epoch, c.elected.zxid, c.resigned) for c in truth.controllers]
    assert tenures == [(3, 1, 3, Write(4, 40, 7)), (1, 2, 6, None)]


def test_a_registration_set_again_in_the_same_multi_is_one_registration() -> None:
    truth = history(
        (Op.CREATE, "/brokers/ids/1", None),
        (Op.SET_DATA, "/brokers/ids/1", {"host": "a"}),
        (Op.DELETE, "/brokers/ids/1", None),
        (Op.CREATE, "/brokers/ids/1", {"host": "a"}),
    )
    lives = [(r.broker_id, r.began.zxid, r.ended.zxid if r.ended else None) for r in truth.registrations]
    assert lives == [(1, 1, 3), (1, 4, None)]


def test_data_that_is_no_state_is_kept_aside() -> None:
    truth = history((Op.CREATE, STATE, "not a state"), (Op.CREATE, STATE, {"leader": 1}))
    assert not truth.states
    assert [operation.zxid for operation in truth.unreadable] == [1, 2]


def test_znodes_outside_the_chroot_are_not_kafkas() -> None:
    operation = Operation(1, 0, 10, 7, 1, Op.CREATE, STATE, json.dumps(state(1, 0, 1)).encode(), 0)
    assert not truth_of([operation], chroot="/kafka").states


def test_the_known_captures_are_the_packed_ones() -> None:
    assert tuple(sorted(KNOWN)) == capture_names()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_captures_hold_the_known_counts(name: str, unpacked) -> None:
    truth = read_truth(unpacked(name))
    assert not truth.unreadable
    assert (
        len(truth.states),
        len(truth.partitions),
        len(truth.topics),
        len(truth.assignments),
        len(truth.registrations),
        [tenure.controller_id for tenure in truth.controllers],
        sum(life.deleted is not None for life in truth.partitions),
    ) == KNOWN[name]


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_znode_version_rises_by_one_per_write(name: str, unpacked) -> None:
    for states in read_truth(unpacked(name)).states_by_partition().values():
        by_incarnation: dict[int, list[int]] = {}
        for decided in states:
            by_incarnation.setdefault(decided.topic_incarnation, []).append(decided.partition_epoch)
        for versions in by_incarnation.values():
            assert versions == list(range(len(versions)))


def test_a_folder_without_transaction_log_is_refused(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no zk-version-2"):
        read_truth(tmp_path)
