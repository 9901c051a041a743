"""Rows made of records stay where nothing of their file, and nothing else that they depend on, is another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake import maintenance
from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables.bronze import INGESTED_FILES, LOG_RECORDS
from ingest.lake.tables.events import STATE_CHANGE_EVENTS, ZNODE_CHANGES
from ingest.lake.tables.kept import (
    CLOCK_MARKS,
    CLOCKS,
    FILE_CONTROLLERS,
    FILE_JUMPS,
    KEPT_TABLES,
    MATCHED_REQUESTS,
    RECORD_COUNTS,
)
from reconstruct.clocks.spark.step import correcting
from reconstruct.engine import staging as staging_
from reconstruct.engine.staging import staging
from reconstruct.inputs import are_generations_the_same
from reconstruct.kept.last_run import versions
from reconstruct.kept.record_rows import OfRecords, RecordRows
from reconstruct.log_records import record_counts
from reconstruct.time.instants import HOUR_US
from tests.support.lakes.rows import append, at

LOG: Final = {"cluster_id": "c", "source_kind": "state_change_log"}


@pytest.fixture(autouse=True)
def _as_of_a_large_lake(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.ensure(KEPT_TABLES)
    monkeypatch.setattr(staging_, "IN_MEMORY_BYTES", -1)


def write(lake: Lake, file_id: str, records: int, ingested: float) -> None:
    """A file, as it was ingested then."""
    given = LOG | {"file_id": file_id}
    append(lake, INGESTED_FILES, [given | {"status": "ingested", "ingested_at": at(ingested)}])
    append(lake, LOG_RECORDS, [given | {"record_id": f"{file_id}{n}", "byte_offset": n} for n in range(records)])


def take_out(lake: Lake, file_id: str) -> None:
    for spec in (INGESTED_FILES, LOG_RECORDS):
        lake.delete(spec, f"file_id = '{file_id}'")


def counted(run: int) -> Callable[[DataFrame], DataFrame]:
    """How many records each file has, and which run counted them, in the columns of ``kept.file_jumps``."""

    def count(records: DataFrame) -> DataFrame:
        return records.groupBy("cluster_id", "file_id").agg(
            F.count("*").alias("jumps_back"),
            F.lit(run).cast("bigint").alias("far_jumps_back"),
            F.lit(None).cast("array<bigint>").alias("set_back"),
        )

    return count


@contextmanager
def a_run(
    lake: Lake, evidence: dict[str, int] | None, clocks: list[tuple[Any, ...]]
) -> Iterator[tuple[RecordRows, bool]]:
    """One run's rows, and whether its clocks are those of the last."""
    names = "cluster_id string, broker_id bigint, sequence bigint, from_us bigint, to_us bigint, correction_us bigint"
    with staging(lake, "run") as stage:
        rows = RecordRows(PinnedLake(lake), stage, evidence)
        yield rows, rows.is_the_same(CLOCKS, lake.spark.createDataFrame(clocks, names), correcting)


def marked(records: DataFrame) -> DataFrame:
    """A mark for each file, of as many records as it has, in the columns of ``kept.clock_marks``."""
    place = F.struct(F.lit(0).cast("bigint").alias("at_us"), F.lit("e").alias("evidence_id"))
    given = {"rule": F.lit("r"), "key": F.col("file_id"), "is_earlier": F.lit(True), "clock": F.lit(1).cast("bigint")}
    counts = records.groupBy("cluster_id", "file_id").agg(F.count("*").alias("marks"))
    return counts.withColumns({**given, "first": place, "last": place})


def test_what_came_and_what_went_is_known_though_older_files_are_deleted(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "FEWEST_FILES", 1)
    clock = ("c", 1, 0, None, None, None)
    for file_id in "abd":
        write(lake, file_id, 2, ingested=1)
    with a_run(lake, None, [clock]) as (rows, _):
        rows.keep([OfRecords(CLOCK_MARKS, marked)], rows.records(LOG_RECORDS))
        assert rows.differing(CLOCK_MARKS) is None
    evidence = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    lake.append(lake.read(CLOCK_MARKS).where("false"), CLOCK_MARKS)
    maintenance.maintain(lake, 0.0, lambda message: None, (CLOCK_MARKS,))
    take_out(lake, "b")
    take_out(lake, "d")
    write(lake, "b", 3, ingested=2)
    write(lake, "c", 1, ingested=2)
    with a_run(lake, evidence, [clock]) as (rows, _):
        rows.keep([OfRecords(CLOCK_MARKS, marked)], rows.records(LOG_RECORDS))
        found = rows.differing(CLOCK_MARKS)
        assert found is not None
        assert sorted((row["file_id"], row["marks"]) for row in found.collect()) == [
            ("b", 2),
            ("b", 3),
            ("c", 1),
            ("d", 2),
        ]
        names = rows.differing(CLOCK_MARKS, CLOCK_MARKS, made=lambda one, other: one.union(other).select("file_id"))
        assert names is not None
        assert sorted(row["file_id"] for row in names.collect()) == ["c", "d"], "of b there is one, as before"
        assert rows.differing(CLOCK_MARKS, are_others_the_same=False) is None
        assert not rows.is_any_written(ZNODE_CHANGES)
        assert rows.is_any_written(ZNODE_CHANGES, CLOCK_MARKS)


def test_of_files_that_are_new_all_rows_are_others(lake: Lake) -> None:
    clock = ("c", 1, 0, None, None, None)
    write(lake, "a", 2, ingested=1)
    with a_run(lake, None, [clock]) as (rows, _):
        rows.keep([OfRecords(CLOCK_MARKS, marked)], rows.records(LOG_RECORDS))
    evidence = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    write(lake, "b", 3, ingested=2)
    with a_run(lake, evidence, [clock]) as (rows, _):
        rows.keep([OfRecords(CLOCK_MARKS, marked)], rows.records(LOG_RECORDS))
        found = rows.differing(CLOCK_MARKS)
        assert found is not None
        assert [(row["file_id"], row["marks"]) for row in found.collect()] == [("b", 3)]


def test_records_that_a_cut_off_ingest_left_are_not_there_twice_once_their_file_is_known(lake: Lake) -> None:
    clock = ("c", 1, 0, None, None, None)
    wanted = [OfRecords(CLOCK_MARKS, marked), OfRecords(RECORD_COUNTS, record_counts)]
    left = [LOG | {"file_id": "b", "record_id": f"b{n}", "byte_offset": n} for n in range(2)]
    write(lake, "a", 2, ingested=1)
    append(lake, LOG_RECORDS, left)
    with a_run(lake, None, [clock]) as (rows, _):
        rows.keep(wanted, rows.records(LOG_RECORDS))
    evidence = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    lake.delete(LOG_RECORDS, "file_id = 'b'")
    write(lake, "b", 3, ingested=2)
    with a_run(lake, evidence, [clock]) as (rows, _):
        marks, counts = rows.keep(wanted, rows.records(LOG_RECORDS))
        assert sorted((row["file_id"], row["marks"]) for row in marks.collect()) == [("a", 2), ("b", 3)]
        assert sorted((row["file_id"], row["records_count"]) for row in counts.collect()) == [("a", 2), ("b", 3)]


def test_rows_of_files_that_are_new_gone_or_others_are_made_anew(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = ("c", 1, 0, None, None, None), ("c", 2, 0, None, None, 7)
    for file_id in "abd":
        write(lake, file_id, 2, ingested=1)

    def kept(run: int, evidence: dict[str, int] | None, *clocks: tuple[Any, ...]) -> dict[str, tuple[int, int]]:
        """Of each file its records, and the run that counted them."""
        with a_run(lake, evidence, list(clocks)) as (rows, are_clocks_the_same):
            wanted = [OfRecords(FILE_JUMPS, counted(run))]
            (found,) = rows.keep(wanted, rows.records(LOG_RECORDS), are_others_the_same=are_clocks_the_same)
            return {row["file_id"]: (row["jumps_back"], row["far_jumps_back"]) for row in found.collect()}

    assert kept(1, None, right) == {"a": (2, 1), "b": (2, 1), "d": (2, 1)}
    first = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    # b grows, c is new, d is gone; another broker's clock is known, and right
    take_out(lake, "b")
    take_out(lake, "d")
    write(lake, "b", 3, ingested=2)
    write(lake, "c", 1, ingested=2)
    second = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    assert kept(2, first, right, ("c", 9, 0, None, None, 0)) == {"a": (2, 1), "b": (3, 2), "c": (1, 2)}
    # one more file, of which nothing was known, where more files than these are not named
    write(lake, "e", 4, ingested=3)
    monkeypatch.setattr(staging_, "MOST_NAMED", 0)
    assert kept(3, second, right) == {"a": (2, 1), "b": (3, 2), "c": (1, 2), "e": (4, 3)}
    third = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    # times are corrected by another clock; and Delta has no such version any more
    assert {run for _, run in kept(4, third, right, wrong).values()} == {4}
    assert {
        run for _, run in kept(5, {INGESTED_FILES.full_name: 99, LOG_RECORDS.full_name: 99}, right, wrong).values()
    } == {5}


def test_rows_of_a_key_are_made_anew_where_a_file_that_changed_tells_or_told_of_it(lake: Lake) -> None:
    right, wrong = ("c", 1, 0, None, None, None), ("c", 2, 0, None, None, 7)
    slot = F.lit(0).cast("bigint")

    def kept(
        run: int, evidence: dict[str, int] | None, lines: dict[str, list[int | None]], clock: tuple[Any, ...] = right
    ) -> dict[int | None, tuple[int, int]]:
        """Of each controller its lines, and the run that counted them; ``lines``: the controllers of each file's."""

        def count(some: DataFrame) -> DataFrame:
            counts = [F.count("*").cast("int").alias("lines"), F.lit(run).alias("partitions")]
            found = some.groupBy("cluster_id", "controller_id", "time_slot").agg(*counts)
            return lake.read(MATCHED_REQUESTS).where("false").unionByName(found, allowMissingColumns=True)

        told = [(file_id, controller) for file_id, controllers in lines.items() for controller in controllers]
        lake.delete(STATE_CHANGE_EVENTS, "true")
        given = [{"cluster_id": "c", "file_id": file_id, "controller_id": controller} for file_id, controller in told]
        append(lake, STATE_CHANGE_EVENTS, given)
        with a_run(lake, evidence, [clock]) as (of_run, are_clocks_the_same):
            found = of_run.keep_of_keys(
                MATCHED_REQUESTS,
                count,
                of_run.records(STATE_CHANGE_EVENTS, made=lambda lines: lines.withColumn("time_slot", slot)),
                FILE_CONTROLLERS,
                whole=lambda some, _: some.unionByName(some.where("controller_id = 5").replace(5, 6, "controller_id")),
                are_others_the_same=are_clocks_the_same,
            )
            return {row["controller_id"]: (row["lines"], row["partitions"]) for row in found.collect()}

    for file_id in "abd":
        write(lake, file_id, 0, ingested=1)
    lines: dict[str, list[int | None]] = {"a": [1, 1, 6], "b": [1, 2, None], "d": [3, 4]}
    assert kept(1, None, lines) == {1: (3, 1), 2: (1, 1), 3: (1, 1), 4: (1, 1), 6: (1, 1), None: (1, 1)}
    first = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    # b grows: its last line, which was cut, is of another controller; c is new, d is gone
    take_out(lake, "b")
    take_out(lake, "d")
    write(lake, "b", 0, ingested=2)
    write(lake, "c", 0, ingested=2)
    lines = {"a": [1, 1, 6], "b": [2, 5, None, None], "c": [4]}
    second = {1: (2, 2), 2: (1, 2), 4: (1, 2), 5: (1, 2), 6: (1, 2), None: (2, 2)}  # 6 goes with 5
    assert kept(2, first, lines) == second
    evidence = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    # a file more, without lines
    write(lake, "e", 0, ingested=3)
    assert kept(3, evidence, lines) == second
    evidence = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    assert {run for _, run in kept(4, evidence, lines, wrong).values()} == {4}, "times are corrected by another clock"


def test_where_all_is_made_anew_nothing_of_what_was_kept_is_read(lake: Lake) -> None:
    clock = ("c", 1, 0, None, None, None)
    write(lake, "a", 2, ingested=1)
    with a_run(lake, None, [clock]):
        for path in Path(lake.path(CLOCKS)).glob("*.parquet"):
            path.unlink()
    with a_run(lake, None, [clock]) as (_, are_clocks_the_same):
        assert not are_clocks_the_same
    assert [tuple(row) for row in lake.read(CLOCKS).collect()] == [clock]


def test_of_a_small_lake_nothing_is_kept(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    write(lake, "a", 2, ingested=1)
    clock = ("c", 1, 0, None, None, None)
    with a_run(lake, None, [clock]) as (rows, _):
        rows.keep([OfRecords(FILE_JUMPS, counted(1))], rows.records(LOG_RECORDS))
        rows.forget()
    assert (lake.rows_count(CLOCKS), lake.rows_count(FILE_JUMPS)) == (1, 1)
    monkeypatch.setattr(staging_, "IN_MEMORY_BYTES", 1 << 30)
    evidence = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    with a_run(lake, evidence, [clock]) as (rows, are_clocks_the_same):
        (made,) = rows.keep([OfRecords(FILE_JUMPS, counted(2))], rows.records(LOG_RECORDS))
        assert [row["far_jumps_back"] for row in made.collect()] == [2]
        assert (rows.is_any_kept, are_clocks_the_same) == (False, False)
        rows.forget()
    assert (lake.rows_count(CLOCKS), lake.rows_count(FILE_JUMPS)) == (0, 0)


@pytest.mark.parametrize(
    ("began_us", "correction_us", "are_the_same"),
    [
        (HOUR_US, 0, False),  # a record of that hour may be of either
        (HOUR_US + 1, 0, True),
        (HOUR_US + 1, 5, False),
        (HOUR_US + 1, -5, False),
        (HOUR_US + 6, -5, True),
    ],
)
def test_a_cluster_that_began_again_behind_all_that_files_say_changes_nothing_of_these(
    lake: Lake, began_us: int, correction_us: int, are_the_same: bool
) -> None:
    far = 1 << 62
    counts = "cluster_id string, file_id string, hour bigint"
    clocks = lake.spark.createDataFrame([("c", correction_us), ("c", None)], "cluster_id string, correction_us bigint")

    def is_known(evidence: dict[str, int] | None, begins: list[int], files: str) -> bool:
        spans = [("c", start, end) for start, end in pairwise([-far, *begins, far])]
        with a_run(lake, evidence, [("c", 1, 0, None, None, None)]) as (rows, _):
            return are_generations_the_same(
                rows,
                lake.spark.createDataFrame(spans, "cluster_id string, begins_us bigint, ends_us bigint"),
                # of a new file any hour counts for nothing
                lake.spark.createDataFrame([("c", file_id, HOUR_US * (file_id != "a")) for file_id in files], counts),
                clocks,
            )

    write(lake, "a", 1, ingested=1)
    assert not is_known(None, [], "a")
    evidence = versions(lake, (INGESTED_FILES, LOG_RECORDS))
    write(lake, "b", 1, ingested=2)
    assert is_known(evidence, [], "ab")
    assert is_known(evidence, [began_us], "ab") is are_the_same
    # and it is known now
    assert is_known(evidence, [began_us], "ab")
