"""R37 as the whole pipeline makes it, against what was done to the files and against the plain functions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.lake.delta import OfClusters
from ingest.lake.tables.bronze import (
    INGESTED_FILES,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_RECORDS,
    LOG_SEGMENTS,
    OFFSET_CHECKPOINTS,
    REJECTED_RECORDS,
    ZNODE_SNAPSHOTS,
)
from ingest.lake.tables.events import REPLICATION_EVENTS
from ingest.lake.tables.gold import DIVERGENCES, RECORDS_AT_RISK
from ingest.lake.tables.silver import ASSIGNMENT_TIMELINE, REPLICA_OFFSET_TIMELINE
from reconstruct.checkpoints.evidence import HIGH_WATERMARKS
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.checkpoints.spark.corners import checkpoint_copies, corner_entries
from reconstruct.checkpoints.spark.step import checkpoint_findings
from reconstruct.clocks.spark.step import marks_of
from reconstruct.cluster.spark.step import cluster_histories
from reconstruct.engine.folds import rows_of
from reconstruct.engine.rows import VERDICTS
from reconstruct.engine.staging import staging
from reconstruct.findings.verdicts import BROKEN, KEPT, Finding
from reconstruct.inputs import shared_inputs
from reconstruct.kept.record_rows import RecordRows
from reconstruct.log_records import record_counts
from reconstruct.offsets.spark.context import offset_contexts
from reconstruct.offsets.spark.observations import offset_observations
from reconstruct.time.instants import to_datetime
from tests.support.bends.checkpoint_files import BENDS
from tests.support.evidence.checkpoints import plain_checkpoints
from tests.support.lakes.offsets import BENT, BENT_BROKER, OffsetLake

DAMAGED: Final = "checkpoints-1.1.1"
#: A capture whose files nobody touched.
UNTOUCHED: Final = "quiet-0.8.2.2"
#: The clusters looked at here.
CLUSTERS: Final = (DAMAGED, UNTOUCHED, BENT)


@pytest.fixture(scope="module")
def captures(offset_lake: OffsetLake) -> dict[str, Path]:
    return {name: offset_lake.folders[name] for name in CLUSTERS}


@pytest.fixture(scope="module")
def made(spark: Any, offset_lake: OffsetLake) -> dict[str, Any]:
    lake = OfClusters(offset_lake.lake, [offset_lake.ids[name] for name in CLUSTERS])
    views = {history.cluster_id: history.view for history in cluster_histories(lake)}
    with staging(lake, "test") as stage:
        records = lake.read(LOG_RECORDS)
        of_records = marks_of(records), record_counts(records)
        inputs = shared_inputs(lake, stage, RecordRows(lake, stage), *of_records, {})
        files = lake.read(INGESTED_FILES)
        sightings = offset_observations(
            lake.read(OFFSET_CHECKPOINTS),
            lake.read(LEADER_EPOCH_CHECKPOINTS),
            lake.read(LOG_SEGMENTS),
            inputs.incarnations,
            inputs.statements,
        )
        contexts = offset_contexts(views, lake.read(REPLICATION_EVENTS), lake.read(ZNODE_SNAPSHOTS), files)
        found = checkpoint_findings(
            files,
            lake.read(REJECTED_RECORDS),
            sightings,
            lake.read(REPLICATION_EVENTS),
            inputs.key_records,
            lake.read(ASSIGNMENT_TIMELINE),
            lake.read(REPLICA_OFFSET_TIMELINE),
            contexts,
        ).persist()
        starts = spark.createDataFrame([], "cluster_id string, broker_id int, start_us bigint")
        kept = corner_entries(sightings, checkpoint_copies(files, starts)).where(f"kind = '{HIGH_WATERMARKS}'")
        names = offset_lake.names

        def named(frame: Any) -> list[dict[str, Any]]:
            return [row.asDict() | {"cluster_id": names[row["cluster_id"]]} for row in frame.collect()]

        return {
            "risks": named(lake.read(RECORDS_AT_RISK)),
            "findings": named(rows_of(found, DIVERGENCES)),
            "verdicts": named(found.where(f"table_name = '{VERDICTS}'").select("cluster_id", "verdict", "times")),
            "rejected": {row["record_id"] for row in lake.read(REJECTED_RECORDS).select("record_id").collect()},
            "entries": {row["cluster_id"]: row["count"] for row in named(kept.groupBy("cluster_id").count())},
            "all_entries": named(sightings.where(f"source = '{HIGH_WATERMARKS}'").groupBy("cluster_id").count()),
        }


def plain(folder: Path) -> list[Finding]:
    return [finding for seen in plain_checkpoints(folder) for finding in judge_checkpoints(seen).verdicts.findings]


def _words(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def test_the_missing_the_corrupt_and_the_wiped_are_found(made: dict[str, Any]) -> None:
    found = {row["broker_id"]: row for row in made["findings"] if row["cluster_id"] == DAMAGED}
    assert {broker: (row["divergence_type"], row["severity"]) for broker, row in found.items()} == {
        1: ("checkpoint_malformed", "error"),
        2: ("checkpoint_missing", "error"),
        3: ("log_directory_wiped", "error"),
    }
    assert "log directory /var/lib/kafka/broker-1/data failed" in found[1]["explanation"]
    assert "orders-0 fell from 61 to 0" in found[2]["explanation"]
    assert "orders-0 (354), orders-1 (355), orders-2 (355)" in found[3]["expected"]
    assert all(row["rule_id"] == "R37" and row["evidence"] for row in found.values())
    assert set(found[1]["evidence"]) & made["rejected"]


def test_a_capture_whose_files_nobody_touched_gives_none(made: dict[str, Any]) -> None:
    assert [row for row in made["findings"] if row["cluster_id"] == UNTOUCHED] == []
    counts: Counter[tuple[str, str]] = Counter()
    for row in made["verdicts"]:
        counts[row["cluster_id"], row["verdict"]] += row["times"]
    assert counts[UNTOUCHED, KEPT] > 100
    assert counts[UNTOUCHED, BROKEN] == 0
    assert counts[DAMAGED, BROKEN] == 3


@pytest.mark.parametrize("name", [DAMAGED, UNTOUCHED, BENT])
def test_the_rows_are_those_of_the_plain_functions(made: dict[str, Any], captures: dict[str, Path], name: str) -> None:
    """Though entries that only rise are left out before Spark's fold."""
    rows = [
        (row["divergence_type"], row["severity"], row["broker_id"], row["detected_at"].timestamp(), row["observed"])
        for row in made["findings"]
        if row["cluster_id"] == name
    ]
    expected = [
        (f.divergence_type, f.severity, f.broker_id, to_datetime(f.at).timestamp(), f.observed)
        for f in plain(captures[name])
    ]
    assert _words(rows) == _words(expected)
    assert {row["explanation"] for row in made["findings"] if row["cluster_id"] == name} == {
        finding.explanation for finding in plain(captures[name])
    }


def test_bent_files_are_named_after_ingest(made: dict[str, Any]) -> None:
    named = {row["divergence_type"] for row in made["findings"] if row["cluster_id"] == BENT}
    assert named >= {divergence_type for _, divergence_type in BENDS.values()}
    assert {row["broker_id"] for row in made["findings"] if row["cluster_id"] == BENT} == {BENT_BROKER}
    (zero,) = [row for row in made["findings"] if row["divergence_type"] == "checkpoint_zero"]
    assert zero["topic"] is not None
    assert zero["replica_id"] == BENT_BROKER


def test_what_is_given_to_a_fold_does_not_grow_with_the_copies(made: dict[str, Any]) -> None:
    every = {row["cluster_id"]: row["count"] for row in made["all_entries"]}
    assert made["entries"][UNTOUCHED] < every[UNTOUCHED] / 5


def test_what_the_death_of_each_leader_would_cost(made: dict[str, Any]) -> None:
    of_partition: dict[tuple[str, str, int], list[Any]] = {}
    for row in sorted(made["risks"], key=lambda row: row["sequence"]):
        of_partition.setdefault((row["cluster_id"], row["topic"], row["partition_id"]), []).append(row)
    assert {name for name, _, _ in of_partition} == {DAMAGED, UNTOUCHED, BENT}
    for (name, _, _), rows in of_partition.items():
        assert [row["sequence"] for row in rows] == list(range(len(rows)))
        assert all(before["valid_to"] == after["valid_from"] for before, after in pairwise(rows))
        truncation = {"to_high_watermark"} if name == UNTOUCHED else {"by_leader_epoch"}
        assert {row["truncation"] for row in rows} == truncation
        assert all(row["next_leader"] in row["isr"] for row in rows if row["next_leader"] is not None)
        assert all(row["worst_replica"] not in row["isr"] for row in rows if row["worst_replica"] is not None)
    # while broker 2 was down, it was the one out of sync; its log was as long as when it was killed
    out_of_sync = [row for row in of_partition[DAMAGED, "orders", 0] if row["isr"] and 2 not in row["isr"]]
    assert {row["worst_replica"] for row in out_of_sync} <= {2, None}
    assert all(row["next_leader"] is not None and row["evidence"] for row in of_partition[DAMAGED, "orders", 0][1:-1])
