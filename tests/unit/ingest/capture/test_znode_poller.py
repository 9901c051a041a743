"""The poller against a session that stands for kazoo's: what is asked, and what becomes of failures."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat

from ingest.capture.zookeeper.poller import SnapshotFailed, ZnodePoller


class Answer:
    """kazoo's AsyncResult, answered already."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self, timeout: float) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Session:
    """Znodes by path, their watches, and a count of what was asked."""

    def __init__(self, **znodes: bytes) -> None:
        self.znodes: dict[str, bytes] = {"/": b""}
        self.denied: set[str] = set()
        self.connected = True
        self.breaks_after: int | None = None
        self.asked: Counter[str] = Counter()
        self.data_asked: list[str] = []
        self.handler = self
        self._watches: dict[tuple[str, bool], set[Any]] = defaultdict(set)

    def put(self, path: str, data: bytes = b"") -> None:
        is_new = path not in self.znodes
        self.znodes[path] = data
        self._fire(path, False, EventType.CHANGED)
        if is_new:
            self._fire(path.rpartition("/")[0] or "/", True, EventType.CHILD)

    def remove(self, path: str) -> None:
        del self.znodes[path]
        self._fire(path, False, EventType.DELETED)
        self._fire(path, True, EventType.DELETED)
        self._fire(path.rpartition("/")[0] or "/", True, EventType.CHILD)

    def lose(self) -> None:
        """As kazoo tells that no watch holds any longer."""
        for watches in list(self._watches.values()):
            for watch in watches:
                watch(WatchedEvent(EventType.NONE, "CONNECTING", None))
        self._watches.clear()

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def sync_async(self, path: str) -> Answer:
        return self._answer("sync", path, lambda: path)

    def get_async(self, path: str, watch: Any) -> Answer:
        self.data_asked.append(path)
        self._watches[path, False].add(watch)
        return self._answer("get", path, lambda: (self.znodes[path], self._stat(path)))

    def exists_async(self, path: str, watch: Any) -> Answer:
        self._watches[path, False].add(watch)
        return self._answer("exists", path, lambda: self._stat(path) if path in self.znodes else None)

    def get_children_async(self, path: str, watch: Any) -> Answer:
        self._watches[path, True].add(watch)
        return self._answer("children", path, lambda: self._children(path))

    def _answer(self, kind: str, path: str, value: Callable[[], Any]) -> Answer:
        self.asked[kind] += 1
        if self.breaks_after is not None and self.asked.total() > self.breaks_after:
            return Answer(ConnectionLoss())
        if path in self.denied:
            return Answer(NoAuthError())
        try:
            return Answer(value())
        except KeyError:
            return Answer(NoNodeError())

    def _children(self, path: str) -> list[str]:
        if path not in self.znodes:
            raise KeyError(path)
        return [
            name.rpartition("/")[2] for name in self.znodes if name != "/" and (name.rpartition("/")[0] or "/") == path
        ]

    def _stat(self, path: str) -> ZnodeStat:
        return ZnodeStat(1, 2, 3, 4, 5, 6, 7, 0, len(self.znodes[path]), len(self._children(path)), 8)

    def _fire(self, path: str, of_children: bool, kind: str) -> None:
        for watch in self._watches.pop((path, of_children), set()):
            watch(WatchedEvent(kind, "CONNECTED", path))


class Polled:
    """A poller with its session."""

    def __init__(self, chroot: str = "") -> None:
        self.session = Session()
        for path in ("/brokers", "/brokers/ids", "/brokers/ids/1", "/config", "/config/users", "/config/users/alice"):
            self.session.put(path, b"{}")
        self.woken: list[bool] = []
        self.refused: list[str] = []
        self.poller = ZnodePoller(
            self.session,
            chroot,
            reads_per_second=100_000,
            timeout_s=1.0,
            wake=lambda: self.woken.append(True),
            refused=self.refused.append,
        )

    def round(self) -> dict[str, Any]:
        """Data by path of a snapshot."""
        self.session.asked.clear()
        self.session.data_asked.clear()
        snapshot = self.poller.snapshot(1795231546593, lambda: True)
        assert snapshot is not None
        return {entry["path"]: entry["data"] for entry in map(json.loads, snapshot.splitlines())}


@pytest.fixture
def polled() -> Polled:
    return Polled()


def test_a_secret_is_never_asked_for(polled):
    assert polled.round()["/config/users/alice"] == "[hidden]"
    assert "/config/users/alice" not in polled.session.data_asked


def test_an_unchanged_tree_costs_one_sync_and_the_znode_whose_turn_it_is(polled):
    first = polled.round()
    assert polled.round() == first
    assert polled.session.asked["sync"] == 1
    assert polled.session.asked.total() <= 3


def test_a_change_is_in_the_next_snapshot_and_begins_it_at_once(polled):
    polled.round()
    polled.session.put("/brokers/ids/1", b"new")
    polled.session.put("/brokers/ids/2", b"two")
    assert polled.woken
    assert {path: data for path, data in polled.round().items() if "/ids/" in path} == {
        "/brokers/ids/1": "new",
        "/brokers/ids/2": "two",
    }


def test_a_change_of_configuration_waits_for_its_round(polled):
    polled.round()
    polled.session.put("/config/topics", b"x")
    assert not polled.woken
    assert polled.round()["/config/topics"] == "x"


def test_what_is_deleted_is_in_no_later_snapshot(polled):
    polled.round()
    polled.session.remove("/brokers/ids/1")
    assert "/brokers/ids/1" not in polled.round()


def test_a_lost_connection_is_said_and_all_is_read_again(polled):
    polled.round()
    polled.session.lose()
    polled.session.connected = False
    with pytest.raises(SnapshotFailed, match="no connection to ZooKeeper"):
        polled.poller.snapshot(1, lambda: True)
    polled.session.connected = True
    polled.session.put("/brokers/ids/1", b"unseen")
    assert polled.round()["/brokers/ids/1"] == "unseen"


@pytest.mark.parametrize("after", range(13))
def test_wherever_the_connection_breaks_the_next_snapshot_is_whole(after):
    polled = Polled()
    polled.session.breaks_after = after
    with pytest.raises(SnapshotFailed, match="the connection to ZooKeeper was lost"):
        polled.poller.snapshot(1, lambda: True)
    polled.session.breaks_after = None
    assert polled.round() == Polled().round()


def test_a_round_that_is_over_gives_no_snapshot_and_keeps_what_was_read(polled):
    chances = iter([True, False])
    assert polled.poller.snapshot(1, lambda: next(chances)) is None
    assert polled.round() == Polled().round()


def test_what_must_not_be_read_is_named_and_left_out(polled):
    polled.session.denied.add("/config")
    assert sorted(polled.round()) == ["/brokers", "/brokers/ids", "/brokers/ids/1"]
    assert polled.refused == ["/config"]


def test_a_chroot_may_come_later():
    polled = Polled("/kafka")
    with pytest.raises(SnapshotFailed, match="no znode below the chroot"):
        polled.round()
    for path in ("/kafka", "/kafka/brokers", "/kafka/brokers/ids"):
        polled.session.put(path)
    assert list(polled.round()) == ["/kafka/brokers", "/kafka/brokers/ids"]
