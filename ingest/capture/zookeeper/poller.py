"""Reads the znodes below Kafka's chroot through kazoo, round by round; writes nothing to ZooKeeper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import Callback, EventType, WatchedEvent

from ingest.capture.clock import Pace
from ingest.capture.zookeeper.tree import ZnodeTree
from ingest.capture.zookeeper.znodes import (
    has_secret_data,
    hidden_line_tail,
    is_leaf,
    is_urgent,
    line_tail,
    snapshot_lines,
)

#: So many requests are under way at a time.
_PIPELINE: Final = 128
#: A znode whose watch does not fire is read again after some so many rounds all the same.
_SCRUB_ROUNDS: Final = 300


class SnapshotFailed(Exception):
    """The znodes could not be read in this round, for the reason given."""


class ZnodePoller:
    """The tree of znodes as one session sees it.

    ``wake`` is called, from a thread of kazoo's, when a znode changed that matters at once; ``refused`` with the
    path of a znode that must not be read. Everything else is called from one thread.
    """

    def __init__(
        self,
        client: KazooClient,
        chroot: str,
        *,
        reads_per_second: int,
        timeout_s: float,
        wake: Callable[[], None],
        refused: Callable[[str], None],
    ) -> None:
        self._client = client
        self._chroot = chroot
        self._tree = ZnodeTree(chroot)
        self._pace = Pace(reads_per_second)
        self._timeout = timeout_s
        self._wake = wake
        self._refused = refused
        self.reads = 0
        # One object, so that kazoo holds each znode's watch once however often it is set.
        self._on_event = self._event

    def snapshot(self, captured_at_ms: int, is_wanted: Callable[[], bool]) -> bytes | None:
        """The whole tree as it is now; None where ``is_wanted`` no longer says so: what was read is kept.

        Raises :class:`SnapshotFailed`.
        """
        if not self._client.connected:
            raise SnapshotFailed("there is no connection to ZooKeeper")
        pending: list[str] = []
        try:
            self._client.sync_async(self._tree.root).get(timeout=self._timeout)
            self._drain_events()
            pending = self._tree.take_stale(1 + len(self._tree) // _SCRUB_ROUNDS)
            while pending:
                if not is_wanted():
                    self._tree.put_back(pending)
                    return None
                chunk, pending = pending[:_PIPELINE], pending[_PIPELINE:]
                pending += self._read(chunk)
        except (KazooException, KazooTimeoutError) as error:
            self._tree.put_back(pending)
            raise SnapshotFailed(_reason(error)) from error
        tails = self._tree.tails()
        if not tails:
            raise SnapshotFailed("there is no znode below the chroot that may be read")
        return snapshot_lines(captured_at_ms, tails)

    def children(self, path: str) -> tuple[str, ...]:
        """The names below a znode as it was last read; may be called from any thread."""
        return self._tree.children(path)

    def _read(self, paths: Sequence[str]) -> list[str]:
        """Read these znodes; gives those below them that are new."""
        wait = self._pace.delay(len(paths))
        if wait > 0:
            time.sleep(wait)
        try:
            asked = [(path, *self._ask(path)) for path in paths]
            return [new for path, data, children in asked for new in self._take(path, data, children)]
        except (KazooException, KazooTimeoutError):
            self._tree.put_back(paths)
            raise

    def _ask(self, path: str) -> tuple[Any, Any]:
        if has_secret_data(path, self._chroot):
            data = self._client.exists_async(path, self._on_event)
        else:
            data = self._client.get_async(path, self._on_event)
        leaf = is_leaf(path, self._chroot)
        return data, None if leaf else self._client.get_children_async(path, self._on_event)

    def _take(self, path: str, data: Any, children: Any) -> list[str]:
        tail: bytes | None = None
        try:
            answer = data.get(timeout=self._timeout)
            if answer is None:  # of `exists`
                raise NoNodeError
            is_secret = has_secret_data(path, self._chroot)
            tail = hidden_line_tail(path, answer) if is_secret else line_tail(path, *answer)
            names = None if children is None else children.get(timeout=self._timeout)
        except NoNodeError:
            self._tree.gone(path)
            return []
        except NoAuthError:
            self._refused(path)
            names = None
        self.reads += 1
        return self._tree.read(path, tail, names)

    def _event(self, event: WatchedEvent) -> None:
        if event.type == EventType.NONE or event.path is None:
            self._tree.forget_watches()
            return
        self._tree.fired(event.path)
        if is_urgent(event.path, self._chroot):
            self._wake()

    def _drain_events(self) -> None:
        """Wait until the watches that fired before now were called: kazoo calls them in order, in a thread."""
        reached = threading.Event()
        self._client.handler.dispatch_callback(Callback("watch", reached.set, ()))
        if not reached.wait(self._timeout):
            raise KazooTimeoutError("the watches were not called in time")


def _reason(error: Exception) -> str:
    if isinstance(error, KazooTimeoutError):
        return "ZooKeeper did not answer in time"
    return f"the connection to ZooKeeper was lost ({type(error).__name__})"
