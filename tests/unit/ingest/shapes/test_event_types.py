"""Every event type has a meaning, and `other` is kept for what is of no use."""

from __future__ import annotations

import pytest

from ingest.shapes import MEANINGS, SHAPES, match
from ingest.shapes.event_types import EventType
from tests.support.loops import for_each


def test_every_event_type_has_a_meaning_and_no_other_has() -> None:
    assert set(MEANINGS) == {shape.event_type for shape in SHAPES}
    assert [name for name, meaning in MEANINGS.items() if not meaning.endswith(".")] == []


def test_the_state_change_log_has_no_other() -> None:
    assert [
        s.id for s in SHAPES if s.source_kind in ("state_change_log", "exception") and s.event_type == "other"
    ] == []


#: What the rules and questions need, each by a line of Kafka's.
NEEDED = """
quorum_state_changed | org.apache.kafka.raft.QuorumState | [RaftManager id=1] Completed transition to Unattached(epoch=5, votedKey=null, voters=[1, 2, 3]) from null
quorum_majority_lost | org.apache.kafka.raft.LeaderState | [RaftManager id=3] Did not receive fetch request from the majority of the voters within 3000ms. Current fetched voters are [], and voters are [1, 2, 3]
broker_server_started | kafka.server.KafkaRaftServer | [KafkaRaftServer nodeId=1] Kafka Server started
controller_failover_step | kafka.controller.KafkaController | [Controller id=1] Initializing controller context
partition_state_machine_stopped | kafka.controller.ZkPartitionStateMachine | [PartitionStateMachine controllerId=1] Stopped partition state machine
reassignment_assignment_started | kafka.controller.KafkaController | [Controller id=1] Updating assignment of partition t-0 from ReplicaAssignment(replicas=1, addingReplicas=, removingReplicas=) to ReplicaAssignment(replicas=2,1, addingReplicas=2, removingReplicas=1)
partition_modification_notified | kafka.controller.PartitionStateMachine$AddPartitionsListener | [AddPartitionsListener on 1]: Add Partition triggered {"version":1,"partitions":{"0":[1,3]}} for path /brokers/topics/t
topic_deletion_response | kafka.controller.KafkaController | [Controller id=1] Delete topic callback invoked on StopReplica response received from broker 1: request error = NONE, partition errors = Map(t-1 -> NONE, t-0 -> NONE)
controller_thread_stopped | kafka.controller.RequestSendThread | [Controller-1-to-broker-2-send-thread], Stopped
controller_request_not_sent | kafka.controller.RequestSendThread | [RequestSendThread controllerId=1] Controller 1 fails to send a request to broker 10.0.0.1:9092 (id: 2 rack: null)
znode_update_failed | kafka.utils.ZkUtils$ | Conditional update of path /brokers/topics/t/partitions/0/state with data {"leader":1} and expected version 11 failed due to org.apache.zookeeper.KeeperException$BadVersionException
ephemeral_znode_failed | kafka.zk.KafkaZkClient | Error while creating ephemeral at /brokers/ids/1, node already exists and owner '72057' does not match current session '72058'
log_rolled | kafka.log.Log | [Log partition=t-0, dir=/d] Rolled new log segment at offset 1523 in 3 ms.
log_rolled | kafka.log.Log | Rolled new log segment for 't-0' in 3 ms.
log_corruption_found | kafka.log.LogLoader | [LogLoader partition=t-0, dir=/d] Corruption found in segment 0, truncating to offset 77
log_emptied | kafka.log.LogLoader | [LogLoader partition=t-0, dir=/d] Deleting all segments because logEndOffset (5) is smaller than logStartOffset 9. This could happen if segment files were deleted from the file system.
checkpoint_error | kafka.log.LogManager | Disk error while writing recovery offsets checkpoint in directory /d: No space left on device
checkpoint_error | kafka.server.checkpoints.CheckpointFile | Halting writes to checkpoint file (/d/f) because the underlying file system is inaccessible:
broker_halted | kafka.log.LogManager | Shutdown broker because all log dirs in /d have failed
log_manager_shutdown | kafka.log.LogManager | Shutdown complete.
log_marked_stray | kafka.log.LogManager | Log for partition t-0 is marked as stray and renamed to /d/t-0.8c6929e28d24-stray
log_marked_stray | kafka.log.LogManager | Log in /d/t-0 marked stray and renamed to /d/t-0.8c6929e28d24-stray
log_creation_deferred | kafka.cluster.Partition | [Partition t-0 broker=3] Skipping creation of log because there are potentially offline log directories and log may already exist there. directoryId=AAAAAAAAAAAAAAAAAAAAAA, topicId=Some(x), targetLogDirectoryId=Some(AAAAAAAAAAAAAAAAAAAAAA)
fetch_failed | org.apache.kafka.clients.FetchSessionHandler | [ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Error sending fetch request (sessionId=7, epoch=INITIAL) to node 2: java.nio.channels.ClosedSelectorException.
fetcher_stopping | kafka.server.ReplicaFetcherThread | [ReplicaFetcherThread-0-2], Shutting down
leader_epoch_cache_truncated | kafka.server.epoch.LeaderEpochFileCache | Cleared latest ListBuffer(EpochEntry(epoch=5, startOffset=10)) entries from epoch cache based on passed offset 9 leaving 1 in EpochFile for partition t-0
preferred_election_check | kafka.controller.KafkaController | [Controller 1]: leader imbalance ratio for broker 2 is 0.500000
quorum_event_failed | org.apache.kafka.controller.QuorumController | [QuorumController id=1] createTopics: event failed with NotControllerException in 5 microseconds. Exception message: no longer active
"""  # noqa: E501


@for_each(line=NEEDED.strip().splitlines())
def test_what_rules_and_questions_need_is_typed(line: str) -> None:
    event_type, logger, message = (part.strip() for part in line.split(" | ", 2))
    found = match("controller_log" if ".controller." in logger else "server_log", logger, message)
    assert found is not None
    assert found.event_type == event_type


def test_an_event_type_that_no_shape_gives_is_an_error_where_it_is_written():
    with pytest.raises(AttributeError):
        _ = EventType.LEADER_AND_ISR_POSTED
