"""Processes of the lab end with what started them, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.lab.machines.guard import Guard
from jobs.lab.machines.processes import JavaProcess
from jobs.lab.waiting import NeverHappened, wait_for

STARTS_ONE = """
import signal, sys, time
# a shell's background process ignores it, and so do those that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from jobs.lab.machines.guard import Guard
from jobs.lab.machines.processes import JavaProcess
folder = Path(sys.argv[1])
guard = Guard()
process = JavaProcess("sleeper", ["sleep", "600"], folder, folder / "out", guard)
process.start()
if sys.argv[2] == "paused":
    process.pause()
print(process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def guard() -> Iterator[Guard]:
    made = Guard()
    yield made
    made.close()


def process(folder: Path, guard: Guard, *command: str) -> JavaProcess:
    return JavaProcess("sleeper", command or ("sleep", "600"), folder, folder / "out", guard)


def is_there(pid: int) -> bool:
    """A process that runs; a zombie that nobody waited for does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def pid_of(sleeper: JavaProcess) -> int:
    assert sleeper.pid is not None
    return sleeper.pid


@pytest.mark.parametrize("how", ["running", "paused"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_that_is_ended_by_a_signal_leaves_no_process(
    tmp_path: Path, how: str, number: signal.Signals
) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE, str(tmp_path), how], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert program.stdout is not None
    pid = int(program.stdout.readline())
    assert is_there(pid)
    program.send_signal(number)
    program.wait()
    program.stdout.close()
    wait_for("the process is gone", lambda: not is_there(pid))


def test_it_is_started_paused_resumed_and_ended(tmp_path: Path, guard: Guard) -> None:
    sleeper = process(tmp_path, guard)
    assert not sleeper.is_running
    sleeper.start()
    pid = pid_of(sleeper)
    sleeper.pause()
    assert sleeper.is_paused
    assert sleeper.is_running
    sleeper.resume()
    sleeper.terminate()
    sleeper.wait_until_ended()
    assert not is_there(pid)
    assert sleeper.pid is None
    sleeper.start()
    assert pid_of(sleeper) != pid


def test_a_paused_one_is_ended_without_waiting_for_it(tmp_path: Path, guard: Guard) -> None:
    sleeper = process(tmp_path, guard)
    sleeper.start()
    pid = pid_of(sleeper)
    sleeper.pause()
    sleeper.end(within_s=600)
    assert not is_there(pid)


def test_one_that_does_not_end_when_asked_is_said_and_then_killed(tmp_path: Path, guard: Guard) -> None:
    deaf = process(tmp_path, guard, "sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done")
    deaf.start()
    pid = pid_of(deaf)
    wait_for("it has begun", lambda: deaf.last_words() == "deaf")
    deaf.terminate()
    with pytest.raises(NeverHappened, match="sleeper was asked to end"):
        deaf.wait_until_ended(0.2)
    deaf.end(within_s=0.2)
    assert not is_there(pid)


def test_nothing_is_signalled_that_does_not_run(tmp_path: Path, guard: Guard) -> None:
    sleeper = process(tmp_path, guard, "true")
    with pytest.raises(ValueError, match="does not run"):
        sleeper.pause()
    sleeper.start()
    sleeper.wait_until_ended()
    with pytest.raises(ValueError, match="does not run"):
        sleeper.terminate()
    sleeper.kill()


def test_the_guard_kills_what_it_was_told_and_nothing_that_ended(tmp_path: Path) -> None:
    guard = Guard()
    others = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        mine = process(tmp_path, guard)
        mine.start()
        pid = pid_of(mine)
        guard.started(others.pid)
        guard.ended(others.pid)
        guard.close()
        wait_for("the process is gone", lambda: not is_there(pid))
        assert others.poll() is None
    finally:
        os.kill(others.pid, signal.SIGKILL)
        others.wait()
