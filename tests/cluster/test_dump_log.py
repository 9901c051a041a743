"""The recordings among the tests' data, record by record against the ``kafka-dump-log`` of their releases (of the next
patch that the lab has, where it has theirs no more), and their snapshots against their logs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from jobs.lab.machines.releases import BY_NAME
from tests import ROOT
from tests.cluster.conftest import require_jars
from tests.cluster.dump_log import differing_from_kafka

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

RECORDINGS: Final = tuple(sorted((ROOT / "tests" / "data").glob("kraft-*")))


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_every_record_and_snapshot_is_what_kafka_says(recording: Path) -> None:
    number = tuple(map(int, recording.name.split("-")[1].split(".")))
    release = min(one for one in BY_NAME.values() if one.number[:2] == number[:2] and one.number >= number)
    require_jars(release)
    records, _, differing = differing_from_kafka(release, sorted(recording.glob("broker-*")))
    assert records > 10
    assert differing == []
