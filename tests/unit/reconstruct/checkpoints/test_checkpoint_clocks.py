"""R37 under a clock that may be wrong: lines and copies are judged apart, and nobody is accused who was not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from reconstruct.checkpoints.evidence import AssignedSpan, BrokerCheckpoints, Replica
from reconstruct.checkpoints.rules import comparable_parts, judge_checkpoints
from reconstruct.checkpoints.view import BrokerView
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import UNBOUNDED_US
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.checkpoints import plain_checkpoints

S = 1_000_000
SHIFTS = (-40 * S, -3 * S, 3 * S // 2, 3600 * S)
DAMAGED = "checkpoints-1.1.1"
#: What each broker of the damaged capture may be told of, whatever is known of its clock: what was done to its files.
DONE = {
    1: {"checkpoint_malformed"},
    2: {"checkpoint_missing", "checkpoint_zero"},
    3: {"log_directory_wiped", "checkpoint_zero"},
}


def moved(seen: BrokerCheckpoints, by: int) -> BrokerCheckpoints:
    """The same with lines of a clock that showed ``by`` µs more."""
    return replace(
        seen,
        lines=[replace(line, at=line.at + by) for line in seen.lines],
        starts=[(at + by, evidence) for at, evidence in seen.starts],
        covered=[(begin + by, end if end == EVER_AFTER else end + by) for begin, end in seen.covered],
    )


def told(seen: BrokerCheckpoints) -> Counter[tuple[str, str]]:
    return Counter((f.divergence_type, f.severity) for f in judge_checkpoints(seen).verdicts.findings)


@pytest.fixture(scope="module", params=capture_names())
def capture(request: pytest.FixtureRequest, unpacked: Unpacker) -> Path:
    return unpacked(request.param)


def test_a_wrong_clock_that_is_known_to_be_uncertain_accuses_nobody(capture: Path) -> None:
    misled = []
    for seen in plain_checkpoints(capture):
        for by in SHIFTS:
            wrong = moved(seen, by)
            misled.append(told(wrong) != told(seen))
            for slack in (abs(by), UNBOUNDED_US):
                found = told(replace(wrong, clock_slack_us=slack, decided_slack_us=slack))
                allowed = DONE[seen.broker_id] if capture.name == DAMAGED else set()
                assert {kind for kind, _ in found} <= allowed, (seen.broker_id, by, slack, found)
                assert all(one == ("checkpoint_malformed", "error") for one in found if one[1] == "error")
    assert any(misled), "a clock that misleads nobody is no test"


def test_what_lines_alone_or_copies_alone_prove_is_said_whatever_the_clock(unpacked: Unpacker) -> None:
    found = {
        seen.broker_id: told(replace(moved(seen, 3600 * S), clock_slack_us=UNBOUNDED_US))
        for seen in plain_checkpoints(unpacked(DAMAGED))
    }
    assert found[1] == {("checkpoint_malformed", "error"): 1, ("checkpoint_malformed", "warning"): 1}
    assert found[2]["checkpoint_missing", "warning"] == 1


def test_clocks_that_agree_are_compared() -> None:
    seen = BrokerCheckpoints(1, starts=[(S, "start")])
    assert comparable_parts(seen) == [seen]
    assert len(comparable_parts(replace(seen, clock_slack_us=S))) == 2
    known = replace(seen, assigned={REPLICA: [AssignedSpan(0, None, True)]})
    assert comparable_parts(replace(known, decided_slack_us=UNBOUNDED_US)) == [seen]
    assert comparable_parts(replace(known, decided_slack_us=S)) == [replace(known, decided_slack_us=S)]


REPLICA: Replica = ("orders", "", 0)


@pytest.mark.parametrize(("slack", "expected"), [(0, True), (9 * S, True), (11 * S, None)])
def test_a_replica_is_assigned_only_as_surely_as_the_clocks_allow(slack: int, expected: bool | None) -> None:
    spans = [AssignedSpan(0, 100 * S, True), AssignedSpan(100 * S, None, False)]
    view = BrokerView(BrokerCheckpoints(1, assigned={REPLICA: spans}, decided_slack_us=slack))
    assert view.is_assigned(REPLICA, 80 * S, 90 * S) is expected
    assert view.is_assigned(REPLICA, 120 * S, 130 * S) is False
    assert view.left_at(REPLICA, 150 * S) == 100 * S + slack
