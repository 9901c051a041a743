"""Asks a KRaft quorum, through a broker: brokers pass these requests on to the active controller, and wait for one.

In a thread of its own, since while no controller is active such an answer comes late or never, and what brokers say of
themselves is to be had all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from kafka.protocol.admin import DescribeQuorumRequest

from ingest.capture.brokers import answers, kraft_answers, requests
from ingest.capture.brokers.asker import Asker
from ingest.capture.brokers.client import BrokerClient
from ingest.capture.brokers.failures import BrokerUnreachable, ConnectionClosed
from ingest.capture.brokers.shared import NO_PERMISSION, Shared

_SOURCE: Final = "the quorum"
#: Kafka's name of the error of an answer that one may not have.
_UNAUTHORIZED: Final = "CLUSTER_AUTHORIZATION_FAILED"

#: The brokers that can be asked now, by id, with their addresses; those that answered last first.
Reachable = Callable[[], Collection[tuple[int, tuple[str, int]]]]


class QuorumProber(Asker):
    """What the active controller says of its quorum and of reassignments, each round; begins with :meth:`start`."""

    thread_name = "prober-quorum"

    def __init__(self, shared: Shared, reachable: Reachable) -> None:
        super().__init__(-1, shared)
        self._reachable = reachable

    def out(self, reason: str, since_ms: int) -> None:
        self._missed.lost(_SOURCE, "", f"no active controller answers: {reason}", since_ms)
        self.wait(self._backoff.failed())

    def round(self, number: int) -> None:
        try:
            client = self.client or self._connect()
            if client is not None:
                self._describe(client)
                self.list_reassignments(client)
        except ConnectionClosed:
            self.disconnect()  # the next round has another

    def _connect(self) -> BrokerClient | None:
        """Through the first broker that takes a connection, the one asked last at the end; None while none is known."""
        problem: BrokerUnreachable | None = None
        for broker_id, address in sorted(self._reachable(), key=lambda found: found[0] == self.broker_id):
            try:
                self.client = self._shared.connect(address, self._params.request_timeout_s)
            except BrokerUnreachable as error:
                problem = error
                continue
            self.broker_id, self._reassigned = broker_id, None
            return self.client
        if problem is not None:
            raise problem
        return None

    def _describe(self, client: BrokerClient) -> None:
        version = client.required_version(DescribeQuorumRequest, requests.DESCRIBE_QUORUM_VERSION)
        response, asked = self.ask(client, requests.describe_quorum(version))
        code = kraft_answers.quorum_error(response)
        if code:
            self.refused(_SOURCE, code)
            return
        self._shared.descriptions.append([kraft_answers.quorum_line(response, asked)])
        self._backoff.succeeded()
        self._missed.back(_SOURCE, "")

    def refused(self, what: str, code: int) -> None:
        name = answers.error_name(code)
        self.errors[name] += 1
        if name == _UNAUTHORIZED:
            self._missed.once(_SOURCE, "", NO_PERMISSION)
        else:
            raise BrokerUnreachable(f"broker {self.broker_id} answers {name}")
