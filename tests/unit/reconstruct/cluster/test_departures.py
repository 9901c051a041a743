"""When brokers stopped serving, and when their registrations ended: against what really happened in the captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.departures import broker_departures
from reconstruct.cluster.evidence import BrokerFact, ClusterFacts, LifeSign
from reconstruct.cluster.settings import OwnSettings
from reconstruct.cluster.spans import Departure, Registration
from reconstruct.time.intervals import Interval, as_of
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import PlainCapture, plain_capture
from tests.support.truth.decisions import read_truth
from tests.support.truth.departures import (
    DEADLY,
    MILLISECOND,
    SECOND,
    deaths_misjudged,
    growth_misjudged,
    registrations,
    registrations_misjudged,
    stops,
)


@pytest.fixture(scope="module", params=capture_names())
def folder(request: pytest.FixtureRequest, unpacked: Unpacker) -> Path:
    return unpacked(request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["with znodes", "logs alone"])
def plain(folder: Path, request: pytest.FixtureRequest) -> PlainCapture:
    return plain_capture(folder, znodes=request.param)


def test_a_registration_ended_within_its_bounds(folder: Path, plain: PlainCapture) -> None:
    assert registrations_misjudged(read_truth(folder), plain) == []


def test_a_broker_stopped_serving_within_its_bounds(folder: Path, plain: PlainCapture) -> None:
    """Of each broker that was killed or paused until its registration was lost."""
    judged = 0
    for broker_id, span, truth in registrations(read_truth(folder), plain):
        stopped = [
            (at, signal)
            for at, id_, signal in stops(folder, *DEADLY)
            if id_ == broker_id and truth - 15 * SECOND < at < truth
        ]
        if not stopped:
            continue
        (departure,) = [d for d in plain.view.departures[broker_id] if d.unregistered_by == span.interval.end]
        at, signal = stopped[-1]
        assert departure.served_until <= at + MILLISECOND
        assert (departure.gone_by is None) == (signal == "SIGSTOP"), "a paused broker lives on"
        assert departure.gone_by is None or at <= departure.gone_by <= at + 4 * SECOND
        judged += 1
    assert judged == len({(id_, at) for at, id_, _ in stops(folder, *DEADLY)})


def test_a_partition_was_without_a_live_leader_from_the_death_of_its_leader(folder: Path, plain: PlainCapture) -> None:
    """Every partition that the dead broker led by ZooKeeper's log has an interval that holds the true length."""
    assert deaths_misjudged(folder, read_truth(folder), plain) == []


def test_no_log_grew_while_its_partition_had_no_live_leader(folder: Path, plain: PlainCapture) -> None:
    assert growth_misjudged(folder, plain) == []


def test_an_orderly_shutdown_leaves_a_partition_without_leader_only_where_no_other_replica_is(
    folder: Path, plain: PlainCapture
) -> None:
    for at, broker_id, _ in stops(folder, "SIGTERM"):
        for partition, case in plain.fold().items():
            spans = [span for span in case.availability if span.kind == "no_live_leader" and span.start >= at]
            begun = [s for s in spans if s.valid_from_lower is not None and s.valid_from_lower < at + SECOND]
            assigned = as_of(case.assignments, at)
            has_others = assigned is not None and len(assigned.value.replicas) > 1
            assert not (begun and has_others), (partition, broker_id)


def departure(
    *signs: LifeSign, starts: tuple[int, ...] = (), timeout_ms: int | None = None, registered_again: int | None = None
) -> Departure | None:
    """Of broker 1, registered from 0 to 100 s, and again where that is given."""
    facts = ClusterFacts()
    facts.brokers = [BrokerFact(1, "registered", 0, "r", czxid=1)]
    facts.life_signs = list(signs)
    facts.process_starts = [(1, at * SECOND, f"s{at}") for at in starts]
    given = {} if timeout_ms is None else {BrokerSetting.SESSION_TIMEOUT: [str(timeout_ms)]}
    facts.own_settings = OwnSettings({1: given})
    span = RegistrationSpan(Interval(0, 100 * SECOND, Registration(None, 99 * SECOND), ("r", "u")), 100 * SECOND)
    spans = [span]
    if registered_again is not None:
        again = Interval(registered_again * SECOND, None, Registration(), ("r2",))
        spans.append(RegistrationSpan(again, None))
    (found,) = broker_departures(facts, {1: spans}).get(1, (None,))
    return found


def sign(kind: str, at: float) -> LifeSign:
    return LifeSign(1, kind, int(at * SECOND), f"{kind}{at}")


def bounds(found: Departure | None) -> tuple[float, float | None]:
    assert found is not None
    return found.served_until / SECOND, None if found.gone_by is None else found.gone_by / SECOND


def test_without_any_sign_between_the_range_goes_from_the_last_line_to_the_end_of_the_registration() -> None:
    assert bounds(departure(sign("line", 20), starts=(150,))) == (20, 100)


def test_a_log_that_ends_proves_no_death_where_its_rest_may_not_have_been_given() -> None:
    assert bounds(departure(sign("line", 20))) == (20, None)
    assert bounds(departure(sign("line", 20), sign("unreachable", 99))) == (20, 99)


def test_a_broker_that_registers_again_without_a_start_lived_on() -> None:
    found = departure(sign("line", 20), sign("unreachable", 99), starts=(150,), registered_again=110)
    assert bounds(found) == (20, None)


def test_a_broker_without_a_sign_of_life_has_no_departure() -> None:
    assert departure(sign("unreachable", 99)) is None


def test_the_last_line_of_an_orderly_stop_is_when_it_was_over() -> None:
    """Of the only broker nobody tells of the end before the next start."""
    stopped = sign("broker_server_shutdown", 31)
    assert bounds(departure(sign("leaving", 30), starts=(150,))) == (30, 100)
    assert bounds(departure(sign("leaving", 30), stopped, starts=(150,))) == (30, 31)


def test_failed_connections_that_go_on_to_the_end_show_that_it_was_gone() -> None:
    failures = [sign("unreachable", at) for at in (50, 95, 96.5, 98.5)]
    assert bounds(departure(sign("line", 20), *failures)) == (20, 95), "the one at 50 was followed by a connection"
    assert bounds(departure(sign("line", 20), sign("unreachable", 50), starts=(150,))) == (20, 100)


def test_the_session_timeout_bounds_the_death_where_the_log_would_tell_a_shutdown() -> None:
    assert bounds(departure(sign("line", 20), starts=(-1, 150), timeout_ms=6000)) == (20, 97)
    assert bounds(departure(sign("line", 20), starts=(150,), timeout_ms=6000)) == (20, 100)
    assert bounds(departure(sign("line", 20), starts=(-1, 150), timeout_ms=90_000)) == (20, 80), "no more than 40 s"


def test_a_broker_that_logs_on_lived_and_may_have_stopped_before_its_silence() -> None:
    signs = sign("line", 20), sign("line", 98), sign("line", 104)
    assert bounds(departure(*signs)) == (98, None)
    assert bounds(departure(*signs, starts=(-1,), timeout_ms=6000)) == (20, None)
    assert bounds(departure(*signs, starts=(-1, 103), timeout_ms=6000)) == (20, 100), (
        "the line at 104 is the next one's"
    )


def test_a_broker_that_shut_down_served_until_its_last_line_of_that() -> None:
    signs = sign("line", 20), sign("line", 99), sign("leaving", 99), sign("line", 99.5), sign("line", 100.2)
    assert bounds(departure(*signs, starts=(-1,), timeout_ms=6000)) == (99, 100)


def test_a_broker_that_started_again_before_its_session_expired_was_gone_by_then() -> None:
    assert bounds(departure(sign("line", 20), sign("line", 31), starts=(-1, 30))) == (20, 30)
