"""R37: an entry that is zero or out of its neighbours' line, and a file that a running broker did not write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconstruct.checkpoints.evidence import BrokerCheckpoints, BrokerLine, LineKind, ProvenHighWatermark
from reconstruct.checkpoints.rules import judge_checkpoints
from tests.unit.reconstruct.checkpoints.small_histories import (
    R37,
    SECOND,
    UNJUDGED,
    T,
    broker,
    every_second,
    findings,
    rising,
    told,
)


def test_an_entry_that_is_zero_for_one_copy_says_what_a_restart_would_do_with_it() -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"t": 0, "u": 51}, *rising(3, 60)]
    (finding,) = findings(broker(every_second(values)))
    assert (finding.divergence_type, finding.severity) == ("checkpoint_zero", "warning")
    assert "it begins with high watermark 0" in finding.explanation


def test_a_zero_that_a_new_leader_or_a_start_explains_is_by_design() -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"t": 0, "u": 51}, {"t": 0, "u": 61}]
    role = [BrokerLine(4 * SECOND, LineKind.ROLE, T)]
    assert told(broker(every_second(values), role)) == [("checkpoint_zero", "info", 4)]
    assert told(broker(every_second(values), [], [3 * SECOND + 1])) == [("checkpoint_zero", "info", 4)]
    assert told(replace(broker(every_second(values)), covered=[])) == [("checkpoint_zero", "info", 4)]


@pytest.mark.parametrize(("value", "expected"), [(7, 1), (77777, 1), (40, 0), (60, 0), (50, 0)])
def test_a_value_out_of_line_with_its_neighbours(value: int, expected: int) -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"t": value, "u": 51}, *rising(3, 60)]
    seen = broker(every_second(values))
    assert [f.divergence_type for f in findings(seen)] == ["checkpoint_out_of_bounds"] * expected
    assert told(replace(seen, lines=[BrokerLine(4 * SECOND, LineKind.TRUNCATED, T, 7)])) == []
    assert told(replace(seen, covered=[])) == []


def test_a_value_that_stays_fallen_is_no_matter_of_the_checkpoint() -> None:
    assert told(broker(every_second([*rising(4), *rising(4, 5)]))) == []


def stale(**changed: object) -> BrokerCheckpoints:
    proven = {T: [ProvenHighWatermark(2 * SECOND, None, 99, ("proof",))]}
    seen = broker(every_second([{"t": 10, "u": 11}] * 12))
    seen = replace(seen, proven=proven, sessions=[(0, 20 * SECOND)], written_within=8 * SECOND)
    return replace(seen, **changed)  # type: ignore[arg-type]


def test_a_file_that_a_running_broker_did_not_write_is_stale() -> None:
    (finding,) = findings(stale())
    assert (finding.divergence_type, finding.severity, finding.at) == ("checkpoint_stale", "warning", 11 * SECOND)
    assert "reached t-0 (99) by 1970-01-01 00:00:03" in finding.explanation
    assert "proof" in finding.evidence


def test_a_file_that_may_be_old_is_not_stale() -> None:
    assert told(stale(sessions=[])) == []  # the broker may have been down
    assert told(stale(written_within=None)) == []  # its settings are not known
    assert told(stale(proven={})) == []  # nothing was written to the partition
    assert told(stale(proven={T: [ProvenHighWatermark(5 * SECOND, None, 99)]})) == []  # not for long enough
    assert judge_checkpoints(stale(written_within=30 * SECOND, sessions=[])).verdicts.counts[R37, UNJUDGED] == 0
    assert told(stale(lines=[BrokerLine(5 * SECOND, LineKind.ROLE, T)])) == []  # it may have fallen meanwhile
