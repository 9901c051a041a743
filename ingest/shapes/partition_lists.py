"""Records that name many partitions at once, read into aligned lists.

``topic_partitions`` is ``t-0,t-1``; beside it stand lists of the same length and order. A list of single values
(``leaders``, ``states`` ...) has commas, an empty element where the text says nothing; a list of lists (``isrs``,
``assignments`` ...) has bars between the partitions and semicolons within: ``1;2|2;3``. A list that says nothing of any
partition is left out. :data:`ALIGNED` says which field each list gives a single partition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ingest.shapes.structs import leader_isr_and_controller_epoch, named_values
from ingest.shapes.values import NOTHING, Fields, ids, is_flat

#: Aligned list of single values -> the field it gives each partition.
ALIGNED_VALUES: Final[Mapping[str, str]] = {
    "replica_ids": "replica_id",
    "states": "state",
    "errors": "error",
    "leaders": "leader",
    "leader_epochs": "leader_epoch",
    "partition_epochs": "partition_epoch",
    "state_controller_epochs": "state_controller_epoch",
    "leader_recovery_states": "leader_recovery_state",
    "topic_ids": "topic_id",
    "fetch_offsets": "fetch_offset",
}
#: Aligned list of lists -> the field, a list of ids, that it gives each partition.
ALIGNED_LISTS: Final[Mapping[str, str]] = {
    "isrs": "isr",
    "assignments": "replicas",
    "adding_assignments": "adding_replicas",
    "removing_assignments": "removing_replicas",
}
#: Every aligned list -> the field it gives each partition.
ALIGNED: Final[Mapping[str, str]] = {**ALIGNED_VALUES, **ALIGNED_LISTS}


def aligned(rows: Sequence[Mapping[str, str]]) -> Fields:
    """The fields of several partitions, each with ``topic`` and ``partition_id``, as aligned lists."""
    lists = {"topic_partitions": ",".join(f"{row['topic']}-{row['partition_id']}" for row in rows)}
    for name, single in ALIGNED_VALUES.items():
        if any(single in row for row in rows):
            lists[name] = ",".join(row.get(single, "") for row in rows)
    for name, single in ALIGNED_LISTS.items():
        if any(single in row for row in rows):
            lists[name] = "|".join(row.get(single, "").replace(",", ";") for row in rows)
    return lists


def _rows(found: Iterable[re.Match[str]]) -> list[dict[str, str]]:
    """What each match names; a group's name ends in ``_`` where another spelling has a group of that name."""
    return [{name.rstrip("_"): value for name, value in one.groupdict().items() if value is not None} for one in found]


#: ``[t,0]``, ``(t,0)``, ``t-0``; the lookbehind keeps to the start of a name.
_PARTITION: Final = r"(?<![\w.-])(?P<topic>[\w.-]+)[,-](?P<partition_id>\d+)[\])]?"
#: ``[Topic=t,Partition=0,Replica=1]``, 0.8.0's ``PartitionAndReplica(t,0,1)``.
_REPLICA: Final = (
    r"\[Topic=(?P<topic>[\w.-]+),Partition=(?P<partition_id>\d+),Replica=(?P<replica_id>-?\d+)\]"
    r"|PartitionAndReplica\((?P<topic_>[\w.-]+),(?P<partition_id_>\d+),(?P<replica_id_>-?\d+)\)"
)

_LEADERSHIP: Final = re.compile(rf"{_PARTITION} -> (?P<state>\(Leader:[^)]*\))", re.ASCII)


def leaderships(text: str) -> Fields:
    """A controller's leader cache: ``Map([t,0] -> (Leader:1,ISR:1,2,LeaderEpoch:0,ControllerEpoch:1), ...)``."""
    rows = []
    for row in _rows(_LEADERSHIP.finditer(text)):
        state = leader_isr_and_controller_epoch(row.pop("state"))
        rows.append({**row, **state})
    return aligned(rows)


_REPLICA_FINDER: Final = re.compile(_REPLICA, re.ASCII)
_REPLICA_STATE: Final = re.compile(rf"(?:{_REPLICA}) -> (?P<state>\w+)", re.ASCII)
_PARTITION_STATE: Final = re.compile(rf"{_PARTITION} -> (?P<state>\w+)", re.ASCII)


def partition_replicas(text: str) -> Fields:
    """``[Topic=t,Partition=0,Replica=1],...``: a partition comes once for each of its replicas."""
    return aligned(_rows(_REPLICA_FINDER.finditer(text)))


def partition_states(text: str) -> Fields:
    """``Map(t-0 -> OnlinePartition, ...)``, or ``Map([Topic=t,Partition=0,Replica=1] -> OnlineReplica, ...)``."""
    finder = _REPLICA_STATE if "Replica=" in text or "PartitionAndReplica(" in text else _PARTITION_STATE
    return aligned(_rows(finder.finditer(text)))


_ASSIGNMENT: Final = re.compile(
    rf"TopicIdReplicaAssignment\([\w.-]+,(?:Some\((?P<topic_id>[\w-]+)\)|None),"
    rf"|{_PARTITION} -> (?P<replicas>ReplicaAssignment\([^)]*\)|\w+\([\d, ]*\)|\[[\d, ]*\])",
    re.ASCII,
)


def assignments(text: str) -> Fields:
    """``Map(t-0 -> Vector(1, 2), ...)``, also with ``ReplicaAssignment(...)``, 2.8's topic ids around them."""
    rows = []
    topic_id: dict[str, str] = {}
    for row in _rows(_ASSIGNMENT.finditer(text)):
        printed = row.pop("replicas", None)
        if printed is None:
            topic_id = row
        elif printed.startswith("ReplicaAssignment("):
            rows.append({**row, **topic_id, **named_values(printed)})
        else:
            rows.append({**row, **topic_id, "replicas": ids(printed)})
    return aligned(rows)


def assignment_json(text: str) -> Fields:
    """The data of a znode that lists partitions, as the controller printed it up to 0.11.

    Of ``/brokers/topics/TOPIC``, whose data does not name the topic, ``partition_ids`` come in place of
    ``topic_partitions``.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING
    listed = data.get("partitions") if isinstance(data, dict) else None
    if isinstance(listed, dict):
        named = [(partition, replicas) for partition, replicas in listed.items() if partition.isdecimal()]
        fields = dict(aligned([{"topic": "", "partition_id": name, **_replicas(ids_)} for name, ids_ in named]))
        del fields["topic_partitions"]
        return {**fields, "partition_ids": ",".join(name for name, _ in named)} if named else NOTHING
    if isinstance(listed, list):
        return aligned(
            [
                {"topic": str(one["topic"]), "partition_id": str(one["partition"]), **_replicas(one.get("replicas"))}
                for one in listed
                if isinstance(one, dict) and all(name in one and is_flat(one[name]) for name in ("topic", "partition"))
            ]
        )
    return NOTHING


def _replicas(listed: Any) -> Fields:
    return {"replicas": ",".join(map(str, listed))} if isinstance(listed, list) and is_flat(listed) else NOTHING


_RESULT: Final = re.compile(
    rf"{_PARTITION}(?: -> |=)(?:Left\(ApiError\(error=(?P<error>\w+)|(?P<error_>-?\d+|[A-Z][A-Z_]*)\b|Right\()",
    re.ASCII,
)
_STRUCT_RESULT: Final = re.compile(
    r"topic=(?P<topic>[\w.-]+),partition=(?P<partition_id>\d+),error_code=(?P<error>-?\d+)", re.ASCII
)
_RESULT_OF_REQUEST: Final = re.compile(r"(?:\),|error=|\A\{error_code=)(?P<error>-?\d+|[A-Z_]+)(?:\)\Z|,)", re.ASCII)


def partition_results(text: str) -> Fields:
    """What became of each partition of a request: ``errors``, a code or name; ``0`` or ``NONE`` where it went well.

    ``StopReplicaResponse(33,Map([t,0] -> 0),0)``, ``Map(t-0 -> NONE)``, ``{t-0=NONE}`` and the results of elections,
    ``Map(t-0 -> Left(ApiError(error=ELECTION_NOT_NEEDED, ...)), t-1 -> Right(2))``.
    """
    finder = _STRUCT_RESULT if "error_code=" in text else _RESULT
    fields = dict(aligned([{"error": "NONE", **row} for row in _rows(finder.finditer(text))]))
    if text.startswith(("StopReplicaResponse(", "{error_code=")):
        whole = _RESULT_OF_REQUEST.search(text)
        if whole is not None:
            fields["response_error"] = whole["error"]
    return fields
