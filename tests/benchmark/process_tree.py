"""What this process and all below it cost: processors' time, and how much memory they held at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_EVERY_S: Final = 0.5


class ProcessTree:
    """Watches memory from its making on; :meth:`stop` ends that."""

    def __init__(self) -> None:
        #: The most memory that all had at once, bytes; pages that several share count for each.
        self.peak_bytes = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def cpu_seconds(self) -> float:
        """The time of all that live, and of those that ended."""
        return cpu_seconds()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, sum(pages for _, pages in _tree()) * _PAGE)


def cpu_seconds() -> float:
    """What this process and all below it have spent so far."""
    return sum(ticks for ticks, _ in _tree()) / _TICKS


def _tree() -> Iterator[tuple[int, int]]:
    """Of each process its ticks, with those of its children that it waited for, and its resident pages."""
    children: dict[int, list[tuple[int, int, int]]] = {}
    own = (0, 0)
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            values = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        ticks, pages = sum(map(int, values[11:15])), int(values[21])
        if int(folder.name) == os.getpid():
            own = (ticks, pages)
        children.setdefault(int(values[1]), []).append((int(folder.name), ticks, pages))
    yield own
    waiting = [os.getpid()]
    while waiting:
        for process, ticks, pages in children.get(waiting.pop(), ()):
            yield ticks, pages
            waiting.append(process)
