"""Answers of brokers to ListOffsets: good lines are kept, bad ones named, and whose they are is found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.containers.storage import ListedFile
from ingest.files.attribution import Attributed, attribute
from ingest.files.inspection import inspect
from ingest.lake.tables.bronze import OFFSET_PROBES
from ingest.readers.batches import kept_batches
from ingest.readers.capture_lines.offset_probes import ProbeFacts, read
from ingest.readers.work import Kept, Place, Rejected, WorkItem
from ingest.run.planning import Action, Planned
from ingest.run.work_items import work_items

ITEM = WorkItem("/f", None, "f", "offset_probe", "c", None, "f", "f", 0)
GOOD: dict[str, Any] = {
    "sent_at": 1795232322495.5,
    "received_at": 1795232322585.3,
    "broker": 1,
    "replica_id": -1,
    "topic": "orders",
    "partition": 7,
    "offset": 42,
}


def line(**changes: Any) -> bytes:
    """An answer; what is changed to ``...`` is left out."""
    return json.dumps({key: value for key, value in (GOOD | changes).items() if value is not ...}).encode() + b"\n"


def read_all(data: bytes, item: WorkItem = ITEM) -> list[Kept | Rejected]:
    rows = list(read(item, [data]))
    assert sum(row.place.length for row in rows) == len(data)
    return rows


def reason(data: bytes, item: WorkItem = ITEM) -> str:
    (row,) = read_all(data, item)
    assert isinstance(row, Rejected), row
    return row.reason


class TestGoodLines:
    def test_an_answer_fills_its_columns(self) -> None:
        (row,) = read_all(line())
        assert row == Kept(
            Place(0, len(line()), 1, line()),
            {
                "broker_id": 1,
                "replica_id": -1,
                "partition_id": 7,
                "target_timestamp": -1,
                "isolation_level": 0,
                "error_code": 0,
                "sent_at": 1795232322495500,
                "received_at": 1795232322585300,
                "topic": "orders",
                "offset": 42,
            },
        )
        (batch,) = kept_batches(OFFSET_PROBES, ITEM, [row])
        assert (batch.num_rows, batch.column("broker_id").to_pylist()) == (1, [1])

    def test_a_line_says_what_was_asked_for(self) -> None:
        data = (
            line(timestamp=-2) + line(isolation_level=1) + line(error_code=6, offset=-1) + line(replica_id=-2, x=[{}])
        )
        rows = [row.values for row in read_all(data) if isinstance(row, Kept)]
        asked = [(row["target_timestamp"], row["isolation_level"], row["error_code"], row["offset"]) for row in rows]
        assert asked == [(-2, 0, 0, 42), (-1, 1, 0, 42), (-1, 0, 6, None), (-1, 0, 0, 42)]
        assert [row["replica_id"] for row in rows] == [-1, -1, -1, -2]

    def test_the_line_says_whose_it_is_before_the_file_does(self) -> None:
        item = replace(ITEM, broker_id=9)
        rows = read_all(line() + line(broker=...) + line(broker=None), item)
        assert [row.values["broker_id"] for row in rows if isinstance(row, Kept)] == [1, 9, 9]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{broken\n", "no JSON"),
        (b"[1]\n", "no JSON object"),
        (b"\n", "empty line"),
        (b"\0\0\0\0\n", "no JSON"),
        (line()[:60], "no JSON"),
        (b'{"captured_at":1,"path":"/brokers","mzxid":3}\n', "without partition, received_at, replica_id,"),
        (line(topic=...), "without topic"),
        (line(topic=5), "topic is no text"),
        (line(topic=""), "topic is no text"),
        (line(topic="\ud800"), "topic is no text"),
        (line(sent_at="yesterday"), "no instant"),
        (line(sent_at=1e300), "no instant"),
        (line(received_at=float("inf")), "no instant"),
        (line(received_at=True), "no instant"),
        (line(received_at=GOOD["sent_at"] - 1), "before it was asked for"),
        (line(broker=...), "nothing says which broker answered"),
        (line(broker="one"), "broker_id is not a number in range"),
        (line(partition=-1, replica_id=1 << 31), "partition_id, replica_id is not a number in range"),
        (line(partition=1.5), "partition_id is not"),
        (line(timestamp=1 << 63), "target_timestamp is not"),
        (line(offset=...), "without an offset"),
        (line(offset=-1), "without an offset"),
        (line(offset=True), "without an offset"),
        (line(offset=1 << 63), "without an offset"),
    ],
)
def test_a_bad_line_says_what_is_wrong_and_costs_no_other(data: bytes, says: str) -> None:
    assert says in reason(data)
    ended = data if data.endswith(b"\n") else data + b"\n"
    assert [type(row) for row in read_all(line() + ended + line())] == [Kept, Rejected, Kept]


def test_a_part_of_a_file_goes_on_where_the_last_ended() -> None:
    (row,) = read_all(line(), replace(ITEM, offset=500, line=8))
    assert row.place[:3] == (500, len(line()), 8)


class TestOwners:
    def owner(self, folder: Path, name: str, data: bytes, **options: Any) -> Attributed:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        (file,) = inspect(ListedFile(str(path), name))
        settings: dict[str, Any] = {"cluster_id": "c", "brokers": {}, "known_cluster": None} | options
        ((owner,), _) = attribute([file], **settings)
        assert (owner.file.kind, owner.file.status, owner.file.captured_at_ms) == ("offset_probe", "ingested", None)
        return owner

    def test_its_lines_say_whose_a_file_is_else_its_name_else_its_folder_else_the_user(self, tmp_path: Path) -> None:
        unnamed = line(broker=...)
        assert self.owner(tmp_path, "probes-3.jsonl", line()).broker_id == 1
        assert self.owner(tmp_path, "probes-3.jsonl", unnamed).broker_id == 3
        assert self.owner(tmp_path, "broker-4/answers", unnamed).broker_id == 4
        assert self.owner(tmp_path, "answers", unnamed).broker_id is None
        given = {str(tmp_path / "answers"): 5}
        assert self.owner(tmp_path, "answers", unnamed, brokers=given).broker_id == 5

    def test_a_file_of_several_brokers_is_of_none(self, tmp_path: Path) -> None:
        assert self.owner(tmp_path, "all.jsonl", line() + line(broker=2)).broker_id is None

    def test_a_prober_does_not_say_whose_the_files_beside_it_are(self, tmp_path: Path) -> None:
        (tmp_path / "probes-3.jsonl").write_bytes(line(broker=3))
        (tmp_path / "server.log").write_bytes(b"[2026-03-11 10:21:07,123] INFO starting (kafka.server.KafkaServer)\n")
        files = [file for path in sorted(tmp_path.iterdir()) for file in inspect(ListedFile(str(path), path.name))]
        found, _ = attribute(files, cluster_id="c", brokers={}, known_cluster=None)
        assert {owner.file.kind: owner.broker_id for owner in found} == {"offset_probe": 3, "server_log": None}

    def test_the_brokers_are_found_however_the_bytes_are_cut(self) -> None:
        data = line(broker=17) * 3
        for size in range(1, 80):
            facts = ProbeFacts("answers.jsonl")
            for start in range(0, len(data), size):
                facts.take(data[start : start + size])
            assert facts.result() == {"broker_id": 17}

    def test_a_file_that_grows_stays_the_same_and_its_unfinished_line_waits(self, tmp_path: Path) -> None:
        whole = line() + line(offset=43) + line(offset=44)
        first = self.owner(tmp_path, "probes-1.jsonl", whole[:-5])
        assert first.file.is_growing
        assert first.file.ingestible_bytes == len(line()) * 2
        later = self.owner(tmp_path, "probes-1.jsonl", whole)
        assert later.file_id == first.file_id
        entry = Planned(later, Action.GROWN, later.file_id)
        (item,) = work_items([entry], {entry.key: (len(line()), 2)}, {}, "UTC")
        (batch,) = kept_batches(
            OFFSET_PROBES, item, [r for r in read(item, [whole[item.offset :]]) if isinstance(r, Kept)]
        )
        assert batch.column("source_line").to_pylist() == [2, 3]
        assert batch.column("offset").to_pylist() == [43, 44]

    def test_a_first_line_that_is_not_finished_is_no_record_yet(self, tmp_path: Path) -> None:
        path = tmp_path / "probes-1.jsonl"
        path.write_bytes(line()[:-1])
        (file,) = inspect(ListedFile(str(path), path.name))
        assert (file.kind, file.status) == ("offset_probe", "empty")
        (final,) = inspect(ListedFile(str(path), path.name), is_final=True)
        assert (final.status, final.ingestible_bytes) == ("ingested", len(line()) - 1)
