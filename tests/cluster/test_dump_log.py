"""The recordings among the tests' data, record by record against the ``kafka-dump-log`` of their releases (of the next
patch that the lab has, where it has theirs no more), what each record made against the image of the release's own
classes, and their snapshots against their logs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from jobs.lab.machines.releases import BY_NAME, Release
from tests import ROOT
from tests.cluster.conftest import require_jars
from tests.cluster.dump_log import differing_from_kafka
from tests.cluster.kafka_image import differing_from_image

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

RECORDINGS: Final = tuple(sorted((ROOT / "tests" / "data").glob("kraft-*")))


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_every_record_and_snapshot_is_what_kafka_says(recording: Path) -> None:
    records, _, differing = differing_from_kafka(_release(recording), _nodes(recording))
    assert records > 10
    assert differing == []


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_what_each_record_made_is_what_kafka_s_image_has(recording: Path) -> None:
    states, differing = differing_from_image(_release(recording), _nodes(recording))
    assert states > 3
    assert differing == []


def _nodes(recording: Path) -> list[Path]:
    return sorted(path.parent for path in recording.glob(f"broker-*/{METADATA_DIRECTORY}"))


def _release(recording: Path) -> Release:
    number = tuple(map(int, recording.name.split("-")[1].split(".")))
    release = min(one for one in BY_NAME.values() if one.number[:2] == number[:2] and one.number >= number)
    require_jars(release)
    return release
