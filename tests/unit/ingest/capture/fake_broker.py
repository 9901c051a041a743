"""A broker on loopback that answers ApiVersions, Metadata, ListOffsets, DescribeLogDirs and ListPartitionReassignments,
and what one of a KRaft cluster answers besides, as a real one does, from kafka-python's own messages. It knows the
versions that it is told it knows."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

NOT_LEADER = 6
TOPIC_AUTHORIZATION_FAILED = 29
_UNSUPPORTED_VERSION = 35
UNKNOWN_TOPIC_OR_PARTITION = 3

_MESSAGES = {
    one.API_KEY: one
    for one in (
        ApiVersionsRequest,
        MetadataRequest,
        ListOffsetsRequest,
        DescribeLogDirsRequest,
        ListPartitionReassignmentsRequest,
        DescribeQuorumRequest,
        DescribeClusterRequest,
        DescribeTopicPartitionsRequest,
    )
}
#: What brokers of these releases know, by the request's key.
SINCE_3_9: Mapping[int, tuple[int, int]] = {18: (0, 4), 3: (0, 12), 2: (0, 9), 35: (1, 4), 46: (0, 0)}
SINCE_1_1: Mapping[int, tuple[int, int]] = {18: (0, 1), 3: (0, 5), 2: (0, 2), 35: (0, 0)}
SINCE_4_0: Mapping[int, tuple[int, int]] = {18: (0, 4), 3: (0, 13), 2: (1, 10), 35: (1, 4), 46: (0, 0)}
#: Without ZooKeeper.
KRAFT_3_9: Mapping[int, tuple[int, int]] = {**SINCE_3_9, 55: (0, 2), 60: (0, 1), 75: (0, 0)}
KRAFT_4_0: Mapping[int, tuple[int, int]] = {**SINCE_4_0, 55: (0, 2), 60: (0, 2), 75: (0, 0)}
#: What a broker passes on to the active controller.
_FORWARDED = (DescribeQuorumRequest.API_KEY, ListPartitionReassignmentsRequest.API_KEY)
#: 0.8.2 closes the connection that asks for versions.
SINCE_0_8_2: Mapping[int, tuple[int, int]] = {3: (0, 0), 2: (0, 0)}


class FakeCluster:
    """Partitions by (topic, partition): replicas (the leader first), log end offset, high watermark."""

    def __init__(self, partitions: Mapping[tuple[str, int], tuple[list[int], int, int]]) -> None:
        self.partitions = dict(partitions)
        self.brokers: dict[int, FakeBroker] = {}
        self.controller_id = 1
        self.reassigning: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        self.log_dir_error = 0
        #: Topics that the client may not DESCRIBE: left out, unless asked for by name.
        self.hidden: set[str] = set()
        #: Of KRaft: while it is set, brokers wait for an active controller.
        self.has_no_controller = threading.Event()
        self.quorum_error = 0
        self.fenced: set[int] = set()
        #: Eligible leader replicas and the last known ones, by partition.
        self.elr: dict[tuple[str, int], tuple[list[int], list[int]]] = {}


class FakeBroker:
    """One broker, listening from its making to ``close``.

    ``order`` has the names of requests as they came, ``asked`` counts those that were answered, by (name, version).
    """

    def __init__(
        self, cluster: FakeCluster, broker_id: int, versions: Mapping[int, tuple[int, int]] = SINCE_3_9, port: int = 0
    ) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.versions = versions
        self.order: list[str] = []
        self.asked: Counter[tuple[str, int]] = Counter()
        self.largest_request = 0
        self._cached: dict[bytes, bytes] = {}
        self.is_static = False
        self._connections: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = self._listening.getsockname()[1]
        cluster.brokers[broker_id] = self
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """As a kill does it: nothing listens any more, and every connection is cut."""
        for one in (self._listening, *self._connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def hang_up(self) -> None:
        """Every connection is cut, as those that were silent for long; new ones are taken."""
        for one in self._connections:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                while True:
                    (size,) = struct.unpack(">i", _exactly(connection, 4))
                    answer = self._answer(_exactly(connection, size))
                    if answer is None:
                        return
                    connection.sendall(struct.pack(">i", len(answer)) + answer)
        except (OSError, EOFError):
            return

    def _answer(self, data: bytes) -> bytes | None:
        key, version, correlation_id = struct.unpack_from(">hhi", data)
        known = self.versions.get(key)
        message = _MESSAGES.get(key)
        if message is ApiVersionsRequest and known is not None and version > known[1]:
            # since KIP-511: the error, and the versions, as version 0 has them
            refusal = self._ApiVersionsRequest(None, 0)
            refusal.error_code = _UNSUPPORTED_VERSION
            refusal.with_header(correlation_id=correlation_id)
            return bytes(refusal.encode(header=True))
        if message is None or known is None or not known[0] <= version <= known[1]:
            return None
        name = message.__name__.removesuffix("Request")
        self.order.append(name)
        while key in _FORWARDED and self.cluster.has_no_controller.is_set():
            time.sleep(0.02)
        self.asked[name, version] += 1
        self.largest_request = max(self.largest_request, len(data))
        rest = data[:4] + data[8:]
        if self.is_static and rest in self._cached:
            return data[4:8] + self._cached[rest][4:]
        request = message.decode(data, version=version, header=True)
        response = getattr(self, f"_{message.__name__}")(request, version)
        response.with_header(correlation_id=correlation_id)
        answer = bytes(response.encode(header=True))
        self._cached[rest] = answer
        return answer

    def _ApiVersionsRequest(self, request: Any, version: int) -> Any:
        one = ApiVersionsResponse.ApiVersion
        keys = [
            one(version=version, api_key=key, min_version=a, max_version=b) for key, (a, b) in self.versions.items()
        ]
        return ApiVersionsResponse(version=version, error_code=0, api_keys=keys)

    def _MetadataRequest(self, request: Any, version: int) -> Any:
        brokers = [
            MetadataResponse.MetadataResponseBroker(
                version=version, node_id=one.broker_id, host="127.0.0.1", port=one.port
            )
            for one in self.cluster.brokers.values()
        ]
        topics: dict[str, list[Any]] = {}
        named = {topic.name for topic in request.topics or ()}
        for (topic, partition), (replicas, _, _) in self.cluster.partitions.items():
            if topic in self.cluster.hidden or (named and topic not in named):
                continue
            one = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
                version=version,
                error_code=0,
                partition_index=partition,
                leader_id=replicas[0],
                replica_nodes=replicas,
                isr_nodes=replicas,
            )
            if version >= 5:
                one.offline_replicas = []
            topics.setdefault(topic, []).append(one)
        response = MetadataResponse(
            version=version,
            brokers=brokers,
            topics=[
                MetadataResponse.MetadataResponseTopic(version=version, error_code=0, name=name, partitions=found)
                for name, found in topics.items()
            ]
            + [
                MetadataResponse.MetadataResponseTopic(
                    version=version, error_code=TOPIC_AUTHORIZATION_FAILED, name=name, partitions=[]
                )
                for name in sorted(named & self.cluster.hidden)
            ],
        )
        if version >= 1:
            response.controller_id = self.cluster.controller_id
        if version >= 2:
            response.cluster_id = "fake"
        return response

    def _ListOffsetsRequest(self, request: Any, version: int) -> Any:
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                error, offset = self._offset(topic.name, asked.partition_index, request.replica_id)
                one = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
                    version=version, partition_index=asked.partition_index, error_code=error
                )
                if version == 0:
                    one.old_style_offsets = [] if error else [offset]
                else:
                    one.timestamp, one.offset = -1, offset
                partitions.append(one)
            topics.append(
                ListOffsetsResponse.ListOffsetsTopicResponse(version=version, name=topic.name, partitions=partitions)
            )
        return ListOffsetsResponse(version=version, topics=topics)

    def _offset(self, topic: str, partition: int, replica_id: int) -> tuple[int, int]:
        found = self.cluster.partitions.get((topic, partition))
        if found is None or self.broker_id not in found[0]:
            return UNKNOWN_TOPIC_OR_PARTITION, -1
        if replica_id == -2:
            return 0, found[1]
        return (0, found[2]) if found[0][0] == self.broker_id else (NOT_LEADER, -1)

    def _DescribeLogDirsRequest(self, request: Any, version: int) -> Any:
        own = DescribeLogDirsResponse.DescribeLogDirsResult
        topics = [
            own.DescribeLogDirsTopic(
                version=version,
                name=topic,
                partitions=[
                    own.DescribeLogDirsTopic.DescribeLogDirsPartition(
                        version=version,
                        partition_index=partition,
                        partition_size=100,
                        offset_lag=leo - hw,
                        is_future_key=False,
                    )
                ],
            )
            for (topic, partition), (replicas, leo, hw) in self.cluster.partitions.items()
            if self.broker_id in replicas
        ]
        error = self.cluster.log_dir_error
        results = [] if error else [own(version=version, error_code=0, log_dir="/data", topics=topics)]
        response = DescribeLogDirsResponse(version=version, results=results)
        if version >= 3:
            response.error_code = error
        return response

    def _DescribeQuorumRequest(self, request: Any, version: int) -> Any:
        own = DescribeQuorumResponse.TopicData
        one = own.PartitionData.ReplicaState
        voters = [one(version=version, replica_id=number, log_end_offset=50 + number) for number in (102, 101)]
        partition = own.PartitionData(
            version=version,
            partition_index=0,
            error_code=0,
            leader_id=101,
            leader_epoch=4,
            high_watermark=51,
            current_voters=voters,
            observers=[],
        )
        topics = [own(version=version, topic_name=request.topics[0].topic_name, partitions=[partition])]
        return DescribeQuorumResponse(version=version, error_code=self.cluster.quorum_error, topics=topics, nodes=[])

    def _DescribeClusterRequest(self, request: Any, version: int) -> Any:
        brokers = []
        for number in sorted({*self.cluster.brokers, *self.cluster.fenced}, reverse=True):
            one = DescribeClusterResponse.DescribeClusterBroker(
                version=version, broker_id=number, host="127.0.0.1", port=1, rack=None
            )
            if version >= 2:
                one.is_fenced = number in self.cluster.fenced
            brokers.append(one)
        return DescribeClusterResponse(version=version, error_code=0, cluster_id="fake", brokers=brokers)

    def _DescribeTopicPartitionsRequest(self, request: Any, version: int) -> Any:
        """A topic a page."""
        own = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
        names = sorted({topic for topic, _ in self.cluster.partitions})
        name = names[0] if request.cursor is None else request.cursor.topic_name
        partitions = []
        for (topic, number), (replicas, _, _) in self.cluster.partitions.items():
            if topic == name:
                one = own.DescribeTopicPartitionsResponsePartition(
                    version=version, error_code=0, partition_index=number, leader_id=replicas[0]
                )
                one.replica_nodes = one.isr_nodes = replicas
                one.offline_replicas = []
                one.eligible_leader_replicas, one.last_known_elr = self.cluster.elr.get((topic, number), (None, None))
                partitions.append(one)
        after = [later for later in names if later > name]
        cursor = DescribeTopicPartitionsResponse.Cursor(version=version, topic_name=after[0]) if after else None
        if cursor is not None:
            cursor.partition_index = 0
        topics = [own(version=version, error_code=0, name=name, partitions=partitions)]
        return DescribeTopicPartitionsResponse(version=version, topics=topics, next_cursor=cursor)

    def _ListPartitionReassignmentsRequest(self, request: Any, version: int) -> Any:
        ongoing = ListPartitionReassignmentsResponse.OngoingTopicReassignment
        topics = [
            ongoing(
                version=version,
                name=topic,
                partitions=[
                    ongoing.OngoingPartitionReassignment(
                        version=version,
                        partition_index=partition,
                        replicas=self.cluster.partitions[topic, partition][0],
                        adding_replicas=adding,
                        removing_replicas=removing,
                    )
                ],
            )
            for (topic, partition), (adding, removing) in self.cluster.reassigning.items()
        ]
        return ListPartitionReassignmentsResponse(version=version, error_code=0, topics=topics)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
