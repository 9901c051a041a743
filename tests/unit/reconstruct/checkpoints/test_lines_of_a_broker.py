"""The lines of one broker, asked by what they say, by replica and by instant."""

from __future__ import annotations

import random

import pytest

from reconstruct.checkpoints.evidence import BrokerCheckpoints, BrokerLine, LineKind, Replica
from reconstruct.checkpoints.view import BrokerView

REPLICAS = [("orders", "i", 0), ("orders", "i", 1)]


def line(at: int, kind: LineKind, replica: Replica | None = None) -> BrokerLine:
    return BrokerLine(at, kind, replica, evidence_id=f"{kind} {at} {replica}")


EVERY = [
    *(
        line(at, kind, replica)
        for at in (10, 20, 20, 30)
        for kind in (LineKind.LOADED, LineKind.ROLE)
        for replica in REPLICAS
    ),
    *(line(at, LineKind.UNREADABLE) for at in (15, 30)),
]


@pytest.mark.parametrize("replica", [None, *REPLICAS])
@pytest.mark.parametrize(
    "kinds", [(LineKind.LOADED,), (LineKind.ROLE, LineKind.LOADED), (LineKind.UNREADABLE, LineKind.ROLE), ()]
)
@pytest.mark.parametrize(("start", "end"), [(0, None), (20, None), (10, 20), (11, 30), (30, 30), (31, None)])
def test_lines_of_kinds_are_those_of_the_span_in_order(
    kinds: tuple[LineKind, ...], replica: Replica | None, start: int, end: int | None
) -> None:
    given = random.Random(1).sample(EVERY, len(EVERY))
    found = BrokerView(BrokerCheckpoints(1, lines=given)).lines_in(start, end, *kinds, replica=replica)
    expected = [
        one
        for one in EVERY
        if one.kind in kinds and one.at >= start and (end is None or one.at < end) and replica in (None, one.replica)
    ]
    assert found == sorted(expected, key=lambda one: (one.at, one.evidence_id))


def test_the_last_line_before_an_instant() -> None:
    view = BrokerView(BrokerCheckpoints(1, lines=[line(30, LineKind.ROLE), line(10, LineKind.LOADED)]))
    last = [view.last_line_before(at) for at in (10, 11, 30, 31)]
    assert [None if one is None else one.at for one in last] == [None, 10, 10, 30]
    assert BrokerView(BrokerCheckpoints(1)).last_line_before(99) is None
