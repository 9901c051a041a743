"""The rules that one partition's evidence can judge, each with its judges."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.events import STATE_CHANGE_EVENTS
from ingest.lake.tables.gold import LEADER_ELECTIONS
from ingest.lake.tables.silver import (
    FETCHER_TIMELINE,
    LEADER_AND_ISR_TIMELINE,
    PARTITION_STATE_TIMELINE,
    REPLICA_ROLE_TIMELINE,
    REPLICA_STATE_TIMELINE,
)
from reconstruct.cluster.rules import PROCEDURES
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.model.versions import REASSIGNMENT_NEEDS_ISR_SINCE
from reconstruct.partitions.rules.assigned import judge_isr_is_assigned, judge_reassignments_begun
from reconstruct.partitions.rules.at_rest import judge_at_rest, judge_stuck_leaders
from reconstruct.partitions.rules.beliefs import judge_accepted_epochs, judge_one_acting_leader, judge_roles
from reconstruct.partitions.rules.caches import judge_caches_agree, judge_caches_decided
from reconstruct.partitions.rules.controller_writes import judge_controller_epochs_of_writes, judge_leader_epoch_steps
from reconstruct.partitions.rules.decided import judge_leader_epochs, judge_leader_in_isr, judge_one_leader_per_epoch
from reconstruct.partitions.rules.elections import judge_elections, judge_unclean_elections
from reconstruct.partitions.rules.fetchers import judge_fetchers
from reconstruct.partitions.rules.metadata_updates import judge_metadata_updates
from reconstruct.partitions.rules.partition_epochs import judge_isr_not_empty, judge_partition_epochs
from reconstruct.partitions.rules.refusals import judge_refusals
from reconstruct.partitions.rules.requests import judge_requests
from reconstruct.partitions.rules.transitions import judge_sequences, judge_transitions

_STATE_CHANGES: Final = (EvidenceKind.STATE_CHANGE_LOG,)

STALE_CONTROLLERS: Final = Rule(
    "R12",
    "once a controller epoch has begun, nothing of a lower one is written or accepted",
    "KAFKA-6082; kafka.controller.PartitionStateMachine.electLeaderForPartition since 0.8.0",
    LEADER_AND_ISR_TIMELINE.full_name,
    needs=(EvidenceKind.ZNODES, EvidenceKind.ZNODE_TRANSACTION_LOG),
    reads_line_order=True,
    judges=(judge_controller_epochs_of_writes,),
)
ACCEPTED_EPOCHS: Final = Rule(
    "R21",
    "a broker acts on no lower controller epoch or leader epoch than it has seen, and ignores only those",
    "kafka.server.ReplicaManager.becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache since 0.8.0",
    REPLICA_ROLE_TIMELINE.full_name,
    needs=_STATE_CHANGES,
    reads_trace=True,
    reads_line_order=True,
    judges=(judge_accepted_epochs, judge_refusals),
)
#: In the order of their judges, each of which takes (Case, Verdicts): findings of one partition are listed so.
RULES: Final = (
    Rule(
        "R01",
        "the leader epoch never decreases within a topic incarnation",
        "KIP-101; TLA+ KafkaReplication; kafka.controller.KafkaController since 0.8.0",
        LEADER_AND_ISR_TIMELINE.full_name,
        reads_line_order=True,
        judges=(judge_leader_epochs,),
    ),
    Rule(
        "R02",
        "at most one leader for each leader epoch",
        "KIP-101; kafka.controller.PartitionStateMachine since 0.8.0",
        LEADER_AND_ISR_TIMELINE.full_name,
        judges=(judge_one_leader_per_epoch,),
    ),
    Rule(
        "R03",
        "the partition epoch rises by one with each write of the state",
        "ZooKeeper's setData; kafka.utils.ReplicationUtils since 0.8.1",
        LEADER_AND_ISR_TIMELINE.full_name,
        needs=(EvidenceKind.ZNODES, EvidenceKind.ZNODE_TRANSACTION_LOG),
        reads_line_order=True,
        judges=(judge_partition_epochs,),
    ),
    Rule(
        "R04",
        "the ISR is a subset of the assigned replicas",
        "kafka.cluster.Partition since 0.8.0; KAFKA-9672",
        LEADER_AND_ISR_TIMELINE.full_name,
        needs=(EvidenceKind.ZNODES,),
        judges=(judge_isr_is_assigned,),
    ),
    Rule(
        "R05",
        "the leader is a member of the ISR, or there is none",
        "TLA+ LeaderInIsr; kafka.controller.PartitionLeaderSelector since 0.8.1",
        LEADER_AND_ISR_TIMELINE.full_name,
        since=REASSIGNMENT_NEEDS_ISR_SINCE,
        judges=(judge_leader_in_isr,),
    ),
    Rule(
        "R06",
        "the ISR is not empty",
        "kafka.controller.KafkaController.removeReplicaFromIsr 0.8.2, ReplicaStateMachine since 1.1; KAFKA-1028",
        LEADER_AND_ISR_TIMELINE.full_name,
        judges=(judge_isr_not_empty,),
    ),
    Rule(
        "R10",
        "a controller's decision raises the leader epoch by one, a leader's ISR change keeps it",
        "kafka.api.LeaderAndIsr.newLeaderAndIsr, newLeader; kafka.cluster.Partition; KIP-497",
        LEADER_AND_ISR_TIMELINE.full_name,
        needs=(EvidenceKind.ZNODES,),
        judges=(judge_leader_epoch_steps,),
    ),
    STALE_CONTROLLERS,
    Rule(
        "R13",
        "partition state transitions are legal",
        "kafka.controller.PartitionStateMachine since 0.8.0",
        PARTITION_STATE_TIMELINE.full_name,
        needs=_STATE_CHANGES,
        reads_trace=True,
        reads_line_order=True,
        judges=(judge_transitions,),
    ),
    Rule(
        "R14",
        "replica state transitions are legal",
        "kafka.controller.ReplicaStateMachine since 0.8.0",
        REPLICA_STATE_TIMELINE.full_name,
        needs=_STATE_CHANGES,
        reads_trace=True,
        reads_line_order=True,
        judges=(judge_transitions,),
    ),
    Rule(
        "R15",
        "each transition tells the brokers it must, and only those, what was decided",
        "kafka.controller.ControllerBrokerRequestBatch, PartitionStateMachine, ReplicaStateMachine since 0.8.0",
        STATE_CHANGE_EVENTS.full_name,
        needs=_STATE_CHANGES,
        reads_trace=True,
        reads_line_order=True,
        judges=(judge_requests, judge_metadata_updates),
    ),
    PROCEDURES.judged_by(judge_sequences, judge_reassignments_begun),
    Rule(
        "R20",
        "a broker becomes leader or follower as was decided: the same leader at the same leader epoch",
        "kafka.server.ReplicaManager.becomeLeaderOrFollower since 0.8.0",
        REPLICA_ROLE_TIMELINE.full_name,
        needs=_STATE_CHANGES,
        judges=(judge_roles,),
    ),
    ACCEPTED_EPOCHS,
    Rule(
        "R22",
        "the brokers' metadata caches agree at equal epochs",
        "kafka.server.MetadataCache.updateCache since 0.8.0",
        REPLICA_ROLE_TIMELINE.full_name,
        needs=_STATE_CHANGES,
        reads_trace=True,
        judges=(judge_caches_agree,),
    ),
    Rule(
        "R24",
        "at rest, what each broker holds is what was decided",
        "kafka.controller.ControllerBrokerRequestBatch; kafka.server.MetadataCache since 0.8.0",
        REPLICA_ROLE_TIMELINE.full_name,
        needs=_STATE_CHANGES,
        reads_trace=True,
        judges=(judge_caches_decided, judge_at_rest, judge_stuck_leaders),
    ),
    Rule(
        "R25",
        "no two brokers act as leader of one partition at one leader epoch",
        "kafka.server.ReplicaManager.makeLeaders since 0.8.0; KIP-101",
        REPLICA_ROLE_TIMELINE.full_name,
        needs=_STATE_CHANGES,
        judges=(judge_one_acting_leader,),
    ),
    Rule(
        "R26",
        "a follower fetches from a leader that it was told of, and what its fetcher gives up is fetched again",
        "kafka.server.AbstractFetcherManager, ReplicaManager.makeFollowers since 0.8.0",
        FETCHER_TIMELINE.full_name,
        needs=(EvidenceKind.SERVER_LOG, *_STATE_CHANGES),
        judges=(judge_fetchers,),
    ),
    Rule(
        "R07",
        "an elected leader was live, as its controller saw the brokers",
        "kafka.controller.PartitionLeaderSelector 0.8.0 to 1.0, Election since 2.4",
        LEADER_ELECTIONS.full_name,
        needs=(EvidenceKind.CONTROLLER_LOG,),
        judges=(judge_elections,),
    ),
    Rule(
        "R09",
        "an elected leader is the one that the version's own election gives",
        "kafka.controller.PartitionLeaderSelector 0.8.0 to 1.0, PartitionLeaderElectionAlgorithms since 1.1",
        LEADER_ELECTIONS.full_name,
        needs=(EvidenceKind.CONTROLLER_LOG,),
        judges=(judge_elections,),
    ),
    Rule(
        "R08",
        "a clean election takes the leader from the ISR; an unclean one must be allowed",
        "kafka.controller.PartitionLeaderSelector since 0.8.0; KAFKA-1028, KIP-106",
        LEADER_ELECTIONS.full_name,
        needs=(EvidenceKind.SERVER_PROPERTIES,),
        judges=(judge_unclean_elections,),
    ),
)
