"""Values that only controller.log and server.log print: who speaks, logs on disk, fetchers, epoch entries."""

from __future__ import annotations

import re
from typing import Final

from ingest.shapes.values import Fields, broker, searched, topic_id

#: Who speaks, from the log identifier before the text; the first that is found in it tells.
_speaker: Final = searched(
    r"Partition (?P<topic>[\w.-]+)-(?P<partition_id>\d+) broker=(?P<broker_id>-?\d+)",
    r"Partition \[(?P<topic>[\w.-]+),(?P<partition_id>\d+)\] on broker (?P<broker_id>-?\d+)",
    r"ReplicaFetcher replicaId=(?P<broker_id>-?\d+), leaderId=(?P<leader>-?\d+), fetcherId=(?P<fetcher_id>\d+)",
    r"ReplicaFetcherThread-(?P<fetcher_id>\d+)-(?P<leader>-?\d+)",
    r"partition=(?P<topic>[\w.-]+)-(?P<partition_id>\d+)(?:, dir=(?P<log_dir>[^\]]*))?",
    r"LeaderEpochCache (?P<topic>[\w.-]+)-(?P<partition_id>\d+)",
    r"Controller-(?P<controller_id>-?\d+)-to-broker-(?P<to_broker_id>-?\d+)-send-thread",
    r"(?:[Cc]ontroller |Controller id=|controllerId=)(?P<controller_id>-?\d+)"
    r"(?: epoch=(?P<controller_epoch>-?\d+))?",
    r"(?:Topic Deletion Manager |delete-topics-thread-|Listener on )(?P<controller_id>-?\d+)",
    r"(?:broker|controller)-(?P<broker_id>\d+)-to-controller",
    r"(?:Raft|Assignments|Registration)Manager id=(?P<broker_id>\d+)",
    r"(?:MetadataLoader|SnapshotGenerator|SnapshotEmitter|Publisher(?: broker| controller)?) id=(?P<broker_id>\d+)",
    r"(?:nodeId=|kafka-)(?P<broker_id>\d+)",
    r"(?:[Bb]roker |broker=|brokerId=|Kafka Server |Server id=|LifecycleManager id=|KafkaApi-)(?P<broker_id>-?\d+)",
)
_moving_broker: Final = searched(r"broker (?P<broker_id>-?\d+)")


def speaker(text: str) -> Fields:
    """The log identifier before a text, of any era: ``[Controller 1]: ``, ``[Partition t-0 broker=3] `` ...

    Threads that move a log from one directory to another print what replica fetchers print, of the copy that is not
    yet in use: ``is_future`` is then ``true``.
    """
    if "ReplicaAlterLogDirs" in text:
        return {"is_future": "true", **_moving_broker(text)}
    return _speaker(text)


_LOG_OBJECT_NAMES: Final = {
    "topic": "topic",
    "partition": "partition_id",
    "topicId": "topic_id",
    "highWatermark": "high_watermark",
    "logStartOffset": "log_start_offset",
    "logEndOffset": "log_end_offset",
}
_LOG_OBJECT_VALUE: Final = re.compile(r"\b(\w++)=([^,)]*)", re.ASCII)
_log_object_dir: Final = searched(r"dir=[^\n]{0,4096}?/(?P<topic>[\w.-]+)-(?P<partition_id>\d+)[,)]")


def log_object(text: str) -> Fields:
    """``UnifiedLog(dir=/d/t-0, topicId=..., topic=t, partition=0, highWatermark=10, ...)`` and 2.6's ``Log(...)``."""
    fields = {
        _LOG_OBJECT_NAMES[name]: value
        for name, value in _LOG_OBJECT_VALUE.findall(text)
        if name in _LOG_OBJECT_NAMES and value not in ("None", "...")
    }
    if "topic" not in fields:
        fields.update(_log_object_dir(text))
    identity = fields.get("topic_id")
    if identity is not None:
        fields["topic_id"] = topic_id(identity) or identity
    return {**fields, **_out_of_use(text)}


_log_name: Final = searched(r"\A(?P<topic>[\w.-]+?)-(?P<partition_id>\d+)(?:\.[0-9a-f]+-(?:delete|future|stray))?\Z")
_renamed: Final = re.compile(r"-\d+\.[0-9a-f]+-(delete|future|stray)(?:[,)]|\Z)", re.ASCII)


def log_name(text: str) -> Fields:
    """``t-0``, the name of a log's directory, or what it was renamed to: ``t-0.8c6929e28d24-delete``."""
    return {**_log_name(text), **_out_of_use(text)}


def _out_of_use(directory: str) -> Fields:
    """``is_future`` of a copy that is not in use yet, ``is_deleted`` of a log that is not any more."""
    renamed = _renamed.search(directory)
    return {} if renamed is None else {"is_future" if renamed[1] == "future" else "is_deleted": "true"}


_NAMED_OFFSET: Final = re.compile(r"offset[=:] ?(-?\d+)|(-?\d+)", re.ASCII)


def offset(text: str) -> str | None:
    """The offset in ``10``, ``10 [0 : 120]``, ``LogOffsetMetadata(offset=10, ...)`` and the truncation states."""
    found = _NAMED_OFFSET.search(text)
    return None if found is None else found.group(1) or found.group(2)


_ADDED_FETCHER: Final = re.compile(
    r"(?<![\w.-])([\w.-]+)[,-](\d+)\]?(?:, initOffset (-?\d+) to broker (.*?)\](?= \)|,|\)|$| )"
    r"| -> (?:\(offset=(-?\d+), leaderEpoch=(-?\d+)"
    r"|InitialFetchState\([^()]*(?:\([^()]*\)[^()]*)*?,(-?\d+),(-?\d+)\)))",
    re.ASCII,
)


def added_fetchers(text: str) -> Fields:
    """Partitions whose fetching begins: ``topic_partitions`` and, in the same order, ``fetch_offsets`` and, since 2.1,
    ``leader_epochs``: at which its broker was told of the leader.

    ``leader`` is given where all of them have the same one in the text, else ``leaders`` in the same order.
    """
    partitions: list[str] = []
    offsets: list[str] = []
    leaders: list[str] = []
    epochs: list[str] = []
    for topic, partition, init_offset, endpoint, *in_map in _ADDED_FETCHER.findall(text):
        map_offset, map_epoch, state_epoch, state_offset = in_map
        partitions.append(f"{topic}-{partition}")
        offsets.append(init_offset or map_offset or state_offset)
        leaders.append((broker(endpoint) or "") if endpoint else "")
        epochs.append(map_epoch or state_epoch)
    fields = {"topic_partitions": ",".join(partitions), "fetch_offsets": ",".join(offsets)}
    if any(epochs):
        fields["leader_epochs"] = ",".join(epochs)
    if any(leaders):
        fields |= {"leader": leaders[0]} if len(set(leaders)) == 1 else {"leaders": ",".join(leaders)}
    return fields


_PAIR: Final = re.compile(r"\(?((?<!\d)-?\d++)(?: -> |,)(-?\d+)\)?", re.ASCII)


def broker_epochs(text: str) -> str:
    """``Map(1 -> 25, 2 -> 30)`` becomes ``1:25,2:30``."""
    return ",".join(f"{name}:{value}" for name, value in _PAIR.findall(text))


_COLLECTION: Final = re.compile(r"\w*\((?P<items>.*)\)|\[(?P<list>.*)\]", re.ASCII | re.DOTALL)


def names(text: str) -> str:
    """``Set(a, b)``, ``[a, b]`` and ``a,b`` become ``a,b``, in the order printed."""
    found = _COLLECTION.fullmatch(text.strip())
    items = text if found is None else found["items"] if found["items"] is not None else found["list"]
    return ",".join(item.strip() for item in items.split(",") if item.strip())
