"""What a capture could not record: outages, each with its beginning and its end, in ``missed.jsonl``."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ingest.capture.clock import now_ms


@dataclass
class _Outage:
    began_ms: int
    reason: str


@dataclass
class _Total:
    outages: int = 0
    lasted_ms: int = 0
    reason: str = ""


class Missed:
    """Keeps which sources are out, and since when; reports and writes when one fails and when it is back.

    ``source`` is what was not recorded, as ``"znodes"``, ``"probes"``; ``what`` narrows it to a broker, a znode or
    a file. May be called from any thread. What it holds grows with the number of sources, not with time.
    """

    def __init__(self, append: Callable[[Iterable[bytes]], None], report: Callable[[str], None]) -> None:
        self._append = append
        self._report = report
        self._lock = threading.Lock()
        self._out: dict[tuple[str, str], _Outage] = {}
        self._totals: dict[tuple[str, str], _Total] = {}

    def lost(self, source: str, what: str, reason: str, since_ms: int | None = None) -> None:
        """The source cannot be recorded from ``since_ms`` (now) on; reported once for each outage."""
        key = (source, what)
        with self._lock:
            if key in self._out:
                self._out[key].reason = reason
                return
            outage = self._out[key] = _Outage(now_ms() if since_ms is None else since_ms, reason)
            self._append([_line(source, what, outage.began_ms, None, reason)])
        self._report(f"{_named(source, what)} not recorded: {reason}")

    def back(self, source: str, what: str) -> None:
        """The source is recorded again; nothing where it was not out."""
        key = (source, what)
        if key not in self._out:  # asked for each answer of each round
            return
        with self._lock:
            outage = self._out.pop(key, None)
            if outage is None:
                return
            lasted = self._ended(key, outage)
        self._report(f"{_named(source, what)} recorded again after {lasted / 1000:.1f} s")

    def once(self, source: str, what: str, reason: str) -> None:
        """Something that is not recorded at all, or that was lost and does not come back."""
        key = (source, what)
        with self._lock:
            total = self._totals.setdefault(key, _Total())
            is_reported = total.outages > 0 and total.reason == reason
            total.outages += 1
            total.reason = reason
            if is_reported:
                return
            now = now_ms()
            self._append([_line(source, what, now, now, reason)])
        self._report(f"{_named(source, what)} not recorded: {reason}")

    def close(self) -> None:
        """The capture ends: outages that last end with it."""
        with self._lock:
            for key in list(self._out):
                self._ended(key, self._out.pop(key))

    def sentences(self) -> tuple[str, ...]:
        """One sentence for each source that was missed at any time."""
        with self._lock:
            return tuple(
                f"{_named(*key)} not recorded"
                + (f" for {total.lasted_ms / 1000:.1f} s" if total.lasted_ms else "")
                + (f" in {total.outages} times" if total.outages > 1 and total.lasted_ms else "")
                + f": {total.reason}"
                for key, total in sorted(self._totals.items())
            )

    def _ended(self, key: tuple[str, str], outage: _Outage) -> int:
        ended = max(now_ms(), outage.began_ms)
        total = self._totals.setdefault(key, _Total())
        total.outages += 1
        total.lasted_ms += ended - outage.began_ms
        total.reason = outage.reason
        self._append([_line(*key, outage.began_ms, ended, outage.reason)])
        return ended - outage.began_ms


def _named(source: str, what: str) -> str:
    return f"{source} of {what}" if what else source


def _line(source: str, what: str, began: int, ended: int | None, reason: str) -> bytes:
    entry = {"missed_from": began, "missed_to": ended, "source": source, "of": what, "reason": reason}
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"
