"""Answers that only a cluster without ZooKeeper gives, and the lines of a capture that they become. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ingest.capture.brokers.answers import Asked, described, id_text, rest_of_line

_UNKNOWN_TOPIC_OR_PARTITION: Final = 3


def quorum_error(response: Any) -> int:
    """Kafka's code of what is wrong with an answer to DescribeQuorum; 0 for none."""
    if response.error_code:
        return int(response.error_code)
    partitions = [one for topic in response.topics for one in topic.partitions]
    return int(partitions[0].error_code) if partitions else _UNKNOWN_TOPIC_OR_PARTITION


def quorum_line(response: Any, asked: Asked) -> bytes:
    """The line of ``descriptions.jsonl`` that says what the active controller knows of the quorum's replicas; keys that
    the version lacks are null."""
    version = response.version
    partition = response.topics[0].partitions[0]

    def replicas(found: Any) -> list[dict[str, Any]]:
        return [
            {
                "id": one.replica_id,
                "directory_id": id_text(one.replica_directory_id) if version >= 2 else None,
                "log_end_offset": one.log_end_offset,
                "last_fetch_at": one.last_fetch_timestamp if version >= 1 else None,
                "last_caught_up_at": one.last_caught_up_timestamp if version >= 1 else None,
            }
            for one in sorted(found, key=lambda one: int(one.replica_id))
        ]

    entry = {
        "description": "quorum",
        "leader": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "high_watermark": partition.high_watermark,
        "voters": replicas(partition.current_voters),
        "observers": replicas(partition.observers),
    }
    return described(asked, [rest_of_line(entry)])[0]


def registered_entry(response: Any) -> str:
    """The rest of the line of the brokers that are registered, which stays the same while they do; fenced ones are
    among them."""
    return rest_of_line(
        {
            "description": "registered_brokers",
            "brokers": [
                {"id": one.broker_id, "host": one.host, "port": one.port, "rack": one.rack, "is_fenced": one.is_fenced}
                for one in sorted(response.brokers, key=lambda one: int(one.broker_id))
            ],
        }
    )


def elr_of(response: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Of each topic of an answer to DescribeTopicPartitions the partitions that have replicas which are eligible to
    lead them, or were last (KIP-966)."""
    for topic in response.topics:
        yield (
            topic.name,
            [
                {
                    "partition": one.partition_index,
                    "eligible_leader_replicas": list(one.eligible_leader_replicas or ()),
                    "last_known_elr": list(one.last_known_elr or ()),
                }
                for one in topic.partitions
                if one.eligible_leader_replicas or one.last_known_elr
            ],
        )


def elr_entry(topic: str, partitions: list[dict[str, Any]]) -> str:
    """The rest of the line that says so of a topic; of one without any such partition too."""
    return rest_of_line({"description": "topic_elr", "topic": topic, "partitions": partitions})
