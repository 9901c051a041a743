"""Transaction logs to rows: the columns, the bytes, and what is damaged."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

import pytest

from ingest.lake.tables.bronze import ZNODE_TRANSACTIONS
from ingest.readers.batches import CLOCK_COLUMN, kept_batches, rejected_batches
from ingest.readers.work import Kept, Rejected
from ingest.readers.zookeeper.transaction_framing import MAX_TRANSACTION_BYTES
from ingest.readers.zookeeper.transaction_log import operations, read
from ingest.readers.zookeeper.transactions import Op
from tests.support.captures.packed import capture_names
from tests.support.files import jute
from tests.support.files.jute import FIRST_MS, LOG_HEADER, log, record, transaction
from tests.unit.ingest.readers.zookeeper.records import column, item_of, read_all, reasons

ONE = transaction(1, 1, jute.create("/a", "one"))
TWO = transaction(2, 2, jute.text("/a"))
THREE = transaction(3, 5, jute.set_data("/b", "three", 4))


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


class TestRows:
    def test_a_create_fills_its_columns(self) -> None:
        body = jute.create("/kafka/controller", '{"brokerid":1}', ephemeral=True)
        (row,) = read_all(read, log(transaction(3, 1, body, session=9)), chroot="/kafka")
        assert isinstance(row, Kept)
        assert row.values == {
            "zxid": 3,
            "ordinal": 0,
            "transaction_time": (FIRST_MS + 3) * 1000,
            "session_id": 9,
            "cxid": 1,
            "operation": "create",
            "path": "/controller",
            "full_path": "/kafka/controller",
            "data": '{"brokerid":1}',
            "version": 0,
            "is_ephemeral": True,
            "ttl_ms": None,
            "session_timeout_ms": None,
            "error_code": None,
        }

    def test_the_values_and_the_place_are_all_columns_of_the_table(self) -> None:
        data = log(ONE, TWO) + b"damage" * 20
        item = item_of(data)
        rows = list(read(item, [data]))
        (batch,) = kept_batches(ZNODE_TRANSACTIONS, item, (row for row in rows if isinstance(row, Kept)))
        assert batch.schema.names == [c.name for c in ZNODE_TRANSACTIONS.columns if c.name != CLOCK_COLUMN]
        assert batch.column("source_line").to_pylist() == [1, 2]
        (rejected,) = rejected_batches(item, (row for row in rows if isinstance(row, Rejected)))
        assert rejected.num_rows == 1

    def test_paths_outside_of_the_chroot_are_kept_as_written(self) -> None:
        body = log(*(transaction(i, 2, jute.text(p)) for i, p in enumerate(("/kafka", "/kafka/x", "/kafkax", "/y"))))
        rows = read_all(read, body, chroot="/kafka")
        assert column(rows, "path") == ["/", "/x", None, None]
        assert column(rows, "full_path") == ["/kafka", "/kafka/x", "/kafkax", "/y"]

    def test_what_creates_no_znode_says_nothing_of_its_session(self) -> None:
        rows = read_all(
            read, log(THREE, transaction(4, -10, jute.integer(6000)), transaction(5, -1, jute.integer(-110)))
        )
        assert column(rows, "is_ephemeral") == [None, None, None]
        assert column(rows, "session_timeout_ms") == [None, 6000, None]
        assert column(rows, "error_code") == [None, None, -110]

    def test_the_operations_of_a_multi_divide_its_bytes(self) -> None:
        body = jute.multi((13, jute.check("/epoch", 2)), (5, jute.set_data("/state", "s", 4)))
        rows = read_all(read, log(transaction(6, 14, body, digest=jute.DIGEST), TWO))
        assert column(rows, "operation") == ["check", "set_data", "delete"]
        assert [row.place.line for row in rows] == [1, 1, 2]
        # The file's header and the record's framing are the first one's, the digest and the closing B the last one's.
        assert rows[0].place.length == len(LOG_HEADER) + 12 + 32 + 4 + 8 + len(jute.check("/epoch", 2))

    def test_a_closed_session_is_followed_by_the_deletions_it_lists(self) -> None:
        rows = read_all(read, log(transaction(6, -11, jute.paths("/a", "/b"), digest=jute.DIGEST)))
        assert list(zip(column(rows, "operation"), column(rows, "path"), column(rows, "ordinal"), strict=True)) == [
            ("close_session", None, 0),
            ("delete", "/a", 1),
            ("delete", "/b", 2),
        ]

    def test_a_time_that_no_calendar_has_is_rejected(self) -> None:
        rows = read_all(read, log(transaction(1, 2, jute.text("/a"), time_ms=1 << 62), TWO))
        assert reasons(rows) == ["a transaction whose time is in no calendar"]
        assert column(rows, "zxid") == [2]


class TestResumed:
    def test_a_part_begins_at_a_record_and_has_no_header(self) -> None:
        whole, first = log(ONE, TWO, THREE), log(ONE)
        rows = read_all(read, whole[len(first) :], offset=len(first), line=2)
        assert rows == read_all(read, whole)[1:]

    @pytest.mark.parametrize("block_bytes", [1, 7, 100])
    def test_blocks_change_nothing(self, block_bytes: int) -> None:
        for data in (log(ONE, TWO, THREE), flipped(log(ONE, TWO, THREE), 30), log(ONE, TWO)[:-9] + bytes(300)):
            assert read_all(read, data, block_bytes=block_bytes) == read_all(read, data)


class TestEnds:
    def test_zeros_allocated_ahead_belong_to_no_record(self) -> None:
        whole = log(ONE, TWO)
        assert read_all(read, whole + bytes(5000), block_bytes=64) == read_all(read, whole)

    @pytest.mark.parametrize("data", [LOG_HEADER, LOG_HEADER + bytes(100)])
    def test_a_log_that_holds_nothing_yet_has_no_records(self, data: bytes) -> None:
        assert list(read(item_of(data), [data])) == []

    def test_a_file_cut_at_any_byte_gives_the_records_before_and_the_torn_one(self) -> None:
        whole, first = log(ONE, TWO), log(ONE)
        for size in range(len(first) + 1, len(whole)):
            for tail in (b"", bytes(400)):
                rows = read_all(read, whole[:size] + tail)
                assert column(rows, "zxid") == [1]
                torn = len((whole[:size]).rstrip(b"\0")) - len(first)
                # The first bytes of a record are zeros, as the allocated ones are: taken for these, nothing is lost.
                assert reasons(rows) == (
                    [f"the file ends inside a transaction: {torn} bytes of it were written"] if torn > 0 else []
                )

    @pytest.mark.parametrize("data", [b"ZKSN" + bytes(20), b"[2026-11-21 03:28:31,911] INFO", b"PK"])
    def test_other_files_are_rejected_whole(self, data: bytes) -> None:
        (row,) = list(read(item_of(data), [data]))
        assert isinstance(row, Rejected)
        assert "does not begin with ZKLG" in row.reason

    def test_an_unknown_version_is_rejected_whole(self) -> None:
        data = struct.pack(">4siq", b"ZKLG", 3, 0) + record(ONE)
        (row,) = read_all(read, data)
        assert isinstance(row, Rejected)
        assert "version 3" in row.reason
        assert row.place.length == len(data)


class TestDamage:
    def test_one_changed_byte_costs_one_record_where_its_length_leads_to_the_next(self) -> None:
        data = flipped(log(ONE, TWO, THREE), len(log(ONE)) + 20)
        rows = read_all(read, data)
        assert column(rows, "zxid") == [1, 3]
        length = len(record(TWO))
        assert reasons(rows) == [
            f"the record at byte {len(log(ONE))} does not match its checksum: its {length} bytes are damaged"
        ]
        assert [row.place.line for row in rows] == [1, 2, 3]

    def test_damaged_neighbours_are_one_record(self) -> None:
        data = flipped(flipped(log(ONE, TWO, TWO, THREE), len(log(ONE)) + 20), len(log(ONE, TWO)) + 20)
        rows = read_all(read, data)
        assert column(rows, "zxid") == [1, 3]
        assert reasons(rows) == [f"2 records from byte {len(log(ONE))} on do not match their checksums"]
        assert [row.place.line for row in rows] == [1, 2, 4]

    def test_a_damaged_last_record_is_one_record(self) -> None:
        data = flipped(log(ONE, TWO), len(log(ONE)) + 20)
        assert len(reasons(read_all(read, data + bytes(100)))) == 1

    def test_nothing_after_a_damaged_length_can_be_read(self) -> None:
        at = len(log(ONE))
        rows = read_all(read, flipped(log(ONE, TWO, THREE), at + 11) + bytes(100))
        assert column(rows, "zxid") == [1]
        (reason,) = reasons(rows)
        length = len(record(TWO)) + len(record(THREE))
        assert reason.endswith(f": nothing after byte {at} can be read ({length} bytes)")

    def test_a_damaged_record_before_one_whose_length_is_damaged_begins_the_unreadable_rest(self) -> None:
        data = flipped(flipped(log(ONE, TWO, THREE, TWO), len(log(ONE)) + 20), len(log(ONE, TWO)) + 11)
        rows = read_all(read, data)
        assert len(rows) == 2
        assert rows[1].place.offset == len(log(ONE))

    @pytest.mark.parametrize("length", [-5, -1, 0, 2_000_000_000])
    def test_a_length_that_no_record_has(self, length: int) -> None:
        rows = read_all(read, log(ONE) + struct.pack(">qi", 1, length) + b"rest" * 9)
        assert column(rows, "zxid") == [1]
        assert f"announces {length or 'no'} bytes" in reasons(rows)[0]

    def test_a_record_whose_checksum_is_right_and_whose_body_is_none_costs_itself_alone(self) -> None:
        rows = read_all(read, log(ONE, transaction(2, 2, jute.integer(99) + b"/a"), THREE))
        assert column(rows, "zxid") == [1, 3]
        at = len(log(ONE))
        assert reasons(rows) == [f"the transaction at byte {at} cannot be read: 99 bytes are announced, 2 are left"]

    def test_bytes_after_the_zeros_are_not_lost(self) -> None:
        rows = read_all(read, log(ONE) + bytes(100) + record(TWO) + bytes(50), block_bytes=33)
        assert column(rows, "zxid") == [1]
        assert "follow the zeros" in reasons(rows)[0]

    def test_a_transaction_too_long_to_hold_is_rejected_and_the_next_one_read(self) -> None:
        body = transaction(2, 5, jute.set_data("/b", "x" * MAX_TRANSACTION_BYTES, 1))
        rows = read_all(read, log(ONE, body, THREE))
        assert column(rows, "zxid") == [1, 3]
        (reason,) = reasons(rows)
        assert f"a transaction of {len(body)} bytes" in reason
        assert len(rows[1].place.data) == 64 << 10

    def test_a_transaction_too_long_to_hold_that_is_damaged_ends_the_log(self) -> None:
        body = transaction(2, 5, jute.set_data("/b", "x" * MAX_TRANSACTION_BYTES, 1))
        rows = read_all(read, flipped(log(ONE, body, THREE), 5000))
        assert column(rows, "zxid") == [1]
        assert "do not match its checksum" in reasons(rows)[0]


@pytest.mark.parametrize("name", capture_names())
def test_every_capture_is_read_to_its_end_in_rising_zxids(name: str, unpacked) -> None:
    for path in (unpacked(name) / "zk-version-2").glob("log.*"):
        data = path.read_bytes()
        rows = read_all(read, data)
        assert reasons(rows) == []
        order = list(zip(column(rows, "zxid"), column(rows, "ordinal"), strict=True))
        assert order == sorted(set(order))
        assert Counter(operation.op for operation in operations([data]))[Op.OTHER] == 0
        assert zlib.adler32(b"".join(row.place.data for row in rows)) == zlib.adler32(data.rstrip(b"\0"))
