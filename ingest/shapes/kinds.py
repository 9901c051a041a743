"""The kinds of placeholder that a message shape may use: what text each accepts and which fields it gives.

A pattern is the message as Kafka prints it with placeholders in braces:

* ``{leader:int}`` puts the text of an ``int`` into the field ``leader``,
* ``{partition_state}`` names a kind that gives fields of its own (topic, leader, isr ...),
* ``{:int}`` accepts an ``int`` and keeps nothing.

Literal braces are doubled, ``{{`` and ``}}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ingest.shapes import broker_settings, partition_lists, quorum_values, server_values, structs, values
from ingest.shapes.values import Fields, searched

#: Topic names are made of these; the partition follows the last hyphen.
_TOPIC: Final = r"[\w.-]+"
_TOPIC_PARTITION_GROUPS: Final = rf"[\[(]?({_TOPIC})[,-](\d+)[\])]?"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of placeholder.

    ``regex`` has no capturing group, but for ``topic_partition``. ``value`` turns the text into the field's value
    (``None`` leaves the field out); ``fields`` gives several fields at once. With neither, the text is the value.
    ``is_long`` is true for lists that may name every partition of a cluster: thousands of such texts, remembered, would
    fill the memory.
    """

    regex: str
    value: Callable[[str], str | None] | None = None
    fields: Callable[[str], Fields] | None = None
    is_long: bool = False


#: The log identifier that classes of controller.log and server.log put before their text; old ones put none.
SPEAKER: Final = r"(?:\[[^\]]*\](?:, |: | )?|Partition \[[^\]]*\] on broker -?\d+: )?"

_ID_LIST: Final = r"(?:\w*\([-\d, ]*\)|\[[-\d, ]*\]|[-\d,]*)"
_PARTITION_STATE: Final = (
    r"(?:\w*PartitionState\([^)]*\)|PartitionRegistration\([^)]*\)|\(LeaderAndIsrInfo:\S*\)"
    r"|[\w.]+\$PartitionState@[0-9a-f]+|MetadataPartition\(.*?\))"
)
_BROKER: Final = (
    r"(?:-?\d+|id:-?\d+,host:[^ ,]*,port:-?\d+|Node\([^)]*\)|\S+ \(id: -?\d+ rack: [^)]*\)|BrokerEndPoint\([^)]*\)"
    r"|-?\d+ : \(EndPoint\([^)]*\)[^)]*\)[^)]*)"
)

#: A log's directory, ``t-0``, also with the suffix of a deleted, future or stray one.

KINDS: Final[Mapping[str, Kind]] = {
    # plain values
    "int": Kind(r"-?\d+"),
    "bool": Kind(r"(?:true|false)"),
    "word": Kind(r"\w+"),
    "name": Kind(r"[\w.$-]+"),
    "token": Kind(r"\S+"),
    "path": Kind(r"[^\s,)\]]+"),
    "text": Kind(r".+?"),
    "any": Kind(r".*?"),
    "word_list": Kind(r"[\w,]+"),
    "election_strategy": Kind(r"\w+LeaderElectionStrategy(?:\((?:true|false)\))?"),
    # of a KRaft quorum: a node's state, the request for a vote, 00000000000000000044-0000000003 or OffsetAndEpoch(...)
    "quorum_state": Kind(r".+?", fields=quorum_values.state),
    "previous_quorum_state": Kind(r".+?", fields=quorum_values.previous_state),
    "vote_request": Kind(r"VoteRequestData\(.*\)", fields=quorum_values.vote_request),
    "snapshot_id": Kind(r"(?:\d{20}-\d{10}|OffsetAndEpoch[(\[][^)\]]*[)\]])", value=quorum_values.snapshot),
    "record": Kind(r"(?:\w+\(.*\)|\S+)"),
    "topic": Kind(_TOPIC),
    "become_type": Kind(r"(?:become-leader|become-follower)"),
    "partition_state_name": Kind(r"(?:New|Online|Offline|NonExistent)Partition"),
    "replica_state_name": Kind(
        r"(?:New|Online|Offline|NonExistent)Replica|ReplicaDeletion(?:Started|Successful|Ineligible)"
    ),
    "short_partition_state": Kind(
        r"(?:New|Online|Offline|NotExists)",
        value={
            "New": "NewPartition",
            "Online": "OnlinePartition",
            "Offline": "OfflinePartition",
            "NotExists": "NonExistentPartition",
        }.get,
    ),
    "topic_id": Kind(r"(?:[\w-]{10,24}|Some\([\w-]{10,24}\)|None)", value=values.topic_id),
    "option": Kind(
        r"(?:-?\d+|(?:Some|Optional|OptionalInt|OptionalLong)[(\[]-?\d+[)\]]|None|\w+\.empty)", value=values.option
    ),
    "under_min_isr": Kind(r"(?:\(under-min-isr\))?", value=lambda text: "true" if text else "false"),
    "offset": Kind(r".+?", value=server_values.offset),
    # the same where releases print other things in their place: the field is there only if the text reads as one
    "maybe_int": Kind(r"\S+", value=values.integer),
    "maybe_broker": Kind(r".+?", value=values.broker),
    "maybe_ids": Kind(r".*?", value=values.ids_only),
    "some_log": Kind(r".+?", fields=server_values.log_object),
    "log_path": Kind(r".*?", fields=searched(r"/(?P<topic>[\w.-]+?)-(?P<partition_id>\d+)\Z")),
    "some_partition": Kind(r"\S+", fields=searched(r"\A[\[(]?(?P<topic>[\w.-]+)[,-](?P<partition_id>\d+)[\])]?\Z")),
    # lists
    "names": Kind(r".*?", value=server_values.names),
    "partition_replicas": Kind(r".*?", fields=partition_lists.partition_replicas, is_long=True),
    "leaderships": Kind(r".*?", fields=partition_lists.leaderships, is_long=True),
    "partition_states": Kind(r".*?", fields=partition_lists.partition_states, is_long=True),
    "assignments": Kind(r".*?", fields=partition_lists.assignments, is_long=True),
    "assignment_json": Kind(r".*?", fields=partition_lists.assignment_json, is_long=True),
    "partition_results": Kind(r".*?", fields=partition_lists.partition_results, is_long=True),
    "broker_epochs": Kind(r".*?", value=server_values.broker_epochs),
    "ids": Kind(_ID_LIST, value=values.ids),
    "broker": Kind(_BROKER, value=values.broker),
    "brokers": Kind(r".*?", value=values.brokers),
    "topic_partitions": Kind(r".*?", value=values.topic_partitions, is_long=True),
    "out_of_sync": Kind(r"\(brokerId: .*?\)", value=values.out_of_sync),
    # kinds that give fields of their own
    "broker_settings": Kind(r"(?:\s.*)?", fields=broker_settings.listed, is_long=True),
    "overridden_setting": Kind(r"[\w.-]+ is overridden to.*?", fields=broker_settings.overridden),
    "speaker": Kind(SPEAKER, fields=server_values.speaker),
    "log_name": Kind(r"[\w.-]+", fields=server_values.log_name),
    "some_log_name": Kind(r"\S+?", fields=server_values.log_name),
    "log_object": Kind(r"\w+\(.*?\)|[\w.-]+", fields=server_values.log_object),
    # New: {epoch:5, offset:10}, Current: {epoch:4, offset:3} for Partition: t-0; EpochEntry(epoch=5, startOffset=10)
    "epoch_change": Kind(
        r".*?",
        fields=searched(
            r"New: \{epoch:(?P<leader_epoch>-?\d+), offset:?(?P<leader_epoch_start_offset>-?\d+)\}"
            r"(?:, Current: \{epoch:(?P<previous_leader_epoch>-?\d+), offset:?-?\d+\})?"
            r"(?: for Partition: (?P<topic>[\w.-]+)-(?P<partition_id>\d+))?",
            r"\(epoch=(?P<leader_epoch>-?\d+), startOffset=(?P<leader_epoch_start_offset>-?\d+)\)",
        ),
    ),
    # the leader's answer: EpochEndOffset(errorCode=0, partition=4, leaderEpoch=5, endOffset=1510)
    "epoch_end_offset": Kind(
        r".*?", fields=searched(r"leaderEpoch=(?P<leader_epoch>-?\d+), endOffset=(?P<leader_end_offset>-?\d+)")
    ),
    "added_fetchers": Kind(r".*?", fields=server_values.added_fetchers, is_long=True),
    "leadership": Kind(r".+?", fields=structs.partition_struct),
    # of a KRaft controller: t-0 with topic ID Fk3SYnmFQoGlW6AtDmbJzw; isr: [1, 2] -> [1], partitionEpoch: 0 -> 1
    "described_partition": Kind(
        r".+?",
        fields=searched(r"\A(?P<topic>[\w.-]+)-(?P<partition_id>\d+) with topic ID (?P<topic_id>[\w-]{22})\Z"),
    ),
    "partition_changes": Kind(r".+?", fields=structs.partition_changes),
    "topic_partition": Kind(_TOPIC_PARTITION_GROUPS),
    # Partition.toString of 0.8.1
    "partition_description": Kind(
        r"Topic: .*?", fields=searched(r"\ATopic: (?P<topic>[\w.-]+); Partition: (?P<partition_id>\d+);")
    ),
    "leader_isr_and_controller_epoch": Kind(r"\(Leader:[^)]*\)", fields=structs.partition_struct),
    "leader_and_isr": Kind(r"(?:LeaderAndIsr\(.*\)|\{.*?\})", fields=structs.partition_struct),
    "partition_path": Kind(
        r"\S+", fields=searched(r"/brokers/topics/(?P<topic>[\w.-]+)/partitions/(?P<partition_id>\d+)")
    ),
    "znode": Kind(r"\S+", fields=values.znode),
    "partition_state": Kind(_PARTITION_STATE, fields=structs.partition_struct),
    "replica_assignment": Kind(r"ReplicaAssignment\([^)]*\)", fields=structs.named_values),
    "some_assignment": Kind(r".+?", fields=structs.named_values),
    "previous_assignment": Kind(r".+?", fields=structs.previous_assignment),
    "response": Kind(r".+?", fields=values.response),
    # 2.8's KRaft preview: Metadata batch 210 t-0; Apply deferred leader partition t-0
    "batch_prefix": Kind(
        r"(?:Metadata batch (?:\d+|<[^>]*>)|Apply deferred (?:leader|follower) partition)(?: [\w.-]+-\d+)?",
        fields=searched(
            r"\A(?:Metadata batch (?:(?P<metadata_offset>\d+)|<[^>]*>)|Apply deferred (?:leader|follower) partition)"
            r"(?: (?P<topic>[\w.-]+)-(?P<partition_id>\d+))?\Z"
        ),
    ),
}
