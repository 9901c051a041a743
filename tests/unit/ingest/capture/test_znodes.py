"""Znodes: which are read, their lines, and the tree between snapshots."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ingest.capture.zookeeper.tree import ZnodeTree
from ingest.capture.zookeeper.znodes import (
    has_secret_data,
    hidden_line_tail,
    is_leaf,
    is_read,
    is_urgent,
    line_tail,
    snapshot_lines,
    split_chroot,
)

STAT = SimpleNamespace(
    czxid=1, mzxid=2, pzxid=3, ctime=4, mtime=5, version=6, cversion=7, ephemeralOwner=8, numChildren=9
)


@pytest.mark.parametrize(
    ("given", "hosts", "chroot"),
    [
        ("a:2181", "a:2181", ""),
        ("a:2181/", "a:2181", ""),
        ("a:2181,b:2181/kafka", "a:2181,b:2181", "/kafka"),
        ("a:2181/x//y/", "a:2181", "/x/y"),
    ],
)
def test_the_chroot_is_what_follows_the_hosts(given, hosts, chroot):
    assert split_chroot(given) == (hosts, chroot)


@pytest.mark.parametrize("chroot", ["", "/kafka"])
def test_what_is_read_is_judged_below_the_chroot(chroot):
    assert is_read(f"{chroot}/brokers/topics/t", chroot)
    assert is_read(f"{chroot}/consumers", chroot)
    assert not is_read(f"{chroot}/consumers/group", chroot)
    assert has_secret_data(f"{chroot}/config/users/alice", chroot)
    assert has_secret_data(f"{chroot}/delegation_token/tokens/t", chroot)
    assert not has_secret_data(f"{chroot}/config/users", chroot)
    assert not has_secret_data(f"{chroot}/config/topics/users", chroot)
    assert is_leaf(f"{chroot}/brokers/topics/t/partitions/0/state", chroot)
    assert not is_leaf(f"{chroot}/brokers/topics/t", chroot)
    assert is_urgent(f"{chroot}/controller", chroot)
    assert not is_urgent(f"{chroot}/config/topics/t", chroot)


def test_zookeeper_s_own_znodes_are_not_read():
    assert not is_read("/zookeeper", "")


def test_a_line_is_as_the_captures_have_it():
    (line,) = snapshot_lines(1795231998797, [line_tail("/controller", b'{"brokerid":1}', STAT)]).splitlines()
    assert line == (
        b'{"captured_at":1795231998797,"path":"/controller","data":"{\\"brokerid\\":1}","czxid":1,"mzxid":2,"pzxid":3,'
        b'"ctime":4,"mtime":5,"version":6,"cversion":7,"ephemeralOwner":8,"numChildren":9}'
    )


def test_every_line_of_a_snapshot_has_the_round_s_instant():
    lines = snapshot_lines(17, [line_tail("/a", None, STAT), line_tail("/b", b"", STAT)]).splitlines()
    assert [(json.loads(line)["captured_at"], json.loads(line)["data"]) for line in lines] == [(17, None), (17, None)]


def test_no_secret_is_in_a_line():
    config = b'{"version":1,"config":{"ssl.keystore.password":"hunter2","min.insync.replicas":"2"}}'
    line = line_tail("/config/brokers/1", config, STAT)
    assert b"hunter2" not in line
    assert b"min.insync.replicas" in line
    assert b'"data":"[hidden]"' in hidden_line_tail("/config/users/alice", STAT)


def test_data_that_are_no_text_are_written_all_the_same():
    assert json.loads(b"{" + line_tail("/a", b"\xff\x00", STAT))["data"] == "\\xff\x00"


class Server:
    """Znodes as a server has them: paths, and what a tree that reads them sees."""

    def __init__(self, tree: ZnodeTree, *paths: str) -> None:
        self.tree, self.paths = tree, set(paths)
        self.read: list[str] = []

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return [p[len(prefix) :] for p in self.paths if p.startswith(prefix) and "/" not in p[len(prefix) :]]

    def round(self) -> list[bytes]:
        """Read what is stale; gives the snapshot."""
        pending = self.tree.take_stale()
        self.read = []
        while pending:
            path = pending.pop()
            self.read.append(path)
            if path != self.tree.root and path not in self.paths:
                self.tree.gone(path)
            else:
                pending += self.tree.read(path, path.encode(), self.children(path))
        return self.tree.tails()


def test_the_first_round_reads_all_and_the_next_nothing():
    server = Server(ZnodeTree(""), "/a", "/a/b", "/c")
    assert server.round() == [b"/a", b"/a/b", b"/c"]
    server.round()
    assert server.read == []


def test_only_what_fired_is_read_again():
    server = Server(ZnodeTree(""), "/a", "/a/b", "/c")
    server.round()
    server.paths.add("/a/d")
    server.tree.fired("/a")
    assert server.round() == [b"/a", b"/a/b", b"/a/d", b"/c"]
    assert server.read == ["/a", "/a/d"]


def test_what_is_gone_is_gone_with_all_below_it():
    server = Server(ZnodeTree("/k"), "/k", "/k/a", "/k/a/b", "/k/a/b/c", "/k/d")
    server.round()
    server.paths -= {"/k/a", "/k/a/b", "/k/a/b/c"}
    server.tree.fired("/k")
    assert server.round() == [b"/k/d"]
    assert len(server.tree) == 2


def test_a_lost_session_makes_all_be_read_again():
    server = Server(ZnodeTree(""), "/a", "/c")
    server.round()
    server.tree.forget_watches()
    server.round()
    assert sorted(server.read) == ["/", "/a", "/c"]


def test_what_was_not_read_is_read_in_the_next_round():
    server = Server(ZnodeTree(""), "/a")
    server.tree.put_back(server.tree.take_stale())
    assert server.round() == [b"/a"]


def test_in_turn_every_znode_is_read_again_without_its_watch():
    server = Server(ZnodeTree(""), "/a", "/b", "/c")
    server.round()
    taken = [path for _ in range(4) for path in server.tree.take_stale(scrub=1)]
    assert sorted(taken) == ["/", "/a", "/b", "/c"]


def test_what_must_not_be_read_is_in_no_snapshot():
    tree = ZnodeTree("")
    tree.read("/", b"", ["a"])
    tree.read("/a", None, None)
    assert tree.tails() == []
