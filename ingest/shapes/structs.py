"""How Kafka prints the state of a partition inside a message, read into normalised fields.

A text that cannot be read gives no fields: the message is still recognised. Fields are found by their names in the
text, never by splitting on commas, because the lists inside the values are comma separated too.

Source of the spellings: the ``toString`` of Kafka's classes in releases 0.8.0 to 4.0.
"""

from __future__ import annotations

import re
from typing import Final

from ingest.shapes.values import NOTHING, Fields, groups, ids, json_object

#: Kafka 0.8.0 to 3.9, controller: ``(Leader:1,ISR:1,2,LeaderEpoch:0,ControllerEpoch:1)`` and its later forms; brokers
#: up to 0.11 wrap it with unbalanced parentheses:
#: ``(LeaderAndIsrInfo:(Leader:...),ReplicationFactor:2),AllReplicas:1,2)``.
_COLON_STATE: Final = re.compile(
    r"\(Leader:(?P<leader>-?\d+),ISR:(?P<isr>[\d,]*),"
    r"(?:LeaderRecoveryState:(?P<leader_recovery_state>\w+),)?"
    r"LeaderEpoch:(?P<leader_epoch>-?\d+),"
    r"(?:ZkVersion:(?P<partition_epoch>-?\d+),)?"
    r"ControllerEpoch:(?P<state_controller_epoch>-?\d+)\)"
    r"(?:,ReplicationFactor:\d+\),AllReplicas:(?P<replicas>[\d,]*)\))?",
    re.ASCII,
)

_LEADER_RECOVERY_STATES: Final = {"RECOVERED": "0", "RECOVERING": "1"}

#: A Scala ``Set`` keeps the order of insertion up to this size; beyond it the order is that of hashes.
_LARGEST_ORDERED_SCALA_SET: Final = 4


def leader_isr_and_controller_epoch(text: str) -> Fields:
    """``(Leader:1,ISR:1,2,LeaderEpoch:0,ControllerEpoch:1)``, also inside ``(LeaderAndIsrInfo:...)``."""
    found = _COLON_STATE.search(text)
    if found is None:
        return NOTHING
    fields = dict(groups(found))
    # An empty ISR prints as "ISR:,": the pattern leaves the separator's comma outside.
    fields["isr"] = ids(fields["isr"])
    _spell_recovery_state(fields)
    replicas = fields.get("replicas")
    if replicas is not None and replicas.count(",") >= _LARGEST_ORDERED_SCALA_SET:
        fields["replica_set"] = fields.pop("replicas")
    return fields


_JSON_NAMES: Final = {
    "leader": "leader",
    "leader_epoch": "leader_epoch",
    "leaderEpoch": "leader_epoch",
    "isr": "isr",
    "ISR": "isr",
    "controller_epoch": "state_controller_epoch",
}


def leader_and_isr_json(text: str) -> Fields:
    """``{"leader":1,"leader_epoch":0,"isr":[1,2]}`` (0.8.1 to 1.0), in 0.8.0 with quoted numbers."""
    fields = {_JSON_NAMES[name]: str(value) for name, value in json_object(text).items() if name in _JSON_NAMES}
    if "isr" in fields:
        fields["isr"] = ids(fields["isr"])
    return fields


_BROKER_STATE: Final = re.compile(r"BrokerState\(brokerId=(\d+), brokerEpoch=-?\d+\)", re.ASCII)
_NAMED_VALUE: Final = re.compile(r"\b(\w++)=(\[[^\]]*\]|\w+\([^)]*\)|'[^']*'|[\d,]*(?=, \w+=|\)\Z)|[^,()]*)", re.ASCII)

#: Kafka's name inside the text -> ours. Names that are not here are left out.
_STRUCT_NAMES: Final = {
    "topicName": "topic",
    "partitionIndex": "partition_id",
    "controllerEpoch": "state_controller_epoch",
    "leader": "leader",
    "leaderEpoch": "leader_epoch",
    "isr": "isr",
    "isrWithBrokerEpoch": "isr",
    "zkVersion": "partition_epoch",
    "partitionEpoch": "partition_epoch",
    "replicas": "replicas",
    "addingReplicas": "adding_replicas",
    "removingReplicas": "removing_replicas",
    "offlineReplicas": "offline_replicas",
    "isNew": "is_new",
    "leaderRecoveryState": "leader_recovery_state",
    "deletePartition": "delete",
    "elr": "elr",
    "lastKnownElr": "last_known_elr",
}
_LIST_FIELDS: Final = frozenset(
    {"isr", "replicas", "adding_replicas", "removing_replicas", "offline_replicas", "elr", "last_known_elr"}
)


def named_values(text: str) -> Fields:
    """``PartitionState(...)``, ``LeaderAndIsr(...)``, ``ReplicaAssignment(...)`` and the generated request structs.

    In ``PartitionState`` of 0.10.0.1 to 0.10.2 the replicas were a Java set: they come as ``replica_set``, since their
    order is not the assignment's. A class without ``toString`` (``PartitionState@5b2d7f1a``) gives no fields.
    """
    if "(" not in text:
        return NOTHING
    body = _BROKER_STATE.sub(r"\1", text)
    fields: dict[str, str] = {}
    for name, value in _NAMED_VALUE.findall(body[body.index("(") :]):
        ours = _STRUCT_NAMES.get(name)
        if ours is not None:
            fields[ours] = ids(value) if ours in _LIST_FIELDS else value.strip("'")
    _spell_recovery_state(fields)
    if text.startswith("PartitionState(") and _is_java_set_form(text):
        fields["replica_set"] = fields.pop("replicas")
    return fields


_CHANGE: Final = re.compile(r"\b(\w+): (\[[^\]]*\]|[^\s,]+) -> (\[[^\]]*\]|[^\s,]+)", re.ASCII)


def partition_changes(text: str) -> Fields:
    """``isr: [1, 2] -> [1], leader: 2 -> 1, leaderEpoch: 3 -> 4, partitionEpoch: 5 -> 6`` of KRaft's
    ``PartitionRegistration.diff``: what each became, and ``old_isr``."""
    fields: dict[str, str] = {}
    for name, before, after in _CHANGE.findall(text):
        ours = _STRUCT_NAMES.get(name)
        if ours is not None:
            fields[ours] = ids(after) if ours in _LIST_FIELDS else after
        if ours == "isr":
            fields["old_isr"] = ids(before)
    _spell_recovery_state(fields)
    return fields


def previous_assignment(text: str) -> Fields:
    """``ReplicaAssignment(...)`` that is being replaced: ``previous_replicas`` ..."""
    return {f"previous_{name}": value for name, value in named_values(text).items()}


def _is_java_set_form(text: str) -> bool:
    """Whether this is the ``PartitionState`` of 0.10: bracketed lists, and neither ``isNew`` nor offline replicas."""
    return "replicas=[" in text and "isNew=" not in text and "offlineReplicas=" not in text


def _spell_recovery_state(fields: dict[str, str]) -> None:
    state = fields.get("leader_recovery_state")
    if state is not None:
        fields["leader_recovery_state"] = _LEADER_RECOVERY_STATES.get(state, state)


#: 2.8's KRaft preview: a Scala case class, positional.
_METADATA_PARTITION: Final = re.compile(
    r"MetadataPartition\((?P<topic>[\w.-]+),(?P<partition_id>\d+),(?P<leader>-?\d+),(?P<leader_epoch>-?\d+)"
    r"(?:,\[(?P<replicas>[\d, ]*)\],\[(?P<isr>[\d, ]*)\],(?P<partition_epoch>-?\d+),\[(?P<offline_replicas>[\d, ]*)\]"
    r",\[(?P<adding_replicas>[\d, ]*)\],\[(?P<removing_replicas>[\d, ]*)\]\))?",
    re.ASCII,
)


def metadata_partition(text: str) -> Fields:
    """``MetadataPartition(t,0,1,5,[1, 2],[1, 2],3,[],[],[])``: topic, partition, leader, epoch, replicas, ISR ..."""
    fields = groups(_METADATA_PARTITION.match(text))
    return {name: ids(value) if name in _LIST_FIELDS else value for name, value in fields.items()}


def partition_struct(text: str) -> Fields:
    """Any of the texts in which a partition's state is printed; an unknown one gives no fields."""
    if text.startswith("("):
        return leader_isr_and_controller_epoch(text)
    if text.startswith("{"):
        return leader_and_isr_json(text)
    if text.startswith("MetadataPartition("):
        return metadata_partition(text)
    return named_values(text)
