"""Requests to brokers, as kafka-python's messages. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from kafka.protocol.admin import DescribeLogDirsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from ingest.capture.brokers.answers import Partition

#: The newest versions asked for. ListOffsets 5 is the last before flexible ones, which cost thrice as much to write.
LIST_OFFSETS_VERSION: Final = 5
METADATA_VERSION: Final = 12
DESCRIBE_LOG_DIRS_VERSION: Final = 4

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
