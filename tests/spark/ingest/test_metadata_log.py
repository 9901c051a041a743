"""The folder of a KRaft node, ingested as it grows: each record once, whose it is, and nothing lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import (
    INGESTED_FILES,
    METADATA_RECORDS,
    METADATA_SNAPSHOTS,
    QUORUM_STATES,
    REJECTED_RECORDS,
)
from ingest.readers.metadata_log.framing import BatchFramer
from ingest.readers.metadata_log.records import records_of
from ingest.run.pipeline import IngestOptions, ingest_paths
from jobs.session.progress import silent
from tests import ROOT

PLAYED = ROOT / "tests" / "data" / "kraft-4.1.0" / "broker-1"
REASSIGNED = ROOT / "tests" / "data" / "kraft-4.1.0-reassignment" / "broker-1"
SEGMENT = Path("__cluster_metadata-0", "00000000000000000000.log")


def test_a_metadata_log_is_taken_as_it_grows(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "broker-1"
    shutil.copytree(PLAYED, folder)
    whole = (PLAYED / SEGMENT).read_bytes()
    (folder / SEGMENT).write_bytes(whole[: len(whole) // 2])
    ingest_paths(lake, [str(tmp_path / "broker-1")], IngestOptions(), silent)
    (folder / SEGMENT).write_bytes(whole)
    ingest_paths(lake, [str(tmp_path / "broker-1")], IngestOptions(), silent)
    rows = lake.read(METADATA_RECORDS).orderBy("offset").collect()
    assert {(row["cluster_id"], row["broker_id"]) for row in rows} == {("kraft-of-a-test-0000AA", 1)}
    assert [row["offset"] for row in rows[1:]] == [row["last_offset"] + 1 for row in rows[:-1]]
    assert (rows[0]["offset"], rows[-1]["last_offset"]) == (0, 107)
    assert {row["problem"] for row in rows} == {None}
    elected = [json.loads(row["fields"]) for row in rows if row["record_type"] == "PartitionChangeRecord"]
    assert any(change.get("leader") not in (None, 3) and 3 not in change.get("isr", [3]) for change in elected)
    assert rows[0]["appended_at"] < rows[-1]["appended_at"]
    snapshots = lake.read(METADATA_SNAPSHOTS).groupBy("snapshot_end_offset", "snapshot_epoch").count().collect()
    assert sorted(map(tuple, snapshots)) == [(42, 1, 18), (106, 1, 17)]
    (state,) = lake.read(QUORUM_STATES).select("leader_id", "leader_epoch", "voter_ids").collect()
    assert (state["leader_id"], state["leader_epoch"], list(state["voter_ids"])) == (1, 1, [1])
    assert lake.read(REJECTED_RECORDS).count() == 0
    files = {row["source_kind"]: row["status"] for row in lake.read(INGESTED_FILES).collect()}
    assert files["metadata_log"] == files["quorum_state"] == files["meta_properties"] == "ingested"


def test_copies_that_ended_anywhere_give_the_rows_of_the_whole_log(lake: Lake, tmp_path: Path) -> None:
    """Reading goes on at a run of NoOps, which may go on, or behind a batch of several records: none of them but the
    first is where a batch begins."""
    whole = (PLAYED / SEGMENT).read_bytes()
    framer = BatchFramer(0, 1)
    batches = [*framer.take(whole), *framer.finish()]
    several = [batch.offset + batch.length for batch in batches if len(list(records_of(batch.data))) > 1]
    within_a_run = batches[41].offset
    for name, sizes in (("at once", []), ("grown", [several[0], within_a_run + 10, several[-1]])):
        log = tmp_path / name / SEGMENT
        log.parent.mkdir(parents=True)
        for size in (*sizes, len(whole)):
            log.write_bytes(whole[:size])
            ingest_paths(lake, [str(tmp_path / name)], IngestOptions(cluster_id=name), silent)
    columns = ("offset", "last_offset", "record_type", "byte_offset", "byte_length", "source_line", "fields")
    rows = lake.read(METADATA_RECORDS).orderBy("offset")
    at_once, grown = (
        rows.where(F.col("cluster_id") == name).select(*columns).collect() for name in ("at once", "grown")
    )
    assert at_once == grown
    assert (at_once[0]["offset"], at_once[-1]["last_offset"]) == (0, 107)
    (run,) = (row for row in at_once if row["byte_offset"] < within_a_run < row["byte_offset"] + row["byte_length"])
    assert run["record_type"] == "NoOpRecord"
    assert lake.read(REJECTED_RECORDS).count() == 0


def test_a_quorum_with_the_id_of_one_that_the_lake_has_is_another_cluster_in_every_run(
    lake: Lake, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(PLAYED, first)
    shutil.copytree(REASSIGNED, second)
    shutil.copy(PLAYED / "meta.properties", second)
    whole = (second / SEGMENT).read_bytes()
    (second / SEGMENT).write_bytes(whole[: len(whole) // 2])
    ingest_paths(lake, [str(first)], IngestOptions(), silent)
    ingest_paths(lake, [str(second)], IngestOptions(), silent)
    (second / SEGMENT).write_bytes(whole)
    for path in (second, tmp_path):
        report = ingest_paths(lake, [str(path)], IngestOptions(), silent)
        assert any("state the cluster id kraft-of-a-test-0000AA" in warning for warning in report.warnings)
    rows = lake.read(METADATA_RECORDS).orderBy("cluster_id", "offset").collect()
    of_each = {id_: [row for row in rows if row["cluster_id"] == id_] for id_ in {row["cluster_id"] for row in rows}}
    own, other = sorted(of_each)
    assert (own, other.removeprefix(own)[:1]) == ("kraft-of-a-test-0000AA", "-")
    for found in of_each.values():
        assert found[0]["offset"] == 0
        assert [row["offset"] for row in found[1:]] == [row["last_offset"] + 1 for row in found[:-1]]
    files = lake.read(INGESTED_FILES).where("status = 'ingested'").select("cluster_id", "source_kind").collect()
    assert sorted(id_ for id_, kind in files if kind == "metadata_log") == [own, other]
    assert sorted(id_ for id_, kind in files if kind == "meta_properties") == [own, other]
