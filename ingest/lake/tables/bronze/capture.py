"""What a capture asked a live cluster, and what it missed."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze.columns import KIND, record_table
from ingest.lake.tables.spec import col, required

_ASKED = (
    required("sent_at", "timestamp", "When the request was sent, by the client's clock, UTC."),
    required("received_at", "timestamp", "When the answer was there, by the client's clock, UTC."),
)

OFFSET_PROBES: Final = record_table(
    "offset_probes",
    "one row per (file of probes, answer of a broker to ListOffsets for one partition)",
    *_ASKED,
    required(
        "replica_id",
        "int",
        "As whom the client asked: -1 a consumer, whom only a leader answers, with its high watermark; -2 a"
        " debugging client, whom any replica answers with its log end offset.",
    ),
    required("target_timestamp", "bigint", "Timestamp of the request: -1 latest, -2 earliest (the log start offset)."),
    required(
        "isolation_level",
        "int",
        "Isolation level of the request: 0 read_uncommitted; 1 read_committed, whom the last stable offset is told"
        " in place of the high watermark.",
    ),
    required("topic", "string", "Topic."),
    required("partition_id", "int", "Partition."),
    col("offset", "bigint", "The offset; NULL where the broker answered with an error."),
    required("error_code", "int", "Kafka's code of the error; 0 for none."),
    of=(
        required("broker_id", "int", "Broker that answered."),
        KIND,
    ),
)

#: What one line of :data:`CLUSTER_DESCRIPTIONS` describes.
DESCRIPTION_TYPES: Final = (
    "cluster",
    "topic",
    "topic_gone",
    "topic_elr",
    "registered_brokers",
    "quorum",
    "log_dir",
    "log_dir_topic",
    "reassignments",
)
_QUORUM_REPLICAS: Final = (
    "array<struct<replica_id:int,directory_id:string,log_end_offset:bigint,last_fetch_at_ms:bigint"
    ",last_caught_up_at_ms:bigint>>"
)

CLUSTER_DESCRIPTIONS: Final = record_table(
    "cluster_descriptions",
    "one row per (file of descriptions, line of a broker's answer: a cluster, a topic, a log directory, a topic's"
    " replicas in a log directory, a quorum, or all reassignments under way)",
    *_ASKED,
    required(
        "description_type",
        "string",
        "What is described. cluster, topic: Metadata. topic_gone: the broker's Metadata names the topic no longer."
        " topic_elr: DescribeTopicPartitions, when it changed. registered_brokers: DescribeCluster, when it changed."
        " quorum: DescribeQuorum, which brokers pass on to the active controller. log_dir, log_dir_topic:"
        " DescribeLogDirs. reassignments: ListPartitionReassignments; every one under way, an empty array where none"
        " is.",
        vocabulary=DESCRIPTION_TYPES,
    ),
    col("metadata_cluster_id", "string", "Of cluster: the id that the broker states; NULL up to 0.10.0."),
    col(
        "controller_id",
        "int",
        "Of cluster: the controller, to the broker's knowledge; -1 for none, NULL in 0.8 and 0.9.",
    ),
    col(
        "brokers",
        "array<struct<broker_id:int,host:string,port:int,rack:string,is_fenced:boolean>>",
        "Of cluster: the live brokers, to the broker's knowledge, with the addresses of the listener asked. Of"
        " registered_brokers: all that are registered; is_fenced says which are fenced, and is NULL of cluster.",
    ),
    col("topics_count", "int", "Of cluster and log_dir: how many topics the answer names."),
    col("topic", "string", "Of topic, topic_gone and log_dir_topic: the topic."),
    col("topic_id", "string", "Of topic: its id, as Kafka writes it; NULL where it has none, or up to 2.7."),
    col("is_internal", "boolean", "Of topic: whether it is one of Kafka's own; NULL in 0.8 and 0.9."),
    col("error_code", "int", "Of topic and log_dir: Kafka's code of the error; 0 for none."),
    col(
        "partitions",
        "array<struct<partition_id:int,error_code:int,leader:int,leader_epoch:int,replicas:array<int>"
        ",isr:array<int>,offline_replicas:array<int>>>",
        "Of topic: its partitions as the broker's metadata cache holds them. leader is -1 for none; leader_epoch is"
        " NULL before Metadata 7 (Kafka 2.1), offline_replicas before Metadata 5 (1.0).",
    ),
    col(
        "elr",
        "array<struct<partition_id:int,eligible_leader_replicas:array<int>,last_known_elr:array<int>>>",
        "Of topic_elr: the partitions that have eligible leader replicas, or last known ones (KIP-966); none where the"
        " topic has no such partition any more.",
    ),
    col("quorum_leader", "int", "Of quorum: the leader of the metadata log; -1 for none."),
    col("quorum_epoch", "int", "Of quorum: its epoch."),
    col("quorum_high_watermark", "bigint", "Of quorum: the metadata log's high watermark, as its leader knows it."),
    col(
        "voters",
        _QUORUM_REPLICAS,
        "Of quorum: its voters. log_end_offset is -1 for not known; directory_id is NULL before 3.9. The instants are"
        " the leader's, epoch ms: when the replica asked it last, and when what that had fetched was appended; -1 for"
        " not known, NULL before 3.3.",
    ),
    col("observers", _QUORUM_REPLICAS, "Of quorum: the brokers, and controllers that do not vote, in the same way."),
    col("log_dir", "string", "Of log_dir and log_dir_topic: absolute path on the broker."),
    col("total_bytes", "bigint", "Of log_dir: size of its volume; -1 not known, NULL before Kafka 3.3."),
    col("usable_bytes", "bigint", "Of log_dir: usable bytes of its volume; -1 not known, NULL before Kafka 3.3."),
    col(
        "replicas",
        "array<struct<partition_id:int,size_bytes:bigint,offset_lag:bigint,is_future:boolean>>",
        "Of log_dir_topic: the topic's replicas there. offset_lag is how far the log end offset is behind the high"
        " watermark, of a future replica behind the current one; -1 not known. is_future: it is being moved there.",
    ),
    col(
        "reassignments",
        "array<struct<topic:string,partition_id:int,replicas:array<int>,adding_replicas:array<int>"
        ",removing_replicas:array<int>>>",
        "Of reassignments: the partitions being reassigned; replicas are all, those added and removed included.",
    ),
    of=(
        required("broker_id", "int", "Broker that answered: what follows is its own view."),
        KIND,
    ),
    version=2,
)

CAPTURE_GAPS: Final = record_table(
    "capture_gaps",
    "one row per (file of a capture, line that says that something could not be recorded); an outage has a line when it"
    " begins and one when it ends",
    required("missed_from", "timestamp", "Since when, by the capture's clock, UTC."),
    col(
        "missed_to",
        "timestamp",
        "Until when, by the capture's clock, UTC; missed_from where something is not recorded at all. NULL in the"
        " line of an outage's beginning.",
    ),
    required("missed_source", "string", "What was missed, as probes, znodes, log dirs, logs."),
    required("missed_of", "string", "Of whom: a broker, a path, ZooKeeper; empty for all."),
    required("reason", "string", "Why, in the capture's words."),
    of=(
        col("broker_id", "int", "Broker whose answers or files were missed; NULL where it is none's."),
        KIND,
    ),
)
