"""Brokers, partitions, lists and answers as Kafka prints them inside a message, read into normalised texts.

Every reader takes the text of one value; one that cannot be read gives nothing, and the message is still recognised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Fields = Mapping[str, str]

NOTHING: Final[Fields] = {}


def groups(found: re.Match[str] | None) -> Fields:
    """The groups that a match names and has a text for; nothing without a match."""
    return NOTHING if found is None else {name: text for name, text in found.groupdict().items() if text is not None}


def searched(*patterns: str) -> Callable[[str], Fields]:
    """A reader that gives the groups which the first of these patterns that is found in a text names."""
    compiled = [re.compile(pattern, re.ASCII) for pattern in patterns]

    def read(text: str) -> Fields:
        return groups(next(filter(None, (pattern.search(text) for pattern in compiled)), None))

    return read


_NUMBER: Final = re.compile(r"-?\d+", re.ASCII)
_UUID_IN_OPTION: Final = re.compile(r"Some\(([\w-]+)\)", re.ASCII)


#: Characters of the longest number that Kafka prints: the twenty digits of a segment's name, and a sign.
_LONGEST_NUMBER: Final = 21


def fitting(text: str, bits: int) -> int | None:
    """The number that digits, behind a sign or not, spell; None where it needs more bits, beside its sign."""
    if len(text) > _LONGEST_NUMBER:
        return None
    number = int(text)
    return number if -(1 << bits) <= number < 1 << bits else None


def ids(text: str) -> str:
    """``1,2``, ``[1, 2]``, ``List(1, 2)``, ``HashSet(1, 2)`` become ``1,2``, in the order printed."""
    return ",".join(_NUMBER.findall(text))


_ID_LIST: Final = re.compile(r"(?:\w*\([-\d, ]*\)|\[[-\d, ]*\]|[-\d, ]*)", re.ASCII)


def ids_only(text: str) -> str | None:
    """As :func:`ids`; a text that is not a list of ids gives nothing."""
    return ids(text) if _ID_LIST.fullmatch(text) else None


def integer(text: str) -> str | None:
    """The number; another text gives nothing."""
    return text if _NUMBER.fullmatch(text) else None


_BROKER: Final = re.compile(
    r"(?P<plain>-?\d+)\Z|id:(?P<old>-?\d+),host:|Node\((?P<node>-?\d+),|.*\(id: (?P<new>-?\d+) rack: "
    r"|BrokerEndPoint\((?:id=)?(?P<endpoint>-?\d+),|(?P<broker>-?\d+) : \(EndPoint",
    re.ASCII,
)
_BROKER_IN_LIST: Final = re.compile(
    r"id:(-?\d+),host:|Node\((-?\d+),|\(id: (-?\d+) rack: |BrokerEndPoint\((?:id=)?(-?\d+),"
    r"|((?<!\d)-?\d++) : \(?EndPoint|Broker\(id=(-?\d+)",
    re.ASCII,
)


def broker(text: str) -> str | None:
    """The id in ``2``, ``id:2,host:h,port:9092``, ``Node(2, h, 9092)``, ``h:9092 (id: 2 rack: null)`` ..."""
    found = _BROKER.match(text)
    return None if found is None else next(value for value in found.groups() if value is not None)


def brokers(text: str) -> str | None:
    """Ids of a list of brokers in any spelling, ``2,3``; of a list of bare ids as well."""
    found = [next(value for value in groups if value) for groups in _BROKER_IN_LIST.findall(text)]
    return ",".join(found) if found or any(mark in text for mark in (":", "=")) else ids(text)


_TOPIC_PARTITION: Final = re.compile(
    r"\[Topic=([\w.-]+),Partition=(\d+),Replica=\d+\]|(?:TopicAndPartition|PartitionAndReplica)\(([\w.-]+),(\d+)"
    r"|(?<![\w.-])([\w.-]+)[,-](\d+)",
    re.ASCII,
)


_topic_path: Final = searched(r"/brokers/topics/(?P<topic>[\w.-]+)(?:/partitions/(?P<partition_id>\d+))?")


def znode(text: str) -> Fields:
    """``path``, and the topic and partition that it belongs to, if any."""
    return {"path": text, **_topic_path(text)}


def topic_partitions(text: str) -> str:
    """Partitions in any spelling, ``t-0,t-1``, in the order printed."""
    pairs = [[part for part in groups if part] for groups in _TOPIC_PARTITION.findall(text)]
    return ",".join(f"{topic}-{partition}" for topic, partition in pairs)


def topic_id(text: str) -> str | None:
    """``Some(uuid)`` and the bare uuid give the uuid; ``None`` gives nothing."""
    if text == "None":
        return None
    found = _UUID_IN_OPTION.fullmatch(text)
    return text if found is None else found.group(1)


def option(text: str) -> str | None:
    """The number in Scala's ``Some(1)``, Java's ``Optional[1]`` and ``OptionalInt[1]``, or a bare one."""
    found = _NUMBER.search(text)
    return None if found is None else found.group()


_OUT_OF_SYNC: Final = re.compile(
    r"\(brokerId: (-?\d+), endOffset: (\w+|-?\d+)\b(?:, lastCaughtUpTimeMs: (\d+))?[^)]*\)", re.ASCII
)


def out_of_sync(text: str) -> str:
    """``(brokerId: 2, endOffset: 1510) (brokerId: 3, endOffset: unknown)`` becomes ``2:1510,3:unknown``.

    With the time at which the leader last found it caught up, in ms since the epoch, where that is printed:
    ``2:1510:1700000000000``."""
    return ",".join(":".join(filter(None, found)) for found in _OUT_OF_SYNC.findall(text))


_API_OF_RESPONSE: Final = {
    "LeaderAndIsrResponse": "LEADER_AND_ISR",
    "UpdateMetadataResponse": "UPDATE_METADATA",
    "StopReplicaResponse": "STOP_REPLICA",
}
_CASE_CLASS_RESPONSE: Final = re.compile(r"(\w+Response)\((\d+),.*?(-?\d+)\)\Z", re.ASCII | re.DOTALL)
_FIRST_ERROR_CODE: Final = re.compile(r"\{?(?:\w+\()?(?:error_code|errorCode)=(-?\d+)", re.ASCII)
_RESPONSE_CLASS: Final = re.compile(r"(\w+Response)(?:Data)?\(", re.ASCII)
_PARTITION_ERROR: Final = re.compile(
    r"topic=([\w.-]+),partition=(\d+),error_code=(-?[1-9]\d*)"
    r"|topicName='([\w.-]+)', partitionIndex=(\d+), errorCode=(-?[1-9]\d*)"
    r"|\(([\w.-]+),(\d+)\) -> (-?[1-9]\d*)"
    r"|\[([\w.-]+),(\d+)\] -> (-?[1-9]\d*)",
    re.ASCII,
)


def response(text: str) -> Fields:
    """A broker's answer: ``response_error`` (of the whole request), ``api`` and ``correlation_id`` where printed.

    Errors of single partitions come as ``partition_errors``: ``t-0:6,t-1:6``, absent where there is none.
    0.8.2 prints the last argument, the answer's own code, after the map; 0.8.2's ``StopReplicaResponse`` too.
    """
    fields: dict[str, str] = {}
    case_class = _CASE_CLASS_RESPONSE.match(text)
    if case_class is not None:
        fields["correlation_id"] = case_class.group(2)
        fields["response_error"] = case_class.group(3)
    else:
        first = _FIRST_ERROR_CODE.match(text)
        if first is not None:
            fields["response_error"] = first.group(1)
    response_class = _RESPONSE_CLASS.match(text)
    if response_class is not None and response_class.group(1) in _API_OF_RESPONSE:
        fields["api"] = _API_OF_RESPONSE[response_class.group(1)]
    errors = [[part for part in groups if part] for groups in _PARTITION_ERROR.findall(text)]
    if errors:
        fields["partition_errors"] = ",".join(f"{topic}-{partition}:{code}" for topic, partition, code in errors)
    return fields


def json_object(text: str | None) -> dict[str, Any]:
    """The object that a text of JSON is, without the values that are objects, or lists of anything but texts and
    numbers; empty where it is none. However deep what somebody wrote is nested, nothing raises on it, and nothing that
    comes of it does."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return {name: each for name, each in value.items() if is_flat(each)} if isinstance(value, dict) else {}


def is_flat(value: Any) -> bool:
    """Whether a value of JSON is a text, a number, true, false, null, or a list of such."""
    each = value if isinstance(value, list) else (value,)
    return not any(isinstance(one, list | dict) for one in each)
