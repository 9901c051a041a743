"""What the fields of server.log say, written out by hand for every struct and era."""

from __future__ import annotations

import pytest

from ingest.shapes import match

TP = {"topic": "orders", "partition_id": "4"}
IDENT = {**TP, "broker_id": "3"}
FETCHER = {"broker_id": "3", "leader": "2", "fetcher_id": "0"}
ADDED = {"topic_partitions": "orders-4,a-b-0", "fetch_offsets": "10,7", "leader_epochs": "5,1"}

SERVER_LOG = [
    (
        "kafka.cluster.Partition",
        "Partition [orders,4] on broker 3: Shrinking ISR for partition [orders,4] from 1,2,3 to 1,3",
        "isr_shrink_proposed",
        {**IDENT, "old_isr": "1,2,3", "new_isr": "1,3"},
    ),
    (
        "kafka.cluster.Partition",
        "[Partition orders-4 broker=3] Shrinking ISR from 1,2,3,4 to 1,3. Leader: (highWatermark: 1500, endOffset: "
        "1523). Out of sync replicas: (brokerId: 2, endOffset: 1510) (brokerId: 4, endOffset: -1).",
        "isr_shrink_proposed",
        {
            **IDENT,
            "old_isr": "1,2,3,4",
            "new_isr": "1,3",
            "high_watermark": "1500",
            "log_end_offset": "1523",
            "out_of_sync": "2:1510,4:-1",
        },
    ),
    (
        "kafka.cluster.Partition",
        "[Partition orders-4 broker=3] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 1500, endOffset: 1523). "
        "Out of sync replicas: (brokerId: 2, endOffset: 1510, lastCaughtUpTimeMs: 1700000000000) (brokerId: 3, "
        "endOffset: unknown, lastCaughtUpTimeMs: unknown).",
        "isr_shrink_proposed",
        {
            **IDENT,
            "old_isr": "1,2,3",
            "new_isr": "1",
            "high_watermark": "1500",
            "log_end_offset": "1523",
            "out_of_sync": "2:1510:1700000000000,3:unknown",
        },
    ),
    (
        "kafka.cluster.Partition",
        "[Partition orders-4 broker=3] ISR updated to 1,3 (under-min-isr) and version updated to 12",
        "isr_update_committed",
        {**IDENT, "isr": "1,3", "under_min_isr": "true", "partition_epoch": "12"},
    ),
    (
        "kafka.cluster.Partition",
        "[Partition orders-4 broker=3] ISR updated to 1,3  and version updated to 12",
        "isr_update_committed",
        {**IDENT, "isr": "1,3", "under_min_isr": "false", "partition_epoch": "12"},
    ),
    (
        "kafka.cluster.Partition",
        "Partition [orders,4] on broker 3: ISR updated to [1,3] and zkVersion updated to [12]",
        "isr_update_committed",
        {**IDENT, "isr": "1,3", "partition_epoch": "12"},
    ),
    (
        "kafka.cluster.Partition",
        "[Partition orders-4 broker=3] Cached zkVersion [11] not equal to that in zookeeper, skip updating ISR",
        "isr_update_failed",
        {**IDENT, "partition_epoch": "11"},
    ),
    (
        "kafka.cluster.Partition",
        "[Partition orders-4 broker=3] Log loaded for partition orders-4 with initial high watermark 1500",
        "high_watermark_initialised",
        {**IDENT, "high_watermark": "1500"},
    ),
    (
        "kafka.log.Log",
        "[Log partition=a-b-4, dir=/data/kafka-logs] Completed load of log with 3 segments, log start offset 5 and log "
        "end offset 1523 in 14 ms",
        "log_loaded",
        {
            "topic": "a-b",
            "partition_id": "4",
            "log_dir": "/data/kafka-logs",
            "n_segments": "3",
            "log_start_offset": "5",
            "log_end_offset": "1523",
            "elapsed_ms": "14",
        },
    ),
    (
        "kafka.log.LogManager",
        "Completed load of Log(dir=/data/kafka-logs/audit.log_v2-0.594b057ef0854c799bf39d88745c4253-delete, topicId="
        "r_6mYbqpTyyMfh858-4UBw, topic=audit.log_v2, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0"
        ", logEndOffset=0) with 1 segments, local-log-start-offset 0 and log-end-offset 0 in 17ms (3/10 completed in"
        " /data/kafka-logs)",
        "log_loaded",
        {
            "topic": "audit.log_v2",
            "partition_id": "0",
            "topic_id": "r_6mYbqpTyyMfh858-4UBw",
            "is_deleted": "true",
            "log_dir": "/data/kafka-logs",
            "high_watermark": "0",
            "log_start_offset": "0",
            "local_log_start_offset": "0",
            "log_end_offset": "0",
            "n_segments": "1",
            "n_loaded": "3",
            "n_to_load": "10",
            "elapsed_ms": "17",
        },
    ),
    (
        "kafka.log.Log",
        "Completed load of log orders-4.594b057ef0854c799bf39d88745c4253-future with log end offset 12",
        "log_loaded",
        {**TP, "is_future": "true", "log_end_offset": "12"},
    ),
    (
        "kafka.log.Log",
        "Truncating log orders-4 to offset 1510.",
        "log_truncated",
        {**TP, "offset": "1510"},
    ),
    (
        "kafka.log.UnifiedLog",
        "[UnifiedLog partition=orders-4, dir=/data/kafka-logs] Non-monotonic update of high watermark from (offset=300,"
        " segment=[-1:-1]) to (offset=69, segment=[0:13495])",
        "high_watermark_decreased",
        {**TP, "log_dir": "/data/kafka-logs", "old_high_watermark": "300", "high_watermark": "69"},
    ),
    (
        "kafka.server.ReplicaFetcherThread",
        "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Truncating partition orders-4 with TruncationState("
        "offset=1510, completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0, partition=4, "
        "leaderEpoch=5, endOffset=1512)",
        "log_truncated",
        {**TP, **FETCHER, "offset": "1510", "leader_epoch": "5", "leader_end_offset": "1512"},
    ),
    (
        "kafka.server.ReplicaFetcherManager",
        "[ReplicaFetcherManager on broker 3] Added fetcher for partitions List([[orders,4], initOffset 10 to broker "
        "id:2,host:h,port:9092] , [[a-b,0], initOffset 7 to broker id:1,host:h,port:9093] )",
        "fetcher_added",
        {"broker_id": "3", "topic_partitions": "orders-4,a-b-0", "fetch_offsets": "10,7", "leaders": "2,1"},
    ),
    (
        "kafka.server.ReplicaFetcherManager",
        "[ReplicaFetcherManager on broker 3] Added fetcher to broker BrokerEndPoint(id=2, host=h:9092) for partitions "
        "Map(orders-4 -> (offset=10, leaderEpoch=5), a-b-0 -> (offset=7, leaderEpoch=1))",
        "fetcher_added",
        {"broker_id": "3", "leader": "2", **ADDED},
    ),
    (
        "kafka.server.ReplicaFetcherManager",
        "[ReplicaFetcherManager on broker 3] Added fetcher to broker 2 for partitions HashMap(orders-4 -> "
        "InitialFetchState(Some(l4Sg4IrvRXSzJUeejx637Q),BrokerEndPoint(id=2, host=h:9092),5,10), a-b-0 -> "
        "InitialFetchState(None,BrokerEndPoint(id=2, host=h:9092),1,7))",
        "fetcher_added",
        {"broker_id": "3", "leader": "2", **ADDED},
    ),
    # a move between directories of one broker is no replication
    (
        "kafka.server.ReplicaAlterLogDirsManager",
        "[ReplicaAlterLogDirsManager on broker 3] Added fetcher for partitions List()",
        "log_dir_fetcher_added",
        {"broker_id": "3", "topic_partitions": "", "fetch_offsets": ""},
    ),
    (
        "kafka.server.epoch.LeaderEpochFileCache",
        "Updated PartitionLeaderEpoch. New: {epoch:5, offset:10}, Current: {epoch:4, offset3} for Partition: orders-4. "
        "Cache now contains 2 entries.",
        "leader_epoch_cached",
        {
            **TP,
            "leader_epoch": "5",
            "leader_epoch_start_offset": "10",
            "previous_leader_epoch": "4",
            "epochs_count": "2",
        },
    ),
    (
        "kafka.server.KafkaServer",
        "[KafkaServer id=3] started",
        "broker_server_started",
        {"broker_id": "3"},
    ),
    (
        "kafka.server.KafkaServer",
        "Cluster ID = zrP1uFLhTm-NHrAcRqvwIw",
        "cluster_id",
        {"cluster_id": "zrP1uFLhTm-NHrAcRqvwIw"},
    ),
    (
        "org.apache.kafka.common.utils.AppInfoParser",
        "Kafka version : 1.1.1",
        "kafka_version",
        {"kafka_version": "1.1.1"},
    ),
    (
        "kafka.server.ReplicaManager$LogDirFailureHandler",
        "Halting broker because dir /data/d1 is offline",
        "broker_halted",
        {"log_dir": "/data/d1"},
    ),
    (
        "kafka.server.ZookeeperLeaderElector",
        "3 successfully elected as leader",
        "controller_elected",
        {"controller_id": "3"},
    ),
]


@pytest.mark.parametrize(("logger", "message", "event_type", "fields"), SERVER_LOG)
def test_server_log(logger: str, message: str, event_type: str, fields: dict[str, str]) -> None:
    found = match("server_log", logger, message)
    assert found is not None
    assert (found.event_type, found.fields) == (event_type, fields)
