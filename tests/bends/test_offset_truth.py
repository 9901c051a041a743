"""The bounds against real clusters: every probe of every capture lies within what its files and logs prove."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import OffsetBounds
from reconstruct.offsets.losses import find_losses
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.truth.offsets import (
    BoundsByPartition,
    CaptureEvidence,
    Partition,
    bounds_once,
    evidence_once,
    measure,
    probes,
    unmet,
)

#: What the unclean captures lost, from their probes and producers: first and last offset.
TRUE_LOSSES = {
    "unclean-0.8.2.2": {("ledger", 0): (74, 305), ("ledger", 1): (74, 305)},
    "unclean-3.9.1-info": {("ledger", 0): (68, 304), ("ledger", 1): (69, 304)},
}


@pytest.fixture(scope="module", params=capture_names())
def capture(request: pytest.FixtureRequest, unpacked: Unpacker) -> tuple[Path, CaptureEvidence, BoundsByPartition]:
    folder = unpacked(request.param)
    return folder, evidence_once(folder, False), bounds_once(folder, False)


Capture = tuple[Path, CaptureEvidence, BoundsByPartition]
Probed = tuple[Path, BoundsByPartition]


@pytest.fixture(scope="module", params=capture_names())
def probed(request: pytest.FixtureRequest, unpacked: Unpacker) -> Probed:
    """A capture, and its bounds with the probes given."""
    folder = unpacked(request.param)
    return folder, bounds_once(folder, True)


def test_every_probe_lies_within_the_bounds_and_their_width_is_what_came_in_three_checkpoint_intervals(
    capture: Capture,
) -> None:
    folder, _, bounds = capture
    result = measure(folder, bounds)
    print(f"{folder.name}: HW width median {result.median_width:g}, of three intervals {result.median_ratio:.2f}")
    assert result.outside == []
    assert result.inside > 300
    assert result.median_ratio <= 1.03


def test_with_the_probes_given_the_bounds_meet_at_each_of_them(probed: Probed) -> None:
    folder, bounds = probed
    assert measure(folder, bounds).outside == []
    assert unmet(folder, bounds) == []


def test_around_a_probe_the_bounds_carry_what_it_found(probed: Probed) -> None:
    """Up to its sending the offset was not above what a probe found, from its receiving on it was not below: proven at
    every instant, but where the offset may have fallen."""
    folder, bounds = probed
    lasting: dict[tuple[Partition, int], list[OffsetBounds]] = {}
    for partition, rows in bounds.items():
        for row in rows:
            if row.valid_from != row.valid_to:
                lasting.setdefault((partition, row.replica_id), []).append(row)
    carried = total = 0
    for probe in probes(folder):
        lower, upper = f"{probe.quantity}_lower", f"{probe.quantity}_upper"
        own = lasting.get((probe.partition, probe.replica_id), [])
        carried += getattr(as_of(own, probe.sent_at - 1), upper, None) == probe.offset
        carried += getattr(as_of(own, probe.received_at), lower, None) == probe.offset
        total += 2
    print(f"{folder.name}: {carried} of {total} ends of probes")
    assert carried >= 0.94 * total


def as_of(rows: list[OffsetBounds], instant: int) -> OffsetBounds | None:
    return next((r for r in rows if r.valid_from <= instant < (EVER_AFTER if r.valid_to is None else r.valid_to)), None)


def test_what_was_lost_is_found_and_nothing_else(capture: Capture) -> None:
    folder, evidence, bounds = capture
    found = {}
    for partition, facts in evidence.partitions.items():
        for loss in find_losses(facts, bounds[partition]):
            assert partition not in found
            found[partition] = loss
    expected = TRUE_LOSSES.get(folder.name, {})
    assert found.keys() == expected.keys()
    for partition, (first, last) in expected.items():
        loss = found[partition]
        assert (loss.cause, loss.previous_leader, loss.leader) == ("unclean_election", 1, 2)
        assert loss.lost_from_offset == first
        assert loss.lost_to_offset_lower is not None
        assert loss.lost_to_offset_upper is not None
        assert loss.lost_to_offset_lower <= last <= loss.lost_to_offset_upper
        assert loss.lost_count_lower >= 0.8 * (last - first + 1)
        kept = [(d.replica_id, d.from_offset, d.to_offset) for d in loss.diverging]
        assert kept == ([(1, 74, 289)] if folder.name == "unclean-0.8.2.2" else [])
