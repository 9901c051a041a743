"""Replaying transactions: against hand-made histories, ZooKeeper's own snapshots, and what clients read."""

from __future__ import annotations

import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ingest.containers.snappy import SnappyStream
from ingest.readers.zookeeper.columns import CONTAINER_OWNER, ttl_owner
from ingest.readers.zookeeper.snapshot_format import Ending, SnapshotParser, snapshot_zxid
from ingest.readers.zookeeper.transaction_log import operations
from ingest.readers.zookeeper.transactions import Op, Operation
from tests.oracles.znode_replay import Znode, ZnodeTree, close_sessions, new_tree
from tests.support.captures.packed import capture_names, extract
from tests.support.files import jute
from tests.support.files.jute import log, transaction

REAL = Path(__file__).parent / "data"


def brief(found: list[Operation]) -> list[tuple[int, str, str | None]]:
    return [(operation.zxid, operation.op.value, operation.path) for operation in found]


def replayed(*transactions: bytes, tree: ZnodeTree | None = None) -> ZnodeTree:
    tree = tree or new_tree()
    tree.replay(operations([log(*transactions)]), after_zxid=tree.zxid)
    return tree


def tree_in(data: bytes) -> ZnodeTree:
    """The tree that a whole snapshot holds."""
    tree = ZnodeTree()
    parser = SnapshotParser(tree.sessions.__setitem__)
    for node in parser.take(data):
        stat = (node.czxid, node.mzxid, node.pzxid, node.ctime_ms, node.mtime_ms, node.version)
        znode = Znode(node.data, *stat, node.child_creates, node.acl_version, node.ephemeral_owner)
        tree.add(node.path, znode)
    parser.finish()
    assert parser.ending is Ending.WHOLE
    return tree


def logged(folder: Path, below: str = "zk-version-2") -> list[Operation]:
    """The operations of all logs, in order."""
    logs = sorted((folder / below).glob("log.*"), key=lambda path: int(path.suffix[1:], 16))
    return [operation for path in logs for operation in operations([path.read_bytes()])]


class TestTree:
    def test_children_are_counted_as_the_server_and_as_clients_do(self) -> None:
        tree = replayed(
            transaction(1, 1, jute.create("/a", "", parent_cversion=1)),
            transaction(2, 1, jute.create("/a/b", "", parent_cversion=1)),
            transaction(3, 1, jute.create("/a/c", "", parent_cversion=2)),
            transaction(4, 2, jute.text("/a/b")),
        )
        znode = tree.nodes["/a"]
        assert (znode.child_creates, znode.cversion, znode.pzxid, znode.children) == (2, 3, 4, {"c"})

    def test_a_write_changes_data_version_and_its_transaction(self) -> None:
        tree = replayed(transaction(1, 1, jute.create("/a", "x")), transaction(2, 5, jute.set_data("/a", "y", 1)))
        znode = tree.nodes["/a"]
        assert (znode.data, znode.version, znode.czxid, znode.mzxid) == (b"y", 1, 1, 2)
        assert znode.mtime_ms - znode.ctime_ms == 1

    @pytest.mark.parametrize("listed", [b"", jute.paths("/e"), jute.paths()])
    def test_ephemeral_znodes_go_with_their_session_whether_listed_or_not(self, listed: bytes) -> None:
        tree = replayed(
            transaction(1, -10, jute.integer(6000)),
            transaction(2, 1, jute.create("/e", "", ephemeral=True)),
            transaction(3, 19, jute.create_container("/container", "")),
            transaction(4, 21, jute.create_ttl("/ttl", "", 5000)),
        )
        assert tree.sessions == {7: 6000}
        assert tree.nodes["/container"].ephemeral_owner == CONTAINER_OWNER
        assert tree.nodes["/ttl"].ephemeral_owner == ttl_owner(5000)
        replayed(transaction(5, -11, listed), tree=tree)
        assert {"/e", "/container", "/ttl"} & set(tree.nodes) == {"/container", "/ttl"}
        assert (tree.sessions, tree.nodes["/"].pzxid) == ({}, 5)

    def test_a_listed_path_goes_even_if_its_creation_was_not_seen(self) -> None:
        tree = new_tree()
        tree.add("/e", Znode(b"", 1, 1, 1, 0, 0))
        replayed(transaction(5, -11, jute.paths("/e")), tree=tree)
        assert "/e" not in tree.nodes

    def test_a_refused_multi_changes_nothing(self) -> None:
        body = jute.multi((1, jute.create("/a", "")), (-1, jute.integer(-110)))
        assert replayed(transaction(1, 14, body)).nodes == new_tree().nodes

    def test_a_fuzzy_snapshot_becomes_right_whatever_it_caught(self) -> None:
        history = [
            transaction(1, 1, jute.create("/a", "1", parent_cversion=1)),
            transaction(2, 1, jute.create("/a/x", "1", parent_cversion=1)),
            transaction(3, 5, jute.set_data("/a", "2", 1)),
            transaction(4, 2, jute.text("/a/x")),
            transaction(5, 1, jute.create("/a/x", "2", parent_cversion=2)),
            transaction(6, 1, jute.create("/b", "", ephemeral=True, parent_cversion=2)),
            transaction(7, -11, jute.paths("/b")),
            transaction(8, 5, jute.set_data("/a/x", "3", 1)),
        ]
        truth = replayed(*history)
        states = [replayed(*history[:count]) for count in range(2, len(history) + 1)]
        for root in states:
            for later in states[states.index(root) :]:
                # A snapshot begun after transaction 2 that read the root early and what is below it late.
                fuzzy = ZnodeTree()
                for path in sorted(later.nodes, key=lambda path: (path.count("/"), path)):
                    source = root if path in ("/", "/a") and path in root.nodes else later
                    znode = source.nodes[path]
                    fuzzy.add(path, Znode(*(getattr(znode, name) for name in Znode.__slots__ if name != "children")))
                fuzzy.zxid = 2
                assert replayed(*history, tree=fuzzy).nodes == truth.nodes


class TestClosedSessions:
    def test_a_closed_session_takes_its_ephemeral_znodes_along_in_the_order_of_creation(self) -> None:
        data = log(
            transaction(1, 1, jute.create("/brokers/ids/1", "", ephemeral=True)),
            transaction(2, 1, jute.create("/controller", "", ephemeral=True)),
            transaction(3, 1, jute.create("/brokers/ids/2", "", ephemeral=True), session=8),
            transaction(4, 1, jute.create("/config", "")),
            transaction(5, -11),
        )
        closing = [operation for operation in close_sessions(operations([data])) if operation.zxid == 5]
        assert brief(closing) == [
            (5, "close_session", None),
            (5, "delete", "/brokers/ids/1"),
            (5, "delete", "/controller"),
        ]
        assert [operation.ordinal for operation in closing] == [0, 1, 2]

    def test_what_was_deleted_before_is_not_deleted_again(self) -> None:
        data = log(
            transaction(1, 1, jute.create("/controller", "", ephemeral=True)),
            transaction(2, 2, jute.text("/controller")),
            transaction(3, -11),
        )
        found = [op for _, op, _ in brief(list(close_sessions(operations([data]))))]
        assert found == ["create", "delete", "close_session"]

    def test_what_the_transaction_lists_comes_first_and_once(self) -> None:
        data = log(
            transaction(1, 1, jute.create("/a", "", ephemeral=True)),
            transaction(2, 1, jute.create("/b", "", ephemeral=True)),
            transaction(3, -11, jute.paths("/b")),
            transaction(4, -10, jute.integer(1)),
        )
        closing = [operation for operation in close_sessions(operations([data])) if operation.zxid == 3]
        assert [(operation.path, operation.ordinal) for operation in closing] == [(None, 0), ("/b", 1), ("/a", 2)]


@pytest.mark.parametrize("path", sorted(REAL.glob("*/snapshot.*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_replaying_a_capture_gives_the_snapshot_that_zookeeper_took_of_it(path: Path, unpacked) -> None:
    """``data/NAME`` holds what ZooKeeper 3.9.4 wrote after it had read that capture's log."""
    packed = path.read_bytes()
    data = gzip.decompress(packed) if path.suffix == ".gz" else SnappyStream(io.BytesIO(packed)).read(1 << 20)
    theirs, ours = tree_in(data), new_tree()
    ours.replay(logged(unpacked(path.parent.name)), 0, snapshot_zxid(path.name))
    assert ours.nodes == theirs.nodes
    assert ours.sessions == theirs.sessions


@pytest.mark.parametrize("name", capture_names())
def test_a_server_s_first_snapshot_is_the_tree_that_never_was_written(name: str, unpacked) -> None:
    for path in (unpacked(name) / "zk-version-2").glob("snapshot.*"):
        ours = new_tree()
        ours.replay(logged(unpacked(name)), 0, snapshot_zxid(path.name))
        assert ours.nodes == tree_in(path.read_bytes()).nodes


@pytest.mark.parametrize("name", capture_names())
def test_every_znode_that_a_client_read_is_a_state_of_the_replay(name: str, unpacked) -> None:
    """Data, transactions, versions, owner and the number of children, each round of each capture."""
    tree, states = new_tree(), defaultdict(set)
    for operation in logged(unpacked(name)):
        tree.apply(operation)
        parent = (operation.path or "").rpartition("/")[0] or "/"
        for path in {operation.path or "/", parent} if operation.path else set(tree.nodes):
            if path in tree.nodes:
                states[path].add(state_of(tree.nodes[path]))
    read = list(rounds(unpacked(name)))
    assert len(read) > 3
    for znodes in read:
        for path, entry in znodes.items():
            assert state_in(entry) in states[path], path


@pytest.mark.parametrize("name", capture_names())
def test_the_writes_that_clients_saw_are_the_log_s_but_those_hidden_between_two_rounds(name: str, unpacked) -> None:
    written: dict[str, list[Operation]] = defaultdict(list)
    for operation in close_sessions(logged(unpacked(name))):
        if operation.op in (Op.CREATE, Op.SET_DATA):
            written[operation.path or ""].append(operation)
    seen: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for znodes in rounds(unpacked(name)):
        for path, entry in znodes.items():
            seen[path][entry["mzxid"]] = entry
    assert set(seen) <= set(written)
    for path, sightings in seen.items():
        by_zxid = {operation.zxid: operation for operation in written[path]}
        for zxid, entry in sightings.items():
            data = None if entry["data"] is None else entry["data"].encode()
            assert (by_zxid[zxid].version, by_zxid[zxid].data or None) == (entry["version"], data or None)
        ordered = [sightings[zxid] for zxid in sorted(sightings)]
        for before, after in pairwise(ordered):
            hidden = [zxid for zxid in by_zxid if before["mzxid"] < zxid < after["mzxid"]]
            if before["czxid"] == after["czxid"]:
                assert len(hidden) == after["version"] - before["version"] - 1


def rounds(capture: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """The znodes of each round of reading, by path."""
    for path in sorted((capture / "znodes").glob("*.jsonl")):
        yield {entry["path"]: entry for entry in map(json.loads, path.read_text().splitlines())}


def state_of(znode: Znode) -> tuple[Any, ...]:
    data = znode.data.decode() if znode.data else None
    stat = (znode.czxid, znode.mzxid, znode.pzxid, znode.ctime_ms, znode.mtime_ms, znode.version, znode.cversion)
    return data, *stat, znode.ephemeral_owner, len(znode.children)


def state_in(entry: dict[str, Any]) -> tuple[Any, ...]:
    names = ("czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion", "ephemeralOwner", "numChildren")
    return entry["data"] or None, *(entry[name] for name in names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract(REAL / "fuzzy-3.9.4.tar.xz", tmp_path_factory.mktemp("zookeeper")) / "version-2"


@pytest.fixture(scope="module")
def history(folder: Path) -> list[Operation]:
    return logged(folder.parent, "version-2")


class TestRealServer:
    """Four logs and four snapshots of a ZooKeeper 3.9.4 that five clients wrote to: ``data/fuzzy-3.9.4.tar.xz``."""

    def test_two_of_its_snapshots_are_fuzzy(self, folder: Path) -> None:
        ends = {}
        for path in folder.glob("snapshot.*"):
            parser = SnapshotParser()
            parser.take(path.read_bytes())
            parser.finish()
            ends[path.name] = parser.last_zxid
        assert {name for name, end in ends.items() if end != snapshot_zxid(name)} == {"snapshot.42f", "snapshot.4d7"}

    @pytest.mark.parametrize("start", ["snapshot.37a", "snapshot.42f", "snapshot.4d7"])
    def test_each_leads_to_the_next_whether_it_is_fuzzy_or_not(
        self, start: str, folder: Path, history: list[Operation]
    ) -> None:
        tree, target = tree_in((folder / start).read_bytes()), tree_in((folder / "snapshot.583").read_bytes())
        assert {"/container", "/ttl"} <= set(tree.nodes)
        tree.replay(history, snapshot_zxid(start) or 0, 0x583)
        assert tree.nodes == target.nodes
        assert tree.sessions == target.sessions

    def test_its_logs_hold_refused_multis_and_both_forms_of_closed_sessions(self, history: list[Operation]) -> None:
        assert any(operation.op is Op.ERROR and operation.path for operation in history)
        closed = [operation for operation in history if operation.op is Op.CLOSE_SESSION]
        assert {bool(operation.paths) for operation in closed} == {True, False}
        assert {operation.path for operation in history if operation.op is Op.SET_ACL}
