"""The bounds against real clusters: every probe of every capture lies within what its files and logs prove."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconstruct.history.offset_losses import find_losses
from tests.support.captures import Unpacker, capture_names, unpacked
from tests.support.offset_truth import BoundsByPartition, CaptureEvidence, bounds_of, measure, probes, read_evidence

__all__ = ["unpacked"]

#: What the unclean captures lost, from their probes and producers: first and last offset.
TRUE_LOSSES = {
    "unclean-0.8.2.2": {("ledger", 0): (74, 305), ("ledger", 1): (74, 305)},
    "unclean-3.9.1-info": {("ledger", 0): (68, 304), ("ledger", 1): (69, 304)},
}


@pytest.fixture(scope="module", params=capture_names())
def capture(request: pytest.FixtureRequest, unpacked: Unpacker) -> tuple[Path, CaptureEvidence, BoundsByPartition]:
    folder = unpacked(request.param)
    evidence = read_evidence(folder)
    return folder, evidence, bounds_of(evidence)


Capture = tuple[Path, CaptureEvidence, BoundsByPartition]


def test_every_probe_lies_within_the_bounds_and_their_width_is_what_came_in_three_checkpoint_intervals(
    capture: Capture,
) -> None:
    folder, _, bounds = capture
    result = measure(folder, bounds)
    print(f"{folder.name}: HW width median {result.median_width:g}, of three intervals {result.median_ratio:.2f}")
    assert result.outside == []
    assert result.inside > 300
    assert result.median_ratio <= 1.1


def test_with_the_probes_given_the_bounds_meet_at_them(unpacked: Unpacker) -> None:
    """Up to its sending a high watermark was not above what a probe found, from its receiving on it was not below."""
    folder = unpacked("failover-3.9.1")
    bounds = bounds_of(read_evidence(folder, with_probes=True))
    assert measure(folder, bounds).outside == []
    met = total = 0
    for probe in probes(folder):
        if probe.quantity == "high_watermark":
            own = [row for row in bounds[probe.partition] if row.replica_id == probe.replica_id]
            before = next((row for row in own if row.valid_to == probe.sent_at), None)
            after = next((row for row in own if row.valid_from == probe.received_at), None)
            total += 1
            met += (
                before is None
                or after is None
                or (before.high_watermark_upper, after.high_watermark_lower) == (probe.offset, probe.offset)
            )
    assert met >= 0.99 * total


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
