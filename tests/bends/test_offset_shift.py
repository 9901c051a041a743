"""Captures of which one broker's clock was wrong: believed it misleads; known for what it is, it misleads nobody.

A few broken clocks are in every suite, always the same; with ``HYPOTHESIS_PROFILE=hard`` those of every broker of every
capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.figures import Figure
from tests.support.bends.clocks import SHIFTS, Named, Read, known_of, measured, shifted, told
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names

A_MINUTE_SLOW, THREE_SECONDS_SLOW, A_LITTLE_FAST, AN_HOUR_FAST = SHIFTS
#: Each of which misleads where the clock is believed.
SOME = [
    ("lifecycle-3.9.1", 3, A_MINUTE_SLOW),
    ("failover-1.1.1", 1, THREE_SECONDS_SLOW),
    ("unclean-3.9.1-info", 1, A_LITTLE_FAST),
    ("failover-1.1.1", 3, AN_HOUR_FAST),
]


def _wanted() -> list[tuple[str, int, timedelta]]:
    if not IS_HARD:
        return SOME
    return [
        (name, broker, shift)
        for name in capture_names()
        for broker in (1, 2, 3, *([4] if name.startswith("reassign") else []))
        for shift in SHIFTS
    ]


@pytest.mark.parametrize(("name", "broker", "shift"), _wanted())
def test_a_wrong_clock_that_is_known_to_be_uncertain_moves_no_bound_and_accuses_nobody(
    unpacked: Unpacker, tmp_path: Path, name: str, broker: int, shift: timedelta, record_property: Any
) -> None:
    believed, *known = _misled(unpacked(name), broker, shift, tmp_path)
    assert believed or (name, broker, shift) not in SOME, "a clock that misleads nobody is no test"
    assert known == [[], []]
    record_property(Figure.HARMLESS, 1)


def _misled(capture: Path, broker: int, shift: timedelta, folder: Path) -> Iterator[list[object]]:
    """By each knowledge of the clock: probes outside the bounds, and new findings above info."""
    bent, before = Read.of(shifted(capture, broker, shift, folder)), _told_unbent(capture)
    for known in known_of(broker, shift):
        read = bent.by(known.clocks)
        outside = [
            probe for with_probes in (False, True) for probe, _, _ in measured(read, with_probes=with_probes).outside
        ]
        yield [*outside, *(told(read) - before)]


@cache
def _told_unbent(capture: Path) -> Counter[Named]:
    return told(Read.unchanged(capture))
