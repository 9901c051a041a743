"""Records a live cluster into a capture folder that every other command takes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ingest.capture.params import BrokerFiles, CaptureError, CaptureParams, CaptureSummary


def run_capture(
    params: CaptureParams, stop: threading.Event, report: Callable[[str], None] = lambda sentence: None
) -> CaptureSummary:
    """Record until ``stop`` is set, or as many rounds or seconds as asked; may be called from any thread.

    ``report`` is given a sentence when something is lost or found again. Raises :class:`CaptureError` where the
    capture cannot begin (address, credentials, chroot, permission, folder) or the folder cannot be written.
    """
    from ingest.capture.running import run  # the clients of Kafka and ZooKeeper, only where they are used

    return run(params, stop, report)


__all__ = ["BrokerFiles", "CaptureError", "CaptureParams", "CaptureSummary", "run_capture"]
