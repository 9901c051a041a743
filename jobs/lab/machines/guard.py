"""No process outlives the program that started it, however that ends.

The program tells the guard, a small process of its own, the id of each process group that it starts and of each that
has ended. When the program goes, be it by a signal that leaves no time to tidy up, the pipe between the two closes, and
the guard kills the groups that are left: these, by their ids, and nothing else.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from typing import Final

_PROGRAM: Final = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    change, group = line.split()
    (groups.add if change == "+" else groups.discard)(int(group))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class Guard:
    """Remembers process groups for the process that made it; its own process begins with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def started(self, group: int) -> None:
        """This group must not outlive us."""
        with self._lock:
            if self._process is None:
                self._process = _begun()
            _notify(self._process, "+", group)

    def ended(self, group: int) -> None:
        """Its leader was waited for: the id may be another's from now on."""
        with self._lock:
            if self._process is not None:
                _notify(self._process, "-", group)

    def close(self) -> None:
        """Kill what is left, and end."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()


def _begun() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )


def _notify(process: subprocess.Popen[str], change: str, group: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{change} {group}\n")
    process.stdin.flush()
