"""When each process of a broker started: by the first line that says so.

A node of a KRaft cluster tells its start in steps, the controller's before the broker's, seconds apart. Lines between
the first step and the last are of the new process.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class StartStep(IntEnum):
    """What a line of a start says, in the order of one process; a broker of ZooKeeper has the last alone."""

    CONTROLLER_STARTING = 0
    BROKER_LEAVES_SHUTDOWN = 1
    BROKER_STARTING = 2


def process_starts(lines: Iterable[tuple[int, int, StartStep, str]]) -> list[tuple[int, int, str]]:
    """(broker, instant, record) of each process, from (broker, instant, step, record) of all lines of starts.

    >>> lines = [(1, 10, StartStep.CONTROLLER_STARTING, "a"), (1, 13, StartStep.BROKER_STARTING, "b")]
    >>> process_starts([*lines, (1, 90, StartStep.BROKER_STARTING, "c")])
    [(1, 10, 'a'), (1, 90, 'c')]
    """
    found: list[tuple[int, int, str]] = []
    last: dict[int, StartStep] = {}
    for broker_id, at, step, record_id in sorted(lines):
        if broker_id not in last or step <= last[broker_id]:
            found.append((broker_id, at, record_id))
        last[broker_id] = step
    return found
