"""A tree of znodes as it was last read, and the znodes of it that must be read again.

ZooKeeper notifies a client of a change before it answers any later request of that client. So a znode whose watch has
not fired when an answer to ``sync`` is there has not changed up to that answer: only those that fired, and those new
below a parent, are read again, and the snapshot is as good as if all had been.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from ingest.capture.zookeeper.znodes import child, is_read


class _Read(NamedTuple):
    tail: bytes | None
    children: tuple[str, ...]


class ZnodeTree:
    """The znodes below ``chroot`` as they were last read, and the paths to read.

    ``fired`` and ``forget_watches`` may be called from a watch's thread; all else from one thread. ``tail`` of a
    znode that must not be read is None: it is in no snapshot.
    """

    def __init__(self, chroot: str) -> None:
        self.root = chroot or "/"
        self._chroot = chroot
        self._nodes: dict[str, _Read] = {}
        self._order: list[str] | None = None
        self._lock = threading.Lock()
        self._stale: set[str] = {self.root}
        self._all_stale = False
        self._scrub: Iterator[str] = iter(())

    def __len__(self) -> int:
        return len(self._nodes)

    def fired(self, path: str) -> None:
        """The znode changed, or its children did."""
        with self._lock:
            self._stale.add(path)

    def forget_watches(self) -> None:
        """No watch holds any longer: everything must be read again. Called for each of thousands of watches."""
        self._all_stale = True

    def take_stale(self, scrub: int = 0) -> list[str]:
        """The paths to read now, and ``scrub`` more in turn, should a watch ever have been lost."""
        with self._lock:
            taken, self._stale = self._stale, set()
            if self._all_stale:
                self._all_stale = False
                taken.update(self._nodes)
        if self.root not in self._nodes:  # it may come yet, and no watch would fire
            taken.add(self.root)
        taken.update(self._next_scrubbed(scrub))
        return sorted(taken)

    def put_back(self, paths: Iterable[str]) -> None:
        """Paths that were taken and could not be read."""
        with self._lock:
            self._stale.update(paths)

    def read(self, path: str, tail: bytes | None, children: Iterable[str] | None) -> list[str]:
        """The znode was read; gives those of its children that are not known yet: to be read, too.

        ``children`` is None where they were not asked for.
        """
        before = self._nodes.get(path)
        names = tuple(sorted(children)) if children is not None else ()
        if before is None:
            self._order = None
        else:
            for gone in set(before.children).difference(names):
                self.gone(child(path, gone))
        self._nodes[path] = _Read(tail, names)
        paths = (child(path, name) for name in names)
        return [one for one in paths if one not in self._nodes and is_read(one, self._chroot)]

    def gone(self, path: str) -> None:
        """The znode is not there, nor anything below it."""
        pending = [path]
        while pending:
            one = pending.pop()
            node = self._nodes.pop(one, None)
            if node is not None:
                self._order = None
                pending.extend(child(one, name) for name in node.children)

    def children(self, path: str) -> tuple[str, ...]:
        """The names of the znode's children when it was last read; none where it was not. May be called from any
        thread."""
        node = self._nodes.get(path)
        return () if node is None else node.children

    def tails(self) -> list[bytes]:
        """The lines of a snapshot, in the order of their paths; the chroot itself is not among them."""
        if self._order is None:
            self._order = sorted(self._nodes)
        nodes = self._nodes
        return [tail for path in self._order if path != self.root and (tail := nodes[path].tail) is not None]

    def _next_scrubbed(self, count: int) -> list[str]:
        found = list(islice(self._scrub, count))
        if len(found) < count:
            self._scrub = iter(sorted(self._nodes))
            found += islice(self._scrub, count - len(found))
        return found
