"""The rules that are judged: a stable id each, what it promises, where the promise comes from, whose table it is about.

A rule is gated by version where it is judged: what 0.8 did by design is no divergence in 0.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id in the rule book, what it promises, and where that comes from."""

    rule_id: str
    title: str
    source: str
    table: str


_LEADER_AND_ISR: Final = "silver.leader_and_isr_timeline"
_ELECTIONS: Final = "gold.leader_elections"
_CONTROLLERS: Final = "silver.controller_epoch_timeline"
_PARTITION_STATES: Final = "silver.partition_state_timeline"
_REPLICA_STATES: Final = "silver.replica_state_timeline"
_EVENTS: Final = "silver.state_change_events"
_ROLES: Final = "silver.replica_role_timeline"
_OFFSETS: Final = "silver.replica_offset_timeline"
_SIGHTINGS: Final = "silver.offset_observations"

_RULES: Final = (
    # what was decided
    Rule(
        "R01",
        "the leader epoch never decreases within a topic incarnation",
        "KIP-101; TLA+ KafkaReplication; kafka.controller.KafkaController since 0.8.0",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R02",
        "at most one leader for each leader epoch",
        "KIP-101; kafka.controller.PartitionStateMachine since 0.8.0",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R03",
        "the partition epoch rises by one with each write of the state",
        "ZooKeeper's setData; kafka.utils.ReplicationUtils since 0.8.1",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R04",
        "the ISR is a subset of the assigned replicas",
        "kafka.cluster.Partition since 0.8.0; KAFKA-9672",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R05",
        "the leader is a member of the ISR, or there is none",
        "TLA+ LeaderInIsr; kafka.controller.PartitionLeaderSelector since 0.8.1",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R06",
        "the ISR is not empty",
        "kafka.controller.KafkaController.removeReplicaFromIsr 0.8.2, ReplicaStateMachine since 1.1; KAFKA-1028",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R07",
        "an elected leader was live, as its controller saw the brokers",
        "kafka.controller.PartitionLeaderSelector 0.8.0 to 1.0, Election since 2.4; the first article, section 1",
        _ELECTIONS,
    ),
    Rule(
        "R08",
        "a clean election takes the leader from the ISR; an unclean one must be allowed",
        "kafka.controller.PartitionLeaderSelector since 0.8.0; KAFKA-1028, KIP-106; the first article, section 1",
        _ELECTIONS,
    ),
    Rule(
        "R09",
        "an elected leader is the one that the version's own election gives",
        "kafka.controller.PartitionLeaderSelector 0.8.0 to 1.0, PartitionLeaderElectionAlgorithms since 1.1;"
        " the first article, section 1",
        _ELECTIONS,
    ),
    Rule(
        "R10",
        "a controller's decision raises the leader epoch by one, a leader's ISR change keeps it",
        "kafka.api.LeaderAndIsr.newLeaderAndIsr, newLeader; kafka.cluster.Partition; KIP-497",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R11",
        "the controller epoch rises by one at each election, and one broker holds each epoch",
        "kafka.controller.KafkaController.incrementControllerEpoch since 0.8.0",
        _CONTROLLERS,
    ),
    Rule(
        "R12",
        "once a controller epoch has begun, nothing of a lower one is written or accepted",
        "KAFKA-6082; kafka.controller.PartitionStateMachine.electLeaderForPartition since 0.8.0;"
        " the first article, section 2",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R13",
        "partition state transitions are legal",
        "kafka.controller.PartitionStateMachine; the first article, section 2",
        _PARTITION_STATES,
    ),
    Rule(
        "R14",
        "replica state transitions are legal",
        "kafka.controller.ReplicaStateMachine; the first article, section 3",
        _REPLICA_STATES,
    ),
    Rule(
        "R15",
        "each transition tells the brokers it must, and only those, what was decided",
        "kafka.controller.ControllerBrokerRequestBatch; PartitionStateMachine, ReplicaStateMachine;"
        " the first article, sections 2 and 3",
        _EVENTS,
    ),
    Rule(
        "R16",
        "creation, deletion, broker failure and reassignment run their steps in order",
        "kafka.controller.KafkaController, TopicDeletionManager; the first article, sections 3 and 4",
        _REPLICA_STATES,
    ),
    # what brokers believed
    Rule(
        "R20",
        "a broker becomes leader or follower as was decided: the same leader at the same leader epoch",
        "kafka.server.ReplicaManager.becomeLeaderOrFollower since 0.8.0",
        _ROLES,
    ),
    Rule(
        "R21",
        "a broker acts on no lower controller epoch or leader epoch than it has seen, and ignores only those",
        "kafka.server.ReplicaManager.becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache since 0.8.0",
        _ROLES,
    ),
    Rule(
        "R22",
        "the brokers' metadata caches agree at equal epochs",
        "kafka.server.MetadataCache.updateCache since 0.8.0",
        _ROLES,
    ),
    Rule(
        "R23",
        "each request of a controller is received, handled and answered",
        "kafka.controller.ControllerChannelManager.RequestSendThread since 0.8.0",
        "gold.propagation_delays",
    ),
    Rule(
        "R24",
        "at rest, what each broker holds is what was decided",
        "kafka.controller.ControllerBrokerRequestBatch; kafka.server.MetadataCache since 0.8.0",
        _ROLES,
    ),
    Rule(
        "R25",
        "no two brokers act as leader of one partition at one leader epoch",
        "kafka.server.ReplicaManager.makeLeaders since 0.8.0; KIP-101",
        _ROLES,
    ),
    # what replicas held
    Rule(
        "R30",
        "a replica's high watermark does not decrease without a cause",
        "kafka.cluster.Partition.maybeIncrementLeaderHW; KIP-101, KIP-279; the second article",
        _OFFSETS,
    ),
    Rule(
        "R31",
        "log start offset, high watermark and log end offset are in that order; so are recovery point and end",
        "kafka.log.Log (UnifiedLog) since 0.8.0; the second article",
        _OFFSETS,
    ),
    Rule(
        "R32",
        "a follower's high watermark does not exceed its leader's",
        "kafka.server.ReplicaFetcherThread.processPartitionData since 0.8.0; the second article",
        _OFFSETS,
    ),
    Rule(
        "R33",
        "every member of the ISR holds all records below the leader's high watermark",
        "TLA+ StrongIsr; kafka.cluster.Partition; KIP-101; the second article",
        _OFFSETS,
    ),
    Rule(
        "R34",
        "the leader's high watermark does not exceed the log end offset of any member of the ISR",
        "kafka.cluster.Partition.maybeIncrementLeaderHW since 0.8.0; the second article",
        _OFFSETS,
    ),
    Rule(
        "R35",
        "a new leader has every record that was committed",
        "TLA+ WeakIsr; KIP-101; the second article",
        "gold.data_loss_bounds",
    ),
    Rule(
        "R36",
        "replicas agree on the leader epochs of what they hold below the high watermark",
        "KIP-101, KIP-279; kafka.server.epoch.LeaderEpochFileCache since 0.11",
        _SIGHTINGS,
    ),
    Rule(
        "R37",
        "a checkpoint holds each assigned replica once, with an offset between its neighbours'",
        "kafka.server.ReplicaManager.checkpointHighWatermarks, OffsetCheckpoint since 0.8.0; the third article",
        _SIGHTINGS,
    ),
    Rule(
        "R38",
        "a replica leaves the ISR only by the lag rule in force, and joins only when it has caught up",
        "kafka.cluster.Partition.getOutOfSyncReplicas, maybeExpandIsr; KIP-16; KAFKA-7128; the second article",
        _LEADER_AND_ISR,
    ),
    Rule(
        "R39",
        "writes with acks=all succeed only while the ISR has min.insync.replicas",
        "kafka.cluster.Partition.appendRecordsToLeader since 0.8.2; KAFKA-1555",
        "gold.availability_intervals",
    ),
)

#: The rules that are judged, by id.
RULES: Final[Mapping[str, Rule]] = {rule.rule_id: rule for rule in _RULES}
