"""Asks brokers round by round in a thread of its own, so that one that hangs holds up nothing but itself."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

from kafka.protocol.admin import ListPartitionReassignmentsRequest

from ingest.capture.brokers import answers, requests
from ingest.capture.brokers.answers import Asked
from ingest.capture.brokers.client import BrokerClient
from ingest.capture.brokers.failures import BrokerUnreachable
from ingest.capture.brokers.shared import Shared
from ingest.capture.clock import Backoff, Pace, Rounds, instant_ms, now_ms
from ingest.capture.params import CaptureError


class _Ended(Exception):
    """The capture ended meanwhile."""


class Asker(ABC):
    """A thread that asks one broker at a time; ``broker_id`` is the one that ``client`` is connected to.

    ``errors`` counts answers that were errors, by name.
    """

    thread_name: str

    def __init__(self, broker_id: int, shared: Shared) -> None:
        self.broker_id = broker_id
        self.errors: Counter[str] = Counter()
        self.client: BrokerClient | None = None
        self._shared = shared
        self._params = shared.params
        self._missed = shared.missed
        self._pace = Pace(shared.params.max_requests_per_second)
        self._backoff = Backoff()
        self._rounds = Rounds()
        self._reassigned: str | None = None

    @abstractmethod
    def round(self, number: int) -> None:
        """Ask what is due in this round; raises :class:`BrokerUnreachable`."""

    @abstractmethod
    def out(self, reason: str, since_ms: int) -> None:
        """There was no answer, for that reason; the connection is closed."""

    @abstractmethod
    def refused(self, what: str, code: int) -> None:
        """An answer about ``what`` is an error."""

    def start(self, rounds: Rounds) -> threading.Thread:
        """Take part in the rounds, from the next one on."""
        self._rounds = rounds
        thread = threading.Thread(target=self._run, name=self.thread_name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        number = 0
        try:
            while number := self._rounds.after(number):
                self.try_round(number)
        except _Ended:
            pass
        except CaptureError as error:
            self._shared.failed(error)
        finally:
            self.disconnect()

    def try_round(self, number: int) -> None:
        """A round whatever comes of it, but an end of the capture."""
        began_ms = now_ms()
        try:
            self.round(number)
        except (_Ended, CaptureError):
            raise
        except BrokerUnreachable as error:
            reason = str(error)
        except Exception as error:  # whatever a client of another's makes of damaged bytes must not end the thread
            reason = f"the answer cannot be read ({type(error).__name__})"
        else:
            return
        self.disconnect()
        self.out(reason, began_ms)

    def disconnect(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None

    def wait(self, seconds: float) -> None:
        """Wait so long, unless the capture ends: then the thread does."""
        if seconds and self._rounds.wait(seconds):
            raise _Ended

    def ask(self, client: BrokerClient, request: Any) -> tuple[Any, Asked]:
        """The answer, in the pace of the capture."""
        self.wait(self._pace.delay())
        sent_at = instant_ms()
        response = client.ask(request)
        return response, Asked(sent_at, instant_ms(), self.broker_id)

    def list_reassignments(self, client: BrokerClient) -> None:
        """What is under way, when it changed or while there is some."""
        if client.version(ListPartitionReassignmentsRequest, 0) is None:
            return  # before 2.4: /admin/reassign_partitions says it
        response, asked = self.ask(client, requests.list_reassignments(self._params.request_timeout_s))
        if response.error_code:
            self.refused("reassignments", response.error_code)
            return
        entry = answers.reassignment_entry(response)
        if entry != self._reassigned or response.topics:
            self._shared.reassignments.append(answers.described(asked, [entry]))
            self._reassigned = entry
