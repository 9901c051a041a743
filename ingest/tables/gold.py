"""Gold: what the timelines mean: findings, and intervals in which something was not as it should be."""

from __future__ import annotations

from typing import Final

from ingest.tables.silver import CLUSTER, INTERVAL, PARTITION, PARTITION_KEY, PROVENANCE, SEQUENCE
from ingest.tables.spec import TableSpec, col

SEVERITIES: Final = ("error", "warning", "info")
AVAILABILITY_KINDS: Final = (
    "offline",
    "under_replicated",
    "at_min_isr",
    "under_min_isr",
    "non_preferred_leader",
    "reassigning",
    "deleting",
)

DIVERGENCES: Final = TableSpec(
    "gold",
    "divergences",
    "one row per finding: a point where what happened is not what the rules say",
    ("cluster_id", "divergence_id"),
    (
        col("divergence_id", "string", "Hash of rule, subject and evidence.", nullable=False),
        CLUSTER,
        col("topic", "string", "Topic; NULL where the finding concerns none."),
        col("topic_incarnation", "string", "Its incarnation."),
        col("partition_id", "int", "Partition; NULL where the finding concerns none."),
        col("broker_id", "int", "Broker the finding concerns; NULL where it concerns none."),
        col("replica_id", "int", "Replica the finding concerns; NULL where it concerns none."),
        col("rule_id", "string", "Rule, R01 and so on.", nullable=False),
        col("divergence_type", "string", "Kind of divergence.", nullable=False),
        col(
            "severity",
            "string",
            "error: no behaviour the rules allow explains the evidence.",
            nullable=False,
            vocabulary=SEVERITIES,
        ),
        col("detected_at", "timestamp", "Instant of the cluster's time that the finding is about.", nullable=False),
        col("expected", "string", "What the rule expects, with values.", nullable=False),
        col("observed", "string", "What the evidence shows, with values.", nullable=False),
        col("explanation", "string", "A sentence that argues the case with the actual values.", nullable=False),
        col("known_issue", "string", "Kafka issue or KIP that explains it; NULL where none is known."),
        col("rule_source", "string", "Where the rule comes from.", nullable=False),
        *PROVENANCE,
    ),
)

AVAILABILITY_INTERVALS: Final = TableSpec(
    "gold",
    "availability_intervals",
    "one row per (partition, kind, interval) in which a partition was not as it should be",
    (*PARTITION_KEY, "kind", "sequence"),
    (
        *PARTITION,
        col("kind", "string", "What was wrong.", nullable=False, vocabulary=AVAILABILITY_KINDS),
        SEQUENCE,
        *INTERVAL,
        col("opened_by", "string", "What began it, in words."),
        col("closed_by", "string", "What ended it, in words; NULL while open."),
        *PROVENANCE,
    ),
    constraints={"interval_order": "valid_to IS NULL OR valid_from <= valid_to"},
)

ELECTION_KINDS: Final = (
    "new_partition",
    "offline_partition",
    "reassigned_partition",
    "preferred_replica",
    "controlled_shutdown",
    "unknown",
)

LEADER_ELECTIONS: Final = TableSpec(
    "gold",
    "leader_elections",
    "one row per (partition, election): a change of its leader, and the choice of its first",
    (*PARTITION_KEY, "leader_epoch", "sequence"),
    (
        *PARTITION,
        SEQUENCE,
        col("elected_at", "timestamp", "When the new state was written, UTC.", nullable=False),
        col("election_kind", "string", "Which election it was.", nullable=False, vocabulary=ELECTION_KINDS),
        col("previous_leader", "int", "Leader before; -1 none; NULL for a new partition."),
        col("previous_isr", "array<int>", "ISR before; where it was empty, the last that was not."),
        col(
            "allowed_leaders",
            "array<int>",
            "Every leader that the version's election gives for an input that the"
            " evidence allows, unclean ones included; empty where the inputs are not known.",
            nullable=False,
        ),
        col("observed_leader", "int", "The leader elected.", nullable=False),
        col("leader_epoch", "int", "Leader epoch it leads at."),
        col("isr", "array<int>", "ISR after."),
        col("is_unclean", "boolean", "Whether it was outside the ISR; NULL where the ISR just before is not known."),
        *PROVENANCE,
    ),
)

LOSS_CAUSES: Final = (
    "unclean_election",  # the new leader was outside of the ISR
    "clean_election",  # it was in the ISR and lacked committed records all the same
    "leader_returned_with_less",  # the leader kept its place, with a shorter log
)

DATA_LOSS_BOUNDS: Final = TableSpec(
    "gold",
    "data_loss_bounds",
    "one row per (partition, election) that lost committed records, or was unclean and may have",
    (*PARTITION_KEY, "leader_epoch", "sequence"),
    (
        *PARTITION,
        SEQUENCE,
        col("event_at", "timestamp", "When the new leader was decided, UTC.", nullable=False),
        col("cause", "string", "What lost them.", nullable=False, vocabulary=LOSS_CAUSES),
        col("leader", "int", "The leader elected.", nullable=False),
        col("previous_leader", "int", "The leader before it.", nullable=False),
        col("leader_epoch", "int", "Leader epoch that began.", nullable=False),
        col("lost_from_offset", "bigint", "First offset lost: where the new epoch begins.", nullable=False),
        col("lost_to_offset_lower", "bigint", "Last offset lost, at least; NULL: none is proven to be lost."),
        col("lost_to_offset_upper", "bigint", "Last offset lost, at most; NULL: not bounded."),
        col("lost_count_lower", "bigint", "Offsets lost, at least; 0: none is proven to be lost.", nullable=False),
        col("lost_count_upper", "bigint", "Offsets lost, at most; NULL: not bounded."),
        col(
            "diverging_replicas",
            "array<int>",
            "Replicas that then followed the new leader and kept records of their own where its log has others.",
            nullable=False,
        ),
        col(
            "diverging_offsets",
            "array<string>",
            "For each of them FIRST-LAST, the offsets of the records it kept.",
            nullable=False,
        ),
        *PROVENANCE,
    ),
)

GOLD_TABLES: Final = (DIVERGENCES, AVAILABILITY_INTERVALS, LEADER_ELECTIONS, DATA_LOSS_BOUNDS)
