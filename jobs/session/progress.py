"""What a user sees while a job runs: the stage, and how far Spark is in it."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from jobs.session.printable import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REFRESH_S: Final = 0.5
_HEARTBEAT_S: Final = 30.0


class Progress:
    """Called with a sentence at the start of each stage.

    On a terminal the running stage is one line that is redrawn with its seconds and Spark's tasks; elsewhere each
    stage is a plain line, behind the seconds since the first began, with another every half minute while it lasts. An
    empty sentence ends the running stage
    and begins none. Nothing at all when ``quiet``. Results never go through here: this is standard error.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        #: Each stage that has ended, and how many seconds it took.
        self.stages: list[tuple[str, float]] = []
        self._quiet = quiet
        self._redraws = not quiet and self._stream.isatty()
        self._stage = ""
        self._began = self._first_began = 0.0
        self._last_line = 0.0
        self._spark: SparkSession | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not self._quiet:
            self._thread = threading.Thread(target=self._refresh, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        with self._lock:
            self._end_stage()
            self._spark = None

    def __call__(self, stage: str) -> None:
        with self._lock:
            self._end_stage()
            if not stage:
                return
            self._stage, self._began = printable(stage), time.monotonic()
            self._last_line = self._began
            self._write(f"\r\x1b[K{self._stage} ..." if self._redraws else self._line(self._stage))

    def watch(self, spark: SparkSession) -> None:
        """Show this session's tasks from now on."""
        self._spark = spark

    def _refresh(self) -> None:
        while not self._stopping.wait(_REFRESH_S):
            tasks = self._tasks()
            with self._lock:
                if not self._stage:
                    continue
                now = time.monotonic()
                text = f"{self._stage} ... {now - self._began:.0f} s{tasks}"
                if self._redraws:
                    self._write(f"\r\x1b[K{text}")
                elif now - self._last_line >= _HEARTBEAT_S:
                    self._last_line = now
                    self._write(self._line(text))

    def _tasks(self) -> str:
        """Tasks done and started of the stages that run now, over all of Spark's jobs."""
        spark = self._spark
        if spark is None:
            return ""
        try:
            tracker = spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Exception:  # the session may stop at any moment; progress must not fail a job
            return ""
        total = sum(stage.numTasks for stage in stages if stage)
        done = sum(stage.numCompletedTasks for stage in stages if stage)
        return f", {done} of {total} tasks" if total else ""

    def _line(self, text: str) -> str:
        self._first_began = self._first_began or self._began
        return f"{time.monotonic() - self._first_began:6.1f} s  {text}\n"

    def _end_stage(self) -> None:
        if self._stage:
            seconds = time.monotonic() - self._began
            self.stages.append((self._stage, seconds))
            if self._redraws:
                self._write(f"\r\x1b[K{self._stage}: {seconds:.1f} s\n")
        self._stage = ""

    def _write(self, text: str) -> None:
        if self._quiet:
            return
        self._stream.write(text)
        self._stream.flush()


def silent(stage: str) -> None:
    """Progress for callers who want none."""
