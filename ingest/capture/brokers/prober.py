"""Asks one broker, round by round, what it holds and what it believes."""

from __future__ import annotations

import time
from typing import Any, Final

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from ingest.capture.brokers import answers, kraft_answers, requests
from ingest.capture.brokers.answers import Partition, View
from ingest.capture.brokers.asker import Asker
from ingest.capture.brokers.client import BrokerClient
from ingest.capture.brokers.descriptions import Changes
from ingest.capture.brokers.failures import ConnectionClosed
from ingest.capture.brokers.requests import CONSUMER, DEBUGGING_CLIENT
from ingest.capture.brokers.shared import NO_PERMISSION, Shared
from ingest.capture.output import JsonLines

#: Since this version a request for a topic by name creates none.
_CREATES_NO_TOPIC: Final = 4


class Prober(Asker):
    """A broker's thread; its answers to ListOffsets go into ``probes``."""

    def __init__(self, broker_id: int, address: tuple[str, int], probes: JsonLines, shared: Shared) -> None:
        super().__init__(broker_id, shared)
        self.thread_name = f"prober-{broker_id}"
        self.address = address
        self.is_out = True
        self.probes = probes
        self._name = f"broker {broker_id}"
        self._not_before = 0.0
        self._view: View | None = None
        self._requests: dict[tuple[int, int], list[Any]] = {}
        self._changes = Changes()
        self._last: dict[str, int] = {}
        self._registered: str | None = None
        self._elr: dict[str, list[dict[str, Any]]] = {}

    def out(self, reason: str, since_ms: int) -> None:
        self.is_out = True
        self._not_before = time.monotonic() + self._backoff.failed()
        self._missed.lost("probes", self._name, reason, since_ms)

    def round(self, number: int) -> None:
        if time.monotonic() < self._not_before:
            return
        try:
            self._ask_all(number)
        except ConnectionClosed:
            # Brokers close what is silent for long (connections.max.idle.ms): a new one may do.
            self.disconnect()
            self._ask_all(number)
        self.is_out = False
        self._backoff.succeeded()
        self._missed.back("probes", self._name)

    def _ask_all(self, number: int) -> None:
        client = self.client
        if client is None:
            client = self.client = self._connect()
        if self._is_due("metadata", number, self._params.metadata_every):
            self._describe(client)
        view = self._view
        assert view is not None  # metadata is due in the first round of each connection
        self._probe(client, view.replicas, DEBUGGING_CLIENT)
        self._probe(client, view.leads, CONSUMER)
        if view.controller_id == self.broker_id and not is_kraft(client):
            self.list_reassignments(client)
        if self._is_due("log_dirs", number, self._params.log_dirs_every):
            self._describe_log_dirs(client)

    def _connect(self) -> BrokerClient:
        self._last.clear()
        self._changes = Changes()
        self._reassigned = self._registered = None
        self._elr = {}
        return self._shared.connect(self.address, self._params.request_timeout_s)

    def _is_due(self, what: str, number: int, every: int) -> bool:
        last = self._last.get(what)
        if last is not None and number - last < every:
            return False
        self._last[what] = number
        return True

    def _describe(self, client: BrokerClient) -> None:
        version = client.required_version(MetadataRequest, requests.METADATA_VERSION)
        response, asked = self.ask(client, requests.metadata(version))
        view = answers.view_of(response, self.broker_id)
        if view != self._view:
            self._view = view
            self._requests.clear()
        changed = self._changes.of(answers.topic_entries(response))
        lines = [answers.cluster_line(response, asked), *answers.described(asked, changed)]
        self._shared.descriptions.append(lines)
        self._shared.found(view)
        in_kraft = is_kraft(client)
        if in_kraft:
            self._describe_kraft(client)
        # one broker's word is enough; without ZooKeeper each names another as the controller
        if self.broker_id == (min(view.brokers, default=None) if in_kraft else view.controller_id):
            self._look_for_hidden(client, version)

    def _describe_kraft(self, client: BrokerClient) -> None:
        """What the broker's image has and Metadata does not say: who is fenced, and who is eligible to lead."""
        rests = []
        version = client.version(DescribeClusterRequest, requests.DESCRIBE_CLUSTER_VERSION)
        if version == requests.DESCRIBE_CLUSTER_VERSION:  # before 4.0 it names no fenced brokers
            response, asked = self.ask(client, requests.describe_cluster(version))
            entry = kraft_answers.registered_entry(response)
            if not response.error_code and entry != self._registered:
                self._registered = entry
                rests.append(entry)
            self._shared.descriptions.append(answers.described(asked, rests))
        if client.version(DescribeTopicPartitionsRequest, 0) is not None:
            self._describe_elr(client)

    def _describe_elr(self, client: BrokerClient) -> None:
        found: dict[str, list[dict[str, Any]]] = {}
        request = requests.describe_topic_partitions()
        while request is not None:
            response, asked = self.ask(client, request)
            for topic, partitions in kraft_answers.elr_of(response):
                found.setdefault(topic, []).extend(partitions)
            request = requests.describe_topic_partitions(response.next_cursor) if response.next_cursor else None
        changed = [topic for topic in found if found[topic] != self._elr.get(topic, [])]
        self._elr = found
        rests = [kraft_answers.elr_entry(topic, found[topic]) for topic in changed]
        self._shared.descriptions.append(answers.described(asked, rests))

    def _look_for_hidden(self, client: BrokerClient, version: int) -> None:
        doubtful = self._shared.hidden.doubtful(self._changes.topics)
        if doubtful and version >= _CREATES_NO_TOPIC:
            response, _ = self.ask(client, requests.metadata(version, doubtful))
            self._shared.hidden.answered(response)

    def _probe(self, client: BrokerClient, partitions: tuple[Partition, ...], replica_id: int) -> None:
        version = client.required_version(ListOffsetsRequest, requests.LIST_OFFSETS_VERSION)
        key = (replica_id, version)
        if key not in self._requests:  # the same until the metadata change: making them costs more than sending
            per_request = self._params.partitions_per_request
            self._requests[key] = list(requests.list_offsets(partitions, replica_id, version, per_request))
        for request in self._requests[key]:
            response, asked = self.ask(client, request)
            found = answers.offset_answers(response, version, replica_id, asked)
            self.probes.append(found.lines)
            self.errors.update(found.errors)
            if found.is_stale:
                self._last.pop("metadata", None)

    def _describe_log_dirs(self, client: BrokerClient) -> None:
        version = client.version(DescribeLogDirsRequest, requests.DESCRIBE_LOG_DIRS_VERSION)
        if version is None:
            return  # before 1.0
        response, asked = self.ask(client, requests.describe_log_dirs(version))
        if response.error_code:
            self.refused("log dirs", response.error_code)
        elif not response.results:  # before 3.2 (KIP-784) an answer without permission was an empty one
            self._missed.once("log dirs", self._name, f"the broker names none: {NO_PERMISSION}")
        self._shared.log_dirs.append(answers.log_dir_lines(response, asked))

    def refused(self, what: str, code: int) -> None:
        """An answer that is an error: NOT_CONTROLLER comes and goes with the controller."""
        name = answers.error_name(code)
        self.errors[name] += 1
        if name != "NOT_CONTROLLER":
            reason = NO_PERMISSION if name == "CLUSTER_AUTHORIZATION_FAILED" else f"the broker answers {name}"
            self._missed.once(what, self._name, reason)


def is_kraft(client: BrokerClient) -> bool:
    """Whether the broker's cluster has a quorum in place of ZooKeeper: brokers with one know no such request."""
    return client.version(DescribeQuorumRequest, requests.DESCRIBE_QUORUM_VERSION) is not None
