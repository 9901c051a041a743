"""From the bytes of one transaction to its operations."""

from __future__ import annotations

import pytest

from ingest.readers.zookeeper.columns import CONTAINER_OWNER, session_owner
from ingest.readers.zookeeper.jute import JuteError
from ingest.readers.zookeeper.transactions import Op, Operation, parts
from tests.support.files import jute
from tests.support.files.jute import DIGEST, transaction

CREATE, DELETE, SET_DATA, SET_ACL, CHECK, MULTI, CREATE2, RECONFIG = 1, 2, 5, 7, 13, 14, 15, 16
CREATE_CONTAINER, DELETE_CONTAINER, CREATE_TTL, ERROR, CREATE_SESSION, CLOSE_SESSION = 19, 20, 21, -1, -10, -11


def operations(body: bytes) -> list[Operation]:
    return [part.operation for part in parts(body)]


class TestOperations:
    @pytest.mark.parametrize("kind", [CREATE, CREATE2])
    @pytest.mark.parametrize("digest", [b"", DIGEST])
    def test_create_carries_path_data_owner_and_version_zero(self, kind: int, digest: bytes) -> None:
        body = jute.create("/controller", '{"brokerid":1}', ephemeral=True, parent_cversion=4)
        (operation,) = operations(transaction(3, kind, body, digest=digest, time_ms=1003))
        assert operation == Operation(
            3, 0, 1003, 7, 1, Op.CREATE, "/controller", b'{"brokerid":1}', 0, ephemeral=True, parent_cversion=4
        )
        assert operation.ephemeral_owner == 7

    def test_create_of_versions_before_3_4_ends_after_the_ephemeral_flag(self) -> None:
        body = jute.create("/a", "x", ephemeral=True, parent_cversion=None)
        (operation,) = operations(transaction(3, CREATE, body))
        assert (operation.path, operation.ephemeral, operation.parent_cversion) == ("/a", True, None)

    def test_a_container_is_no_session_s(self) -> None:
        (operation,) = operations(transaction(3, CREATE_CONTAINER, jute.create_container("/a", "x")))
        assert (operation.op, operation.data, operation.ephemeral) == (Op.CREATE, b"x", False)
        assert operation.ephemeral_owner == CONTAINER_OWNER

    def test_a_time_to_live_is_no_session_s(self) -> None:
        (operation,) = operations(transaction(3, CREATE_TTL, jute.create_ttl("/a", "x", ttl_ms=60_000)))
        assert (operation.ttl_ms, operation.ephemeral) == (60_000, False)
        assert operation.ephemeral_owner == -(1 << 56) + 60_000
        assert session_owner(operation.ephemeral_owner) == 0

    @pytest.mark.parametrize("session", [7, 0x1000_0001_2345_0000, -(1 << 56) + (0x018B << 40)])
    def test_a_session_is_told_from_a_time_to_live_even_of_server_255(self, session: int) -> None:
        assert session_owner(session) == session

    def test_set_data_carries_the_version_written(self) -> None:
        (operation,) = operations(transaction(4, SET_DATA, jute.set_data("/a", "y", 9), digest=DIGEST))
        assert (operation.op, operation.data, operation.version) == (Op.SET_DATA, b"y", 9)

    def test_a_znode_without_data_has_none(self) -> None:
        (operation,) = operations(transaction(4, CREATE, jute.create("/a", None)))
        assert operation.data is None

    def test_a_session_begins_with_its_timeout(self) -> None:
        (operation,) = operations(transaction(4, CREATE_SESSION, jute.integer(6000)))
        assert operation.session_timeout_ms == 6000

    @pytest.mark.parametrize(
        ("kind", "body", "op"),
        [
            (DELETE, jute.text("/a"), Op.DELETE),
            (DELETE_CONTAINER, jute.text("/a"), Op.DELETE),
            (SET_ACL, jute.set_acl("/a", 1), Op.SET_ACL),
            (CHECK, jute.check("/a", 2), Op.CHECK),
            (RECONFIG, jute.set_data("/zookeeper/config", "", 1), Op.SET_DATA),
            (ERROR, jute.integer(-110), Op.ERROR),
            (99, b"", Op.OTHER),
            (99, b"of a version to come", Op.OTHER),
            (MULTI, jute.multi(), Op.OTHER),
        ],
    )
    def test_every_kind_has_its_operation(self, kind: int, body: bytes, op: Op) -> None:
        (part,) = parts(transaction(5, kind, body))
        assert part.operation.op is op
        assert part.end == len(transaction(5, kind, body))

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"short", "32 bytes are needed, 5 are left"),
            (transaction(5, DELETE, jute.integer(99) + b"/a"), "99 bytes are announced, 2 are left"),
            (transaction(5, DELETE, jute.integer(-5)), "a value announces -5 bytes"),
            (transaction(5, DELETE, jute.integer(2_000_000_000)), "a value announces 2000000000 bytes"),
            (transaction(5, DELETE, jute.text("a")), "path does not begin with /"),
            (transaction(5, MULTI, jute.integer(2_000_000_000)), "4 bytes are needed, 0 are left"),
        ],
    )
    def test_what_is_no_transaction_says_why(self, body: bytes, message: str) -> None:
        with pytest.raises(JuteError, match=message):
            parts(body)


class TestMulti:
    BODY = jute.multi((CHECK, jute.check("/controller_epoch", 2)), (SET_DATA, jute.set_data("/state", "s", 4)))

    def test_operations_come_in_order_with_one_zxid(self) -> None:
        found = operations(transaction(6, MULTI, self.BODY, digest=DIGEST))
        assert [(each.zxid, each.ordinal, each.op, each.path, each.version) for each in found] == [
            (6, 0, Op.CHECK, "/controller_epoch", 2),
            (6, 1, Op.SET_DATA, "/state", 4),
        ]

    def test_their_bytes_divide_those_of_the_transaction(self) -> None:
        body = transaction(6, MULTI, self.BODY, digest=DIGEST)
        check, write = parts(body)
        assert body[check.end :] == jute.integer(SET_DATA) + jute.buffer(jute.set_data("/state", "s", 4)) + DIGEST
        assert write.end == len(body)

    def test_one_refused_operation_refuses_all_with_its_code_and_keeps_what_was_asked(self) -> None:
        body = jute.multi(
            (SET_DATA, jute.set_data("/state", "zombie", 4)), (ERROR, jute.integer(-103)), (ERROR, jute.integer(-2))
        )
        found = operations(transaction(6, MULTI, body))
        assert [(each.op, each.error) for each in found] == [(Op.ERROR, -103), (Op.ERROR, -103), (Op.ERROR, -2)]
        assert (found[0].path, found[0].data) == ("/state", b"zombie")


class TestClosedSessions:
    @pytest.mark.parametrize("digest", [b"", DIGEST])
    def test_the_paths_listed_since_3_6_are_deletions(self, digest: bytes) -> None:
        body = transaction(5, CLOSE_SESSION, jute.paths("/brokers/ids/1", "/controller"), digest=digest)
        closing, *deletions = operations(body)
        assert (closing.op, closing.paths) == (Op.CLOSE_SESSION, ("/brokers/ids/1", "/controller"))
        assert [(each.ordinal, each.op, each.path) for each in deletions] == [
            (1, Op.DELETE, "/brokers/ids/1"),
            (2, Op.DELETE, "/controller"),
        ]
        assert [part.end for part in parts(body)][-1] == len(body)

    @pytest.mark.parametrize("digest", [b"", DIGEST, jute.integer(2) + jute.long(0), jute.integer(1) + jute.long(4)])
    def test_a_digest_alone_is_no_list_of_paths(self, digest: bytes) -> None:
        (operation,) = operations(transaction(5, CLOSE_SESSION, digest=digest))
        assert operation.paths is None

    def test_a_list_as_long_as_a_digest_is_a_list(self) -> None:
        closing, deletion = operations(transaction(5, CLOSE_SESSION, jute.paths("/abc")))
        assert (closing.paths, deletion.path) == (("/abc",), "/abc")

    @pytest.mark.parametrize("digest", [b"", DIGEST])
    def test_an_empty_list_lists_nothing(self, digest: bytes) -> None:
        (operation,) = operations(transaction(5, CLOSE_SESSION, jute.paths(), digest=digest))
        assert operation == operation._replace(op=Op.CLOSE_SESSION, paths=())
