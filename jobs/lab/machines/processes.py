"""One Java process of the lab: started, paused, ended by its id, never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jobs.lab.machines.guard import Guard
from jobs.lab.waiting import PATIENCE_S, NeverHappened

#: Small and quick to start; UTC, since the logs carry no zone.
JVM_OPTIONS: Final = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Duser.timezone=UTC",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)


class JavaProcess:
    """A server that may run several times, one after the other, each in a process group of its own.

    Its standard output is appended to ``output``; ``log`` is where it logs. ``name`` is for sentences.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, output: Path, guard: Guard, log: Path | None = None
    ) -> None:
        self.name = name
        self._command = list(command)
        self._folder = folder
        self._output = output
        self._guard = guard
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.is_paused = False

    @property
    def pid(self) -> int | None:
        """Of the running process; None where there is none."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; whether it is ready is another's question."""
        if self.is_running:
            raise ValueError(f"{self.name} runs already")
        self._forget()
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard.started(self._process.pid)

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and does nothing."""
        self._signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT."""
        self.is_paused = False
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        if self.is_running:
            self._signal(signal.SIGKILL)
        self._wait(PATIENCE_S)

    def terminate(self) -> None:
        """SIGTERM: it shuts down in its own time; :meth:`wait_until_ended` waits for that."""
        self._signal(signal.SIGTERM)

    def wait_until_ended(self, within_s: float = PATIENCE_S) -> None:
        """:raises NeverHappened: where it still runs."""
        try:
            self._wait(within_s)
        except subprocess.TimeoutExpired:
            raise NeverHappened(f"{self.name} was asked to end: it has not within {within_s:.0f} s") from None

    def end(self, within_s: float) -> None:
        """Have it ended: by SIGTERM, or SIGKILL where that takes longer than ``within_s`` or it is paused."""
        if self.is_running and not self.is_paused:
            self.terminate()
            with contextlib.suppress(NeverHappened):
                self.wait_until_ended(within_s)
        self.kill()

    def last_words(self, count: int = 12) -> str:
        """The last lines that it printed, or logged where it printed none."""
        for file in (self._output, self._log):
            with contextlib.suppress(OSError):
                lines = [] if file is None else file.read_text(errors="replace").splitlines()
                if lines:
                    return "\n".join(lines[-count:])
        return ""

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.is_running:
            raise ValueError(f"{self.name} does not run")
        os.killpg(self._process.pid, number)

    def _wait(self, within_s: float) -> None:
        if self._process is not None:
            self._process.wait(within_s)
            self._forget()

    def _forget(self) -> None:
        """The process has ended: nobody may signal its id any more."""
        if self._process is not None:
            self._guard.ended(self._process.pid)
            self._process = None
        self.is_paused = False
