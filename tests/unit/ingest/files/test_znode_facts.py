"""What one pass over a file says before it is read."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ingest.files.znode_facts import SnapshotFacts, TransactionLogFacts
from ingest.readers.identity import digest
from ingest.readers.zookeeper.transaction_log import read
from tests.support.captures.packed import capture_names
from tests.support.files import jute
from tests.support.files.jute import FIRST_MS, LOG_HEADER, Stat, in_blocks, log, record, snapshot, transaction
from tests.unit.ingest.readers.zookeeper.records import item_of

ONE = transaction(1, 1, jute.create("/a", "one"))
TWO = transaction(2, 2, jute.text("/a"))
BLOCKS = [1, 17, 1 << 20]
CLUSTER_ID = '{"version":"1","id":"Gy2IFN5MSo-MgkQzoWEJUA"}'


def log_facts(data: bytes, block_bytes: int = 1 << 20, *, is_final: bool = False) -> dict[str, Any]:
    facts = TransactionLogFacts(is_final=is_final)
    for block in in_blocks(data, block_bytes):
        facts.take(block)
    return facts.result()


def snapshot_facts(data: bytes, name: str = "snapshot.a", block_bytes: int = 1 << 20) -> dict[str, Any]:
    facts = SnapshotFacts(name)
    for block in in_blocks(data, block_bytes):
        facts.take(block)
    return facts.result()


def birth_id(zxid: int, time_ms: int) -> str:
    return f"unknown-{digest(zxid, time_ms)[:16]}"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class TestExtent:
    @pytest.mark.parametrize("block_bytes", BLOCKS)
    @pytest.mark.parametrize("zeros", [0, 1000])
    def test_zeros_allocated_ahead_are_not_counted(self, block_bytes: int, zeros: int) -> None:
        whole = log(ONE, TWO)
        for is_final in (False, True):
            facts = log_facts(whole + bytes(zeros), block_bytes, is_final=is_final)
            assert (facts["complete_bytes"], facts["complete_hash"]) == (len(whole), sha256(whole))
            assert (facts["line_count"], facts["status"]) == (2, None)
            assert facts["first_line"] == digest(record(ONE))
            assert facts["cluster_at"] == str(FIRST_MS + 1)

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    @pytest.mark.parametrize("zeros", [0, 1000])
    def test_a_torn_record_is_written_and_not_complete(self, block_bytes: int, zeros: int) -> None:
        data = log(ONE, TWO)[:-2]
        growing = log_facts(data + bytes(zeros), block_bytes)
        assert (growing["complete_bytes"], growing["complete_hash"]) == (len(log(ONE)), sha256(log(ONE)))
        final = log_facts(data + bytes(zeros), block_bytes, is_final=True)
        assert (final["complete_bytes"], final["complete_hash"]) == (len(data), sha256(data))
        assert growing["line_count"] == final["line_count"] == 1

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    def test_damage_is_complete_as_nothing_that_follows_changes_it(self, block_bytes: int) -> None:
        data = log(ONE) + b"no record, by far" * 9
        for is_final in (False, True):
            facts = log_facts(data + bytes(1000), block_bytes, is_final=is_final)
            assert (facts["complete_bytes"], facts["complete_hash"]) == (len(data), sha256(data))
            assert (facts["line_count"], facts["status"]) == (2, None)

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    def test_damage_without_any_record_is_not_an_empty_log(self, block_bytes: int) -> None:
        assert log_facts(LOG_HEADER + b"no record, by far" * 9, block_bytes)["status"] is None

    @pytest.mark.parametrize("data", [b"", LOG_HEADER, LOG_HEADER + bytes(100), LOG_HEADER[:7]])
    def test_a_log_without_records_has_nothing_to_read(self, data: bytes) -> None:
        facts = log_facts(data)
        assert (facts["complete_bytes"], facts["line_count"], facts["first_line"]) == (0, 0, None)
        assert facts["status"] == "empty"

    def test_growth_keeps_what_was_complete_and_the_identity(self) -> None:
        whole = log(ONE, TWO, transaction(3, 5, jute.set_data("/b", "x" * 500, 1)))
        for size in range(len(log(ONE)), len(whole)):
            facts = log_facts(whole[:size])
            assert facts["complete_hash"] == sha256(whole[: facts["complete_bytes"]])
            assert facts["first_line"] == digest(record(ONE))

    @pytest.mark.parametrize("name", capture_names())
    def test_the_rows_of_a_capture_end_where_its_facts_say(self, name: str, unpacked) -> None:
        for path in (unpacked(name) / "zk-version-2").glob("log.*"):
            data = path.read_bytes()
            facts = log_facts(data, 4096)
            rows = list(read(item_of(data), [data]))
            last = rows[-1].place
            assert (facts["complete_bytes"], facts["line_count"]) == (last.offset + last.length, last.line)
            assert facts["chroot"] == ""
            assert facts["birth_id"] is not None
            assert (facts["cluster_id"] == facts["birth_id"]) == ("-0.8.2.2" in name)


class TestCluster:
    def test_the_log_of_a_new_cluster_says_whose_it_is(self) -> None:
        facts = log_facts(
            log(
                transaction(5, 1, jute.create("/kafka/brokers", "")),
                transaction(6, 1, jute.create("/kafka/brokers/ids", "")),
                transaction(9, 1, jute.create("/kafka/cluster/id", CLUSTER_ID)),
            )
        )
        assert facts["chroot"] == "/kafka"
        assert facts["birth_id"] == birth_id(5, FIRST_MS + 5)
        assert facts["cluster_id"] == "Gy2IFN5MSo-MgkQzoWEJUA"

    def test_a_later_log_shows_the_chroot_by_what_is_written_below_it(self) -> None:
        path = "/a/b/brokers/topics/orders/partitions/0/state"
        facts = log_facts(log(transaction(5, 5, jute.set_data(path, "{}", 1))))
        assert (facts["chroot"], facts["birth_id"], facts["cluster_id"]) == ("/a/b", None, None)

    def test_what_was_refused_says_nothing(self) -> None:
        body = jute.multi((1, jute.create("/kafka/brokers/ids", "")), (-1, jute.integer(-110)))
        assert log_facts(log(transaction(5, 14, body)))["chroot"] == ""

    def test_the_first_cluster_counts_so_that_growth_changes_nothing(self) -> None:
        steps = [
            transaction(i, 1, jute.create(path, ""))
            for i, path in enumerate(("/brokers", "/brokers/ids", "/other/brokers/ids", "/brokers"), start=1)
        ]
        facts = log_facts(log(*steps))
        assert (facts["chroot"], facts["birth_id"]) == ("", birth_id(1, FIRST_MS + 1))


NODES = {
    "/": Stat(czxid=0, mzxid=0, ctime_ms=0, mtime_ms=0),
    "/brokers": Stat(czxid=3, mzxid=3, ctime_ms=FIRST_MS + 3, mtime_ms=FIRST_MS + 3),
    "/brokers/ids": Stat(czxid=4, mzxid=4, ctime_ms=FIRST_MS + 4, mtime_ms=FIRST_MS + 4),
    "/cluster": Stat(),
    "/cluster/id": Stat(CLUSTER_ID.encode(), czxid=8, mzxid=11, ctime_ms=FIRST_MS + 8, mtime_ms=FIRST_MS + 11),
}


class TestSnapshots:
    @pytest.mark.parametrize("block_bytes", BLOCKS)
    def test_a_snapshot_speaks_of_the_last_write_before_it_was_begun(self, block_bytes: int) -> None:
        facts = snapshot_facts(snapshot(NODES, digest_zxid=12), "zk/snapshot.a.gz", block_bytes)
        assert facts["snapshot_zxid"] == 10
        assert facts["captured_at_ms"] == FIRST_MS + 8
        assert (facts["line_count"], facts["status"], facts["reason"]) == (5, None, None)
        assert (facts["chroot"], facts["birth_id"]) == ("", birth_id(3, FIRST_MS + 3))
        assert facts["cluster_id"] == "Gy2IFN5MSo-MgkQzoWEJUA"

    def test_without_its_name_it_speaks_of_its_last_write(self) -> None:
        facts = snapshot_facts(snapshot(NODES, digest_zxid=12), "copy.bin")
        assert (facts["snapshot_zxid"], facts["captured_at_ms"]) == (None, FIRST_MS + 11)

    def test_the_tree_of_a_server_that_never_wrote_speaks_of_no_instant(self) -> None:
        facts = snapshot_facts(snapshot({"/": Stat(czxid=0, mzxid=0, ctime_ms=0, mtime_ms=0)}), "snapshot.0")
        assert (facts["snapshot_zxid"], facts["captured_at_ms"], facts["status"]) == (0, None, "empty")

    def test_damage_is_told_from_a_cut(self) -> None:
        whole = snapshot(NODES)
        cut, changed = snapshot_facts(whole[:-20]), snapshot_facts(whole.replace(b"MSo", b"MSa"))
        assert (cut["status"], changed["status"]) == (None, "rejected")
        assert "checksum" in changed["reason"]
