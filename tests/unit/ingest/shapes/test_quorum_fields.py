"""What lines of a KRaft node say, field by field: lines of 3.9.0, 4.0.0, 4.1.0 and 4.3.1."""

from __future__ import annotations

import pytest

from ingest.shapes import match

RAFT = "org.apache.kafka.raft."
CASES = [
    (
        RAFT + "QuorumState",
        "[RaftManager id=1] Completed transition to FollowerState(fetchTimeoutMs=2000, epoch=12010, leader=3,"
        " leaderEndpoints=Endpoints(endpoints={ListenerName(CONTROLLER)=kafka-1/<unresolved>:19092}), voters=[1, 2, 3],"
        " highWatermark=Optional[LogOffsetMetadata(offset=713493, metadata=Optional.empty)],"
        " fetchingSnapshot=Optional.empty) from CandidateState(localId=1, localDirectoryId=4SvYonARtmIsmjtA1FOevg,"
        "epoch=12009, retries=3, voteStates={}, highWatermark=Optional.empty, electionTimeoutMs=1001)",
        "quorum_state_changed",
        {
            "step": "completed",
            "broker_id": "1",
            "quorum_state": "Follower",
            "quorum_epoch": "12010",
            "quorum_leader": "3",
            "metadata_high_watermark": "713493",
            "previous_quorum_state": "Candidate",
            "previous_quorum_epoch": "12009",
        },
    ),
    (
        RAFT + "QuorumState",
        "[RaftManager id=0] Attempting durable transition to Leader(localReplicaKey=ReplicaKey(id=7,"
        " directoryId=HdLrZmMjbKrt4LUPAS48Ew), epoch=3, epochStartOffset=3885, highWatermark=Optional.empty,"
        " voterStates={0=ReplicaState(replicaKey=ReplicaKey(id=0, directoryId=<undefined>))}) from null",
        "quorum_state_changed",
        {
            "step": "attempted",
            "broker_id": "0",
            "quorum_state": "Leader",
            "quorum_epoch": "3",
            "quorum_leader": "7",
        },
    ),
    (
        RAFT + "QuorumState",
        "[RaftManager id=103] Completed transition to Leader(localVoterNode=VoterNode(voterKey=ReplicaKey(id=103,"
        " directoryId=HduHWF4V7Orhu5CldM-idw), listeners=Endpoints(endpoints={ListenerName(CONTROLLER)=127.0.0.1/"
        "<unresolved>:28403}), supportedKRaftVersion=SupportedVersionRange[min_version:0, max_version:1]), epoch=3,"
        " epochStartOffset=285, highWatermark=Optional.empty, voterStates={}) from CandidateState(localId=103,"
        " localDirectoryId=HduHWF4V7Orhu5CldM-idw, epoch=3, highWatermark=Optional.empty, electionTimeoutMs=1001)",
        "quorum_state_changed",
        {
            "step": "completed",
            "broker_id": "103",
            "quorum_state": "Leader",
            "quorum_epoch": "3",
            "quorum_leader": "103",
            "previous_quorum_state": "Candidate",
            "previous_quorum_epoch": "3",
        },
    ),
    (
        RAFT + "QuorumState",
        "[RaftManager id=2] Completed transition to Unattached(epoch=12021, votedKey=ReplicaKey(id=1,"
        " directoryId=Optional[mQes9A54bQCw7Vbw6Ptauw]), voters=[1, 2, 3], electionTimeoutMs=1684,"
        " highWatermark=Optional.empty) from Unattached(epoch=12020, votedKey=null, voters=[1, 2, 3])",
        "quorum_state_changed",
        {
            "step": "completed",
            "broker_id": "2",
            "quorum_state": "Unattached",
            "quorum_epoch": "12021",
            "voted_id": "1",
            "previous_quorum_state": "Unattached",
            "previous_quorum_epoch": "12020",
        },
    ),
    (
        RAFT + "KafkaRaftClient",
        "[RaftManager id=101] Vote request VoteRequestData(clusterId='c', voterId=101,"
        " topics=[TopicData(topicName='__cluster_metadata', partitions=[PartitionData(partitionIndex=0, replicaEpoch=5,"
        " replicaId=102, replicaDirectoryId=SqXKx8bJWka7KGtCNkAb3A, voterDirectoryId=AAAAAAAAAAAAAAAAAAAAAA,"
        " lastOffsetEpoch=4, lastOffset=77, preVote=true)])]) with epoch 5 is granted",
        "quorum_vote",
        {
            "broker_id": "101",
            "candidate_id": "102",
            "quorum_epoch": "5",
            "last_epoch": "4",
            "log_end_offset": "77",
            "is_pre_vote": "true",
            "vote": "granted",
        },
    ),
    (
        RAFT + "KafkaRaftClient",
        "[RaftManager id=3] Fully truncated the log at (LogOffsetMetadata(offset=44, metadata=Optional["
        "(segmentBaseOffset=44,relativePositionInSegment=0)]), 3) after downloading snapshot OffsetAndEpoch[offset=44,"
        " epoch=3] from leader 1",
        "metadata_log_truncated",
        {
            "broker_id": "3",
            "metadata_offset": "44",
            "quorum_epoch": "3",
            "snapshot": "00000000000000000044-0000000003",
            "quorum_leader": "1",
        },
    ),
    (
        RAFT + "LeaderState",
        "[RaftManager id=1] High watermark set to LogOffsetMetadata(offset=36, metadata=Optional[(segmentBaseOffset=0,"
        "relativePositionInSegment=4054)]) for the first time for epoch 3 based on indexOfHw 1 and voters [1]",
        "quorum_high_watermark",
        {"broker_id": "1", "metadata_offset": "36", "quorum_epoch": "3", "voters": "[1]"},
    ),
    (
        "kafka.server.NodeToControllerRequestThread",
        "[broker-2-to-controller-heartbeat-channel-manager]: Recorded new KRaft controller, from now on will use node"
        " 127.0.0.1:24057 (id: 3 rack: null isFenced: false)",
        "controller_node_recorded",
        {"broker_id": "2", "controller_id": "3"},
    ),
    (
        "org.apache.kafka.image.loader.MetadataLoader",
        "[MetadataLoader id=1] maybePublishMetadata(LOG_DELTA): The loader is still catching up because we have loaded"
        " up to offset 0, but the high water mark is 3886",
        "metadata_loading",
        {
            "broker_id": "1",
            "step": "maybePublishMetadata(LOG_DELTA)",
            "metadata_offset": "0",
            "metadata_high_watermark": "3886",
        },
    ),
    (
        "org.apache.kafka.controller.ReplicationControlManager",
        "[QuorumController id=102] Fencing broker 2 at epoch 13 because its session has timed out.",
        "broker_fenced",
        {"controller_id": "102", "broker_id": "2", "broker_epoch": "13"},
    ),
    (
        "state.change.logger",
        "[Broker id=2] Skipped the become-follower state change for safe-0 with topic id Some(O6ZsYClSQ7m7kHUk6Lx-kg),"
        " partition registration PartitionRegistration(replicas=[1, 2], directories=[k2lcu5IZtQyp8ZgwE4jzHQ,"
        " ZPWkfT0M1n51_fgwwKomIw], isr=[], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[1], leader=-1,"
        " leaderRecoveryState=RECOVERED, leaderEpoch=1, partitionEpoch=3) and isNew=false since it is already a"
        " follower with leader epoch 1.",
        "become_follower_skipped",
        {
            "broker_id": "2",
            "topic": "safe",
            "partition_id": "0",
            "topic_id": "O6ZsYClSQ7m7kHUk6Lx-kg",
            "replicas": "1,2",
            "isr": "",
            "elr": "",
            "last_known_elr": "1",
            "leader": "-1",
            "leader_epoch": "1",
            "partition_epoch": "3",
            "is_new": "false",
        },
    ),
    (
        "state.change.logger",
        "[Broker id=1] Skipped the become-leader state change for ledger-1 with topic id Some(7-OldYJIS5GFzfXO2-Cu9A),"
        " partition registration PartitionRegistration(replicas=[1, 2], directories=[k2lcu5IZtQyp8ZgwE4jzHQ,"
        " ZPWkfT0M1n51_fgwwKomIw], isr=[1, 2], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[],"
        " leader=2, leaderRecoveryState=RECOVERED, leaderEpoch=2, partitionEpoch=4) and isNew=false since the leader is"
        " already at a newer partition epoch 5.",
        "become_leader_skipped",
        {"isr": "1,2", "leader_epoch": "2", "partition_epoch": "4", "known_partition_epoch": "5"},
    ),
    (
        "org.apache.kafka.controller.ReplicationControlManager",
        "[QuorumController id=101] partition change for safe-0 with topic ID 9PVHpHAqRbqY5wwrVc3nQw: isr: [1] -> [],"
        " leader: 1 -> -1, leaderEpoch: 0 -> 1, elr: [] -> [1], lastKnownElr: [] -> [1], partitionEpoch: 1 -> 2",
        "partition_changed",
        {
            "controller_id": "101",
            "topic": "safe",
            "partition_id": "0",
            "topic_id": "9PVHpHAqRbqY5wwrVc3nQw",
            "isr": "",
            "old_isr": "1",
            "leader": "-1",
            "leader_epoch": "1",
            "elr": "1",
            "last_known_elr": "1",
            "partition_epoch": "2",
        },
    ),
    (
        "org.apache.kafka.controller.ReplicationControlManager",
        "[QuorumController id=101] UNCLEAN partition change for safe-0 with topic ID 9PVHpHAqRbqY5wwrVc3nQw: isr: [] ->"
        " [1], leader: -1 -> 1, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, lastKnownElr: [1] ->"
        " [], partitionEpoch: 3 -> 4",
        "partition_changed",
        {"isr": "1", "leader": "1", "leader_recovery_state": "1", "leader_epoch": "2", "partition_epoch": "4"},
    ),
    (
        "org.apache.kafka.controller.ReplicationControlManager",
        "[QuorumController id=101] Replayed PartitionRecord for new partition safe-0 with topic ID"
        " 9PVHpHAqRbqY5wwrVc3nQw and PartitionRegistration(replicas=[1, 2], directories=[x5L2BP9C1L9pru087-s9yQ,"
        " m2Sls_VTsbr8DFjKZWeLtg], isr=[1, 2], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[],"
        " leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0).",
        "partition_created",
        {
            "topic": "safe",
            "partition_id": "0",
            "topic_id": "9PVHpHAqRbqY5wwrVc3nQw",
            "replicas": "1,2",
            "isr": "1,2",
            "leader": "1",
            "leader_epoch": "0",
            "partition_epoch": "0",
        },
    ),
]


@pytest.mark.parametrize(("logger", "message", "event_type", "fields"), CASES)
def test_fields(logger: str, message: str, event_type: str, fields: dict[str, str]) -> None:
    source_kind = "state_change_log" if logger == "state.change.logger" else "server_log"
    found = match(source_kind, logger, message)
    assert found is not None
    assert found.event_type == event_type
    assert {name: found.fields.get(name) for name in fields} == fields


@pytest.mark.timeout(20)
@pytest.mark.parametrize("filling", ["epoch=1, ", "replicaEpoch=1, replicaId=1", " from Leader(", ")", "offset=1, "])
def test_a_message_of_a_megabyte_takes_no_longer_than_its_length(filling: str) -> None:
    long = filling * (1_000_000 // len(filling))
    for logger, begin, end in (
        ("QuorumState", "Completed transition to ", ""),
        ("QuorumState", "Attempting durable transition to A from ", ""),
        ("KafkaRaftClient", "Vote request VoteRequestData(", ") with epoch x"),
        ("KafkaRaftClient", "Vote request VoteRequestData(", ") with epoch 5 is granted"),
        ("LeaderState", "High watermark set to ", ""),
    ):
        match("server_log", RAFT + logger, f"[RaftManager id=1] {begin}{long}{end}")
