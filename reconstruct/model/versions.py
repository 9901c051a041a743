"""Kafka versions, and every quirk of the producer that the rules are gated by: dated, linked, in one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

#: Confluent Platform's release: the Kafka release inside.
CONFLUENT_RELEASES: Final[Mapping[tuple[int, ...], tuple[int, ...]]] = {
    (3, 0): (0, 10, 0),
    (3, 1): (0, 10, 1),
    (3, 2): (0, 10, 2),
    (3, 3): (0, 11, 0),
    **{(4, minor): (1, minor) for minor in range(2)},
    **{(5, minor): (2, minor) for minor in range(6)},
    **{(6, minor): (2, minor + 6) for minor in range(3)},
    **{(7, minor): (3, minor) for minor in range(10)},
}


@total_ordering
@dataclass(frozen=True, slots=True)
class KafkaVersion:
    """A released version; up to 0.11 the first two numbers are the major version, so 0.8.2 < 0.11.0 < 1.0."""

    parts: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> KafkaVersion | None:
        """The version in ``text`` (``0.8.2.2``, ``3.9.1-rc0``, ``kafka_2.13-3.9.1``); None where there is none.

        Confluent's own numbers (``7.5.1-ccs``) are turned into those of the Kafka inside.
        """
        found = re.findall(r"\d+(?:\.\d+)+", text)
        if not found:
            return None
        parts = tuple(int(n) for n in found[-1].split(".")[:4])
        if re.search(r"-(ccs|ce)\b", text):
            return KafkaVersion((*CONFLUENT_RELEASES.get(parts[:2], parts[:2]), *parts[2:3]))
        return KafkaVersion(parts)

    def _padded(self) -> tuple[int, ...]:
        return (*self.parts, *(0,) * (4 - len(self.parts)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaVersion) and self._padded() == other._padded()

    def __hash__(self) -> int:
        return hash(self._padded())

    def __lt__(self, other: KafkaVersion) -> bool:
        return self._padded() < other._padded()

    def __str__(self) -> str:
        return ".".join(map(str, self.parts))


def v(*parts: int) -> KafkaVersion:
    """Shorthand: ``v(2, 6)``."""
    return KafkaVersion(parts)


OLDEST: Final = v(0, 8, 0)
NEWEST: Final = v(4, 0)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """What is known of a cluster's version: not below ``low``, not above ``high``, both inclusive."""

    low: KafkaVersion = OLDEST
    high: KafkaVersion = NEWEST

    @staticmethod
    def exactly(version: KafkaVersion) -> VersionRange:
        return VersionRange(version, version)

    def may_be_before(self, version: KafkaVersion) -> bool:
        """True unless the cluster is known to be ``version`` or later."""
        return self.low < version

    def may_be_since(self, version: KafkaVersion) -> bool:
        """True unless the cluster is known to be older than ``version``."""
        return self.high >= version

    def is_before(self, version: KafkaVersion) -> bool:
        """True where the cluster is known to be older than ``version``."""
        return not self.may_be_since(version)

    def is_since(self, version: KafkaVersion) -> bool:
        """True where the cluster is known to be ``version`` or later."""
        return not self.may_be_before(version)

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


#: Nothing is known of the version.
ANY_VERSION: Final = VersionRange()


# --- the quirks -----------------------------------------------------------------------------------------------------

#: Topic deletion, and with it five replica states and StopReplica on OfflineReplica (KAFKA-330).
TOPIC_DELETION_SINCE: Final = v(0, 8, 1)
#: A dead replica of a topic being deleted may go from OfflineReplica to ReplicaDeletionIneligible; before, the attempt
#: was refused with an error that did no harm (ReplicaStateMachine 2.3.0).
OFFLINE_TO_INELIGIBLE_SINCE: Final = v(2, 3)
#: Replica transitions, partition to Offline and to NonExistent, and requests are logged at TRACE, and the shipped level
#: became INFO: a default log does not show them (log4j.properties 2.6.0).
TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE: Final = v(2, 6)
#: The last member of the ISR is kept, with leader -1, when it goes offline (ReplicaStateMachine 1.1.0).
LAST_ISR_MEMBER_KEPT_SINCE: Final = v(1, 1)
#: KIP-455: reassignment state in the topic's znode; an overridden one may leave the ISR outside the assignment.
REASSIGNMENT_IN_TOPIC_ZNODE_SINCE: Final = v(2, 4)
#: KIP-460: an administrator may ask for an unclean election of any topic.
ELECTION_BY_ADMINISTRATOR_SINCE: Final = v(2, 4)
#: A leader kept removed replicas in its ISR until it heard of the new assignment (KAFKA-9672).
LEADER_DROPS_REMOVED_REPLICAS_SINCE: Final = v(3, 0)
#: KIP-497: the controller writes the ISR for the leader (AlterIsr; inter-broker protocol 2.7-IV2).
ALTER_ISR_SINCE: Final = v(2, 7)
#: "ISR updated to ..." is logged at INFO: an ISR change without it was not committed (Partition 2.4.0).
ISR_COMMIT_LOGGED_AT_INFO_SINCE: Final = v(2, 4)
#: Until then the election for a reassignment did not ask whether the new leader was in the ISR (0.8.0).
REASSIGNMENT_NEEDS_ISR_SINCE: Final = v(0, 8, 1)
#: Requests and caches may restate an unchanged state with the epoch of a later controller: one that finds a replica
#: outside the ISR on its way to OfflineReplica takes the state into its cache as its own (ReplicaStateMachine 1.1.0).
REQUEST_RESTATES_CONTROLLER_EPOCH_SINCE: Final = v(1, 1)
#: unclean.leader.election.enable; before, an election was unclean whenever it had to be (KAFKA-1028).
UNCLEAN_ELECTION_CONFIGURABLE_SINCE: Final = v(0, 8, 2)
#: Its default became false (KIP-106).
UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE: Final = v(0, 11)
#: A broker asks whether it is assigned before it takes a partition of a LeaderAndIsr request (ReplicaManager 0.8.1).
ASSIGNED_REPLICAS_CHECKED_SINCE: Final = v(0, 8, 1)
#: A follower whose new leader is not live makes its replica and keeps its epoch (KAFKA-1647).
REPLICA_MADE_WITHOUT_LEADER_SINCE: Final = v(0, 8, 2)
#: A follower that missed a leader epoch of the same leader goes through all steps (Partition.makeFollower 2.0.1).
MISSED_EPOCHS_MADE_UP_SINCE: Final = v(2, 0, 1)
#: Until then a follower that already follows the new leader skips its steps (Partition.makeFollower 2.1.0).
SAME_LEADER_FOLLOWED_ON_UNTIL: Final = v(2, 1)
#: A replica that is at a newer partition epoch is left as it is (Partition.makeLeader, makeFollower 3.3.0).
PARTITION_EPOCH_CHECKED_SINCE: Final = v(3, 3)
#: A StopReplica with the leader epoch that the replica has is taken (KAFKA-13972).
EQUAL_EPOCH_STOPS_SINCE: Final = v(3, 4, 1)
#: A broker checks, caches and logs an UpdateMetadata under the lock that its LeaderAndIsr requests take too; before,
#: two requests may overtake each other between the check and the line (ReplicaManager.maybeUpdateMetadataCache).
UPDATE_METADATA_LOCKED_SINCE: Final = v(0, 8, 2)

# --- the controller, in the order of its releases (reconstruct/model/controller) -------------------------------------

#: The shrunk ISR is sent to every other assigned replica, unless the topic is being deleted; before, to the leader only
#: (KAFKA-1188).
SHRUNK_ISR_SENT_TO_ALL_SINCE: Final = v(0, 8, 2)
#: The last member of the ISR is kept where unclean election is disabled (KAFKA-1028).
LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE: Final = v(0, 8, 2)
#: The death of a broker that led nothing is told to all by an UpdateMetadata of its own, and a new broker to all
#: brokers, no longer to itself only (KAFKA-972).
BROKER_CHANGE_TOLD_TO_ALL_SINCE: Final = v(0, 9)
#: A replica of a topic being deleted whose partition has no leader is no failure on its way to OfflineReplica
#: (KAFKA-2937).
NO_LEADER_IS_NO_FAILURE_WHEN_DELETED_SINCE: Final = v(0, 9, 0, 1)
#: A new controller tells brokers of each other before it starts its machines, no longer after (KAFKA-4443).
METADATA_SENT_BEFORE_MACHINES_SINCE: Final = v(0, 10, 2)
#: Requests to delete are taken away where deletion is disabled; before, they wait for ever (KAFKA-3175).
DISABLED_DELETIONS_REMOVED_SINCE: Final = v(0, 10, 2)
#: One thread takes every event (KAFKA-5028): machines no longer refuse work before they are started, and a preferred
#: election in progress no longer holds up a deletion (KAFKA-5107).
SINGLE_THREADED_CONTROLLER_SINCE: Final = v(0, 11)
#: KIP-112 (KAFKA-4763): a replica on a failed log directory is offline though its broker lives; LeaderAndIsr says
#: which replicas are new.
OFFLINE_LOG_DIRS_SINCE: Final = v(1, 0)
#: KAFKA-5642: batches with pipelined requests to ZooKeeper instead of one partition after the other.
ASYNC_CONTROLLER_SINCE: Final = v(1, 1)
#: Until then one partition's refused write made its whole batch be elected again (KAFKA-8286).
WHOLE_BATCH_RETRIED_UNTIL: Final = v(2, 4)
#: A replica of a partition without a leader becomes OfflineReplica; 1.1 left it as it was (KAFKA-6650).
OFFLINE_WITHOUT_LEADER_SINCE: Final = v(2, 0)
#: An automatic rebalance elects a broker's partitions together, no longer one by one (KafkaController 2.0.0).
REBALANCED_TOGETHER_SINCE: Final = v(2, 0)
#: Until then each UpdateMetadata restated every partition being deleted (KAFKA-6481).
DELETED_PARTITIONS_RESTATED_UNTIL: Final = v(2, 0)
#: Partitions added to a topic being deleted are taken out of its znode again (KAFKA-6612).
ADDED_PARTITIONS_RESTORED_SINCE: Final = v(2, 0)
#: KAFKA-6082: each write of the controller checks the version of /controller_epoch, so that ZooKeeper refuses a zombie.
CONTROLLER_EPOCH_CHECKED_SINCE: Final = v(2, 1)
#: Partitions become NonExistentPartition when the deletion starts, no longer when it ends (KAFKA-6753).
DELETED_PARTITIONS_LEAVE_FIRST_SINCE: Final = v(2, 1)
#: The election of a controlled shutdown tells the brokers that are shutting down as well, as up to 1.0 (KAFKA-7482).
SHUTTING_DOWN_TOLD_AGAIN_SINCE: Final = v(2, 1)
#: A controlled shutdown leaves topics being deleted alone (KafkaController 2.1.0).
SHUTDOWN_SKIPS_DELETED_SINCE: Final = v(2, 1)
#: KAFKA-7235, KIP-380: a broker that came back between two looks is seen by its epoch and handled as death and start.
BOUNCED_BROKERS_SEEN_SINCE: Final = v(2, 2)
#: UpdateMetadata without partitions means none; before, it meant all (KAFKA-7537).
EMPTY_UPDATE_METADATA_IS_EMPTY_SINCE: Final = v(2, 2)
#: A new controller drives dead replicas from their initial state to OfflineReplica (KAFKA-3143).
DEAD_REPLICAS_DRIVEN_OFFLINE_SINCE: Final = v(2, 3)
#: An OfflineReplica of a partition without a leader is told of by UpdateMetadata (ReplicaStateMachine 2.3.0).
OFFLINE_WITHOUT_LEADER_TOLD_SINCE: Final = v(2, 3)
#: A reassignment's raise of the leader epoch reaches the controller's own cache (KafkaController 2.4.0; not in 2.3.1).
EPOCH_BUMP_CACHED_SINCE: Final = v(2, 4)
#: Topics eligible for deletion start together, no longer one by one (KAFKA-9499).
DELETIONS_START_TOGETHER_SINCE: Final = v(2, 5)
#: KIP-570 (KAFKA-9539): one StopReplica to a broker; each partition has its leader epoch and says whether to delete it.
STOP_REPLICA_PER_PARTITION_SINCE: Final = v(2, 6)
#: An automatic rebalance asks first whether the preferred replica could lead (KAFKA-9866).
REBALANCE_ASKS_FIRST_SINCE: Final = v(2, 6)
#: Brokers that start are not told of partitions being deleted (KAFKA-10040).
STARTING_BROKERS_NOT_TOLD_OF_DELETED_SINCE: Final = v(2, 7)
#: KIP-516: topics have ids, which the controller gives (inter-broker protocol 2.8-IV0).
TOPIC_IDS_SINCE: Final = v(2, 8)
#: The death of a broker is told of by an UpdateMetadata of its own only where nothing else was (KAFKA-13225).
DEATH_TOLD_IF_NOTHING_ELSE_SINCE: Final = v(3, 1)
#: AlterPartition is answered NOT_CONTROLLER where the leader knows more than the controller (KAFKA-14154).
LEADER_AHEAD_REFUSED_SINCE: Final = v(3, 3)
#: KIP-704: an unclean election marks the partition until its leader has recovered (inter-broker protocol 3.2-IV0).
LEADER_RECOVERY_STATE_SINCE: Final = v(3, 2)
#: The controller refuses an ISR with a member that is offline or shutting down (KIP-841, KAFKA-14140).
INELIGIBLE_REPLICAS_REFUSED_SINCE: Final = v(3, 3)
#: KIP-866: a KRaft controller may copy its state to the znodes of a cluster that moves away from ZooKeeper.
MIGRATION_TO_KRAFT_SINCE: Final = v(3, 4)
#: An automatic rebalance no longer waits until nothing is reassigned (KAFKA-10149).
REBALANCE_DURING_REASSIGNMENT_SINCE: Final = v(3, 4)
