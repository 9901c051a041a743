"""Reading ZooKeeper's transaction logs: from hand-made bytes, and from the packed captures."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

import pytest

from tests.support.captures import capture_names
from tests.support.zookeeper_log import LogEnd, Op, Operation, ZookeeperLog, ZookeeperLogError, close_sessions

HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def acl() -> bytes:
    return struct.pack(">ii", 1, 31) + text("world") + text("anyone")


def create(path: str, data: str, ephemeral: bool = False, parent_version: bytes = struct.pack(">i", 1)) -> bytes:
    return text(path) + text(data) + acl() + bytes([ephemeral]) + parent_version


def set_data(path: str, data: str, version: int) -> bytes:
    return text(path) + text(data) + struct.pack(">i", version)


def transaction(zxid: int, kind: int, body: bytes = b"", session: int = 7, digest: bytes = b"") -> bytes:
    return struct.pack(">qiqqi", session, 1, zxid, 1_000 + zxid, kind) + body + digest


def record(body: bytes) -> bytes:
    return struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B"


def log(*bodies: bytes, tail: bytes = b"") -> bytes:
    return HEADER + b"".join(record(body) for body in bodies) + tail


def multi(*parts: tuple[int, bytes]) -> bytes:
    return struct.pack(">i", len(parts)) + b"".join(struct.pack(">ii", kind, len(body)) + body for kind, body in parts)


def brief(operations: list[Operation]) -> list[tuple[int, str, str | None]]:
    return [(operation.zxid, operation.op.value, operation.path) for operation in operations]


class TestOperations:
    @pytest.mark.parametrize("kind", [1, 15])
    def test_create_carries_path_data_owner_and_version_zero(self, kind: int) -> None:
        (operation,) = ZookeeperLog(log(transaction(3, kind, create("/controller", '{"brokerid":1}', ephemeral=True))))
        assert operation == Operation(3, 0, 1003, 7, 1, Op.CREATE, "/controller", b'{"brokerid":1}', 0, ephemeral=True)

    def test_create_of_versions_before_3_4_ends_after_the_ephemeral_flag(self) -> None:
        (operation,) = ZookeeperLog(log(transaction(3, 1, create("/a", "x", ephemeral=True, parent_version=b""))))
        assert (operation.path, operation.ephemeral) == ("/a", True)

    @pytest.mark.parametrize("kind", [19, 21])
    def test_containers_and_znodes_with_a_time_to_live_are_not_ephemeral(self, kind: int) -> None:
        body = text("/a") + text("x") + acl() + struct.pack(">iq", 1, 5)
        (operation,) = ZookeeperLog(log(transaction(3, kind, body)))
        assert (operation.op, operation.data, operation.ephemeral) == (Op.CREATE, b"x", False)

    def test_set_data_carries_the_version_written(self) -> None:
        (operation,) = ZookeeperLog(log(transaction(4, 5, set_data("/a", "y", 9))))
        assert (operation.op, operation.data, operation.version) == (Op.SET_DATA, b"y", 9)

    def test_a_znode_without_data_has_none(self) -> None:
        body = text("/a") + struct.pack(">i", -1) + struct.pack(">i", -1) + b"\0" + struct.pack(">i", 1)
        (operation,) = ZookeeperLog(log(transaction(4, 1, body)))
        assert operation.data is None

    @pytest.mark.parametrize(
        ("kind", "body", "op"),
        [
            (2, text("/a"), Op.DELETE),
            (20, text("/a"), Op.DELETE),
            (7, text("/a") + acl() + struct.pack(">i", 1), Op.SET_ACL),
            (13, text("/a") + struct.pack(">i", 2), Op.CHECK),
            (16, set_data("/zookeeper/config", "", 1), Op.SET_DATA),
            (-10, struct.pack(">i", 6000), Op.CREATE_SESSION),
            (-1, struct.pack(">i", -110), Op.ERROR),
            (99, b"", Op.OTHER),
        ],
    )
    def test_every_kind_has_its_operation(self, kind: int, body: bytes, op: Op) -> None:
        (operation,) = ZookeeperLog(log(transaction(5, kind, body)))
        assert operation.op is op

    def test_the_digest_that_follows_since_3_6_is_not_read(self) -> None:
        digest = struct.pack(">iq", 2, 123456789)
        (operation,) = ZookeeperLog(log(transaction(4, 5, set_data("/a", "y", 9), digest=digest)))
        assert operation.version == 9


class TestMulti:
    def test_operations_come_in_order_with_one_zxid(self) -> None:
        body = multi((13, text("/controller_epoch") + struct.pack(">i", 2)), (5, set_data("/state", "s", 4)))
        operations = list(ZookeeperLog(log(transaction(6, 14, body))))
        assert brief(operations) == [(6, "check", "/controller_epoch"), (6, "set_data", "/state")]
        assert [operation.ordinal for operation in operations] == [0, 1]

    def test_one_refused_operation_refuses_all(self) -> None:
        body = multi((5, set_data("/state", "zombie", 4)), (-1, struct.pack(">i", -103)))
        operations = list(ZookeeperLog(log(transaction(6, 14, body))))
        assert [operation.op for operation in operations] == [Op.ERROR, Op.ERROR]


class TestSessions:
    def test_a_closed_session_takes_its_ephemeral_znodes_along_in_the_order_of_creation(self) -> None:
        data = log(
            transaction(1, 1, create("/brokers/ids/1", "", ephemeral=True)),
            transaction(2, 1, create("/controller", "", ephemeral=True)),
            transaction(3, 1, create("/brokers/ids/2", "", ephemeral=True), session=8),
            transaction(4, 1, create("/config", "")),
            transaction(5, -11),
        )
        closing = [operation for operation in close_sessions(ZookeeperLog(data)) if operation.zxid == 5]
        assert brief(closing) == [
            (5, "close_session", None),
            (5, "delete", "/brokers/ids/1"),
            (5, "delete", "/controller"),
        ]

    def test_what_was_deleted_before_is_not_deleted_again(self) -> None:
        data = log(
            transaction(1, 1, create("/controller", "", ephemeral=True)),
            transaction(2, 2, text("/controller")),
            transaction(3, -11),
        )
        operations = [op for _, op, _ in brief(list(close_sessions(ZookeeperLog(data))))]
        assert operations == ["create", "delete", "close_session"]

    @pytest.mark.parametrize("digest", [b"", struct.pack(">iq", 2, 5)])
    def test_the_paths_listed_since_3_6_are_deleted_although_their_creation_was_not_seen(self, digest: bytes) -> None:
        body = struct.pack(">i", 1) + text("/brokers/ids/1")
        closing = list(close_sessions(ZookeeperLog(log(transaction(5, -11, body, digest=digest)))))
        assert brief(closing)[1:] == [(5, "delete", "/brokers/ids/1")]

    def test_a_digest_alone_is_no_list_of_paths(self) -> None:
        (operation,) = ZookeeperLog(log(transaction(5, -11, digest=struct.pack(">iq", 2, 5))))
        assert operation.paths is None


class TestEnds:
    def test_zeros_allocated_ahead_are_the_regular_end(self) -> None:
        whole = log(transaction(1, 2, text("/a")))
        reader = ZookeeperLog(whole + bytes(500))
        assert len(list(reader)) == 1
        assert (reader.end, reader.position) == (LogEnd.COMPLETE, len(whole))

    def test_a_file_cut_at_any_byte_gives_the_records_before_the_cut(self) -> None:
        first = log(transaction(1, 2, text("/a")))
        whole = log(transaction(1, 2, text("/a")), transaction(2, 2, text("/b")))
        for size in range(len(first) + 1, len(whole)):
            reader = ZookeeperLog(whole[:size])
            assert brief(list(reader)) == [(1, "delete", "/a")]
            # The first bytes of a record are zeros, as the allocated ones are: taken for these, nothing is lost.
            end = LogEnd.CUT if any(whole[len(first) : size]) else LogEnd.COMPLETE
            assert (reader.end, reader.position) == (end, len(first))

    def test_a_record_half_written_into_allocated_zeros_is_a_cut(self) -> None:
        whole = log(transaction(1, 2, text("/a")), transaction(2, 2, text("/b")))
        reader = ZookeeperLog(whole[:-6] + bytes(400))
        assert len(list(reader)) == 1
        assert reader.end is LogEnd.CUT

    def test_a_changed_byte_is_damage_and_says_where(self) -> None:
        whole = bytearray(log(transaction(1, 2, text("/a"))))
        whole[-2] ^= 1
        with pytest.raises(ZookeeperLogError, match="byte 16 does not match its checksum"):
            list(ZookeeperLog(bytes(whole)))

    def test_a_record_that_lies_about_its_lengths_is_damage(self) -> None:
        with pytest.raises(ZookeeperLogError, match="byte 16 cannot be read: 99 bytes announced, 2 left"):
            list(ZookeeperLog(log(transaction(1, 2, struct.pack(">i", 99) + b"/a"))))

    def test_a_negative_length_is_damage(self) -> None:
        with pytest.raises(ZookeeperLogError, match="negative length"):
            list(ZookeeperLog(HEADER + struct.pack(">qi", 1, -5)))

    @pytest.mark.parametrize("data", [b"", b"ZKLG", b"ZKSN" + bytes(20), b"[2026-11-21 03:28:31,911] INFO"])
    def test_other_files_are_refused(self, data: bytes) -> None:
        with pytest.raises(ZookeeperLogError, match="not a ZooKeeper transaction log"):
            ZookeeperLog(data)

    def test_an_unknown_version_is_refused(self) -> None:
        with pytest.raises(ZookeeperLogError, match="of version 3"):
            ZookeeperLog(struct.pack(">4siq", b"ZKLG", 3, 0))


@pytest.mark.parametrize("name", capture_names())
def test_every_capture_is_read_to_its_end_in_rising_zxids(name: str, unpacked) -> None:
    for path in (unpacked(name) / "zk-version-2").glob("log.*"):
        reader = ZookeeperLog(path.read_bytes())
        operations = list(reader)
        assert reader.end is LogEnd.COMPLETE
        order = [(operation.zxid, operation.ordinal) for operation in operations]
        assert order == sorted(set(order))
        assert Counter(operation.op for operation in operations)[Op.OTHER] == 0
