"""One broker's clock was wrong: found and corrected, it changes nothing that was decided, and nobody is accused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reconstruct.clocks.timeline import correction_us
from tests.figures import Figure
from tests.support.bends.wrong_clocks import accusations, decided
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText
from tests.support.evidence.corrected import brokers, corrected, shifted, solved
from tests.support.evidence.partitions import plain_capture

FORTY_SECONDS_SLOW, THREE_SECONDS_SLOW = timedelta(seconds=-40), timedelta(seconds=-3)
A_LITTLE_FAST, AN_HOUR_FAST = timedelta(seconds=1.5), timedelta(hours=1)
SHIFTS = (FORTY_SECONDS_SLOW, THREE_SECONDS_SLOW, A_LITTLE_FAST, AN_HOUR_FAST)
#: Captures in which something happens, so that a wrong order would show; with and without znodes.
EVENTFUL = ("failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1", "lifecycle-1.1.1")
SOME = (
    (3, FORTY_SECONDS_SLOW, True),
    (1, FORTY_SECONDS_SLOW, False),
    (2, THREE_SECONDS_SLOW, True),
    (1, A_LITTLE_FAST, True),
    (3, AN_HOUR_FAST, False),
)

Read = Callable[[str, bool], CaptureText]


@pytest.fixture
def read(unpacked: Unpacker) -> Read:
    def once(name: str, with_znodes: bool) -> CaptureText:
        files = CaptureText.read(unpacked(name)).files
        return CaptureText({n: lines for n, lines in files.items() if with_znodes or not n.startswith("znodes/")})

    return once


def _wanted() -> list[tuple[str, int, timedelta, bool]]:
    if not IS_HARD:
        return [(name, *case) for name in EVENTFUL for case in SOME]
    return [
        (name, broker, shift, with_znodes)
        for name in capture_names()
        for broker in (1, 2, 3)
        for shift in SHIFTS
        for with_znodes in (True, False)
    ]


@pytest.mark.parametrize(("name", "broker", "shift", "with_znodes"), _wanted())
def test_a_wrong_clock_that_was_corrected_changes_no_state_and_accuses_nobody(
    name: str, broker: int, shift: timedelta, with_znodes: bool, read: Read, record_property: Any
) -> None:
    right = read(name, with_znodes)
    wrong = shifted(right, broker, shift)
    segments = solved(wrong)
    expected, found = plain_capture(right).fold(), plain_capture(corrected(wrong)).fold()
    is_bounded = all(s.offset_lower_ms is not None and s.offset_upper_ms is not None for s in segments)
    if is_bounded and with_znodes:
        (own,) = (segment for segment in segments if segment.broker_id == broker)
        assert abs(timedelta(microseconds=correction_us(own) or 0) - shift) < timedelta(milliseconds=100)
    assert accusations(found) - accusations(expected) == {}
    if is_bounded:
        assert decided(found) == decided(expected)
    record_property(Figure.HARMLESS, 1)


def test_a_clock_that_is_shifted_shows_in_every_line_of_its_broker_s_logs(read: Read) -> None:
    right = read("failover-1.1.1", False)
    wrong = shifted(right, 2, A_LITTLE_FAST)
    assert shifted(wrong, 2, -A_LITTLE_FAST) == right
    changed = {name for name, lines in wrong.files.items() if lines != right.files[name]}
    assert changed == set(right.named("broker-2/logs/"))
    assert brokers(wrong) == [1, 2, 3]
