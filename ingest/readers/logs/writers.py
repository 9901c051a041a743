"""Who wrote a record: the kind of log that its logger writes, and the broker that its message names as the writer."""

from __future__ import annotations

import re
from typing import Final

from ingest.lake.tables.bronze import SourceKind

#: The name of state-change.log's logger, whole or as %c{1}, %c{2} and %c{1.} leave it.
_STATE_CHANGE: Final = frozenset({"state.change.logger", "change.logger", "logger", "s.c.logger"})
#: Loggers of controller.log: their package, and the classes of which %c{1} and %c{1.} leave the name.
_CONTROLLER: Final = re.compile(r"kafka\.controller(?:\.|$)|org\.apache\.kafka\.controller\.")
_SHORTENED: Final = re.compile(r"(?:\w\.)*(?:controller\.)?(\w+)")
_CONTROLLER_NAMES: Final = frozenset(
    {
        "ControllerChannelManager",
        "ControllerContext",
        "ControllerEventManager",
        "KafkaController",
        "OfflinePartitionLeaderSelector",
        "PartitionLeaderSelector",
        "PartitionStateMachine",
        "QuorumController",
        "ReplicaStateMachine",
        "RequestSendThread",
        "TopicDeletionManager",
        "ZkPartitionStateMachine",
        "ZkReplicaStateMachine",
    }
)
#: How a message of state-change.log begins.
STATE_CHANGE_START: Final = re.compile(
    rb"\[(?:Controller id=\d+ epoch=\d+|Broker id=\d+)\] |Controller \d+ epoch \d+ |Broker \d+ (?!start)"
    rb"|Error on broker \d+ "
)
#: Kafka's ids are 32-bit integers.
MAX_BROKER_ID: Final = (1 << 31) - 1
_LONGEST_ID: Final = 20
#: The broker that speaks, in the identifier its messages begin with.
_OWN_ID: Final = re.compile(
    rb"\[[^\]]{0,300}?(?:\b(?:id|controllerId|broker|brokerId|replicaId|nodeId)="
    rb"|(?:Kafka Server|Controller|[Bb]roker|on controller|Topic Deletion Manager|GroupCoordinator) "
    rb"|KafkaApi-|Controller-|\b(?:broker|controller)-(?=\d+-to-controller))(\d+)[^\]]*\]"
    rb"|(?:Controller|Broker|Error on broker) (\d+) |Partition \[[^\]]+\] on broker (\d+): "
    rb"|Property broker\.id is overridden to (\d+)"
)


def kind_of_logger(logger: str) -> str:
    """The kind of log that a logger writes, also where the layout shortens its name."""
    if logger in _STATE_CHANGE:
        return SourceKind.STATE_CHANGE_LOG
    if _CONTROLLER.match(logger):
        return SourceKind.CONTROLLER_LOG
    shortened = _SHORTENED.match(logger)
    is_controller = shortened is not None and shortened.group(1) in _CONTROLLER_NAMES
    return SourceKind.CONTROLLER_LOG if is_controller else SourceKind.SERVER_LOG


def record_kind(logger: str | None, message: str, file_kind: str) -> str:
    """The kind of one record in a log: its logger decides, then its message, then the file it stands in."""
    if logger is not None:
        return kind_of_logger(logger)
    if file_kind == SourceKind.SERVER_LOG and STATE_CHANGE_START.match(message.encode("utf-8", "replace")):
        return SourceKind.STATE_CHANGE_LOG
    return file_kind


def own_broker_id(message: bytes) -> int | None:
    """The id of the broker that wrote a message, from the identifier it begins with; NULL where it has none."""
    found = _OWN_ID.match(message)
    if found is None:
        return None
    broker_id = int(next(group for group in found.groups() if group is not None)[:_LONGEST_ID])
    return broker_id if broker_id <= MAX_BROKER_ID else None
