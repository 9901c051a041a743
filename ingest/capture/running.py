"""One run of a capture: its sources, round by round, until it is stopped."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

from ingest.capture.brokers.failures import BrokerUnreachable
from ingest.capture.brokers.probers import BOOTSTRAP, Probers
from ingest.capture.clock import RoundClock, Rounds
from ingest.capture.machine.agent import Agent
from ingest.capture.missed import Missed
from ingest.capture.output import CaptureFolder, JsonLines
from ingest.capture.params import CaptureError, CaptureParams, CaptureSummary
from ingest.capture.settings import kafka_settings, zookeeper_settings
from ingest.capture.zookeeper.source import ZnodeSource

#: What matters at once begins a round earlier, but not sooner than this part of the interval after the last one.
_SOONEST: Final = 0.25
_JOIN_S: Final = 3.0
_NO_METADATA_LOG: Final = (
    "no folder that was given holds __cluster_metadata-0: capture with --log-dirs on a node's machine too"
)


def run(params: CaptureParams, stop: threading.Event, report: Callable[[str], None]) -> CaptureSummary:
    """See :func:`ingest.capture.run_capture`."""
    if not params.has_source:
        raise CaptureError("nothing to capture: name ZooKeeper, bootstrap servers or a broker's folders")
    with contextlib.ExitStack() as stack:
        folder = CaptureFolder(params.out)
        stack.callback(folder.close)
        notes = JsonLines(folder, _missed_file(params))
        stack.callback(notes.close)
        missed = Missed(notes.append, report)
        capture = _Capture(params, folder, missed, stop)
        stack.callback(capture.close)
        capture.open()
        return capture.run()


def _missed_file(params: CaptureParams) -> str:
    """Beside the broker's own files where these are all there is: folders of several machines are put together."""
    has_cluster = params.zookeeper or params.bootstrap_servers
    return "missed.jsonl" if has_cluster else f"broker-{params.brokers[0].broker_id}/missed.jsonl"


class _Capture:
    def __init__(self, params: CaptureParams, folder: CaptureFolder, missed: Missed, stop: threading.Event) -> None:
        self._params = params
        self._folder = folder
        self._missed = missed
        self._stop = stop
        self._urgent = threading.Event()
        self._failure: CaptureError | None = None
        self._rounds = Rounds()
        self._agents: list[Agent] = []
        self._znodes: ZnodeSource | None = None
        self._probers: Probers | None = None
        self._is_closed = False

    def open(self) -> None:
        """The first contact with each source."""
        params = self._params
        kafka, zookeeper = kafka_settings(params.client_properties), zookeeper_settings(params.client_properties)
        self._agents = [Agent(files, self._folder, self._missed, waits=params.waits) for files in params.brokers]
        if params.zookeeper:
            self._znodes = ZnodeSource(params, zookeeper, self._folder, self._missed, self._urgent.set)
        if params.bootstrap_servers:
            probers = Probers(params, kafka, self._folder, self._missed, self._fail, self._known_topics)
            try:
                probers.bootstrap()
            except BrokerUnreachable as error:
                if not params.waits:
                    hint = "" if error.is_refusal else "; see --bootstrap-server"
                    raise CaptureError(f"no broker can be asked: {error}{hint}") from error
                self._missed.lost("probes", BOOTSTRAP, str(error))
            self._probers = probers

    def run(self) -> CaptureSummary:
        params = self._params
        clock = RoundClock(self._folder.last_round_ms())
        if self._probers is not None:
            self._probers.start(self._rounds)
        ends_at = None if params.duration_s is None else time.monotonic() + params.duration_s
        rounds = 0
        for rounds in self._paced(ends_at):  # noqa: B007 - how many there were
            self._round(clock)
        self.close()
        if self._failure is not None:
            raise self._failure
        return self._summary(rounds)

    def close(self) -> None:
        """End all sources; what they hold open is closed, and outages that last end."""
        if self._is_closed:
            return
        self._is_closed = True
        self._rounds.end()
        if self._probers is not None:
            self._probers.join(_JOIN_S)
        if self._znodes is not None:
            self._znodes.close()
        for agent in self._agents:
            agent.close()
        is_kraft = self._probers is not None and self._probers.is_kraft
        if is_kraft and not any(agent.has_metadata_log for agent in self._agents):
            self._missed.once("the metadata log", "", _NO_METADATA_LOG)
        self._missed.close()

    def _paced(self, ends_at: float | None) -> Iterator[int]:
        """Numbers of rounds, each given when it is due."""
        number, interval = 0, self._params.interval_s
        begun = time.monotonic()
        while not self._stop.is_set() and (ends_at is None or begun < ends_at):
            number += 1
            yield number
            if number == self._params.rounds:
                return
            due = begun + interval if ends_at is None else min(begun + interval, ends_at)
            self._wait(begun + _SOONEST * interval, due)
            now = time.monotonic()
            # a round that lasted long is not made up for by several short ones
            begun = due if now - due < interval and now >= due else now

    def _wait(self, soonest: float, due: float) -> None:
        if self._stop.wait(max(0.0, soonest - time.monotonic())):
            return
        while (left := due - time.monotonic()) > 0 and not self._stop.is_set():
            if self._urgent.wait(min(left, 0.1)):
                return

    def _round(self, clock: RoundClock) -> None:
        round_ms = clock.next()
        self._urgent.clear()
        self._rounds.begin()
        if self._znodes is not None:
            self._znodes.begin(round_ms)
        for agent in self._agents:
            # Without znodes in the same round, whose instants bound the copies, too, each copy has an instant of its
            # own: snapshots that another capturer makes must not seem to bound it.
            agent.round(clock.within if self._znodes is None else lambda: round_ms)
        if self._znodes is not None:
            self._znodes.finish(self._params.interval_s)

    def _known_topics(self) -> Collection[str] | None:
        return None if self._znodes is None else self._znodes.topics()

    def _fail(self, error: CaptureError) -> None:
        """Called from a prober's thread: the capture cannot go on."""
        self._failure = error
        self._stop.set()

    def _summary(self, rounds: int) -> CaptureSummary:
        probers = self._probers
        return CaptureSummary(
            rounds=rounds,
            snapshots=self._znodes.snapshots if self._znodes else 0,
            answers=probers.answers if probers else 0,
            descriptions=probers.descriptions if probers else 0,
            copies=sum(agent.copies for agent in self._agents),
            log_bytes=sum(agent.log_bytes for agent in self._agents),
            errors=dict(probers.errors) if probers else {},
            missed=self._missed.sentences(),
        )
