"""ZooKeeper's own snapshots to rows: columns, bytes, and which files are believed."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from ingest.containers.compression import GZIP, Decompressed
from ingest.containers.snappy import SnappyStream
from ingest.lake.tables.bronze import ZNODE_SNAPSHOTS
from ingest.readers.batches import CLOCK_COLUMN, kept_batches
from ingest.readers.lines import blocks
from ingest.readers.work import Kept, Rejected
from ingest.readers.zookeeper.columns import CONTAINER_OWNER, ttl_owner
from ingest.readers.zookeeper.snapshot_format import snapshot_zxid
from ingest.readers.zookeeper.snapshots import read
from tests.support.files.jute import FIRST_MS, Stat, snappy, snapshot
from tests.unit.ingest.readers.zookeeper.records import column, item_of, read_all, reasons

REAL = Path(__file__).parent / "data"
NODES = {
    "/": Stat(czxid=0, mzxid=0, ctime_ms=0, mtime_ms=0, cversion=5),
    "/brokers": Stat(czxid=5, mzxid=5, cversion=3, pzxid=14),
    "/brokers/ids": Stat(czxid=6, mzxid=6, cversion=4),
    "/brokers/ids/1": Stat(b'{"port":9092}', czxid=7, mzxid=7, owner=0x1000),
    "/brokers/topics": Stat(None, czxid=8, mzxid=8),
    "/controller_epoch": Stat(b"3", czxid=9, mzxid=12, mtime_ms=FIRST_MS + 9, version=2),
}
FORMS = {
    "3.4": snapshot(NODES, {1: 6000}),
    "3.6": snapshot(NODES, {1: 6000, -2: 18000}, digest_zxid=14),
    "3.9": snapshot(NODES, {}, digest_zxid=14, last_zxid=15),
    "3.9 without digests": snapshot(NODES, {}, last_zxid=15),
}


class TestRows:
    def test_a_znode_fills_its_columns(self) -> None:
        rows = read_all(read, FORMS["3.9"], name="version-2/snapshot.1f")
        assert isinstance(rows[1], Kept)
        assert rows[1].values == {
            "snapshot_zxid": 31,
            "path": "/brokers",
            "data": None,
            "czxid": 5,
            "mzxid": 5,
            "pzxid": 14,
            "ctime": FIRST_MS * 1000,
            "mtime": FIRST_MS * 1000,
            "version": 0,
            "cversion": 4,  # three children created, two are left: one deletion
            "ephemeral_owner": 0,
            "num_children": 2,
        }

    def test_the_values_and_the_place_are_all_columns_of_the_table(self) -> None:
        item = item_of(FORMS["3.6"])
        rows = [row for row in read(item, [FORMS["3.6"]]) if isinstance(row, Kept)]
        (batch,) = kept_batches(ZNODE_SNAPSHOTS, item, rows)
        assert batch.schema.names == [c.name for c in ZNODE_SNAPSHOTS.columns if c.name != CLOCK_COLUMN]
        assert batch.column("source_line").to_pylist() == [1, 2, 3, 4, 5, 6]

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("block_bytes", [1, 13, 1 << 20])
    def test_every_version_s_file_is_read_to_its_last_byte(self, form: str, block_bytes: int) -> None:
        rows = read_all(read, FORMS[form], block_bytes=block_bytes)
        assert reasons(rows) == []
        assert column(rows, "path") == list(NODES)
        assert column(rows, "num_children") == [2, 2, 1, 0, 0, 0]
        assert rows[-1].place.offset + rows[-1].place.length == len(FORMS[form])
        assert rows == read_all(read, FORMS[form])

    def test_only_sessions_own_ephemeral_znodes(self) -> None:
        owners = {"/": 0, "/a": 0x1000, "/b": CONTAINER_OWNER, "/c": ttl_owner(5000)}
        rows = read_all(read, snapshot({path: Stat(owner=owner) for path, owner in owners.items()}))
        assert column(rows, "ephemeral_owner") == [0, 0x1000, 0, 0]

    def test_znodes_outside_of_the_chroot_are_rejected_as_runs(self) -> None:
        paths = ("/", "/app", "/app/x", "/kafka", "/kafka/brokers", "/zookeeper")
        rows = read_all(read, snapshot({path: Stat() for path in paths}), chroot="/kafka")
        assert column(rows, "path") == ["/", "/brokers"]
        assert reasons(rows) == [
            "3 znodes outside of Kafka's chroot /kafka",
            "1 znode outside of Kafka's chroot /kafka",
        ]

    def test_a_large_snapshot_waits_on_disk(self) -> None:
        nodes = {"/": Stat()} | {f"/{number:03}": Stat(bytes(1 << 20)) for number in range(20)}
        rows = read_all(read, snapshot(nodes))
        assert column(rows, "num_children") == [20] + [0] * 20

    @pytest.mark.parametrize(
        ("name", "zxid"),
        [
            ("snapshot.0", 0),
            ("zk/version-2/snapshot.1a00000f3c", 0x1A00000F3C),
            ("zk.tar.gz!version-2/snapshot.50.gz", 0x50),
            ("snapshot.50.snappy", 0x50),
            ("snapshot.bin", None),
            ("snapshot.50.tmp", None),
            ("snapshot.ffffffffffffffff", None),
            ("my-snapshot.50", None),
        ],
    )
    def test_the_name_says_after_which_transaction_it_was_begun(self, name: str, zxid: int | None) -> None:
        assert snapshot_zxid(name) == zxid


class TestDamage:
    def test_a_snapshot_cut_off_keeps_its_znodes_and_proves_no_deletion(self) -> None:
        whole = FORMS["3.4"]
        for size in range(1, len(whole)):
            rows = read_all(read, whole[:size])
            assert reasons(rows)[-1].startswith(f"the snapshot is cut off after {size} bytes")
            kept = column(rows, "path")
            assert kept == list(NODES)[: len(kept)]
            assert set(column(rows, "num_children")) <= {None}
            assert set(column(rows, "cversion")) <= {None}

    def test_a_snapshot_that_does_not_match_its_seal_is_believed_in_nothing(self) -> None:
        whole = FORMS["3.6"]
        at = whole.index(b"9092")
        (row,) = read_all(read, whole[:at] + b"9093" + whole[at + 4 :])
        assert isinstance(row, Rejected)
        assert "does not match its checksum" in row.reason
        assert row.place.length == len(whole)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (snapshot({"/": Stat(), "/a/b": Stat()}), "does not follow its parent"),
            (snapshot({"/a": Stat()}), "a znode's path is none"),
            (b"ZKLG" + bytes(20), "does not begin with ZKSN"),
            (b"ZKSN\0\0\0\x07" + bytes(20), "version 7 of the format"),
            (b"ZKSN\0\0\0\2" + bytes(16) + b"\x7f\xff\xff\xff" * 8, "a value announces"),
        ],
    )
    def test_what_is_no_snapshot_is_rejected_whole(self, data: bytes, message: str) -> None:
        (row,) = read_all(read, data)
        assert isinstance(row, Rejected)
        assert message in row.reason

    def test_a_snapshot_without_znodes_is_rejected(self) -> None:
        (row,) = read_all(read, snapshot({}))
        assert reasons([row]) == ["a snapshot without any znode"]

    def test_bytes_after_the_seals_are_rejected_alone(self) -> None:
        rows = read_all(read, FORMS["3.9"] + b"more" * 5000)
        assert column(rows, "path") == list(NODES)
        assert reasons(rows) == ["20000 bytes after the seal of the snapshot are not known"]

    def test_a_damaged_digest_leaves_the_znodes_proven(self) -> None:
        data = FORMS["3.6"][:-20] + b"?" + FORMS["3.6"][-19:]
        rows = read_all(read, data)
        assert column(rows, "num_children") == [2, 2, 1, 0, 0, 0]
        assert reasons(rows) == ["33 bytes after the seal of the snapshot are not known"]


class TestSnappy:
    @pytest.mark.parametrize("block_bytes", [100, 32 << 10])
    def test_blocks_are_undone(self, block_bytes: int) -> None:
        data = FORMS["3.9"] * 300
        stream = SnappyStream(io.BytesIO(snappy(data, block_bytes)))
        assert b"".join(iter(lambda: stream.read(997), b"")) == data
        assert stream.damage is None

    def test_streams_may_follow_one_another(self) -> None:
        stream = SnappyStream(io.BytesIO(snappy(b"one") + snappy(b"two")))
        assert b"".join(iter(lambda: stream.read(2), b"")) == b"onetwo"

    def test_a_stream_cut_anywhere_gives_its_whole_blocks_and_says_so(self) -> None:
        packed = snappy(bytes(range(250)), 50)
        for size in range(len(packed)):
            stream = SnappyStream(io.BytesIO(packed[:size]))
            data = b"".join(iter(lambda stream=stream: stream.read(1 << 16), b""))
            assert bytes(range(250)).startswith(data)
            assert len(data) % 50 == 0
            if stream.damage is None:
                assert packed[:size] == snappy(data, 50)
            else:
                assert "cut off" in stream.damage

    @pytest.mark.parametrize("size", [0, -1, 2_000_000_000])
    def test_a_block_that_lies_about_its_size_is_damage(self, size: int) -> None:
        data = snappy(b"one") + size.to_bytes(4, "big", signed=True) + b"rest"
        stream = SnappyStream(io.BytesIO(data))
        assert b"".join(iter(lambda: stream.read(100), b"")) == b"one"
        assert "damaged" in (stream.damage or "")

    def test_a_block_that_cannot_be_undone_is_damage(self) -> None:
        data = snappy(b"one") + (5).to_bytes(4, "big") + b"\x05junk"
        stream = SnappyStream(io.BytesIO(data))
        assert b"".join(iter(lambda: stream.read(100), b"")) == b"one"
        assert "damaged" in (stream.damage or "")


@pytest.mark.parametrize("path", sorted(REAL.glob("*/snapshot.*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_files_that_zookeeper_3_9_4_wrote_are_whole(path: Path) -> None:
    with path.open("rb") as file:
        stream = SnappyStream(file) if path.suffix == ".snappy" else Decompressed(file, GZIP)
        data = b"".join(blocks(stream))
        assert stream.damage is None
    if path.suffix == ".gz":
        assert data == gzip.decompress(path.read_bytes())
    rows = read_all(read, data, name=path.name)
    assert reasons(rows) == []
    assert len(rows) > 30
    assert set(column(rows, "snapshot_zxid")) == {int(path.name.split(".")[1], 16)}
