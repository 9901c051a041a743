"""What real clusters did right with their offsets stays right where all that one broker left behind is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.offsets.evidence import OffsetEvidence
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.offsets import judged_of
from tests.support.truth.offsets import CaptureEvidence, evidence_once

#: Lost by unclean elections, which both scenarios were made for; up to 0.10 the old leader's log then differs silently.
TRUE_FINDINGS = {
    "unclean-0.8.2.2": {"committed_records_lost", "replica_diverged_silently"},
    "unclean-3.9.1-info": {"committed_records_lost"},
}


def without(evidence: OffsetEvidence, broker: int) -> OffsetEvidence:
    return replace(
        evidence,
        observations=[seen for seen in evidence.observations if seen.replica_id != broker],
        events=[event for event in evidence.events if event.replica_id != broker],
        covered={replica: spans for replica, spans in evidence.covered.items() if replica != broker},
    )


@pytest.mark.parametrize("name", capture_names())
def test_a_broker_is_missing(unpacked: Unpacker, name: str) -> None:
    folder = unpacked(name)
    known = evidence_once(folder, True)
    for broker in (1, 3) if IS_HARD else (1 + 2 * (capture_names().index(name) % 2),):
        parts = {partition: without(evidence, broker) for partition, evidence in known.partitions.items()}
        said = judged_of(folder, CaptureEvidence(known.version, parts))
        accused = {finding.divergence_type for _, finding in said if finding.severity != "info"}
        assert accused <= TRUE_FINDINGS.get(name, set()), broker
