"""What one asks of a cluster without ZooKeeper, and what it says: by Kafka's protocol, as its own tools do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import (
    InvalidConfigurationError,
    InvalidReplicationAssignmentError,
    KafkaError,
    TopicAlreadyExistsError,
)

from jobs.lab.admin import Partition, State
from jobs.lab.waiting import PATIENCE_S, NeverHappened

Value = TypeVar("Value")
_PREFERRED: Final = 0
_ANSWER_MS: Final = 4_000
_PAUSE_S: Final = 0.2
#: Asking again changes nothing.
_FINAL: Final = (TopicAlreadyExistsError, InvalidReplicationAssignmentError, InvalidConfigurationError)


class KraftAdmin:
    """Asks whichever broker answers; what fails is asked again, since brokers and controllers come and go."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client: Any = None

    def close(self) -> None:
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._client.close()
            self._client = None

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
        by_topic: dict[str, list[int]] = {}
        for topic, number in partitions:
            by_topic.setdefault(topic, []).append(number)
        self._ask(lambda client: client.elect_leaders(_PREFERRED, by_topic))

    def delete_topic(self, topic: str) -> None:
        self._ask(lambda client: client.delete_topics([topic]))

    # --- what is so -------------------------------------------------------------------------------------------------

    def controller(self) -> int | None:
        """The leader of the quorum."""
        answer = self._ask(lambda client: client.describe_metadata_quorum())
        leader = int(answer["topics"][0]["partitions"][0]["leader_id"])
        return None if leader < 0 else leader

    def live_brokers(self) -> Collection[int]:
        brokers = self._ask(lambda client: client.describe_cluster())["brokers"]
        return {int(broker["broker_id"]) for broker in brokers if not broker.get("is_fenced")}  # said since 4.0

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

    # --- through Kafka ----------------------------------------------------------------------------------------------

    def _described(self) -> list[Any]:
        found: list[Any] = self._ask(lambda client: client.describe_topics())
        return found

    def _ask(self, call: Callable[[Any], Value]) -> Value:
        """The answer; asked again, by a new client, where nobody answers.

        :raises KafkaError: where the answer is an error that asking again does not change.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self._client is None:
                    self._client = KafkaAdminClient(
                        bootstrap_servers=self._bootstrap, request_timeout_ms=_ANSWER_MS, metadata_max_age_ms=1_000
                    )
                return call(self._client)
            except (KafkaError, OSError, RuntimeError, IndexError) as error:
                if isinstance(error, _FINAL):
                    raise
                self.close()
                if time.monotonic() > deadline:
                    raise NeverHappened(f"no broker answers: {error}") from error
                time.sleep(_PAUSE_S)


def _lists(assignment: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    return {number: list(replicas) for number, replicas in assignment.items()}
