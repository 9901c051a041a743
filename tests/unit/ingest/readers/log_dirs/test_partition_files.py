"""Files of a partition's directory to rows: by name, by content, and the log end offset that follows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.lake.tables.bronze import LOG_SEGMENTS
from ingest.readers import paths
from ingest.readers.batches import kept_batches
from ingest.readers.log_dirs import names
from ingest.readers.log_dirs.partition_files import read
from ingest.readers.log_dirs.partition_metadata import partition_metadata
from ingest.readers.work import Kept
from tests.unit.ingest.readers.log_dirs.log_files import (
    BASE_TIMESTAMP_MS,
    assert_tiled,
    batch,
    item,
    kept,
    offset_index,
    producer_snapshot,
    rejected,
    segment,
)

FIRST = "00000000000000000000"
SECOND = "00000000000000000100"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{SECOND}.log", ("log_segment", 100, "")),
        (f"{SECOND}.index", ("offset_index", 100, "")),
        (f"{SECOND}.timeindex.deleted", ("time_index", 100, ".deleted")),
        (f"{SECOND}.txnindex.cleaned", ("transaction_index", 100, ".cleaned")),
        (f"{SECOND}.log.swap", ("log_segment", 100, ".swap")),
        (f"{SECOND}.snapshot", ("producer_snapshot", 100, "")),
        ("partition.metadata", ("partition_metadata", None, "")),
        ("leader-epoch-checkpoint", ("leader_epoch_checkpoint", None, "")),
        ("9223372036854775807".zfill(20) + ".log", ("log_segment", (1 << 63) - 1, "")),
        ("99999999999999999999.log", None),
        ("server.log", None),
        ("100.log", None),
        (f"{SECOND}.log.1", None),
        ("partition.metadata.tmp", None),
        ("٠" * 20 + ".log", None),
    ],
)
def test_names(name: str, expected: tuple[str, int | None, str] | None) -> None:
    assert names.partition_file(name) == expected


def test_a_segment_is_known_by_its_name_unless_it_is_text() -> None:
    where = ["data", "orders-0", f"{FIRST}.log"]
    assert names.recognise_segment(batch(0), where) == "log_segment"
    assert names.recognise_segment(b"", where) == "log_segment"
    assert names.recognise_segment(b"\0" * 100, where) == "log_segment"
    assert names.recognise_segment(b"[2026-11-21 00:00:00,000] INFO started\n", where) is None
    assert names.recognise_segment(b"", ["orders-0", f"{FIRST}.timeindex.gz"]) == "time_index"
    assert (
        names.recognise_segment(b"version: 0\ntopic_id: x", ["orders-0", "partition.metadata"]) == "partition_metadata"
    )
    assert names.recognise_segment(b"0\n0\n", ["orders-0", "leader-epoch-checkpoint"]) is None
    assert names.recognise_segment(b"x", []) is None
    assert names.file_name(f"a.tar.gz!data/orders-0/{FIRST}.log.gz") == f"{FIRST}.log"


def rows_of(kind: str, name: str, data: bytes, directory: str | None = "orders-7") -> list[Any]:
    where = item(kind, source_file=f"data/{directory}/{name}", directory=directory, end=len(data))
    rows = list(read(where, [data[:10], data[10:]]))
    assert_tiled(rows, len(data))
    for batch_ in kept_batches(LOG_SEGMENTS, where, [row for row in rows if isinstance(row, Kept)]):
        assert batch_.num_rows == 1
    return rows


def test_a_row_of_a_segment() -> None:
    data = segment(100, 3, epoch=2)
    (row,) = kept(rows_of("log_segment", f"{SECOND}.log", data, "a-b-7.0123456789abcdef0123456789abcdef-delete"))
    assert row["topic"] == "a-b"
    assert row["partition_id"] == 7
    assert row["directory"] == "a-b-7.0123456789abcdef0123456789abcdef-delete"
    assert (row["file_name"], row["file_kind"], row["base_offset"]) == (f"{SECOND}.log", "log_segment", 100)
    assert (row["is_read"], row["size_bytes"], row["valid_bytes"]) == (True, len(data), len(data))
    assert (row["first_offset"], row["next_offset"], row["last_leader_epoch"]) == (100, 103, 2)
    assert (row["max_timestamp"], row.get("modified_at")) == ((BASE_TIMESTAMP_MS + 102) * 1000, None)
    assert row["problem"] is None


def test_a_damaged_file_is_a_row_that_says_so() -> None:
    (row,) = kept(rows_of("log_segment", f"{FIRST}.log", b"\xff" * 50))
    assert (row["valid_bytes"], row["next_offset"]) == (0, 0)
    assert "50 bytes from byte 0 on are no part of the log" in row["problem"]
    (row,) = kept(rows_of("offset_index", f"{FIRST}.index", offset_index((5, 40)) + b"x"))
    assert (row["entries_count"], row["last_indexed_offset"]) == (1, 5)
    assert "no multiple" in row["problem"]
    (row,) = kept(rows_of("partition_metadata", "partition.metadata", b"nonsense"))
    assert (row["topic_id"], row["base_offset"]) == (None, None)
    assert "line 1 is no version" in row["problem"]


def test_every_kind_of_file_gives_a_row() -> None:
    (row,) = kept(rows_of("producer_snapshot", f"{SECOND}.snapshot", producer_snapshot(2)))
    assert (row["entries_count"], row["base_offset"], row["problem"]) == (2, 100, None)
    (row,) = kept(rows_of("time_index", f"{SECOND}.timeindex", b""))
    assert (row["entries_count"], row["size_bytes"]) == (0, 0)
    (row,) = kept(rows_of("transaction_index", f"{SECOND}.txnindex", b""))
    assert (row["file_kind"], row["problem"]) == ("transaction_index", None)


def test_a_file_of_no_known_partition_is_rejected_whole() -> None:
    ((line, reason),) = rejected(rows_of("log_segment", f"{FIRST}.log", batch(0), None))
    assert line == 1
    assert "which partition's" in reason
    ((_, reason),) = rejected(rows_of("log_segment", "renamed.log", batch(0)))
    assert "BASE_OFFSET.log" in reason


@settings(max_examples=200, deadline=None)
@given(
    data=st.one_of(st.binary(max_size=200), st.binary(max_size=60).map(lambda tail: batch(5, 2) + tail)),
    extension=st.sampled_from(sorted(names.KIND_OF_EXTENSION)),
    base=st.sampled_from([0, 5, (1 << 31) - 1, (1 << 63) - 1]),
)
def test_any_content_under_any_name_gives_a_row_that_a_table_can_hold(data: bytes, extension: str, base: int) -> None:
    (row,) = kept(rows_of(names.KIND_OF_EXTENSION[extension], f"{base:020}.{extension}", data))
    assert row["size_bytes"] == len(data)
    assert row["base_offset"] == base


def test_a_partition_number_beyond_32_bits_is_no_partition() -> None:
    assert paths.topic_partition("orders-2147483647") == ("orders", 2147483647)
    assert paths.topic_partition("orders-2147483648") is None
    assert rejected(rows_of("log_segment", f"{FIRST}.log", batch(0), "orders-2147483648"))


def test_equal_content_under_two_names_gives_two_record_ids() -> None:
    places = [rows_of("offset_index", f"{base}.index", b"")[0].place for base in (FIRST, SECOND)]
    assert places[0].data != places[1].data


def test_partition_metadata_as_kafka_reads_it() -> None:
    found = partition_metadata([b"version: 0\ntopic_id: ", b"xyAZ09-_xyAZ09-_xyAZ0w"])
    assert (found.topic_id, found.problem) == ("xyAZ09-_xyAZ09-_xyAZ0w", None)
    assert partition_metadata([b"version: 1\r\ntopic_id: xyAZ09-_xyAZ09-_xyAZ0w\r\n"]).problem is None
    for data, problem in (
        (b"", "line 1 is no version: ''"),
        (b"version: -1\ntopic_id: xyAZ09-_xyAZ09-_xyAZ0w", "version -1 of the file is not known: it begins at 0"),
        (b"version: 0\n", "line 2 is no topic id: ''"),
        (b"version: 0", "line 2 is no topic id: the file ends there"),
        (b"version: 0\ntopic_id: xyAZ09", "line 2 is no topic id: 'topic_id: xyAZ09'"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "the topic id is all zeros, which no topic has"),
    ):
        assert partition_metadata([data]).problem == problem
