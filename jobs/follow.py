"""``ingest PATH... --follow``: takes what the files get, as they get it, until it is stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from jobs.job import RunReport

_LOOK_SECONDS: Final = 0.5


def follow_until_stopped(
    lake: Any,
    params: Any,
    options: Any,
    progress: Callable[[str], None],
    summary_of: Callable[[Any], RunReport],
    is_over: Callable[[int], bool] = lambda batches: False,
) -> RunReport:
    """Follow until SIGINT or SIGTERM; the report sums up all batches. ``is_over`` ends it earlier, by their number."""
    from ingest.run.following import follow

    total: list[Any] = []
    stopped = threading.Event()

    def each(report: Any) -> None:
        total[:] = [_sum(total[0], report) if total else report]
        progress(f"{len(params.paths)} paths followed, {total[0].records_kept} records taken so far")

    with _stop_at_signals(stopped):
        failures: list[Exception] = []
        query = follow(
            lake,
            params.paths,
            options,
            progress,
            interval_seconds=params.interval_seconds,
            each=each,
            failed=failures.append,
        )
        batches = 0
        try:
            while not stopped.is_set() and not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]  # takes fractions, too
                last = query.lastProgress
                batches = batches if last is None else last["batchId"] + 1
                if is_over(batches) and not query.status["isTriggerActive"]:
                    break
        except Exception as error:
            raise (failures[0] if failures else error) from None
        finally:
            query.stop()
    if not total:
        return RunReport(summary=("nothing new came while the paths were followed",))
    return summary_of(total[0])


def _sum(before: Any, now: Any) -> Any:
    """What both runs did together; what a file is known for is as the later one saw it."""
    return replace(
        now,
        files_new=before.files_new + now.files_new,
        files_grown=before.files_grown + now.files_grown,
        files_rejected=before.files_rejected + now.files_rejected,
        records_read=before.records_read + now.records_read,
        records_kept=before.records_kept + now.records_kept,
        records_rejected=before.records_rejected + now.records_rejected,
    )


@contextmanager
def _stop_at_signals(stopped: threading.Event) -> Iterator[None]:
    """Within it, SIGINT and SIGTERM set the event instead of ending the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, lambda *_: stopped.set())
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
