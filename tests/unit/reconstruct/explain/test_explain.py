"""``explain`` tells a decision so that a reader can follow it: what was known, the steps, what came of it."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from reconstruct.explain.described import MOST_ANSWERS, Described, Missed, described
from reconstruct.explain.explain import Span, description_only, explanation, holders
from reconstruct.explain.story import Chapter
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.time.instants import to_micros
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import PlainCapture, plain_capture


def span(text: str, seconds: float = 1) -> Span:
    start = to_micros(datetime.fromisoformat(text))
    return Span(start, start + int(seconds * 1e6))


def told(history: Case, when: Span, refused: list[Evidence] | None = None) -> str:
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
        for fact in history.facts:
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
    last = history.decided[-1]
    text = told(history, Span(last.start + 60_000_000, last.start + 61_000_000))
    assert "Nothing was decided or refused then; the last before it was at" in text
    assert "joins the ISR" in text
    early = told(history, Span(0, 1))
    assert "Nothing is known of this partition at that time or before it." in early
    assert "after:" in early


def test_of_one_broker_only_what_changed_its_place_is_told(unpacked: Unpacker) -> None:
    history = plain_capture(unpacked("unclean-3.9.1-info")).fold_one(("ledger", 0))
    whole = Span(0, 2**62)
    titles = {
        broker_id: [line.split("  ")[1] for line in text.splitlines() if line.startswith("2026-")]
        for broker_id in (1, 2)
        if (text := explanation("ledger-0", history, whole, broker_id=broker_id))
    }
    assert holders(history) == [1, 2]
    failed = "controller 3 could not move the partition from OfflinePartition to OnlinePartition"
    elected = ("leader 1 elected, leader epoch 0", "leader 2 elected, uncleanly, leader epoch 2")
    assert titles[2] == [elected[0], "replica 2 leaves the ISR", failed, elected[1]]
    refused, lost = "broker 1 ignores a LeaderAndIsr of controller 1", "no leader, leader epoch 1"
    assert titles[1] == [elected[0], refused, lost, failed, elected[1], "replica 1 joins the ISR"]
    sentence = "3 more in that time changed nothing of broker 2: without --broker they are told, too."
    assert sentence in explanation("ledger-0", history, whole, broker_id=2)
    assert "--broker" not in explanation("ledger-0", history, whole)


def test_a_request_that_a_broker_refused_is_of_that_broker(unpacked: Unpacker) -> None:
    capture = plain_capture(unpacked("failover-3.9.1"))
    refused = capture.refused_requests[0]
    history, when = capture.fold_one(("orders", 0)), Span(refused.at, refused.at + 1)
    assert "ignores a UpdateMetadata" in explanation("orders-0", history, when, [refused], broker_id=1)
    assert "ignores a UpdateMetadata" not in explanation("orders-0", history, when, [refused], broker_id=3)


def test_of_a_partition_without_leader_it_says_who_has_to_come_back(unpacked: Unpacker) -> None:
    capture = plain_capture(unpacked("unclean-3.9.1-info"))
    text = told(capture.fold_one(("safe", 0)), span("2026-11-21T03:37:00"))
    assert "It waits for 1 to come back: no other replica may lead but by an unclean election." in text
    assert "It waits for" not in told(capture.fold_one(("safe", 0)), span("2026-11-21T03:36:35"))


@pytest.mark.parametrize("name", capture_names())
def test_every_decision_of_every_capture_can_be_told(name: str, unpacked: Unpacker) -> None:
    for history in plain_capture(unpacked(name)).fold().values():
        for state in history.decided:
            text = told(history, Span(state.start, state.start + 1))
            assert f"leader {state.value.leader}" in text
            assert max(map(len, text.splitlines())) < 140


START = to_micros(datetime.fromisoformat("2026-11-21T03:28:06Z"))
VIEW: dict[str, Any] = {
    "error_code": 0,
    "leader": 2,
    "leader_epoch": 5,
    "replicas": [1, 2, 3],
    "isr": [2, 3],
    "offline_replicas": [],
}


def describing(answers: list[Described], missed: list[Missed] | None = None) -> list[str]:
    """What brokers described around the second of START, as lines."""
    chapter = described(START, START + 1_000_000, answers, missed or [])
    assert chapter is not None
    return [" ".join(line.split()) for line in description_only("ledger-0", chapter).splitlines()]


def after(lines: list[str], heading: str) -> list[str]:
    """The lines from that heading on."""
    return lines[next(number for number, line in enumerate(lines) if line.startswith(heading)) :]


class TestWhatBrokersDescribed:
    def test_each_broker_s_view_is_told_the_last_before_and_each_change(self) -> None:
        old = VIEW | {"leader_epoch": None, "leader": 1, "isr": [1, 2, 3], "offline_replicas": None}
        lines = describing(
            [
                Described(START + 700_000, 2, "topic_gone"),
                Described(START + 300_000, 3, "topic", VIEW | {"offline_replicas": [1], "error_code": 9}),
                Described(START - 9_000_000, 3, "topic", old),
                Described(START + 800_000, 1, "topic"),
            ]
        )
        assert "No log and no znode tells what was decided: there is what brokers described." in lines
        assert after(lines, "Last before") == [
            "Last before",
            "2026-11-21 03:27:57.000 UTC broker 3: leader 1, ISR 1,2,3, replicas 1,2,3",
            "Changes until 2026-11-21 03:28:37.000 UTC",
            "03:28:06.300 broker 3: leader 2, leader epoch 5, ISR 2,3, replicas 1,2,3, offline 1, error code 9",
            "03:28:06.700 broker 2: the topic is no longer described",
            "03:28:06.800 broker 1: the partition is no longer described",
        ]

    def test_log_directories_and_reassignments_are_told(self) -> None:
        here, moving = {"offset_lag": 0, "is_future": False}, {"offset_lag": 300, "is_future": True}
        moved = {"replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": []}
        lines = describing(
            [
                Described(START + 1, 3, "log_dir_topic", log_dir="/a", replicas=[here]),
                Described(START + 2, 3, "log_dir_topic", log_dir="/b", replicas=[moving]),
                Described(START + 3, 3, "log_dir_topic", log_dir="/c", replicas=[here | {"offset_lag": -1}]),
                Described(START + 4, 3, "log_dir_topic", log_dir="/a"),
                Described(START + 5, 1, "reassignments", reassignment=moved),
                Described(START + 6, 2, "reassignments"),
            ]
        )
        assert [line.split(" ", 1)[1] for line in after(lines, "Changes")[1:]] == [
            "broker 3: replica, 0 behind the high watermark, in /a",
            "broker 3: future replica, 300 behind the current one, in /b",
            "broker 3: replica, lag not known, in /c",
            "broker 3: no replica in /a",
            "broker 1: being reassigned, replicas 1,2,3, adding 3, removing none",
            "broker 2: not being reassigned any more",
        ]

    def test_what_the_capture_missed_is_told_with_its_reason(self) -> None:
        lines = describing(
            [],
            [
                Missed("probes", "broker 2", START + 5, START + 500_000, "nothing listens"),
                Missed("log dirs", "broker 1", START, START, "the broker answers CLUSTER_AUTHORIZATION_FAILED"),
                Missed("znodes", "", START + 9, None, "no connection"),
            ],
        )
        assert " ".join(after(lines, "Changes")) == (
            "Changes until 2026-11-21 03:28:37.000 UTC none Not recorded"
            " the capture does not record log dirs of broker 1: the broker answers CLUSTER_AUTHORIZATION_FAILED"
            " the capture missed probes of broker 2 from 2026-11-21 03:28:06.000 UTC to 2026-11-21 03:28:06.500 UTC:"
            " nothing listens"
            " the capture missed znodes from 2026-11-21 03:28:06.000 UTC on; its end is not told: no connection"
        )

    def test_much_is_counted_and_nothing_is_no_chapter(self) -> None:
        many = [Described(START + number, number, "topic", VIEW) for number in range(33)]
        assert describing(many)[-1] == "and 3 more"
        as_many_as_are_read = [Described(START + number, number, "topic", VIEW) for number in range(MOST_ANSWERS)]
        assert describing(as_many_as_are_read)[-1] == f"and at least {MOST_ANSWERS - 30} more"
        assert described(START, START + 1, [], []) is None

    def test_it_is_the_last_chapter_of_an_explanation(self, unpacked: Unpacker) -> None:
        history = plain_capture(unpacked("unclean-0.8.2.2")).fold_one(("ledger", 0))
        at = history.decided[-1].start
        chapter = described(at, at + 1, [Described(at, 2, "topic", VIEW)], [])
        without, lines = told(history, Span(at, at + 1)), told_with(history, Span(at, at + 1), chapter)
        assert len(lines) > len(without.splitlines())
        assert [line for line in without.splitlines() if line not in lines] == []
        assert any("broker 2: leader 2, leader epoch 5, ISR 2,3" in line for line in lines)


def told_with(history: Case, when: Span, chapter: Chapter | None) -> list[str]:
    return explanation("ledger-0", history, when, (), chapter).splitlines()


def test_a_step_of_a_controller_between_two_is_no_failed_election(unpacked: Unpacker) -> None:
    steps = 0
    for history in plain_capture(unpacked("failover-3.9.1")).fold().values():
        for state, after in pairwise(history.decided):
            if state.value.leader == -1 and after.start - state.start < 1_000_000:
                text = told(history, Span(state.start, state.start + 1))
                assert "nobody could be elected" not in text
                assert f"a step between two of one controller, which elected leader {after.value.leader}" in " ".join(
                    text.split()
                )
                steps += 1
    assert steps > 2


def test_a_leader_that_nobody_could_follow_is_told(unpacked: Unpacker) -> None:
    history = plain_capture(unpacked("unclean-3.9.1-info")).fold_one(("ledger", 0))
    without = next(state for state in history.decided if state.value.leader == -1)
    text = told(history, Span(without.start, without.start + 1))
    assert "nobody could be elected" in text
    assert "a step before the election" not in text


def test_all_findings_of_a_decision_are_named(unpacked: Unpacker) -> None:
    history = plain_capture(unpacked("unclean-3.9.1-info")).fold_one(("ledger", 0))
    at = next(election.at for election in history.elections if election.is_unclean)
    lost = Divergence.of_replica(DivergenceType.COMMITTED_RECORDS_LOST, "warning", at + 300_000, 2)
    late = Divergence.of_replica(DivergenceType.COMMITTED_RECORDS_TRUNCATED, "warning", at + 60_000_000, 2)
    findings = [
        *history.verdicts.findings,
        lost.explained("", "", "Committed records are gone.", ()),
        late.explained("", "", "Much later.", ()),
    ]
    text = explanation("ledger-0", history, Span(at, at + 1), findings=findings)
    assert "R08 warning: Broker 2 was elected" in text
    assert "R35 warning: Committed records are gone." in text
    assert "Much later" not in text
