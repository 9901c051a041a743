"""What one pass over a file says before it is read."""

from __future__ import annotations

import hashlib

import pytest

from ingest.readers.zookeeper.facts import SnapshotFacts, TransactionLogFacts
from ingest.readers.zookeeper.transaction_log import read
from tests.support.captures.packed import capture_names
from tests.support.files import jute
from tests.support.files.jute import FIRST_MS, LOG_HEADER, Stat, in_blocks, log, record, snapshot, transaction
from tests.unit.ingest.readers.zookeeper.records import item_of

ONE = transaction(1, 1, jute.create("/a", "one"))
TWO = transaction(2, 2, jute.text("/a"))
BLOCKS = [1, 17, 1 << 20]
CLUSTER_ID = '{"version":"1","id":"Gy2IFN5MSo-MgkQzoWEJUA"}'


def log_facts(data: bytes, block_bytes: int = 1 << 20) -> dict[str, object]:
    facts = TransactionLogFacts()
    for block in in_blocks(data, block_bytes):
        facts.take(block)
    return facts.result()


def snapshot_facts(data: bytes, name: str = "snapshot.a", block_bytes: int = 1 << 20) -> dict[str, object]:
    facts = SnapshotFacts(name)
    for block in in_blocks(data, block_bytes):
        facts.take(block)
    return facts.result()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class TestExtent:
    @pytest.mark.parametrize("block_bytes", BLOCKS)
    @pytest.mark.parametrize("zeros", [0, 1000])
    def test_zeros_allocated_ahead_are_not_counted(self, block_bytes: int, zeros: int) -> None:
        whole = log(ONE, TWO)
        facts = log_facts(whole + bytes(zeros), block_bytes)
        assert (facts["complete_bytes"], facts["written_bytes"]) == (len(whole), len(whole))
        assert facts["complete_hash"] == facts["written_hash"] == sha256(whole)
        assert (facts["line_count"], facts["is_torn"], facts["damage"]) == (2, False, None)
        assert facts["first_record"] == record(ONE)
        assert (facts["first_zxid"], facts["last_zxid"]) == (1, 2)
        assert (facts["first_time_ms"], facts["last_time_ms"]) == (FIRST_MS + 1, FIRST_MS + 2)

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    @pytest.mark.parametrize("zeros", [0, 1000])
    def test_a_torn_record_is_written_and_not_complete(self, block_bytes: int, zeros: int) -> None:
        data = log(ONE, TWO)[:-2]
        facts = log_facts(data + bytes(zeros), block_bytes)
        assert facts["complete_bytes"] == len(log(ONE))
        assert facts["complete_hash"] == sha256(log(ONE))
        assert facts["written_hash"] == sha256(data[: facts["written_bytes"]])
        assert (facts["written_bytes"], facts["line_count"]) == (len(data), 1)
        assert (facts["is_torn"], facts["damage"]) == (True, None)

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    def test_damage_is_complete_as_nothing_that_follows_changes_it(self, block_bytes: int) -> None:
        data = log(ONE) + b"no record, by far" * 9
        facts = log_facts(data + bytes(1000), block_bytes)
        assert facts["complete_bytes"] == facts["written_bytes"] == len(data)
        assert facts["complete_hash"] == facts["written_hash"] == sha256(data)
        assert (facts["line_count"], facts["is_torn"]) == (2, False)
        assert "can be read" in str(facts["damage"])

    @pytest.mark.parametrize("data", [b"", LOG_HEADER, LOG_HEADER + bytes(100), LOG_HEADER[:7]])
    def test_a_log_without_records_has_nothing_to_read(self, data: bytes) -> None:
        facts = log_facts(data)
        assert (facts["complete_bytes"], facts["line_count"], facts["first_record"]) == (0, 0, None)

    def test_growth_keeps_what_was_complete_and_the_identity(self) -> None:
        whole = log(ONE, TWO, transaction(3, 5, jute.set_data("/b", "x" * 500, 1)))
        for size in range(len(log(ONE)), len(whole)):
            facts = log_facts(whole[:size])
            assert facts["complete_hash"] == sha256(whole[: facts["complete_bytes"]])
            assert facts["first_record"] == record(ONE)

    @pytest.mark.parametrize("name", capture_names())
    def test_the_rows_of_a_capture_end_where_its_facts_say(self, name: str, unpacked) -> None:
        for path in (unpacked(name) / "zk-version-2").glob("log.*"):
            data = path.read_bytes()
            facts = log_facts(data, 4096)
            rows = list(read(item_of(data), [data]))
            last = rows[-1].place
            assert (facts["complete_bytes"], facts["line_count"]) == (last.offset + last.length, last.line)
            assert facts["chroot"] == ""
            assert facts["birth"] is not None
            assert (facts["cluster_id"] is None) == ("-0.8.2.2" in name)


class TestCluster:
    def test_the_log_of_a_new_cluster_says_whose_it_is(self) -> None:
        facts = log_facts(
            log(
                transaction(5, 1, jute.create("/kafka/brokers", "")),
                transaction(6, 1, jute.create("/kafka/brokers/ids", "")),
                transaction(9, 1, jute.create("/kafka/cluster/id", CLUSTER_ID)),
            )
        )
        assert (facts["chroot"], facts["chroots"]) == ("/kafka", ("/kafka",))
        assert facts["birth"] == (5, FIRST_MS + 5)
        assert facts["cluster_id"] == "Gy2IFN5MSo-MgkQzoWEJUA"

    def test_a_later_log_shows_the_chroot_by_what_is_written_below_it(self) -> None:
        path = "/a/b/brokers/topics/orders/partitions/0/state"
        facts = log_facts(log(transaction(5, 5, jute.set_data(path, "{}", 1))))
        assert (facts["chroot"], facts["birth"], facts["cluster_id"]) == ("/a/b", None, None)

    def test_what_was_refused_says_nothing(self) -> None:
        body = jute.multi((1, jute.create("/brokers/ids", "")), (-1, jute.integer(-110)))
        assert log_facts(log(transaction(5, 14, body)))["chroot"] is None

    def test_the_first_cluster_counts_so_that_growth_changes_nothing(self) -> None:
        steps = [
            transaction(i, 1, jute.create(path, ""))
            for i, path in enumerate(("/brokers", "/brokers/ids", "/other/brokers/ids", "/brokers"), start=1)
        ]
        facts = log_facts(log(*steps))
        assert (facts["chroot"], facts["chroots"], facts["birth"]) == ("", ("", "/other"), (1, FIRST_MS + 1))


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
        assert (facts["snapshot_zxid"], facts["last_zxid"]) == (10, 12)
        assert facts["captured_at_ms"] == FIRST_MS + 8
        assert (facts["line_count"], facts["damage"], facts["is_readable"]) == (5, None, True)
        assert (facts["chroot"], facts["birth"]) == ("", (3, FIRST_MS + 3))
        assert facts["cluster_id"] == "Gy2IFN5MSo-MgkQzoWEJUA"

    def test_without_its_name_it_speaks_of_its_last_write(self) -> None:
        facts = snapshot_facts(snapshot(NODES, digest_zxid=12), "copy.bin")
        assert (facts["snapshot_zxid"], facts["captured_at_ms"]) == (None, FIRST_MS + 11)

    def test_the_tree_of_a_server_that_never_wrote_speaks_of_no_instant(self) -> None:
        facts = snapshot_facts(snapshot({"/": Stat(czxid=0, mzxid=0, ctime_ms=0, mtime_ms=0)}), "snapshot.0")
        assert (facts["snapshot_zxid"], facts["captured_at_ms"]) == (0, None)

    def test_damage_is_told_from_a_cut(self) -> None:
        whole = snapshot(NODES)
        cut, changed = snapshot_facts(whole[:-20]), snapshot_facts(whole.replace(b"MSo", b"MSa"))
        assert (cut["is_readable"], changed["is_readable"]) == (True, False)
        assert "cut off" in str(cut["damage"])
        assert "checksum" in str(changed["damage"])
