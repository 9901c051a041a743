"""What the lab recorded on releases that no capture is of: all that the cluster did is told, nobody is accused.

``tests/data/releases`` has one scenario of each, truth included, as ``tests/support/captures/packing.py`` packs them;
``make test-cluster`` plays them anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from jobs.lab.machines.releases import BY_NAME
from jobs.lab.play import Played
from jobs.lab.scenarios.catalogue import SCENARIOS
from tests import ROOT
from tests.bends.test_losses import TRIES
from tests.cluster.measuring import measure_played
from tests.cluster.test_scenarios import problems
from tests.support.bends.faults.drafts import Site
from tests.support.bends.faults.measure import KINDS, Result, findings_of, kind_name, outcome
from tests.support.bends.losses import tried
from tests.support.captures.packed import extract
from tests.support.captures.text import CaptureText

PACKS: Final = sorted((ROOT / "tests" / "data" / "releases").glob("*.tar.xz"))
#: By recording: kinds and places of faults that were once missed.
_ONCE_MISSED: Final = {
    "deletion_dead_broker-2.0.1": (
        ("update_metadata_not_sent", "broker-2/logs/state-change.log:32 to 2"),  # soon after its log began
        ("update_metadata_not_sent", "broker-2/logs/state-change.log:133 to 1"),  # its cache lost the partition later
    ),
    "deletion_dead_broker-2.3.1": (
        ("update_metadata_not_sent", "broker-3/logs/state-change.log:117 to 1"),  # right before its topic was deleted
    ),
    "reassignment-3.3.2": (
        ("reassignment_removes_first", "broker-1/logs/state-change.log:93: new [1], old [2, 3]"),  # another follows
    ),
    "zombie-0.11.0.3": (("dead_leader", "version 1"),),  # paused, and wrote again soon
}


@pytest.fixture(params=PACKS, ids=lambda pack: pack.name.removesuffix(".tar.xz"))
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of one recording."""
    return extract(request.param, tmp_path)


def test_what_was_recorded_tells_what_the_cluster_did(recording: Path) -> None:
    scenario, version = recording.name.rsplit("-", 1)
    played = Played(SCENARIOS[scenario.replace("_", "-")], BY_NAME[version], recording, recording, None)
    assert problems(measure_played(played)) == []


def test_a_loss_of_it_accuses_nobody(recording: Path) -> None:
    text = CaptureText.read(recording)
    assert [str(error) for error in tried(recording.name, text, range(TRIES))] == []


@pytest.mark.parametrize("name", _ONCE_MISSED)
def test_a_fault_that_was_once_missed_is_found(name: str, tmp_path: Path) -> None:
    pack = next(pack for pack in PACKS if pack.name == f"{name}.tar.xz")
    site = Site.read(name, CaptureText.read(extract(pack, tmp_path)))
    for kind, place in _ONCE_MISSED[name]:
        (of_kind,) = (faults for faults in KINDS if kind_name(faults) == kind)
        own = [fault for fault in of_kind(site) if fault.note == place]
        assert own, f"{kind}: {place} is no place of {name}"
        assert {outcome(site, fault, findings_of(site.plain)).result for fault in own} == {Result.FOUND}, place
