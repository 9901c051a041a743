"""Requests to brokers, as kafka-python's messages. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from ingest.capture.brokers.answers import Partition

#: The newest versions asked for. ListOffsets 5 is the last before flexible ones, which cost thrice as much to write.
LIST_OFFSETS_VERSION: Final = 5
METADATA_VERSION: Final = 12
DESCRIBE_LOG_DIRS_VERSION: Final = 4
DESCRIBE_QUORUM_VERSION: Final = 2
DESCRIBE_CLUSTER_VERSION: Final = 2

#: Replica ids of the request: who asks.
DEBUGGING_CLIENT: Final = -2
CONSUMER: Final = -1
_LATEST: Final = -1


def list_offsets(
    partitions: Iterable[Partition], replica_id: int, version: int, partitions_per_request: int
) -> Iterator[Any]:
    """Requests for the latest offset of each of the partitions, sorted by topic."""
    rest = iter(partitions)
    while chunk := list(islice(rest, partitions_per_request)):
        topics: dict[str, list[Any]] = {}
        for topic, partition in chunk:
            one = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                version=version, partition_index=partition, timestamp=_LATEST
            )
            topics.setdefault(topic, []).append(one)
        yield ListOffsetsRequest(
            version=version,
            replica_id=replica_id,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(version=version, name=topic, partitions=found)
                for topic, found in topics.items()
            ],
        )


def metadata(version: int, topics: Iterable[str] | None = None) -> Any:
    """A request for all topics, or for those named, which up to version 3 may create them."""
    named: list[Any] | None
    if topics is None:
        named = [] if version == 0 else None
    else:
        named = [MetadataRequest.MetadataRequestTopic(version=version, name=topic) for topic in topics]
    request = MetadataRequest(version=version, topics=named)
    if version >= 4:
        request.allow_auto_topic_creation = False
    return request


def describe_log_dirs(version: int) -> Any:
    return DescribeLogDirsRequest(version=version, topics=None)


def list_reassignments(timeout_s: float) -> Any:
    return ListPartitionReassignmentsRequest(version=0, timeout_ms=int(timeout_s * 1000), topics=None)


def describe_quorum(version: int) -> Any:
    partition = DescribeQuorumRequest.TopicData.PartitionData(version=version, partition_index=0)
    topic = DescribeQuorumRequest.TopicData(version=version, topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumRequest(version=version, topics=[topic])


def describe_cluster(version: int) -> Any:
    return DescribeClusterRequest(
        version=version, include_cluster_authorized_operations=False, include_fenced_brokers=True
    )


def describe_topic_partitions(cursor: Any = None) -> Any:
    """Of all topics, from ``cursor`` on, which is the last answer's ``next_cursor``."""
    after = cursor and DescribeTopicPartitionsRequest.Cursor(
        version=0, topic_name=cursor.topic_name, partition_index=cursor.partition_index
    )
    return DescribeTopicPartitionsRequest(version=0, topics=[], response_partition_limit=2000, cursor=after)
