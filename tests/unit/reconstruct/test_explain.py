"""``explain`` tells a decision so that a reader can follow it: what was known, the steps, what came of it."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconstruct.explain.explain import Span, explanation
from reconstruct.history.evidence import Evidence
from reconstruct.history.fold import PartitionHistory
from reconstruct.history.instants import to_micros
from tests.support.captures import Unpacker, capture_names, unpacked
from tests.support.plain_evidence import PlainCapture, plain_capture

__all__ = ["unpacked"]


def span(text: str, seconds: float = 1) -> Span:
    start = to_micros(datetime.fromisoformat(text))
    return Span(start, start + int(seconds * 1e6))


def told(history: PartitionHistory, when: Span, refused: list[Evidence] | None = None) -> str:
    return explanation("ledger-0", history, when, refused or ())


def elections(capture: PlainCapture, kind: str) -> list[tuple[tuple[str, int], int]]:
    return [
        (partition, election.at)
        for partition, history in capture.fold().items()
        for election in history.elections
        if election.kind == kind
    ]


@pytest.mark.parametrize("name", ["unclean-0.8.2.2", "unclean-3.9.1-info"])
def test_an_unclean_election(name: str, unpacked: Unpacker) -> None:
    history = plain_capture(unpacked(name)).fold_one(("ledger", 0))
    at = next(election.at for election in history.elections if election.is_unclean)
    lines = told(history, Span(at, at + 1)).splitlines()
    assert any(line.endswith("leader 2 elected, uncleanly, leader epoch 1") or "uncleanly" in line for line in lines)
    inputs, rules = lines.index("What the controller had"), lines.index("What the rules give")
    assert inputs < rules < lines.index("What was decided") < lines.index("What came of it")
    steps = "\n".join(lines[rules:])
    assert "1: not live." in steps
    assert "2: not in the ISR." in steps
    assert "unclean.leader.election.enable is true" in steps
    assert "2: live. It leads." in steps
    assert "the only leader that the rules allow" in steps
    assert "R08 warning: Broker 2 was elected" in steps


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1"])
def test_a_preferred_election(name: str, unpacked: Unpacker) -> None:
    capture = plain_capture(unpacked(name))
    partition, at = elections(capture, "preferred_replica")[0]
    text = told(capture.fold_one(partition), Span(at, at + 1))
    assert "occasion         a preferred election" in text
    assert "Only the preferred replica is asked, the first of the assignment" in text
    assert "live and in the ISR. It leads." in text
    assert "the only leader that the rules allow" in text


def test_a_zombie_s_refused_request(unpacked: Unpacker) -> None:
    capture = plain_capture(unpacked("failover-3.9.1"))
    assert capture.refused_requests
    refused = capture.refused_requests[0]
    text = told(capture.fold_one(("orders", 0)), Span(refused.at, refused.at + 1), [refused])
    assert "ignores a UpdateMetadata of controller 2" in text
    assert "request          UpdateMetadata of controller 2, controller epoch 2" in text
    assert "broker 1 held    controller epoch 3" in text
    assert "Its epoch is lower: rightly ignored; whoever sent it had been deposed." in text
    assert "a zombie, which had not noticed yet" in text
    assert "epoch 3: broker 3 from" in text


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1"])
def test_a_request_that_a_broker_has_seen_already(name: str, unpacked: Unpacker) -> None:
    capture = plain_capture(unpacked(name))
    told_of = 0
    for history in capture.fold().values():
        for fact in history.case.facts:
            if fact.kind == "leader_and_isr_ignored" and fact.known_leader_epoch == fact.leader_epoch:
                text = told(history, Span(fact.at, fact.at + 1))
                assert "It is the epoch the broker has: rightly ignored, nothing has changed since." in text
                told_of += 1
    assert told_of > 3


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1"])
def test_a_deletion_that_has_to_wait(name: str, unpacked: Unpacker) -> None:
    capture = plain_capture(unpacked(name))
    texts = [told(history, Span(0, 2**62)) for partition, history in capture.fold().items() if partition[0] == "doomed"]
    waiting = [text for text in texts if "ReplicaDeletionIneligible" in text]
    assert waiting
    for text in waiting:
        assert "A refused transition changes nothing" in text or "cannot be deleted now" in text


def test_a_time_at_which_nothing_happened_tells_of_the_last_decision_before_it(unpacked: Unpacker) -> None:
    history = plain_capture(unpacked("unclean-0.8.2.2")).fold_one(("ledger", 0))
    last = history.leader_and_isr[-1]
    text = told(history, Span(last.start + 60_000_000, last.start + 61_000_000))
    assert "Nothing was decided or refused then; the last before it was at" in text
    assert "joins the ISR" in text
    early = told(history, Span(0, 1))
    assert "Nothing is known of this partition at that time or before it." in early
    assert "after:" in early


@pytest.mark.parametrize("name", capture_names())
def test_every_decision_of_every_capture_can_be_told(name: str, unpacked: Unpacker) -> None:
    for history in plain_capture(unpacked(name)).fold().values():
        for state in history.leader_and_isr:
            text = told(history, Span(state.start, state.start + 1))
            assert f"leader {state.value.leader}" in text
            assert max(map(len, text.splitlines())) < 140
