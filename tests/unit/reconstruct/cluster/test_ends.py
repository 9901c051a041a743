"""How registrations ended: against what really happened in the captures, and on histories made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.shapes.event_types import EventType
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.ends import RegistrationEnd, registration_ends
from reconstruct.cluster.evidence import ClusterFacts, LifeSign
from reconstruct.cluster.view import Registration
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
    capture = plain_capture(folder)
    signals = [
        (int(event["ts"] * SECOND), event["broker"], event["signal"])
        for event in map(json.loads, (folder / "events.jsonl").read_text().splitlines())
        if event["what"] == "signal" and event["signal"] in TRUE_ENDS
    ]
    for broker_id, spans in capture.cluster.registrations.items():
        for span, end in zip(spans, capture.cluster.ends[broker_id], strict=True):
            if span.interval.end is None:
                assert end == RegistrationEnd()
                continue
            done = [(at, what) for at, id_, what in signals if id_ == broker_id and at <= span.interval.end + SECOND]
            assert end.ended_as in TRUE_ENDS[max(done)[1]], (broker_id, span, max(done))
            assert (end.shutdown_began_at is not None) == (end.ended_as == "clean_stop")
            if end.shutdown_took_ms is not None:
                assert 0 <= end.shutdown_took_ms < 30_000


def ends(*signs: tuple[str, float], next_start: float | None = 30, again: float | None = None) -> RegistrationEnd:
    """Of broker 1, registered from second 0 to 20, with signs (kind, second)."""
    facts = ClusterFacts(
        process_starts=[] if next_start is None else [(1, round(next_start * SECOND), "start")],
        life_signs=[LifeSign(1, kind, round(at * SECOND), f"{kind}-{at}") for kind, at in signs],
    )
    spans = [RegistrationSpan(Interval(0, 20 * SECOND, Registration("registration_lost"), ()), 20 * SECOND)]
    if again is not None:
        spans.append(RegistrationSpan(Interval(round(again * SECOND), None, Registration(), ()), None))
    return registration_ends(facts, {1: spans})[1][0]


STOPPED = EventType.BROKER_SERVER_SHUTDOWN


def test_a_stop_in_order_is_one_that_came_to_its_end() -> None:
    assert ends(("leaving", 18), ("line", 19), (STOPPED, 19)).ended_as == "clean_stop"
    assert ends(("leaving", 18), ("line", 19)).ended_as == "stop_not_finished"
    assert ends(("leaving", 18), ("line", 19), next_start=None).ended_as == "clean_stop"


def test_a_process_that_lives_on_lost_its_session() -> None:
    assert ends(("line", 19), ("line", 25)).ended_as == "session_expired"
    assert ends(("line", 19), (EventType.SESSION_EXPIRED, 22)).ended_as == "session_expired"
    assert ends(("line", 19), again=22).ended_as == "session_expired"


def test_a_process_that_wrote_nothing_more_died() -> None:
    assert ends(("line", 12)).ended_as == "crash"
    assert ends(("line", 12), next_start=None).ended_as is None
    assert ends().ended_as is None


def test_a_process_that_ends_itself_over_an_error_halted() -> None:
    assert ends(("line", 12), (EventType.BROKER_HALTED, 12)).ended_as == "halted"
    assert ends(("leaving", 12), (EventType.BROKER_SERVER_FAILED, 12), ("line", 13), (STOPPED, 14)).ended_as == "halted"
    assert ends(("line", 12), (EventType.FATAL_FAULT, 12)).ended_as == "halted"
    assert ends(("line", 12), (EventType.LOG_TRUNCATION_NOT_ALLOWED, 12), ("line", 13)).ended_as == "halted"


def test_a_controlled_shutdown_is_told_with_its_tries() -> None:
    started, again, done = (
        EventType.CONTROLLED_SHUTDOWN_STARTED,
        EventType.CONTROLLED_SHUTDOWN_RETRIED,
        EventType.CONTROLLED_SHUTDOWN_SUCCEEDED,
    )
    end = ends(("leaving", 12), (started, 12), (again, 13), (again, 14), (done, 15.5), ("line", 16), (STOPPED, 17))
    assert end == RegistrationEnd("clean_stop", 12 * SECOND, 3_500, 2)
