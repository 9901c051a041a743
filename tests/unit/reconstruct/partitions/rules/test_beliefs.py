"""What a broker did against what was decided (R20) and what it had accepted (R21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.cluster.spans import LogSpan
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.log_files import RECREATION_US
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker, capture_names
from tests.unit.reconstruct.partitions.rules.bent_beliefs import BELIEFS, Subject, is_line, read, types
from tests.unit.reconstruct.partitions.tables import facts

RECEIVED = "leader_and_isr_received"


@pytest.mark.parametrize("name", capture_names())
def test_real_brokers_break_no_rule(name: str, unpacked: Unpacker) -> None:
    kept = 0
    for history in read(unpacked(name)).fold().values():
        for finding in history.verdicts.findings:
            assert finding.rule_id not in BELIEFS or finding.severity == "info", finding.explanation
        kept += sum(
            times for (rule, verdict), times in history.verdicts.counts.items() if rule in BELIEFS and verdict == "kept"
        )
    assert kept > 30


def told_of(subject: Subject, broker_id: int, leader_epoch: int) -> Evidence:
    """The receipt that a completed transition of the broker belongs to."""
    done = {
        (fact.broker_id, fact.controller_id, fact.correlation_id)
        for fact in subject.facts
        if fact.kind in ("become_leader_completed", "become_follower_completed")
    }
    return next(
        fact
        for fact in subject.lines(is_line(RECEIVED, broker_id, leader_epoch=leader_epoch))
        if (fact.broker_id, fact.controller_id, fact.correlation_id) in done
    )


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1"])
def test_a_follower_of_another_than_was_decided(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    receipt = told_of(subject, 1, 1)
    assert receipt.leader not in (1, None)
    wrong = next(broker for broker in (2, 3) if broker != receipt.leader)
    found = subject.found(subject.bent(receipt, leader=wrong))
    assert "role_not_decided" in types(found)
    assert next(f for f in found if f.rule_id == "R20").severity == "error"
    assert subject.found(subject.bent(receipt, isr=tuple(reversed(receipt.isr or ())))) == []


def test_a_partition_epoch_belongs_to_one_leader_epoch(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("lifecycle-1.1.1"), "orders", 1)
    receipt = told_of(subject, 1, 1)
    assert "role_not_decided" in types(subject.found(subject.bent(receipt, leader_epoch=90)))


def test_a_topic_with_other_incarnations_is_not_accused(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("lifecycle-1.1.1"), "orders", 1)
    bent = subject.bent(told_of(subject, 1, 1), leader=9)
    history = fold_partition("orders", bent, subject.view, is_only=False)
    assert {f.severity for f in history.verdicts.findings if f.rule_id == "R20"} == {"warning"}


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1"])
def test_a_lower_leader_epoch(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 0)
    last = max(fact.leader_epoch or 0 for fact in subject.facts if fact.kind == RECEIVED and fact.broker_id == 2)
    receipt = told_of(subject, 2, last)
    bent = subject.bent(receipt, leader_epoch=0, partition_epoch=None)
    assert "acted_on_lower_leader_epoch" in types(subject.found(bent))
    if name == "lifecycle-3.9.1":  # the broker logs the epoch a second time, as Partition starts at it
        return
    # a broker that started again just before had accepted nothing
    started = {**subject.view.process_starts, 2: ((0, "first"), (receipt.at - 1, "again"))}
    restarted = subject.found(bent, replace(subject.view, process_starts=started))
    assert "acted_on_lower_leader_epoch" not in types(restarted)
    # nor does anything prove that it had not, where its server.log is not given
    unknown = subject.found(bent, replace(subject.view, process_starts={}))
    assert "acted_on_lower_leader_epoch" not in types(unknown)
    # nor, where its log is in files of which none holds both lines, that they are of one cluster
    before, after = LogSpan(0, receipt.at - RECREATION_US - 1, "TRACE"), LogSpan(receipt.at, 2**62, "TRACE")
    rotated = subject.found(bent, replace(subject.view, logs={2: (before, after)}))
    accepted = [
        fact for fact in subject.facts if fact.kind == RECEIVED and fact.broker_id == 2 and fact.at < receipt.at
    ]
    is_just_before = receipt.at - accepted[-1].at <= RECREATION_US
    assert ("acted_on_lower_leader_epoch" in types(rotated)) is is_just_before


@pytest.mark.parametrize("name", ["failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1"])
def test_a_lower_controller_epoch(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 0)
    cached = subject.lines(is_line("metadata_cached", 1, controller_epoch=3))
    assert "acted_on_lower_controller_epoch" in types(subject.found(subject.bent(cached[-1], controller_epoch=2)))
    # the first line of a new process: a paused controller's old request is accepted
    first = next(line for line in cached if line is cached[0])
    started = {**subject.view.process_starts, 1: ((0, "first"), (first.at - 1, "again"))}
    before = [fact for fact in subject.bent(first, controller_epoch=2) if fact.broker_id != 1 or fact.at >= first.at]
    found = subject.found(before, replace(subject.view, process_starts=started))
    assert "acted_on_lower_controller_epoch" not in types(found)


def test_up_to_0_8_1_two_requests_may_overtake_each_other() -> None:
    table = """
        at | kind            | broker | by | cepoch | corr | leader | epoch | isr
        20 | metadata_cached | 1      | 2  | 2      | 1    | 1      | 0     | 1,2
        21 | metadata_cached | 1      | 3  | 1      | 7    | 1      | 0     | 1,2
        """
    starts = {1: ((0, "start"),)}
    for version, expected in ((v(0, 8, 1), set()), (v(0, 8, 2), {"acted_on_lower_controller_epoch"})):
        view = ClusterView("c", VersionRange.exactly(version), process_starts=starts)
        assert types(fold_partition("t", facts(table), view).verdicts.findings) == expected


def test_a_transition_that_failed_changes_no_role() -> None:
    table = """
        at | kind                      | broker | by | cepoch | corr | leader | epoch | isr
        20 | leader_and_isr_received   | 1      | 3  | 1      | 1    | 1      | 0     | 1,2
        21 | become_leader_completed   | 1      | 3  | 1      | 1    |        |       |
        30 | leader_and_isr_received   | 1      | 3  | 1      | 2    | -1     | 1     | 1
        31 | become_follower_failed    | 1      | 3  | 1      | 2    | -1     |       |
        32 | become_follower_completed | 1      | 3  | 1      | 2    |        |       |
        """
    roles = fold_partition("t", facts(table), ClusterView("c")).roles[1]
    assert [(i.value.role, i.value.leader_epoch) for i in roles] == [("leader", 0)]


def test_a_receipt_counts_once_and_for_its_controller_epoch() -> None:
    table = """
        at | kind                      | broker | by | cepoch | corr | leader | epoch | isr
        20 | leader_and_isr_received   | 1      | 3  | 1      | 1    | 2      | 4     | 1,2
        21 | become_follower_completed | 1      | 3  | 1      | 1    |        |       |
        40 | become_leader_completed   | 1      | 3  | 1      | 1    |        |       |
        50 | leader_and_isr_received   | 1      | 3  | 1      | 2    | 2      | 5     | 1,2
        60 | become_leader_completed   | 1      | 3  | 7      | 2    |        |       |
        """
    roles = fold_partition("t", facts(table), ClusterView("c")).roles[1]
    assert [(i.value.role, i.value.leader_epoch) for i in roles] == [("follower", 4), ("leader", None)]


def test_a_receipt_is_of_no_transition_of_another_connection() -> None:
    """Its own receipt is lost, and ids began again: long after it is of the other role, or of a higher epoch."""
    other_role = """
        at | kind                      | broker | by | cepoch | corr | leader | epoch | isr | role
        20 | leader_and_isr_received   | 1      | 3  | 1      | 1    | 1      | 0     | 1,2 |
        21 | become_leader_skipped     | 1      | 3  | 1      | 1    |        |       |     |
        9040 | become_follower_completed | 1    | 3  | 1      | 1    | 2      |       |     |
        """
    roles = fold_partition("t", facts(other_role), ClusterView("c")).roles[1]
    assert [(i.value.role, i.value.leader, i.value.leader_epoch) for i in roles] == [
        ("leader", 1, 0),
        ("follower", 2, None),
    ]
    higher = """
        at | kind                      | broker | by | cepoch | corr | leader | epoch | isr | role
        20 | leader_and_isr_received   | 1      | 3  | 1      | 1    | 2      | 0     | 1,2 |
        9039 | leader_epoch_started      | 1      |    |        |      | 2      | 1     |     | follower
        9040 | become_follower_completed | 1      | 3  | 1      | 1    | 2      |       |     |
        """
    history = fold_partition("t", facts(higher), ClusterView("c"))
    assert "acted_on_lower_leader_epoch" not in types(history.verdicts.findings)


def test_since_2_6_a_stop_is_carried_out_unless_refused() -> None:
    table = """
        at | kind                    | broker | by | cepoch | corr | leader | epoch | isr | role
        20 | leader_epoch_started    | 1      |    |        |      | 1      | 3     | 1,2 | leader
        30 | stop_replica_received   | 1      | 3  | 1      | 1    |        | 2     |     |
        31 | stop_replica_ignored    | 1      | 3  | 1      | 1    |        | 2     |     |
        40 | stop_replica_received   | 1      | 3  | 1      | 2    |        | -2    |     |
        """
    roles = fold_partition("t", facts(table), ClusterView("c", VersionRange.exactly(v(3, 9)))).roles[1]
    assert [(i.value.role, i.start // 1000) for i in roles] == [("leader", 20), ("none", 40)]
