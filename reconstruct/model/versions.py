"""Kafka versions, and each change between releases that a rule depends on: named, dated, linked, in this one place.

A gate is the first release that does what its comment says (``_SINCE``), or that no longer does (``_UNTIL``).
Bugs that a release fixed are in :mod:`reconstruct.findings.known_issues`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, total_ordering
from typing import Final

#: The version of the program's own rules: in every silver and gold row, so that judging old logs by better rules is
#: visible.
MODEL_VERSION: Final = "3"

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaVersion) and _padded(self.parts) == _padded(other.parts)

    def __hash__(self) -> int:
        return hash(_padded(self.parts))

    def __lt__(self, other: KafkaVersion) -> bool:
        return _padded(self.parts) < _padded(other.parts)

    def __str__(self) -> str:
        return ".".join(map(str, self.parts))


@lru_cache(maxsize=512)
def _padded(parts: tuple[int, ...]) -> tuple[int, ...]:
    """Rules ask millions of times whether a version is since another, of a few dozen."""
    return (*parts, *(0,) * (4 - len(parts)))


def v(*parts: int) -> KafkaVersion:
    """Shorthand: ``v(2, 6)``."""
    return KafkaVersion(parts)


#: The oldest and the newest release that the program knows.
OLDEST: Final = v(0, 8, 0)
NEWEST: Final = v(4, 3)
#: The first level of metadata.version of each release (org.apache.kafka.server.common.MetadataVersion): a broker
#: registers the highest level that it supports, which is the last of its release.
FIRST_METADATA_LEVELS: Final[Mapping[int, KafkaVersion]] = {
    4: v(3, 3),
    8: v(3, 4),
    9: v(3, 5),
    12: v(3, 6),
    15: v(3, 7),
    20: v(3, 8),
    21: v(3, 9),
    22: v(4, 0),
    26: v(4, 1),
    28: v(4, 2),
    30: v(4, 3),
}
#: The highest level that is of one of these releases.
_LAST_METADATA_LEVEL: Final = 30


def release_of_level(level: int) -> KafkaVersion | None:
    """The release that a level of metadata.version came with; None of one that is not known."""
    known = [first for first in FIRST_METADATA_LEVELS if first <= level <= _LAST_METADATA_LEVEL]
    return FIRST_METADATA_LEVELS[max(known)] if known else None


#: The last release whose controller uses ZooKeeper.
LAST_WITH_ZOOKEEPER: Final = v(3, 9)


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


# --- logging: what a log of that version shows ------------------------------------------------------------------------

#: "ISR updated to ..." is logged at INFO: an ISR change without it was not committed (Partition 2.4.0).
ISR_COMMIT_LOGGED_AT_INFO_SINCE: Final = v(2, 4)
#: Replica transitions, partition to Offline and to NonExistent, and requests are logged at TRACE, and the shipped level
#: became INFO: a default log does not show them (log4j.properties 2.6.0).
TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE: Final = v(2, 6)
#: Controllers log how many partitions a request holds; of UpdateMetadata nothing else (KAFKA-8470).
BATCHES_COUNTED_SINCE: Final = v(2, 6)

# --- the controller (reconstruct/model/controller) --------------------------------------------------------------------

#: Topic deletion, and with it five replica states and StopReplica on OfflineReplica (KAFKA-330).
TOPIC_DELETION_SINCE: Final = v(0, 8, 1)
#: The shrunk ISR is sent to every other assigned replica, unless the topic is being deleted; before, to the leader only
#: (KAFKA-1188).
SHRUNK_ISR_SENT_TO_ALL_SINCE: Final = v(0, 8, 2)
#: The last member of the ISR is kept where unclean election is disabled (KAFKA-1028).
LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE: Final = v(0, 8, 2)
#: The death of a broker that led nothing is sent to all in an UpdateMetadata of its own, and a new broker to all
#: brokers, no longer to itself only (KAFKA-972).
BROKER_CHANGE_SENT_TO_ALL_SINCE: Final = v(0, 9)
#: A replica of a topic being deleted whose partition has no leader is no failure on its way to OfflineReplica
#: (KAFKA-2937).
NO_LEADER_IS_NO_FAILURE_WHEN_DELETED_SINCE: Final = v(0, 9, 0, 1)
#: KIP-112 (KAFKA-4763): a replica on a failed log directory is offline though its broker lives; LeaderAndIsr says which
#: replicas are new.
OFFLINE_LOG_DIRS_SINCE: Final = v(1, 0)
#: The last member of the ISR is kept, with leader -1, when it goes offline (ReplicaStateMachine 1.1.0).
LAST_ISR_MEMBER_KEPT_SINCE: Final = v(1, 1)
#: Requests and caches may restate an unchanged state with the epoch of a later controller: one that finds a replica
#: outside the ISR on its way to OfflineReplica takes the state into its cache as its own (ReplicaStateMachine 1.1.0).
REQUEST_RESTATES_CONTROLLER_EPOCH_SINCE: Final = v(1, 1)
#: KAFKA-5642: batches with pipelined requests to ZooKeeper instead of one partition after the other; four election
#: algorithms replace the selectors.
ASYNC_CONTROLLER_SINCE: Final = v(1, 1)
#: A replica of a partition without a leader becomes OfflineReplica; 1.1 left it as it was (KAFKA-6650).
OFFLINE_WITHOUT_LEADER_SINCE: Final = v(2, 0)
#: Until then each UpdateMetadata restated every partition being deleted (KAFKA-6481).
DELETED_PARTITIONS_RESTATED_UNTIL: Final = v(2, 0)
#: KIP-226: what /config/brokers sets of a running broker counts before its configuration file.
DYNAMIC_BROKER_SETTINGS_SINCE: Final = v(1, 1)
#: KAFKA-6082: each write of the controller checks the version of /controller_epoch, so that ZooKeeper refuses a zombie.
CONTROLLER_EPOCH_CHECKED_SINCE: Final = v(2, 1)
#: Partitions become NonExistentPartition when the deletion starts, no longer when it ends (KAFKA-6753).
DELETED_PARTITIONS_LEAVE_FIRST_SINCE: Final = v(2, 1)
#: The election of a controlled shutdown is sent to the brokers that are shutting down too, as up to 1.0 (KAFKA-7482).
SHUTTING_DOWN_BROKERS_SENT_AGAIN_SINCE: Final = v(2, 1)
#: UpdateMetadata without partitions means none; before, it meant all (KAFKA-7537).
EMPTY_UPDATE_METADATA_IS_EMPTY_SINCE: Final = v(2, 2)
#: KIP-380 (KAFKA-7235): registrations have epochs. The controller detects a broker that came back between two looks and
#: handles it as death and start; a broker answers a request that names its former registration without handling it.
BROKER_EPOCHS_SINCE: Final = v(2, 2)
#: A dead replica of a topic being deleted may go from OfflineReplica to ReplicaDeletionIneligible; before, the attempt
#: was refused with an error that did no harm (ReplicaStateMachine 2.3.0).
OFFLINE_TO_INELIGIBLE_SINCE: Final = v(2, 3)
#: An OfflineReplica of a partition without a leader is named in UpdateMetadata (ReplicaStateMachine 2.3.0).
OFFLINE_WITHOUT_LEADER_SENT_SINCE: Final = v(2, 3)
#: KIP-455: reassignment state in the topic's znode; an overridden one may leave the ISR outside the assignment.
REASSIGNMENT_IN_TOPIC_ZNODE_SINCE: Final = v(2, 4)
#: Until then one partition's refused write made its whole batch be elected again (KAFKA-8286).
WHOLE_BATCH_RETRIED_UNTIL: Final = v(2, 4)
#: A reassignment's raise of the leader epoch reaches the controller's own cache (KafkaController 2.4.0; not in 2.3.1).
EPOCH_BUMP_CACHED_SINCE: Final = v(2, 4)
#: KIP-570 (KAFKA-9539): one StopReplica to a broker; each partition has its leader epoch and says whether to delete it.
STOP_REPLICA_PER_PARTITION_SINCE: Final = v(2, 6)
#: KIP-866: a KRaft controller may copy its state to the znodes of a cluster that moves away from ZooKeeper.
MIGRATION_TO_KRAFT_SINCE: Final = v(3, 4)

# --- elections (reconstruct/model/elections.py) -----------------------------------------------------------------------

#: The election for a reassignment asks whether the new leader is in the ISR (ReassignedPartitionLeaderSelector 0.8.1).
REASSIGNMENT_NEEDS_ISR_SINCE: Final = v(0, 8, 1)
#: Leaders are taken in the assignment's order, and an unclean election must be allowed (KAFKA-1028).
ASSIGNMENT_ORDER_SINCE: Final = v(0, 8, 2)
#: unclean.leader.election.enable exists; before, an election was unclean whenever it had to be (KAFKA-1028).
UNCLEAN_ELECTION_CONFIGURABLE_SINCE: Final = v(0, 8, 2)
#: A controlled shutdown takes the first leader in the assignment's order, no longer in the ISR's
#: (ControlledShutdownLeaderSelector 0.10.0).
SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE: Final = v(0, 10)
#: The default of unclean.leader.election.enable is false (KIP-106).
UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE: Final = v(0, 11)
#: Preferred elections skip partitions whose leader is preferred already, again, as up to 1.0 (KafkaController 2.2.0).
PREFERRED_NOT_REPEATED_SINCE: Final = v(2, 2)
#: KIP-460: an administrator may ask for an unclean election of any topic.
ELECTION_BY_ADMINISTRATOR_SINCE: Final = v(2, 4)
#: KIP-704: an unclean election marks the partition until its leader has recovered (inter-broker protocol 3.2-IV0).
LEADER_RECOVERY_STATE_SINCE: Final = v(3, 2)

# --- brokers: what they do with requests (reconstruct/model/broker_requests.py) ---------------------------------------

#: One lock orders all requests of controllers that a broker handles: it checks, caches and logs an UpdateMetadata under
#: the lock that its LeaderAndIsr requests take. Before, two requests may overtake each other between the check and the
#: line (ReplicaManager.replicaStateChangeLock, maybeUpdateMetadataCache).
REQUESTS_ORDERED_SINCE: Final = v(0, 8, 2)
#: A StopReplica with the leader epoch that the replica has is taken (KAFKA-13972).
EQUAL_EPOCH_STOPS_SINCE: Final = v(3, 4, 1)

# --- replication: logs, high watermarks, ISRs -------------------------------------------------------------------------

#: KAFKA-1555: a leader refuses writes with acks=all while its ISR is smaller than min.insync.replicas.
MIN_ISR_SINCE: Final = v(0, 8, 2)
#: replica.lag.max.messages: a follower too many records behind leaves the ISR. Removed by KIP-16.
LAG_MAX_MESSAGES_UNTIL: Final = v(0, 9)
#: KIP-101: leader epochs are checkpointed; a follower truncates to where its last epoch ends on the leader, no longer
#: to its own high watermark.
TRUNCATION_BY_LEADER_EPOCH_SINCE: Final = v(0, 11)
#: A leader counts its followers' lag from its election on (replica.resetLastCaughtUpTime in Partition.makeLeader
#: 0.11.0).
LAG_COUNTS_FROM_ELECTION_SINCE: Final = v(0, 11)
#: A follower begins to fetch from its high watermark, no longer from its log end (ReplicaManager.makeFollowers 1.1.0,
#: KAFKA-5163).
FETCHES_BEGIN_AT_HIGH_WATERMARK_SINCE: Final = v(1, 1)
#: KIP-279: the leader names the epoch that its answer is about, so that consecutive fast failovers leave no divergence.
TRUNCATION_BY_EPOCH_LINEAGE_SINCE: Final = v(2, 0)
#: KAFKA-7128: a replica joins the ISR only once its log end offset reached the start of the leader's epoch.
JOIN_NEEDS_EPOCH_START_SINCE: Final = v(2, 0, 1)
#: KAFKA-7415: a leader enters its epoch into the lineage at its election, not at its first append.
EPOCH_ASSIGNED_AT_ELECTION_SINCE: Final = v(2, 0, 1)
#: KIP-320: fetches carry the leader epoch; a leader of another epoch refuses them.
FETCHES_ARE_FENCED_SINCE: Final = v(2, 1)
#: The log owns the high watermark and keeps it within [log start, log end] (KAFKA-8457).
HIGH_WATERMARK_KEPT_IN_LOG_SINCE: Final = v(2, 4)
#: KIP-537: replica.lag.time.max.ms is 30 s by default, no longer 10.
LONGER_LAG_TIME_SINCE: Final = v(2, 5)
#: KIP-497: the controller writes the ISR for the leader (AlterIsr; inter-broker protocol 2.7-IV2); a replica that the
#: leader asked for counts already.
ALTER_ISR_SINCE: Final = v(2, 7)
#: A follower begins to fetch from its log end again and cuts its log while it fetches, where the inter-broker protocol
#: is 2.7 or later and its log knows an epoch (ReplicaManager.initialFetchOffset 2.8.0, KAFKA-10554).
FETCHES_BEGIN_AT_LOG_END_SINCE: Final = v(2, 8)
#: The inter-broker protocol that it needs (ApiVersion.isTruncationOnFetchSupported: 2.7-IV1).
TRUNCATION_ON_FETCH_PROTOCOL: Final = v(2, 7)
#: A leader takes a replica that a reassignment has removed out of its ISR at once, and prints its end offset as
#: "unknown"; before, it kept it until it heard of the new assignment (KAFKA-9672, Partition.isFollowerOutOfSync).
LEADER_DROPS_REMOVED_REPLICAS_SINCE: Final = v(3, 0)
#: KIP-966's first part: the high watermark stands still while the ISR is smaller than min.insync.replicas.
HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE: Final = v(3, 7)
#: A fetch cannot be noted between the decision to shrink the ISR and its line (Partition.updateFollowerFetchState
#: 3.7.0).
FETCHES_WAIT_FOR_ISR_CHANGE_SINCE: Final = v(3, 7)
#: KIP-966: of a KRaft cluster that has eligible leader replicas the ISR may be empty while nobody leads (4.0; enabled
#: for new clusters since 4.1).
ELIGIBLE_LEADER_REPLICAS_SINCE: Final = v(4, 0)

# --- the controller of a quorum (reconstruct/model/metadata_log) ------------------------------------------------------

#: A reassignment ends when all replicas that it leaves are in the ISR; before, when those that it adds are
#: (KAFKA-15665, PartitionReassignmentReplicas 3.8).
REASSIGNMENT_NEEDS_ALL_REPLICAS_SINCE: Final = v(3, 8)
#: It ends when those that it adds are, as up to 3.7; all have to be where it leaves fewer than there were (KAFKA-19975,
#: PartitionReassignmentReplicas 4.3).
REASSIGNMENT_NEEDS_ADDED_REPLICAS_SINCE: Final = v(4, 3)

#: The last known leader of a partition without ISR and ELR is elected if it is active; before, though it is not
#: (PartitionChangeBuilder.canElectLastKnownLeader 4.1).
LAST_KNOWN_LEADER_IS_ACTIVE_SINCE: Final = v(4, 1)

# --- fetchers (reconstruct/model/fetchers.py) -------------------------------------------------------------------------

#: Of the hash that chooses a fetcher, the partition's number is added to 31 times the topic's hash, no longer the other
#: way round, and the sign bit is cut off (AbstractFetcherManager.getFetcherId 0.8.1).
FETCHER_HASH_UNSIGNED_SINCE: Final = v(0, 8, 1)
#: Its absolute value is taken instead (Utils.abs, KAFKA-1469).
FETCHER_HASH_ABSOLUTE_SINCE: Final = v(0, 8, 2)

# --- checkpoint files (reconstruct/checkpoints) -----------------------------------------------------------------------

#: Checkpoints have the format of OffsetCheckpoint instead of HighwaterMarkCheckpoint; recovery points exist
#: (OffsetCheckpoint 0.8.1).
OFFSET_CHECKPOINT_SINCE: Final = v(0, 8, 1)
#: Until then a broker killed soon after a start could lose entries of a checkpoint: the file was written before all
#: replicas were made (KAFKA-1647).
ENTRIES_LOST_ON_KILLS_UNTIL: Final = v(0, 8, 2)
#: A recovery point checkpoint that cannot be read is a warning (LogManager 0.9.0).
RECOVERY_POINTS_RESET_SINCE: Final = v(0, 9)
#: Entries are counted as read, no longer by key: one given twice passes (CheckpointFile 0.11.0).
DUPLICATES_PASS_SINCE: Final = v(0, 11)

# --- rules that several gates decide ----------------------------------------------------------------------------------


class Truncation(StrEnum):
    """What a follower of a new leader cuts its log to before it fetches."""

    TO_HIGH_WATERMARK = "to_high_watermark"
    BY_LEADER_EPOCH = "by_leader_epoch"
    BY_EPOCH_LINEAGE = "by_epoch_lineage"


def truncation_of(version: KafkaVersion) -> Truncation:
    """How a follower truncates in a cluster of ``version`` with an inter-broker protocol of the same version."""
    if version < TRUNCATION_BY_LEADER_EPOCH_SINCE:
        return Truncation.TO_HIGH_WATERMARK
    return Truncation.BY_LEADER_EPOCH if version < TRUNCATION_BY_EPOCH_LINEAGE_SINCE else Truncation.BY_EPOCH_LINEAGE
