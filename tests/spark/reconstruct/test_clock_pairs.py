"""Pairs of marks of which one came or went are those that all marks make."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.plans import union
from ingest.lake.tables.bronze import INGESTED_FILES
from ingest.lake.tables.events import ZNODE_CHANGES
from ingest.lake.tables.kept import CLOCK_MARKS, KEPT_TABLES
from reconstruct.clocks.spark.evidence import causal_pairs, tied, written_marks
from reconstruct.engine import staging as staging_
from reconstruct.inputs import clock_pairs
from reconstruct.kept.last_run import versions
from tests.spark.reconstruct.test_record_rows import a_run, write
from tests.support.lakes.rows import append, at

CLOCK = ("c", 1, 0, None, None, None)


def test_a_write_that_came_or_went_makes_and_unmakes_its_pair(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.ensure(KEPT_TABLES)
    monkeypatch.setattr(staging_, "IN_MEMORY_BYTES", -1)
    state = '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":3,"isr":[1]}'
    path = "/brokers/topics/t/partitions/0/state"
    row: dict[str, Any] = {"cluster_id": "c", "path": path, "change": "written", "data": state, "czxid": 1, "mzxid": 2}
    append(lake, ZNODE_CHANGES, [row | {"version": 1, "changed_at": at(5), "evidence": ["w"]}])
    wrote = lake.read(ZNODE_CHANGES).localCheckpoint()
    lake.delete(ZNODE_CHANGES, "true")
    write(lake, "a", 1, ingested=1)
    told = written_marks(wrote).withColumns(
        {"file_id": F.lit("a"), "is_earlier": ~F.col("is_earlier"), "clock": F.lit(1).cast("bigint")}
    )
    lake.append(told, CLOCK_MARKS)
    evidence = None
    found = []
    for now in (None, wrote, None):
        with a_run(lake, evidence, [CLOCK]) as (rows, _):
            lake.overwrite(wrote.where("false") if now is None else now, ZNODE_CHANGES)
            marks = lake.read(CLOCK_MARKS)
            pairs = clock_pairs(lake, rows, marks, {}).collect()
            all_pairs = causal_pairs(tied(union([marks, written_marks(lake.read(ZNODE_CHANGES))]))).collect()
        assert sorted(map(str, pairs)) == sorted(map(str, all_pairs))
        found.append(len(pairs))
        evidence = versions(lake, (INGESTED_FILES,))
    assert found[0] == found[2] == 0 < found[1]
