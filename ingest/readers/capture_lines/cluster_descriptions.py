"""Descriptions of a cluster by its brokers, as JSON lines, to the rows of ``bronze.cluster_descriptions``.

They are answers to Metadata, DescribeLogDirs and ListPartitionReassignments and, without ZooKeeper, to DescribeQuorum,
DescribeCluster and DescribeTopicPartitions, written by :mod:`ingest.capture.brokers.answers` and ``kraft_answers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

from ingest.readers.capture_lines import json_lines
from ingest.readers.capture_lines.json_lines import instants_of_answer, integer, is_text
from ingest.readers.logs.writers import MAX_BROKER_ID
from ingest.readers.work import Kept, Place, Rejected, WorkItem

#: What every line has, and the keys of which it has one: what it describes.
_INSTANTS: Final = frozenset({"sent_at", "received_at"})
_DESCRIBED: Final = frozenset({"description", "log_dir", "reassignments"})
_INT32_END: Final = 1 << 31
_INT64_END: Final = 1 << 63

#: A value of JSON as that of a column; raises :class:`_Wrong`.
_Take = Callable[[Any], Any]


class _Wrong(Exception):
    """A value that its column cannot hold; the message completes "whose KEY ..."."""


@dataclass(frozen=True)
class _Field:
    """A key of an object and the column it fills. ``is_optional``: versions of the request lack it, or have null."""

    key: str
    column: str
    take: _Take
    is_optional: bool = False


def _number(low: int, end: int) -> _Take:
    def take(value: Any) -> int:
        found = integer(value, low, end)
        if found is None:
            raise _Wrong("is not a number in range")
        return found

    return take


def _text(value: Any) -> str:
    if not isinstance(value, str) or not is_text(value):
        raise _Wrong("is no text")
    return value


def _name(value: Any) -> str:
    if not _text(value):
        raise _Wrong("is empty")
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("is neither true nor false")
    return value


def _list_of(take: _Take) -> _Take:
    def take_all(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _Wrong("is no list")
        taken = []
        for number, element in enumerate(value):
            try:
                taken.append(take(element))
            except _Wrong as wrong:
                raise _Wrong(f"[{number}] {wrong}") from wrong
        return taken

    return take_all


def _object_of(*fields: _Field) -> _Take:
    def take(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _Wrong("is no object")
        return _columns(value, fields)

    return take


def _columns(entry: Mapping[str, Any], fields: Iterable[_Field]) -> dict[str, Any]:
    values = {}
    for field in fields:
        value = entry.get(field.key)
        if value is None and not field.is_optional:
            raise _Wrong(f"has no {field.key}")
        try:
            values[field.column] = None if value is None else field.take(value)
        except _Wrong as wrong:
            raise _Wrong(f"{field.key} {wrong}") from wrong
    return values


_int16: Final = _number(-(1 << 15), 1 << 15)
_int32: Final = _number(-_INT32_END, _INT32_END)
_int64: Final = _number(-_INT64_END, _INT64_END)
_count: Final = _number(0, _INT32_END)
_ids: Final = _list_of(_int32)
_PARTITION: Final = _Field("partition", "partition_id", _count)
_TOPIC: Final = _Field("topic", "topic", _name)
_ERROR: Final = _Field("error_code", "error_code", _int16)
_TOPICS: Final = _Field("topics", "topics_count", _count)
_LOG_DIR: Final = _Field("log_dir", "log_dir", _name)
_BROKERS: Final = _object_of(
    _Field("id", "broker_id", _count),
    _Field("host", "host", _text),
    _Field("port", "port", _int32),
    _Field("rack", "rack", _text, is_optional=True),
    _Field("is_fenced", "is_fenced", _flag, is_optional=True),
)
_ELR: Final = _object_of(
    _PARTITION,
    _Field("eligible_leader_replicas", "eligible_leader_replicas", _ids),
    _Field("last_known_elr", "last_known_elr", _ids),
)
_QUORUM_REPLICAS: Final = _object_of(
    _Field("id", "replica_id", _count),
    _Field("directory_id", "directory_id", _text, is_optional=True),
    _Field("log_end_offset", "log_end_offset", _int64),
    _Field("last_fetch_at", "last_fetch_at_ms", _int64, is_optional=True),
    _Field("last_caught_up_at", "last_caught_up_at_ms", _int64, is_optional=True),
)
_PARTITIONS: Final = _object_of(
    _PARTITION,
    _ERROR,
    _Field("leader", "leader", _int32),
    _Field("leader_epoch", "leader_epoch", _int32, is_optional=True),
    _Field("replicas", "replicas", _ids),
    _Field("isr", "isr", _ids),
    _Field("offline_replicas", "offline_replicas", _ids, is_optional=True),
)
_REPLICAS: Final = _object_of(
    _PARTITION,
    _Field("size", "size_bytes", _int64),
    _Field("offset_lag", "offset_lag", _int64),
    _Field("is_future", "is_future", _flag),
)
_REASSIGNMENTS: Final = _object_of(
    _TOPIC,
    _PARTITION,
    _Field("replicas", "replicas", _ids),
    _Field("adding_replicas", "adding_replicas", _ids),
    _Field("removing_replicas", "removing_replicas", _ids),
)
_FIELDS: Final[Mapping[str, tuple[_Field, ...]]] = {
    "cluster": (
        _Field("cluster_id", "metadata_cluster_id", _text, is_optional=True),
        _Field("controller_id", "controller_id", _int32, is_optional=True),
        _Field("brokers", "brokers", _list_of(_BROKERS)),
        _TOPICS,
    ),
    "topic": (
        _TOPIC,
        _Field("topic_id", "topic_id", _text, is_optional=True),
        _Field("is_internal", "is_internal", _flag, is_optional=True),
        _ERROR,
        _Field("partitions", "partitions", _list_of(_PARTITIONS)),
    ),
    "topic_gone": (_TOPIC,),
    "topic_elr": (_TOPIC, _Field("partitions", "elr", _list_of(_ELR))),
    "registered_brokers": (_Field("brokers", "brokers", _list_of(_BROKERS)),),
    "quorum": (
        _Field("leader", "quorum_leader", _int32),
        _Field("leader_epoch", "quorum_epoch", _int32),
        _Field("high_watermark", "quorum_high_watermark", _int64),
        _Field("voters", "voters", _list_of(_QUORUM_REPLICAS)),
        _Field("observers", "observers", _list_of(_QUORUM_REPLICAS)),
    ),
    "log_dir": (
        _LOG_DIR,
        _ERROR,
        _Field("total_bytes", "total_bytes", _int64, is_optional=True),
        _Field("usable_bytes", "usable_bytes", _int64, is_optional=True),
        _TOPICS,
    ),
    "log_dir_topic": (_LOG_DIR, _TOPIC, _Field("partitions", "replicas", _list_of(_REPLICAS))),
    "reassignments": (_Field("reassignments", "reassignments", _list_of(_REASSIGNMENTS)),),
}
_WORDS: Final[Mapping[str, str]] = {
    "cluster": "a description of a cluster",
    "topic": "a description of a topic",
    "topic_gone": "a description of a topic that is gone",
    "topic_elr": "a description of the replicas that are eligible to lead a topic",
    "registered_brokers": "a description of the brokers that are registered",
    "quorum": "a description of a quorum",
    "log_dir": "a description of a log directory",
    "log_dir_topic": "a description of a topic's replicas in a log directory",
    "reassignments": "an answer to ListPartitionReassignments",
}


#: What a line names as its ``description``.
_NAMED: Final = ("cluster", "topic", "topic_gone", "topic_elr", "registered_brokers", "quorum")


def is_description(keys: Set[str]) -> bool:
    """Whether an object with these keys is a line of this source."""
    return keys >= _INSTANTS and not _DESCRIBED.isdisjoint(keys)


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The descriptions in a file, one per line. The broker is the one that the line names, else that of the file."""
    for place, entry in json_lines.objects(item, source):
        yield _description(place, entry, item.broker_id) if isinstance(entry, dict) else Rejected(place, entry)


def _description(place: Place, entry: Mapping[str, Any], file_broker: int | None) -> Kept | Rejected:
    kind = _type_of(entry)
    if kind is None:
        return Rejected(place, "no description of a cluster, a topic, a log directory, a quorum or reassignments")
    instants = instants_of_answer(entry, _WORDS[kind])
    if isinstance(instants, str):
        return Rejected(place, instants)
    stated = file_broker if entry.get("broker") is None else entry["broker"]
    if stated is None:
        return Rejected(
            place, "nothing says which broker answered: keep the file below broker-ID/, or give --broker ID=PATH"
        )
    broker_id = integer(stated, 0, MAX_BROKER_ID + 1)
    if broker_id is None:
        return Rejected(place, f"{_WORDS[kind]} whose broker is not a number in range")
    fields = _FIELDS[kind]
    missing = [field.key for field in fields if not field.is_optional and entry.get(field.key) is None]
    if missing:
        return Rejected(place, f"{_WORDS[kind]} without {', '.join(missing)}")
    try:
        values = _columns(entry, fields)
    except _Wrong as wrong:
        return Rejected(place, f"{_WORDS[kind]} whose {wrong}")
    sent_at, received_at = instants
    own = {"sent_at": sent_at, "received_at": received_at, "broker_id": broker_id, "description_type": kind}
    return Kept(place, own | values)


def _type_of(entry: Mapping[str, Any]) -> str | None:
    named = entry.get("description")
    if named is not None:
        return named if named in _NAMED else None
    if "reassignments" in entry:
        return "reassignments"
    if "log_dir" not in entry:
        return None
    return "log_dir_topic" if "topic" in entry else "log_dir"
