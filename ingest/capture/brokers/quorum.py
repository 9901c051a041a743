"""Asks a KRaft quorum, through a broker: brokers pass these requests on to the active controller, and wait for one.

In a thread of its own, since while no controller is active such an answer comes late or never, and what brokers say of
themselves is to be had all the same.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final

from kafka.protocol.admin import DescribeQuorumRequest, ListPartitionReassignmentsRequest

from ingest.capture.brokers import answers, kraft_answers, requests
from ingest.capture.brokers.answers import Asked
from ingest.capture.brokers.client import BrokerClient
from ingest.capture.brokers.failures import BrokerUnreachable, ConnectionClosed
from ingest.capture.brokers.shared import NO_PERMISSION, Shared
from ingest.capture.clock import Backoff, Pace, Rounds, instant_ms, now_ms
from ingest.capture.params import CaptureError

_SOURCE: Final = "the quorum"
#: Kafka's name of the error of an answer that one may not have.
_UNAUTHORIZED: Final = "CLUSTER_AUTHORIZATION_FAILED"

#: The brokers that can be asked now, by id, with their addresses; those that answered last first.
Reachable = Callable[[], Collection[tuple[int, tuple[str, int]]]]


class QuorumProber:
    """What the active controller says of its quorum and of reassignments, each round; begins with :meth:`start`.

    ``errors`` counts answers that were errors, by name.
    """

    def __init__(self, shared: Shared, reachable: Reachable) -> None:
        self.errors: Counter[str] = Counter()
        self._shared = shared
        self._params = shared.params
        self._reachable = reachable
        self._pace = Pace(shared.params.max_requests_per_second)
        self._backoff = Backoff()
        self._client: BrokerClient | None = None
        self._broker_id = -1
        self._reassigned: str | None = None
        self._rounds = Rounds()

    def start(self, rounds: Rounds) -> threading.Thread:
        """Take part in the rounds, from the next one on."""
        self._rounds = rounds
        thread = threading.Thread(target=self._run, name="prober-quorum", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        number = 0
        try:
            while number := self._rounds.after(number):
                if not self._try_round():
                    return
        except CaptureError as error:
            self._shared.failed(error)
        finally:
            self._disconnect()

    def _try_round(self) -> bool:
        """False where the capture has ended meanwhile."""
        began_ms = now_ms()
        try:
            self._round()
        except ConnectionClosed:
            self._disconnect()  # the next round has another
            return True
        except BrokerUnreachable as error:
            reason = str(error)
        except CaptureError:
            raise
        except Exception as error:  # whatever a client of another's makes of damaged bytes must not end the thread
            reason = f"the answer cannot be read ({type(error).__name__})"
        else:
            return True
        self._disconnect()
        self._shared.missed.lost(_SOURCE, "", f"no active controller answers: {reason}", began_ms)
        return not self._rounds.wait(self._backoff.failed())

    def _round(self) -> None:
        client = self._client or self._connect()
        if client is None:
            return
        self._describe(client)
        self._list_reassignments(client)

    def _connect(self) -> BrokerClient | None:
        """Through the first broker that takes a connection, the one asked last at the end; None while none is known."""
        problem: BrokerUnreachable | None = None
        for broker_id, address in sorted(self._reachable(), key=lambda found: found[0] == self._broker_id):
            try:
                self._client = self._shared.connect(address, self._params.request_timeout_s)
            except BrokerUnreachable as error:
                problem = error
                continue
            self._broker_id, self._reassigned = broker_id, None
            return self._client
        if problem is not None:
            raise problem
        return None

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask(self, client: BrokerClient, request: Any) -> tuple[Any, Asked]:
        wait = self._pace.delay()
        if wait:
            self._rounds.wait(wait)
        sent_at = instant_ms()
        response = client.ask(request)
        return response, Asked(sent_at, instant_ms(), self._broker_id)

    def _describe(self, client: BrokerClient) -> None:
        version = client.required_version(DescribeQuorumRequest, requests.DESCRIBE_QUORUM_VERSION)
        response, asked = self._ask(client, requests.describe_quorum(version))
        code = kraft_answers.quorum_error(response)
        if code:
            self._refused(code)
            return
        self._shared.descriptions.append([kraft_answers.quorum_line(response, asked)])
        self._backoff.succeeded()
        self._shared.missed.back(_SOURCE, "")

    def _list_reassignments(self, client: BrokerClient) -> None:
        if client.version(ListPartitionReassignmentsRequest, 0) is None:
            return
        response, asked = self._ask(client, requests.list_reassignments(self._params.request_timeout_s))
        if response.error_code:
            self._refused(response.error_code)
            return
        entry = answers.reassignment_entry(response)
        if entry != self._reassigned or response.topics:
            self._shared.reassignments.append(answers.described(asked, [entry]))
            self._reassigned = entry

    def _refused(self, code: int) -> None:
        name = answers.error_name(code)
        self.errors[name] += 1
        if name == _UNAUTHORIZED:
            self._shared.missed.once(_SOURCE, "", NO_PERMISSION)
        else:
            raise BrokerUnreachable(f"broker {self._broker_id} answers {name}")
