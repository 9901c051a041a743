"""Answers of brokers, and the lines of a capture that they become. Pure functions over kafka-python's messages."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kafka.errors import for_code

#: Errors after which what is known of leaders and replicas is old.
_STALE: Final = frozenset({3, 5, 6, 74, 76})

Partition = tuple[str, int]


@dataclass(frozen=True)
class Asked:
    """When a request was sent and answered, epoch ms with tenths, and which broker answered."""

    sent_at: float
    received_at: float
    broker_id: int

    def head(self) -> str:
        """How each line of the answer begins."""
        return f'{{"sent_at":{self.sent_at:.1f},"received_at":{self.received_at:.1f},"broker":{self.broker_id},'


@dataclass(frozen=True)
class View:
    """What a broker's metadata say of itself and of the others.

    ``brokers`` are addresses by id, those alive; ``replicas`` and ``leads`` the partitions that the broker holds, and
    of which it is the leader; ``assigned`` every broker that a partition is assigned to.
    """

    brokers: dict[int, tuple[str, int]]
    controller_id: int
    replicas: tuple[Partition, ...]
    leads: tuple[Partition, ...]
    assigned: frozenset[int]


@dataclass(frozen=True)
class Answers:
    """The lines of an answer, its errors by Kafka's name, and whether the metadata asked with are old."""

    lines: list[bytes]
    errors: Counter[str]
    is_stale: bool


def offset_answers(response: Any, version: int, replica_id: int, asked: Asked) -> Answers:
    """A line of ``probes-N.jsonl`` for each offset answered; errors are counted."""
    lines: list[bytes] = []
    codes: Counter[int] = Counter()
    head = f'{asked.head()}"replica_id":{replica_id},"topic":'
    for topic in response.topics:
        begin = f'{head}{json.dumps(topic.name)},"partition":'
        for one in topic.partitions:
            if one.error_code:
                codes[one.error_code] += 1
                continue
            if version == 0:
                offsets = one.old_style_offsets
                offset = offsets[0] if offsets else -1
            else:
                offset = one.offset
            if offset >= 0:
                lines.append(f'{begin}{one.partition_index},"offset":{offset}}}\n'.encode())
    return Answers(lines, Counter({error_name(code): n for code, n in codes.items()}), bool(_STALE & codes.keys()))


def view_of(response: Any, broker_id: int) -> View:
    replicas: list[Partition] = []
    leads: list[Partition] = []
    assigned: set[int] = set()
    for topic in response.topics:
        for one in topic.partitions:
            assigned.update(one.replica_nodes)
            if broker_id in one.replica_nodes:
                replicas.append((topic.name, one.partition_index))
            if one.leader_id == broker_id:
                leads.append((topic.name, one.partition_index))
    return View(
        {broker.node_id: (broker.host, broker.port) for broker in response.brokers},
        response.controller_id,
        tuple(sorted(replicas)),
        tuple(sorted(leads)),
        frozenset(assigned),
    )


def cluster_line(response: Any, asked: Asked) -> bytes:
    """The line of ``descriptions.jsonl`` that says what the cluster is; keys that the version lacks are null."""
    version = response.version
    entry = {
        "description": "cluster",
        "cluster_id": response.cluster_id if version >= 2 else None,
        "controller_id": response.controller_id if version >= 1 else None,
        "brokers": [
            {"id": one.node_id, "host": one.host, "port": one.port, "rack": one.rack if version >= 1 else None}
            for one in sorted(response.brokers, key=lambda one: int(one.node_id))
        ],
        "topics": len(response.topics),
    }
    return _line(asked, entry)


def topic_entries(response: Any) -> Iterator[tuple[str, str]]:
    """Each topic's name and the rest of its line, which stays the same while its description does."""
    version = response.version
    for topic in response.topics:
        entry = {
            "description": "topic",
            "topic": topic.name,
            "topic_id": id_text(topic.topic_id) if version >= 10 else None,
            "is_internal": topic.is_internal if version >= 1 else None,
            "error_code": topic.error_code,
            "partitions": [
                {
                    "partition": one.partition_index,
                    "error_code": one.error_code,
                    "leader": one.leader_id,
                    "leader_epoch": one.leader_epoch if version >= 7 else None,
                    "replicas": one.replica_nodes,
                    "isr": one.isr_nodes,
                    "offline_replicas": one.offline_replicas if version >= 5 else None,
                }
                for one in sorted(topic.partitions, key=lambda one: int(one.partition_index))
            ],
        }
        yield topic.name, rest_of_line(entry)


def gone_entry(topic: str) -> str:
    """The rest of the line that says that a topic is no longer described."""
    return rest_of_line({"description": "topic_gone", "topic": topic})


def described(asked: Asked, rests: Iterable[str]) -> list[bytes]:
    return [f"{asked.head()}{rest}\n".encode() for rest in rests]


def log_dir_lines(response: Any, asked: Asked) -> list[bytes]:
    """Lines of ``log-dirs.jsonl``: one for each log directory, and one for each topic in it."""
    version = response.version
    lines = []
    for found in response.results:
        entry = {
            "log_dir": found.log_dir,
            "error_code": found.error_code,
            "total_bytes": found.total_bytes if version >= 4 else None,
            "usable_bytes": found.usable_bytes if version >= 4 else None,
            "topics": len(found.topics),
        }
        lines.append(_line(asked, entry))
        for topic in found.topics:
            partitions = [
                {
                    "partition": one.partition_index,
                    "size": one.partition_size,
                    "offset_lag": one.offset_lag,
                    "is_future": one.is_future_key,
                }
                for one in topic.partitions
            ]
            lines.append(_line(asked, {"log_dir": found.log_dir, "topic": topic.name, "partitions": partitions}))
    return lines


def reassignment_entry(response: Any) -> str:
    """The rest of a line of ``reassignments.jsonl``: all that are under way."""
    entry = {
        "reassignments": [
            {
                "topic": topic.name,
                "partition": one.partition_index,
                "replicas": one.replicas,
                "adding_replicas": one.adding_replicas,
                "removing_replicas": one.removing_replicas,
            }
            for topic in response.topics
            for one in topic.partitions
        ]
    }
    return rest_of_line(entry)


def error_name(code: int) -> str:
    """Kafka's name of an error code, as NOT_LEADER_OR_FOLLOWER."""
    found = for_code(code)
    return str(getattr(found, "message", None) or found.__name__)


def id_text(topic_id: UUID | None) -> str | None:
    """As Kafka writes it, in ZooKeeper too; None for the id of no topic."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode() if topic_id else None


def rest_of_line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, separators=(",", ":"))[1:]


def _line(asked: Asked, entry: dict[str, Any]) -> bytes:
    return f"{asked.head()}{rest_of_line(entry)}\n".encode()
