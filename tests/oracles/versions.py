"""Version gates of what only the oracles play; those that the pipeline asks are in the model."""

from __future__ import annotations

from typing import Final

from reconstruct.model.versions import v

# --- the controller's procedures --------------------------------------------------------------------------------------

#: A new controller tells brokers of each other before it starts its machines, no longer after (KAFKA-4443).
METADATA_SENT_BEFORE_MACHINES_SINCE: Final = v(0, 10, 2)
#: Requests to delete are taken away where deletion is disabled; before, they wait for ever (KAFKA-3175).
DISABLED_DELETIONS_REMOVED_SINCE: Final = v(0, 10, 2)
#: One thread takes every event (KAFKA-5028): machines no longer refuse work before they are started, and a preferred
#: election in progress no longer holds up a deletion (KAFKA-5107).
SINGLE_THREADED_CONTROLLER_SINCE: Final = v(0, 11)
#: An automatic rebalance elects a broker's partitions together, no longer one by one (KafkaController 2.0.0).
REBALANCED_TOGETHER_SINCE: Final = v(2, 0)
#: Partitions added to a topic being deleted are taken out of its znode again (KAFKA-6612).
ADDED_PARTITIONS_RESTORED_SINCE: Final = v(2, 0)
#: A controlled shutdown leaves topics being deleted alone (KafkaController 2.1.0).
SHUTDOWN_SKIPS_DELETED_SINCE: Final = v(2, 1)
#: A new controller drives dead replicas from their initial state to OfflineReplica (KAFKA-3143).
DEAD_REPLICAS_DRIVEN_OFFLINE_SINCE: Final = v(2, 3)
#: Topics eligible for deletion start together, no longer one by one (KAFKA-9499).
DELETIONS_START_TOGETHER_SINCE: Final = v(2, 5)
#: An automatic rebalance asks first whether the preferred replica could lead (KAFKA-9866).
REBALANCE_ASKS_FIRST_SINCE: Final = v(2, 6)
#: Brokers that start get no metadata of partitions being deleted (KAFKA-10040).
STARTING_BROKERS_NOT_SENT_DELETED_SINCE: Final = v(2, 7)
#: KIP-516: topics have ids, which the controller gives (inter-broker protocol 2.8-IV0).
TOPIC_IDS_SINCE: Final = v(2, 8)
#: The death of a broker has an UpdateMetadata of its own only where nothing else is sent (KAFKA-13225).
DEATH_SENT_IF_NOTHING_ELSE_SINCE: Final = v(3, 1)
#: AlterPartition is answered NOT_CONTROLLER where the leader knows more than the controller (KAFKA-14154).
LEADER_AHEAD_REFUSED_SINCE: Final = v(3, 3)
#: The controller refuses an ISR with a member that is offline or shutting down (KIP-841, KAFKA-14140).
INELIGIBLE_REPLICAS_REFUSED_SINCE: Final = v(3, 3)
#: An automatic rebalance no longer waits until nothing is reassigned (KAFKA-10149).
REBALANCE_DURING_REASSIGNMENT_SINCE: Final = v(3, 4)

# --- brokers: what they do with requests ------------------------------------------------------------------------------

#: A broker asks whether it is assigned before it takes a partition of a LeaderAndIsr request (ReplicaManager 0.8.1).
ASSIGNED_REPLICAS_CHECKED_SINCE: Final = v(0, 8, 1)
#: A follower whose new leader is not live makes its replica and keeps its epoch (KAFKA-1647).
REPLICA_MADE_WITHOUT_LEADER_SINCE: Final = v(0, 8, 2)
#: A replica that is at a newer partition epoch is left as it is (Partition.makeLeader, makeFollower 3.3.0).
PARTITION_EPOCH_CHECKED_SINCE: Final = v(3, 3)
#: A follower that missed a leader epoch of the same leader goes through all steps and compares its log again
#: (Partition.makeFollower 2.0.1).
MISSED_EPOCHS_MADE_UP_SINCE: Final = v(2, 0, 1)
#: Until then a follower that already follows the new leader skips its steps; later it compares its log at every new
#: epoch (KIP-320, Partition.makeFollower 2.1.0).
SAME_LEADER_FOLLOWED_ON_UNTIL: Final = v(2, 1)

# --- replication: logs, high watermarks, ISRs -------------------------------------------------------------------------

#: A leader that stays leader in a new epoch keeps what it knew of its followers (Partition.makeLeader 0.9.0).
KEEPS_PROGRESS_WHERE_IT_LED_SINCE: Final = v(0, 9)
#: A caught-up replica outside the ISR holds the high watermark back until it joins (KAFKA-4485).
CAUGHT_UP_HOLD_BACK_HIGH_WATERMARK_SINCE: Final = v(0, 10, 2)
#: A follower whose log end offset equals the leader's is never out of sync, however long ago it fetched (KAFKA-7152).
EQUAL_LOG_END_IS_IN_SYNC_SINCE: Final = v(2, 1)
#: KIP-595's truncation on fetch: a fetch response names the diverging epoch (inter-broker protocol 2.7).
TRUNCATION_ON_FETCH_SINCE: Final = v(2, 7)
