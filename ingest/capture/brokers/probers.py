"""All brokers of a cluster: found through the bootstrap servers and one another, each with its prober."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.protocol.metadata import MetadataRequest

from ingest.capture.brokers import answers, requests
from ingest.capture.brokers.answers import View
from ingest.capture.brokers.descriptions import HiddenTopics, KnownTopics
from ingest.capture.brokers.failures import BrokerUnreachable
from ingest.capture.brokers.prober import Prober, is_kraft
from ingest.capture.brokers.quorum import QuorumProber
from ingest.capture.brokers.shared import Shared
from ingest.capture.clock import Backoff, Rounds
from ingest.capture.missed import Missed
from ingest.capture.output import CaptureFolder, JsonLines
from ingest.capture.params import CaptureError, CaptureParams
from ingest.capture.settings import addresses

_NOBODY: Final = -1
#: Whose answers are missed while no broker can be asked at all.
BOOTSTRAP: Final = "the brokers"


class Probers:
    """Starts a prober for each broker that any broker's metadata name. ``failed`` is called with an error that ends the
    capture; ``known_topics`` are those that ZooKeeper has, where that is known."""

    def __init__(
        self,
        params: CaptureParams,
        settings: Mapping[str, Any],
        folder: CaptureFolder,
        missed: Missed,
        failed: Callable[[CaptureError], None],
        known_topics: KnownTopics = lambda: None,
    ) -> None:
        self._folder = folder
        self._shared = Shared(
            params,
            settings,
            JsonLines(folder, "descriptions.jsonl"),
            JsonLines(folder, "log-dirs.jsonl"),
            JsonLines(folder, "reassignments.jsonl"),
            missed,
            HiddenTopics(known_topics, missed),
            self._found,
            failed,
        )
        self._params = params
        self._missed = missed
        self._lock = threading.Lock()
        self._probers: dict[int, Prober] = {}
        self._threads: list[threading.Thread] = []
        self._rounds: Rounds | None = None
        self._quorum: QuorumProber | None = None

    def bootstrap(self) -> None:
        """Ask the bootstrap servers, in their order, who the brokers are.

        Raises :class:`~ingest.capture.brokers.failures.BrokerUnreachable` where none answers.
        """
        problem = BrokerUnreachable("no bootstrap server is given")
        for host, port in addresses(self._params.bootstrap_servers or ""):
            try:
                view = self._view_of((host, port))
            except BrokerUnreachable as error:
                problem = error
                continue
            if view.brokers:
                self._found(view)
                return
            problem = BrokerUnreachable(f"{host}:{port} names no broker: the cluster is starting, or hides them")
        raise problem

    def start(self, rounds: Rounds) -> None:
        """Take part in the rounds, from the next one on."""
        with self._lock:
            self._rounds = rounds
            self._threads += [prober.start(rounds) for prober in self._probers.values()]
            if self._quorum is not None:
                self._threads.append(self._quorum.start(rounds))
        watcher = threading.Thread(target=self._watch, args=(rounds,), name="bootstrap", daemon=True)
        watcher.start()
        self._threads.append(watcher)

    def join(self, seconds: float) -> None:
        """Wait for the threads, once the rounds are over; one that a broker holds up is left behind."""
        until = time.monotonic() + seconds
        for thread in list(self._threads):
            thread.join(max(0.0, until - time.monotonic()))
        for lines in (*self._described, *(prober.probes for prober in self._probers.values())):
            lines.close()

    @property
    def is_kraft(self) -> bool:
        """Whether a broker has said that its cluster has a quorum in place of ZooKeeper."""
        return self._quorum is not None

    @property
    def answers(self) -> int:
        return sum(prober.probes.written for prober in list(self._probers.values()))

    @property
    def descriptions(self) -> int:
        return sum(lines.written for lines in self._described)

    @property
    def _described(self) -> tuple[JsonLines, ...]:
        return self._shared.descriptions, self._shared.log_dirs, self._shared.reassignments

    @property
    def errors(self) -> Counter[str]:
        errors = sum((prober.errors for prober in list(self._probers.values())), Counter())
        return errors + self._quorum.errors if self._quorum else errors

    def _watch(self, rounds: Rounds) -> None:
        """While no broker can be asked, ask the bootstrap servers again: all may have new addresses."""
        backoff = Backoff(1.0, 10.0)
        number = 0
        while number := rounds.after(number):
            if any(not prober.is_out for prober in list(self._probers.values())):
                backoff.succeeded()
                self._missed.back("probes", BOOTSTRAP)
                continue
            if rounds.wait(backoff.failed()):
                return
            try:
                self.bootstrap()
            except BrokerUnreachable as error:
                if not self._probers:
                    self._missed.lost("probes", BOOTSTRAP, str(error))

    def _view_of(self, address: tuple[str, int]) -> View:
        timeout_s = min(self._params.connect_timeout_s, 2 * self._params.request_timeout_s)
        client = self._shared.connect(address, timeout_s)
        try:
            version = client.required_version(MetadataRequest, requests.METADATA_VERSION)
            if is_kraft(client):
                self._ask_quorum()
            return answers.view_of(client.ask(requests.metadata(version)), _NOBODY)
        finally:
            client.close()

    def _ask_quorum(self) -> None:
        with self._lock:
            if self._quorum is None:
                self._quorum = QuorumProber(self._shared, self._reachable)
                if self._rounds is not None:
                    self._threads.append(self._quorum.start(self._rounds))

    def _reachable(self) -> list[tuple[int, tuple[str, int]]]:
        """The brokers, those first that answered last."""
        found = sorted(self._probers.values(), key=lambda prober: (prober.is_out, prober.broker_id))
        return [(prober.broker_id, prober.address) for prober in found]

    def _found(self, view: View) -> None:
        """A broker named the brokers; an address counts only for one that cannot be asked at its own."""
        with self._lock:
            for broker_id, address in view.brokers.items():
                prober = self._probers.get(broker_id)
                if prober is None:
                    self._add(broker_id, address)
                elif prober.is_out:
                    prober.address = address
            missing = view.assigned - self._probers.keys()
        for broker_id in missing:
            self._missed.lost(
                "probes", f"broker {broker_id}", "nothing says where it is: it is down, or has no such listener"
            )

    def _add(self, broker_id: int, address: tuple[str, int]) -> None:
        probes = JsonLines(self._folder, f"probes-{broker_id}.jsonl")
        prober = self._probers[broker_id] = Prober(broker_id, address, probes, self._shared)
        if self._rounds is not None:
            self._threads.append(prober.start(self._rounds))
