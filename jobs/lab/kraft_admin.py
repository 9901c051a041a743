"""What one asks of a cluster without ZooKeeper, and what it says: by Kafka's protocol, as its own tools do."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import (
    InvalidConfigurationError,
    InvalidReplicationAssignmentError,
    KafkaError,
    TopicAlreadyExistsError,
    for_code,
)
from kafka.protocol.admin import DescribeClusterRequest, DescribeQuorumRequest

from ingest.capture.brokers import requests
from ingest.capture.brokers.client import BrokerClient
from ingest.capture.brokers.failures import BrokerUnreachable
from ingest.capture.brokers.kraft_answers import quorum_error
from jobs.lab import raft_voters
from jobs.lab.admin import Partition, State
from jobs.lab.waiting import PATIENCE_S, NeverHappened

Value = TypeVar("Value")
_PREFERRED, _UNCLEAN = 0, 1
_ANSWER_MS: Final = 4_000
_PAUSE_S: Final = 0.2
#: Asking again changes nothing.
_FINAL: Final = (TopicAlreadyExistsError, InvalidReplicationAssignmentError, InvalidConfigurationError)


class KraftAdmin:
    """Asks whichever broker answers; what fails is asked again, since brokers and controllers come and go.

    Of the quorum and of who is alive it is asked by the capture's own requests, in the newest version that the broker
    knows: kafka-python's client of administrators cannot read what brokers before 3.8 answer.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client: Any = None
        self._connection: BrokerClient | None = None
        self._addresses = deque(address.rsplit(":", 1) for address in bootstrap.split(","))

    def close(self) -> None:
        for client in (self._client, self._connection):
            if client is not None:
                with contextlib.suppress(Exception):
                    client.close()
        self._client = self._connection = None

    # --- what is asked ----------------------------------------------------------------------------------------------

    def create_topic(
        self, topic: str, assignment: Mapping[int, Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        wanted = {"assignments": _lists(assignment), "configs": dict(config or {})}
        with contextlib.suppress(TopicAlreadyExistsError):  # by an answer that was lost
            self._ask(lambda client: client.create_topics({topic: wanted}))

    def add_partitions(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> None:
        new = [list(replicas) for _, replicas in sorted(assignment.items())]
        wanted = {topic: {"count": max(assignment) + 1, "assignments": new}}
        self._ask(lambda client: client.create_partitions(wanted))

    def reassign(self, plan: Mapping[Partition, Sequence[int]]) -> None:
        wanted = {TopicPartition(*partition): list(replicas) for partition, replicas in plan.items()}
        errors = self._ask(lambda client: client.alter_partition_reassignments(wanted))
        refused = {partition: error for partition, error in errors.items() if error is not None}
        if refused:
            raise ValueError(f"the reassignment is refused: {refused}")

    def elect_preferred(self, partitions: Sequence[Partition]) -> None:
        self._elect(_PREFERRED, partitions)

    def elect_unclean(self, partitions: Sequence[Partition]) -> None:
        """Elect leaders from outside of the ISR, whatever topics set."""
        self._elect(_UNCLEAN, partitions)

    def delete_topic(self, topic: str) -> None:
        self._ask(lambda client: client.delete_topics([topic]))

    def add_voter(self, voter_id: int, directory_id: str, address: tuple[str, int]) -> None:
        """A controller that has caught up joins the quorum's voters; ``address`` is that of its listener."""
        request = raft_voters.adding(voter_id, directory_id, address)
        self._told(raft_voters.AddRaftVoterRequest, 0, lambda _: request, raft_voters.error_of)

    def remove_voter(self, voter_id: int, directory_id: str) -> None:
        request = raft_voters.removing(voter_id, directory_id)
        self._told(raft_voters.RemoveRaftVoterRequest, 0, lambda _: request, raft_voters.error_of)

    # --- what is so -------------------------------------------------------------------------------------------------

    def controller(self) -> int | None:
        """The leader of the quorum."""
        answer = self._told(
            DescribeQuorumRequest, requests.DESCRIBE_QUORUM_VERSION, requests.describe_quorum, quorum_error
        )
        leader = int(answer.topics[0].partitions[0].leader_id)
        return None if leader < 0 else leader

    def live_brokers(self) -> Collection[int]:
        answer = self._told(
            DescribeClusterRequest,
            requests.DESCRIBE_CLUSTER_VERSION,
            requests.describe_cluster,
            lambda response: int(response.error_code),
        )
        # before 4.0 it names none that is fenced
        return {int(one.broker_id) for one in answer.brokers if answer.version < 2 or not one.is_fenced}

    def topics(self) -> dict[str, dict[int, list[int]]]:
        return {
            topic["name"]: {one["partition_index"]: list(one["replica_nodes"]) for one in topic["partitions"]}
            for topic in self._described()
        }

    def state(self, partition: Partition) -> State | None:
        topic, number = partition
        for found in self._described():
            for one in found["partitions"] if found["name"] == topic else ():
                if one["partition_index"] == number:
                    return State(one["leader_id"], one["leader_epoch"], tuple(one["isr_nodes"]))
        return None

    def is_electing_preferred(self) -> bool:
        """It is done when it is answered."""
        return False

    def is_reassigning(self) -> bool:
        return bool(self._ask(lambda client: client.list_partition_reassignments()))

    def _elect(self, kind: int, partitions: Sequence[Partition]) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, number in partitions:
            by_topic.setdefault(topic, []).append(number)
        self._ask(lambda client: client.elect_leaders(kind, by_topic))

    # --- through Kafka ----------------------------------------------------------------------------------------------

    def _described(self) -> list[Any]:
        found: list[Any] = self._ask(lambda client: client.describe_topics())
        return found

    def _told(self, request: type[Any], newest: int, made: Callable[[int], Any], error_of: Callable[[Any], int]) -> Any:
        """A broker's answer to the newest version of a request that it knows; ``error_of`` gives Kafka's code."""

        def call() -> Any:
            if self._connection is None:
                host, port = self._addresses[0]
                self._addresses.rotate(-1)
                self._connection = BrokerClient(host, int(port), {}, timeout_s=_ANSWER_MS / 1000)
            answer = self._connection.ask(made(self._connection.required_version(request, newest)))
            code = error_of(answer)
            if code:
                raise for_code(code)(f"{request.name} is refused")
            return answer

        return self._again(call)

    def _ask(self, call: Callable[[Any], Value]) -> Value:
        """As :meth:`_again`, of kafka-python's client."""

        def with_client() -> Value:
            if self._client is None:
                self._client = KafkaAdminClient(
                    bootstrap_servers=self._bootstrap, request_timeout_ms=_ANSWER_MS, metadata_max_age_ms=1_000
                )
            return call(self._client)

        return self._again(with_client)

    def _again(self, call: Callable[[], Value]) -> Value:
        """The answer; asked again, by a new client, where nobody answers.

        :raises KafkaError: where the answer is an error that asking again does not change.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return call()
            except (KafkaError, OSError, RuntimeError, IndexError, BrokerUnreachable) as error:
                if isinstance(error, _FINAL):
                    raise
                self.close()
                if time.monotonic() > deadline:
                    raise NeverHappened(f"no broker answers: {error}") from error
                time.sleep(_PAUSE_S)


def _lists(assignment: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    return {number: list(replicas) for number, replicas in assignment.items()}
