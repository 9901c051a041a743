"""The rules that one partition's offsets can judge, each with its judges."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.events import OFFSET_OBSERVATIONS
from ingest.lake.tables.gold import AVAILABILITY_INTERVALS, DATA_LOSS_BOUNDS
from ingest.lake.tables.silver import LEADER_AND_ISR_TIMELINE, REPLICA_OFFSET_TIMELINE
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.model.versions import MIN_ISR_SINCE, TRUNCATION_BY_LEADER_EPOCH_SINCE
from reconstruct.offsets.rules.between_replicas import judge_followers, judge_isr_members
from reconstruct.offsets.rules.elections import judge_losses, judge_truncations
from reconstruct.offsets.rules.high_watermarks import judge_high_watermarks
from reconstruct.offsets.rules.isr_flaps import judge_flaps
from reconstruct.offsets.rules.isr_joins import judge_joins
from reconstruct.offsets.rules.isr_moves import judge_leaves
from reconstruct.offsets.rules.lineage import judge_lineages
from reconstruct.offsets.rules.min_isr import judge_acks_all, judge_high_watermark_stands
from reconstruct.offsets.rules.within_replica import judge_order_in_replica

#: In the order of their judges, each of which takes (OffsetCase, Verdicts): findings of one partition are listed so.
RULES: Final = (
    Rule(
        "R30",
        "a replica's high watermark does not decrease without a cause",
        "kafka.cluster.Partition.maybeIncrementLeaderHW; KIP-101, KIP-279",
        REPLICA_OFFSET_TIMELINE.full_name,
        needs=(EvidenceKind.SERVER_LOG, EvidenceKind.HIGH_WATERMARK_CHECKPOINT),
        judges=(judge_high_watermarks,),
    ),
    Rule(
        "R31",
        "log start offset, high watermark and log end offset are in that order; so are recovery point and end",
        "kafka.log.Log (UnifiedLog) since 0.8.0",
        REPLICA_OFFSET_TIMELINE.full_name,
        judges=(judge_order_in_replica,),
    ),
    Rule(
        "R32",
        "a follower's high watermark does not exceed its leader's",
        "kafka.server.ReplicaFetcherThread.processPartitionData since 0.8.0",
        REPLICA_OFFSET_TIMELINE.full_name,
        needs=(EvidenceKind.HIGH_WATERMARK_CHECKPOINT,),
        judges=(judge_followers,),
    ),
    Rule(
        "R33",
        "every member of the ISR holds all records below the leader's high watermark",
        "TLA+ StrongIsr; kafka.cluster.Partition since 0.8.0; KIP-101",
        REPLICA_OFFSET_TIMELINE.full_name,
        needs=(EvidenceKind.LOG_END,),
        judges=(judge_isr_members,),
    ),
    Rule(
        "R35",
        "a new leader has every record that was committed",
        "TLA+ WeakIsr; KIP-101",
        DATA_LOSS_BOUNDS.full_name,
        needs=(EvidenceKind.SERVER_LOG,),
        judges=(judge_losses, judge_truncations),
    ),
    Rule(
        "R36",
        "replicas agree on the leader epochs of what they hold below the high watermark",
        "KIP-101, KIP-279; kafka.server.epoch.LeaderEpochFileCache since 0.11",
        OFFSET_OBSERVATIONS.full_name,
        needs=(EvidenceKind.LEADER_EPOCH_CHECKPOINT,),
        since=TRUNCATION_BY_LEADER_EPOCH_SINCE,
        judges=(judge_losses, judge_lineages),
    ),
    Rule(
        "R38",
        "a replica leaves the ISR only by the lag rule in force, and joins only when it has caught up",
        "kafka.cluster.Partition.getOutOfSyncReplicas, maybeExpandIsr; KIP-16; KAFKA-7128",
        LEADER_AND_ISR_TIMELINE.full_name,
        needs=(EvidenceKind.SERVER_LOG, EvidenceKind.SERVER_PROPERTIES),
        judges=(judge_leaves, judge_joins, judge_flaps),
    ),
    Rule(
        "R39",
        "writes with acks=all succeed only while the ISR has min.insync.replicas",
        "kafka.cluster.Partition.appendRecordsToLeader since 0.8.2; KAFKA-1555",
        AVAILABILITY_INTERVALS.full_name,
        needs=(EvidenceKind.SERVER_PROPERTIES,),
        since=MIN_ISR_SINCE,
        judges=(judge_acks_all,),
    ),
    Rule(
        "R34",
        "the leader's high watermark does not exceed the log end offset of any member of the ISR",
        "kafka.cluster.Partition.maybeIncrementLeaderHW since 0.8.0",
        REPLICA_OFFSET_TIMELINE.full_name,
        needs=(EvidenceKind.LOG_END,),
        judges=(judge_leaves, judge_high_watermark_stands),
    ),
)
