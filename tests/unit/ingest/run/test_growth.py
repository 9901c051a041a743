"""Files as they grow, and as more becomes known of them: what a run reads, and what it takes the place of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException

from ingest.containers import contents
from ingest.containers.storage import ListedFile
from ingest.files.attribution import UNKNOWN_CLUSTER, Attributed, attribute
from ingest.files.inspected import Inspected
from ingest.files.inspection import inspect
from ingest.readers.identity import log_file_id
from ingest.readers.lines import blocks
from ingest.readers.sources import SOURCE_OF_KIND
from ingest.readers.work import Kept, Rejected, WorkItem
from ingest.run import following
from ingest.run.accounting import IngestError
from ingest.run.planning import Action, Planned, StoredFile
from ingest.run.superseding import earlier_ids, prefixes, superseded
from ingest.run.work_items import work_items
from tests.support.files import jute

CLUSTER = "C" * 22
#: Of the first bytes of the file that the earlier states below are of.
HASHES = {("/in/name.log", None, 10): "ten"}
LINE = b"[2026-03-11 10:21:07,123] INFO [Controller id=4] Ready (kafka.controller.KafkaController)\n"


def owner_of(path: Path, *, broker_id: int | None = None) -> Attributed:
    (file,) = inspect(ListedFile(str(path), path.name))
    ((owner,), _) = attribute([file], cluster_id=CLUSTER, brokers={}, known_cluster=None)
    return owner if broker_id is None else replace(owner, broker_id=broker_id)


def items_of(owner: Attributed, resumed: tuple[int, int] = (0, 1)) -> list[WorkItem]:
    entry = Planned(owner, Action.NEW, owner.file_id)
    return work_items([entry], {entry.key: resumed}, {}, "UTC")


def read(item: WorkItem) -> list[Kept | Rejected]:
    reader = SOURCE_OF_KIND[item.kind].read
    assert reader is not None
    return [
        row
        for content in contents(item.location, item.offset)
        for row in reader(item, blocks(content.stream, item.byte_count))
    ]


@pytest.mark.parametrize("name", ["00000000000000000042.log", "00000000000000000042.index"])
def test_an_empty_file_of_a_partition_is_a_record(tmp_path: Path, name: str) -> None:
    path = tmp_path / "orders-0" / name
    path.parent.mkdir()
    path.write_bytes(b"")
    (item,) = items_of(owner_of(path))
    (row,) = read(item)
    assert isinstance(row, Kept)
    assert (row.place.length, row.values["base_offset"], row.values["problem"]) == (0, 42, None)
    assert row.values.get("next_offset") == (42 if name.endswith(".log") else None)


def test_a_transaction_log_taken_in_two_parts_gives_its_records_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.1"
    creates = [jute.transaction(zxid, 1, jute.create(f"/brokers/{zxid}", "{}")) for zxid in range(1, 5)]
    whole = jute.log(*creates, tail=bytes(64))
    path.write_bytes(whole)
    owner = owner_of(path)
    expected = read(items_of(owner)[0])
    assert len(expected) == 4
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        first = owner_of(path)
        before = read(items_of(first)[0]) if first.file.status == "ingested" and first.file.is_growing else []
        if before:
            assert first.file_id == owner.file_id
        last = before[-1].place if before else None
        path.write_bytes(whole)
        resumed = (last.offset + last.length, last.line + 1) if last else (0, 1)
        after = [row for item in items_of(owner, resumed) for row in read(item)]
        assert [*before, *after] == expected, f"cut at byte {cut}"


@pytest.mark.parametrize(
    ("lines", "is_interleaved"),
    [
        ([("out", "F")], False),
        ([("out", "F"), ("err", "F")], True),
    ],
)
def test_a_log_with_two_channels_is_interleaved(
    tmp_path: Path, lines: list[tuple[str, str]], is_interleaved: bool
) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(
        b"".join(f"2026-03-11T10:21:07.1Z std{channel} {mark} ".encode() + LINE for channel, mark in lines)
    )
    assert owner_of(path).file.is_interleaved is is_interleaved


def test_a_file_of_several_processes_belongs_to_no_broker_of_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "broker-4" / "compose.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(b"kafka-%d | " % broker + LINE.replace(b"4", b"%d" % broker) for broker in (1, 2)))
    owner = owner_of(path)
    assert (owner.broker_id, owner.file.streams) == (None, {"kafka-1": 1, "kafka-2": 2})


def test_a_file_that_is_gone_since_it_was_listed_is_none(tmp_path: Path) -> None:
    assert list(inspect(ListedFile(str(tmp_path / "server.log.9"), "server.log.9"))) == []


@pytest.mark.parametrize(
    "refusal", [IngestError("changed while it was read"), PythonException("\nTraceback:\nFileNotFoundError: log.1\n")]
)
def test_a_file_that_changes_or_goes_away_while_it_is_followed_is_looked_at_again(refusal: Exception) -> None:
    refusals = iter([refusal])
    said: list[str] = []

    class Changing:
        def run(self) -> str:
            for error in refusals:
                raise error
            return "done"

    assert following._patiently(Changing(), said.append) == "done"  # type: ignore[arg-type, comparison-overlap]
    assert said == [str(refusal).strip().splitlines()[-1]]


class TestEarlierStates:
    """What the lake holds of ``name.log``, 10 bytes of hash ``ten``, beside a file of 20 bytes that begins so."""

    def planned(self, action: Action = Action.NEW, **values: Any) -> list[Planned]:
        known: dict[str, Any] = {
            "location": "/in/name.log",
            "source_file": "name.log",
            "member": None,
            "compression": "none",
            "kind": "server_log",
            "status": "ingested",
            "size_bytes": 20,
            "content_hash": "twenty",
            "complete_bytes": 20,
            "complete_hash": "twenty",
            "first_line": "first",
        }
        file = Inspected(**(known | values))
        owner = Attributed(file, CLUSTER, 1, log_file_id(CLUSTER, 1, b"first"))
        return [Planned(owner, action, owner.file_id)]

    def stored(self, **values: Any) -> StoredFile:
        known: dict[str, Any] = {
            "cluster_id": UNKNOWN_CLUSTER,
            "file_id": "held",
            "broker_id": None,
            "kind": "server_log",
            "source_file": "name.log",
            "status": "ingested",
            "length": 10,
            "content_hash": "ten",
        }
        return StoredFile(**(known | values))

    @pytest.mark.parametrize(
        "held",
        [
            {},
            {"cluster_id": CLUSTER},
            {"broker_id": 1},
            {"cluster_id": "unknown-0123"},
            {"kind": "unrecognised", "status": "rejected"},
            {"kind": "unrecognised", "status": "empty", "length": 0, "content_hash": None},
            {"source_file": "other", "file_id": log_file_id(UNKNOWN_CLUSTER, None, b"first")},
        ],
    )
    def test_what_was_known_by_less_is_replaced(self, held: dict[str, Any]) -> None:
        row = self.stored(**held)
        assert superseded(self.planned(), [row], HASHES) == [row]

    @pytest.mark.parametrize(
        "held",
        [
            {"cluster_id": "D" * 22},
            {"broker_id": 2},
            {"content_hash": "other"},
            {"source_file": "other"},
            {"cluster_id": CLUSTER, "file_id": log_file_id(CLUSTER, 1, b"first")},
        ],
    )
    def test_other_files_are_left_alone(self, held: dict[str, Any]) -> None:
        assert superseded(self.planned(), [self.stored(**held)], HASHES) == []

    def test_only_a_file_that_is_new_takes_the_place_of_another(self) -> None:
        for action in (Action.KNOWN, Action.GROWN, Action.FORK):
            assert superseded(self.planned(action), [self.stored()], HASHES) == []

    def test_a_file_that_is_still_there_is_no_earlier_state(self) -> None:
        again = self.planned(location="/other/name.log")[0]
        again = replace(again, owner=replace(again.owner, cluster_id=UNKNOWN_CLUSTER, file_id="held"))
        assert superseded([*self.planned(), again], [self.stored()], HASHES) == []

    def test_a_copy_is_replaced_where_its_name_says_its_instant_or_its_owner_was_not_known(self) -> None:
        copy = {"kind": "server_properties", "first_line": None}
        shorter = self.stored(kind="server_properties")
        whole = self.stored(kind="server_properties", length=20, content_hash="twenty")
        assert superseded(self.planned(**copy), [shorter], HASHES) == []
        assert superseded(self.planned(**copy), [whole], HASHES) == [whole]
        assert superseded(self.planned(**copy, captured_at_ms=1), [shorter], HASHES) == [shorter]

    def test_only_beginnings_have_to_be_hashed(self) -> None:
        rows = [
            self.stored(),
            self.stored(file_id="a", length=0),
            self.stored(file_id="b", length=20),
            self.stored(file_id="c", length=99),
        ]
        assert prefixes(self.planned(), rows) == {("/in/name.log", None): [10]}

    def test_earlier_ids_are_those_of_unknown_owners(self) -> None:
        (entry,) = self.planned(birth_id="unknown-0123")
        ((now, earlier),) = earlier_ids([entry.owner]).items()
        assert now == entry.key
        assert set(earlier) == {
            (cluster, log_file_id(cluster, broker, b"first"))
            for cluster in (CLUSTER, UNKNOWN_CLUSTER, "unknown-0123")
            for broker in (1, None)
        } - {now}
