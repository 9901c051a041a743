"""What a clock that nothing bounds leaves of one partition's rows: what is shown stays, accusations do not."""

from __future__ import annotations

from typing import Any

import pytest

from reconstruct.cluster.view import ClusterView
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import UNBOUNDED_US, OffsetClocks
from reconstruct.offsets.evidence import PROBE, OffsetObservation
from reconstruct.offsets.messages import LOG_RECORD
from reconstruct.offsets.spark.context import OffsetContext
from reconstruct.offsets.spark.step import offset_rows

SECOND = 1_000_000

S = 1_000_000
PLACE = {"cluster_id": "c", "topic": "orders", "topic_incarnation": "orders-1", "partition_id": 0}


def line(at: int, offset: int) -> dict[str, Any]:
    """A line of broker 1's log that prints its high watermark."""
    return {
        **PLACE,
        "row_kind": OffsetObservation.__name__,
        "replica_id": 1,
        "offset_kind": "high_watermark",
        "offset": offset,
        "observed_at": at * S,
        "source": LOG_RECORD,
        "evidence_id": f"line-{at}",
    }


def answer(at: int, offset: int) -> dict[str, Any]:
    """What broker 1 answered to a probe, within a second of the capturer's clock."""
    return line(at, offset) | {"observed_at_upper": (at + 1) * S, "source": PROBE, "evidence_id": f"probe-{at}"}


def made_of(uncertain_us: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Bounds and findings: a line of a log prints 100, later its broker answers 40, and nothing tells why."""
    context = OffsetContext(ClusterView("c"), covered={1: [(0, EVER_AFTER)]}, clocks=OffsetClocks({1: uncertain_us}))
    rows = list(offset_rows([line(10, 100), answer(40, 40), answer(60, 45)], context))
    tables = ("silver.replica_offset_timeline", "gold.divergences")
    return tuple([row for row in rows if row["table_name"] == name] for name in tables)  # type: ignore[return-value]


@pytest.mark.parametrize("uncertain_us", [0, 20_000, 2 * S])
def test_a_fall_that_no_possible_clock_explains_is_a_finding(uncertain_us: int) -> None:
    bounds, findings = made_of(uncertain_us)
    assert bounds
    assert {row["rule_id"] for row in findings} == {"R30"}


@pytest.mark.parametrize("uncertain_us", [120 * S, UNBOUNDED_US])
def test_a_fall_that_a_wrong_clock_would_explain_accuses_nobody(uncertain_us: int) -> None:
    _, findings = made_of(uncertain_us)
    assert findings == []


def test_bounds_are_shown_as_if_a_clock_that_nothing_bounds_were_right() -> None:
    assert made_of(UNBOUNDED_US)[0] == made_of(0)[0] != []


def test_a_clock_is_as_uncertain_as_its_corrected_times_jump_back() -> None:
    clocks = OffsetClocks({1: 20_000, 3: UNBOUNDED_US}).set_back({1: 7_200 * S, 2: 2 * S, 3: S})
    assert clocks.uncertainty_us == {1: 7_200 * S, 2: 2 * S, 3: UNBOUNDED_US}
