"""How registrations ended: against what really happened in the captures, and on histories made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.shapes import match
from ingest.shapes.broker_settings import BrokerSetting
from ingest.shapes.event_types import EventType
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.ends import RegistrationEnd, registration_ends
from reconstruct.cluster.evidence import FOUND_CLEAN, FOUND_UNCLEAN, LIVES, STARTS, BrokerFact, ClusterFacts, LifeSign
from reconstruct.cluster.spans import Registration
from reconstruct.time.intervals import Interval
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import plain_capture

SECOND = 1_000_000
#: What the scenarios did to a broker, and how its registration ended then.
TRUE_ENDS = {"SIGKILL": {"crash"}, "SIGSTOP": {"session_expired"}, "SIGTERM": {"clean_stop"}}


@pytest.fixture(scope="module", params=capture_names())
def folder(request: pytest.FixtureRequest, unpacked: Unpacker) -> Path:
    return unpacked(request.param)


def test_each_end_is_what_the_scenario_did(folder: Path) -> None:
    """Of a broker whose logs were lost after its end nothing tells whether it had closed them."""
    capture = plain_capture(folder)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    signals = [
        (int(event["ts"] * SECOND), event["broker"], event["signal"])
        for event in events
        if event["what"] == "signal" and event["signal"] in TRUE_ENDS
    ]
    wiped = [(int(event["ts"] * SECOND), event["broker"]) for event in events if event["what"] == "data_lost"]
    for broker_id, spans in capture.cluster.registrations.items():
        for span, end in zip(spans, capture.cluster.ends[broker_id], strict=True):
            if span.interval.end is None:
                assert end == RegistrationEnd()
                continue
            done = [(at, what) for at, id_, what in signals if id_ == broker_id and at <= span.interval.end + SECOND]
            is_provable = not any(id_ == broker_id and 0 < at - max(done)[0] < SECOND for at, id_ in wiped)
            true = TRUE_ENDS[max(done)[1]] if is_provable else {None}
            assert end.ended_as in true, (broker_id, span, max(done))
            assert (end.shutdown_began_at is not None) == (end.ended_as == "clean_stop")
            if end.shutdown_took_ms is not None:
                assert 0 <= end.shutdown_took_ms < 30_000


def ends(
    *signs: tuple[str, float],
    next_start: float | None = 30,
    again: float | None = None,
    asked: float | None = None,
    timeout_s: int | None = None,
) -> RegistrationEnd:
    """Of broker 1, registered from second 0 to 20, with signs (kind, second)."""
    facts = ClusterFacts(
        process_starts=[] if next_start is None else [(1, round(next_start * SECOND), "start")],
        life_signs=[LifeSign(1, kind, round(at * SECOND), f"{kind}-{at}") for kind, at in signs],
        brokers=[] if asked is None else [BrokerFact(1, "shutdown_requested", round(asked * SECOND), "asked")],
    )
    if timeout_s is not None:
        facts.own_settings.files[1] = {BrokerSetting.SESSION_TIMEOUT: [str(timeout_s * 1000)]}
    spans = [RegistrationSpan(Interval(0, 20 * SECOND, Registration("registration_lost"), ()), 20 * SECOND)]
    if again is not None:
        spans.append(RegistrationSpan(Interval(round(again * SECOND), None, Registration(), ()), None))
    return registration_ends(facts, {1: spans})[1][0]


STOPPED = EventType.BROKER_SERVER_SHUTDOWN


def test_a_stop_in_order_is_one_that_came_to_its_end() -> None:
    assert ends(("leaving", 18), ("line", 19), (STOPPED, 19)).ended_as == "clean_stop"
    assert ends(("leaving", 18), ("line", 19), (FOUND_CLEAN, 31)).ended_as == "clean_stop"
    assert ends(("leaving", 18), ("line", 19), (FOUND_UNCLEAN, 31)).ended_as == "stop_not_finished"


def test_where_the_lines_of_its_end_are_missing_a_stop_is_told_by_what_it_left() -> None:
    assert ends(("leaving", 18), ("line", 19)).ended_as is None
    assert ends(("leaving", 18), ("line", 19), next_start=None).ended_as is None
    assert ends(("leaving", 18), ("line", 19), timeout_s=6).ended_as == "clean_stop", "it closed its session itself"
    assert ends(("leaving", 15), ("line", 16), timeout_s=6).ended_as is None
    assert ends(("line", 12), (FOUND_CLEAN, 31)).ended_as == "clean_stop"
    assert ends(("line", 12), asked=18).ended_as is None
    assert ends(("line", 12), (FOUND_CLEAN, 31), asked=18).ended_as == "clean_stop"
    assert ends(("line", 12), (FOUND_UNCLEAN, 31), asked=18).ended_as == "stop_not_finished"


def test_a_process_that_lives_on_lost_its_session() -> None:
    assert ends(("line", 19), (LIVES, 25)).ended_as == "session_expired"
    assert ends(("line", 19), (LIVES, 25), again=28).ended_as == "session_expired"
    assert ends(("line", 19), (LIVES, 25), again=24).ended_as is None, "of the process that registered then, perhaps"
    assert ends(("line", 19), (EventType.SESSION_EXPIRED, 22)).ended_as == "session_expired"
    assert ends(("line", 19), again=22).ended_as is None, "the line of another process's start may be missing"
    assert ends(("line", 19), (STARTS, 21), ("line", 21.5), again=22, next_start=None).ended_as is None


def test_a_process_that_left_its_logs_open_died() -> None:
    assert ends(("line", 12), (FOUND_UNCLEAN, 31)).ended_as == "crash"
    assert ends(("line", 12), (STARTS, 21), ("line", 21.1), (FOUND_UNCLEAN, 22), next_start=None).ended_as == "crash"
    assert ends((FOUND_UNCLEAN, 31)).ended_as is None
    assert ends().ended_as is None


def test_a_process_of_which_the_next_does_not_tell_did_not_certainly_die() -> None:
    assert ends(("line", 12)).ended_as is None
    assert ends(("line", 12), next_start=None).ended_as is None
    assert ends(("line", 12), (FOUND_CLEAN, 31), (FOUND_UNCLEAN, 31)).ended_as is None, "of two directories"
    assert ends(("line", 12), (FOUND_UNCLEAN, 41), again=35).ended_as is None, "of the stop after it"


def test_a_process_that_ends_itself_over_an_error_halted() -> None:
    assert ends(("line", 12), (EventType.BROKER_HALTED, 12)).ended_as == "halted"
    assert ends(("leaving", 12), (EventType.BROKER_SERVER_FAILED, 12), ("line", 13), (STOPPED, 14)).ended_as == "halted"
    assert ends(("line", 12), (EventType.FATAL_FAULT, 12)).ended_as == "halted"
    assert ends(("line", 12), (EventType.BROKER_SERVER_FAILED, 25)).ended_as is None, "a start that failed"
    assert ends(("line", 12), (EventType.LOG_TRUNCATION_NOT_ALLOWED, 12), ("line", 13)).ended_as == "halted"


def test_a_controlled_shutdown_is_told_with_its_tries() -> None:
    started, failed, again, done = (
        EventType.CONTROLLED_SHUTDOWN_STARTED,
        EventType.CONTROLLED_SHUTDOWN_TRY_FAILED,
        EventType.CONTROLLED_SHUTDOWN_RETRIED,
        EventType.CONTROLLED_SHUTDOWN_SUCCEEDED,
    )
    tries = ((failed, 12.5), (again, 13), (failed, 13.5), (again, 14))
    end = ends(("leaving", 12), (started, 12), *tries, (done, 15.5), ("line", 16), (STOPPED, 17))
    assert end == RegistrationEnd("clean_stop", 12 * SECOND, 3_500, 2)


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("Remaining partitions to move: [orders,4]", EventType.CONTROLLED_SHUTDOWN_TRY_FAILED),
        ("Retrying controlled shutdown after the previous attempt failed...", EventType.CONTROLLED_SHUTDOWN_RETRIED),
        ("Retrying controlled shutdown (2 retries remaining)", EventType.CONTROLLED_SHUTDOWN_RETRIED),
    ],
)
def test_one_try_that_failed_is_one_line_that_says_so(text: str, event_type: str) -> None:
    """KafkaServer.doControlledShutdown prints why beside it."""
    found = match("server_log", "kafka.server.KafkaServer", f"[KafkaServer id=3] {text}")
    assert found is not None
    assert found.event_type == event_type
