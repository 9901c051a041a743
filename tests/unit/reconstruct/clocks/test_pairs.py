"""Causal pairs: which lines and writes prove which came first, and which only seem to."""

from __future__ import annotations

import json
from dataclasses import replace

from reconstruct.clocks.evidence import LogFact, ZnodeFact, log_marks, znode_marks
from tests.support.evidence.clocks import pair_up, with_announcements, with_previous

START = 1_795_230_000_000_000
SECOND = 1_000_000
P = {"topic": "t", "partition_id": "0"}


def line(number: int, event_type: str, whose: int = 1, kind: str = "state_change_log", **fields: str) -> LogFact:
    return LogFact(f"l{number}", kind, event_type, START + number * SECOND, whose, fields)


def state(number: int, version: int, leader_epoch: int, isr: list[int], **more: int) -> ZnodeFact:
    data = {"controller_epoch": 1, "leader": 1, "leader_epoch": leader_epoch, "isr": isr} | more
    path = "/brokers/topics/t/partitions/0/state"
    return ZnodeFact(f"z{number}", path, json.dumps(data), START + number * SECOND, 5, 10 + version, version)


def pairs_of(*facts: LogFact | ZnodeFact) -> list[tuple[str, str, str]]:
    logged = [mark for fact in facts if isinstance(fact, LogFact) for mark in log_marks(fact)]
    written = [mark for f in with_previous(f for f in facts if isinstance(f, ZnodeFact)) for mark in znode_marks(f)]
    return [(pair.rule, *pair.evidence) for pair in pair_up([*logged, *written])]


def test_a_write_comes_before_the_lines_that_show_its_version() -> None:
    shown = {**P, "leader_epoch": "3", "partition_epoch": "7", "leader": "1", "isr": "1,2"}
    found = pairs_of(state(1, 7, 3, [1, 2]), line(3, "metadata_cached", **shown), line(2, "metadata_cached", **shown))
    assert found == [("state_written_before_shown", "z1", "l2")]


def test_the_first_write_of_a_leader_epoch_comes_before_every_line_of_it() -> None:
    shown = {**P, "leader_epoch": "1", "leader": "1", "isr": "2"}
    opening = state(1, 1, 1, [1, 2]), state(2, 2, 1, [2])
    assert pairs_of(state(0, 0, 0, [1]), *opening, line(3, "leader_and_isr_received", **shown)) == [
        ("epoch_opened_before_shown", "z1", "l3")
    ]
    # without the write before it, nothing says that no other write of the epoch came first
    assert pairs_of(*opening, line(3, "leader_and_isr_received", **shown)) == []


def test_the_state_of_a_topic_that_is_being_deleted_stands_in_no_znode() -> None:
    shown = {**P, "leader_epoch": "0", "leader": "-2", "isr": ""}
    assert pairs_of(state(1, 0, 0, [1]), line(2, "metadata_cached", **shown)) == []


def test_a_topic_created_again_gives_no_pairs() -> None:
    again = replace(state(9, 0, 0, [1]), czxid=99, mzxid=99)
    shown = {**P, "leader_epoch": "0", "leader": "1", "isr": "1", "partition_epoch": "0"}
    assert pairs_of(state(1, 0, 0, [1]), again, line(2, "metadata_cached", **shown)) == []


def test_a_leader_asks_for_an_isr_before_it_is_written() -> None:
    asked = line(2, "isr_shrink_proposed", kind="server_log", **P, old_isr="2,1", new_isr="1")
    writes = state(1, 4, 2, [1, 2]), state(3, 5, 2, [1])
    assert pairs_of(asked, *writes) == [("isr_proposed_before_written", "l2", "z3")]
    # the controller's own change raises the leader epoch
    assert pairs_of(asked, writes[0], state(3, 5, 3, [1])) == []
    # asked for twice, written once that we know of: which of them is not said
    assert pairs_of(asked, replace(asked, evidence_id="again"), *writes) == []


def test_a_request_is_sent_then_received_then_answered() -> None:
    request = {"controller_id": "1", "controller_epoch": "4", "correlation_id": "9"}
    found = pairs_of(
        line(1, "leader_and_isr_sent", **request, **P, to_broker_ids="2"),
        line(2, "leader_and_isr_received", 2, **request, **P, broker_id="2"),
        line(3, "become_follower_completed", 2, **request, **P, broker_id="2"),
        line(4, "response_received", **request, api="LEADER_AND_ISR", to_broker_id="2"),
    )
    assert found == [("handled_before_answered", "l3", "l4"), ("sent_before_received", "l1", "l2")]


def test_an_answer_without_an_api_may_be_to_another_request_of_the_batch() -> None:
    """0.8.0 and 0.8.1: all requests of a batch share a correlation id, and the line does not say which was answered."""
    request = {"controller_id": "1", "controller_epoch": "4", "correlation_id": "9"}
    handled = line(2, "leader_and_isr_received", 2, **request, **P, broker_id="2")
    assert pairs_of(handled, line(4, "response_received", **request, to_broker_id="2")) == []


def test_a_broker_announces_its_registration_and_logs_it_afterwards() -> None:
    znode = ZnodeFact("z2", "/brokers/ids/3", "{}", START + 2 * SECOND, 42, 42, 1)
    creating = line(1, "other", 3, "server_log", path="/brokers/ids/3", is_secure="false")
    registered = line(3, "broker_registered", 3, "server_log", broker_id="3", broker_epoch="42")
    cached = line(4, "broker_epochs", 1, "controller_log", broker_epochs="1:40,3:42")
    assert pairs_of(znode, *with_announcements([creating, registered]), cached) == [
        ("registered_before_logged", "z2", "l3"),
        ("registering_before_broker_epoch_cached", "l1", "l4"),
        ("registering_before_registered", "l1", "z2"),
    ]


def test_a_controller_reads_the_epoch_then_raises_it_then_says_so() -> None:
    znode = ZnodeFact("z2", "/controller_epoch", "6", START + 2 * SECOND, 1, 60, 5)
    read = line(1, "controller_epoch_read", kind="controller_log", controller_epoch="5")
    elected = line(3, "controller_elected", kind="controller_log", controller_epoch="6")
    assert pairs_of(znode, read, elected) == [
        ("controller_epoch_read_before_written", "l1", "z2"),
        ("controller_epoch_written_before_logged", "z2", "l3"),
    ]
