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
from tests.support.bends.losses import tried
from tests.support.captures.packed import extract
from tests.support.captures.text import CaptureText

PACKS: Final = sorted((ROOT / "tests" / "data" / "releases").glob("*.tar.xz"))


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
