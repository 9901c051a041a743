"""The merged state-change logs, beside what Kafka's own StateChangeLogMerger (0.8.2.2) makes of the same files."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from dashboards.texts.merged_lines import Selection, merged_lines
from jobs.lab.machines.releases import BY_NAME, kafka_jars
from jobs.session.java import find_java
from tests.support.lakes.offsets import OffsetLake

CAPTURE = "unclean-0.8.2.2"
NOON = datetime(2026, 11, 21, 3, 27, 40, tzinfo=UTC)


@pytest.fixture(scope="module")
def merger(offset_lake: OffsetLake):
    java = find_java()
    jars = os.pathsep.join(map(str, kafka_jars(java, BY_NAME["0.8.2.2"])))
    logs = ",".join(str(path) for path in sorted(offset_lake.folders[CAPTURE].glob("broker-*/logs/state-change.log")))

    def merged(*options: str) -> list[str]:
        command = [
            java,
            "-Duser.timezone=UTC",
            "-cp",
            jars,
            "kafka.tools.StateChangeLogMerger",
            "--logs",
            logs,
            *options,
        ]
        return subprocess.run(command, capture_output=True, check=True, text=True, timeout=120).stdout.splitlines()

    return merged


def ours(lake: OffsetLake, **selection: object) -> list[str]:
    rows = merged_lines(lake.lake, Selection(lake.ids[CAPTURE], **selection)).collect()  # type: ignore[arg-type]
    return [row.text.partition("\n")[0] for row in rows]


@pytest.mark.parametrize(
    ("options", "selection"),
    [
        ((), {}),
        (("--topic", "ledger", "--partitions", "0"), {"topic": "ledger", "partitions": (0,)}),
        (
            ("--topic", "safe", "--start-time", "2026-11-21 03:27:40,000", "--end-time", "2026-11-21 03:28:00,000"),
            {"topic": "safe", "start": NOON, "end": NOON + timedelta(seconds=20)},
        ),
    ],
)
def test_all_that_the_merger_prints_is_there_in_its_order(offset_lake: OffsetLake, merger, options, selection):
    theirs, lines = merger(*options), ours(offset_lake, **selection)
    assert len(theirs) > 20
    wanted = set(theirs)
    assert sorted(line for line in lines if line in wanted) == sorted(theirs)
    # times of one millisecond may stand in any order, in theirs too
    assert [line[:25] for line in lines if line in wanted] == [line[:25] for line in theirs]


def test_files_are_chosen_by_name_and_clocks_are_corrected(offset_lake: OffsetLake):
    everything = ours(offset_lake)
    of_one = ours(offset_lake, logs=("broker-1/logs/state-change.log",))
    assert 0 < len(of_one) < len(everything)
    assert of_one == ours(offset_lake, logs_regex=r"broker-1/.*state-change")
    assert sorted(ours(offset_lake, is_corrected=True)) == sorted(everything)
