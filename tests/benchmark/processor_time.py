"""What a command costs in seconds of the processors' time: its own, Java's, and that of every Python worker."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

_PR_SET_CHILD_SUBREAPER: Final = 36


class Cost(NamedTuple):
    """``busy_s``: all processors together; ``lasted_s``: by the clock; ``out``: what the command printed."""

    busy_s: float
    lasted_s: float
    out: str


def cost_of(command: Sequence[str]) -> Cost:
    """Run a command; raise ``RuntimeError`` where it fails."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_run, args=(command, theirs))
    process.start()
    code, cost = ours.recv()
    process.join()
    if code not in (0, 3):
        raise RuntimeError(f"{' '.join(command)} ended with exit code {code}: {cost.out}")
    return cost


def _run(command: Sequence[str], answer: Connection) -> None:
    """Whatever is left of the command's processes becomes a child of this one, which waits for all of them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lasted = time.monotonic() - began
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer.send((done.returncode, Cost(used.ru_utime + used.ru_stime, lasted, done.stdout)))
