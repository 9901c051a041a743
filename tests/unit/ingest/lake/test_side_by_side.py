"""Actions that run beside each other, and who waits for them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from ingest.lake.delta import side_by_side


def test_the_first_failure_is_raised_when_all_that_run_have_ended() -> None:
    ended, both_run = [], threading.Barrier(2)

    def action(number: int) -> None:
        both_run.wait(30)
        if number == 0:
            raise ValueError("the first")
        ended.append(number)

    with pytest.raises(ValueError, match="the first"):
        side_by_side(action, [0, 1])
    assert ended == [1]


@pytest.fixture
def is_interruptible() -> Iterator[None]:
    """A process that a script starts in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("is_interruptible")
def test_who_interrupts_waits_for_nothing_that_runs_and_begins_nothing_more() -> None:
    begun: list[int] = []
    ended: list[int] = []
    may_end = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def action(number: int) -> None:
        begun.append(number)
        if len(begun) == 1:
            threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT)).start()
        may_end.wait(20)
        ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        side_by_side(action, range(100))
    assert ended == []
    may_end.set()
    assert len(begun) < 100
