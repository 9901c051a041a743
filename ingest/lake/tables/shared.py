"""The columns, keys and vocabularies that tables of silver, gold and quality share."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.spec import Column, col, required

PARTITION_STATES: Final = ("NewPartition", "OnlinePartition", "OfflinePartition", "NonExistentPartition")
REPLICA_STATES: Final = (
    "NewReplica",
    "OnlineReplica",
    "OfflineReplica",
    "ReplicaDeletionStarted",
    "ReplicaDeletionSuccessful",
    "ReplicaDeletionIneligible",
    "NonExistentReplica",
)

#: Why a value that nobody logged is in a table. NULL in ``inferred_from`` means: observed.
INFERRED_FROM: Final = (
    "znode_snapshot",  # the write happened between two snapshots; its effect was seen
    "unlogged_transition",  # the version, or the log level, does not log this step
    "log_gap",  # a line must have been here and is not
    "conflict_closed",  # contradicting evidence ended the interval
    "retention_boundary",  # the evidence begins after the interval did
    "controller_failover",  # state a new controller initialises without logging it
    "request_sent",  # the decision is known only from a request that restates it
    "isr_proposal",  # a leader's ISR change whose commit is not logged at this level
    "effect_logged",  # what followed from it was logged, or seen: it happened before
    "commit_not_proven",  # an active controller appended it; no copy proves that a majority of the quorum had it
    "replication_rules",  # sightings of offsets, carried to other instants and replicas by the rules of replication
)

#: What is proven of the harm that was done, the worst first.
HARMS: Final = ("records_lost", "replicas_differ", "two_leaders", "unavailable", "possible", "none")

OFFSET_KINDS: Final = (
    "high_watermark",
    "log_end_offset",
    "log_start_offset",
    "recovery_point",
    "epoch_start",
    "fetch_offset",  # where a fetcher began: log end offset or high watermark, by version
)

CLUSTER: Final = required("cluster_id", "string", "Cluster.")
PARTITION: Final = (
    CLUSTER,
    required("topic", "string", "Topic."),
    required(
        "topic_incarnation",
        "string",
        "Topic id, else creation zxid of the topic's znode, else its first evidence: a topic"
        " deleted and created again is another incarnation.",
    ),
    required("partition_id", "int", "Partition."),
)
PARTITION_KEY: Final = ("cluster_id", "topic", "topic_incarnation", "partition_id")
SEQUENCE: Final = required(
    "sequence", "int", "Order of the intervals of one key, from 0: zero-length intervals are real."
)
INTERVAL: Final = (
    required("valid_from", "timestamp", "Instant the interval began, UTC, inclusive."),
    col("valid_to", "timestamp", "Instant it ended, UTC, exclusive; NULL while open."),
)
PROVENANCE: Final[tuple[Column, ...]] = (
    required("evidence", "array<string>", "Ids of the bronze records that say so."),
    col("inferred_from", "string", "Why the row is inferred; NULL where it was observed.", vocabulary=INFERRED_FROM),
    required("model_version", "string", "Version of the rules that made the row."),
)
#: A constraint of every table of intervals.
INTERVAL_ORDER: Final = {"interval_order": "valid_to IS NULL OR valid_from <= valid_to"}
