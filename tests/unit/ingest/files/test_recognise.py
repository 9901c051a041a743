"""What a file is, from its first bytes and its path."""

from __future__ import annotations

import pytest

from ingest.files.recognise import recognise
from ingest.readers import paths

STATE = b"[2014-03-11 10:21:07,123] TRACE Controller 7 epoch 2 changed partition [t,0] state (state.change.logger)\n"
SERVER = b"[2014-03-11 10:21:07,123] INFO [Kafka Server 3], started (kafka.server.KafkaServer)\n"
CONTROLLER = b"[2026-03-11 10:21:07,123] INFO [Controller id=4] Ready (kafka.controller.KafkaController)\n"
CHECKPOINT = b"0\n2\norders 0 12\norders 1 -1\n"
LISTING = b"12 1795231841.5 ./t-0/00000000000000000000.log\n5 1795231841.5 ./t-0/00000000000000000007.log\n"
PROBE = b'{"sent_at":1.5,"received_at":2,"broker":1,"replica_id":-2,"topic":"t","partition":0,"offset":0}\n'
DESCRIBED = b'{"sent_at":1.5,"received_at":2,"broker":1,"description":"topic","topic":"t","partitions":[]}\n'
GAP = b'{"missed_from":1,"missed_to":null,"source":"probes","of":"broker 1","reason":"nothing listens"}\n'
METADATA = bytes(11) + b"\x4f\0\0\0\1\2" + bytes(74)
QUORUM = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[],"data_version":0}'
)
EPOCHS = b"0\n2\n0 0\n4 77\n"


UNREACHED = (
    b"[2014-03-11 10:21:07,123] WARN [Controller id=0, targetBrokerId=2] Connection to node 2 (a/1:9092) could not be"
    b" established. Broker may not be available. (org.apache.kafka.clients.NetworkClient)\n"
)
#: The only lines of an hour, and the broker whose client speaks; a client that is no broker's.
CLIENTS = (
    (b"[broker-7-to-controller] Node 0 disconnected.", 7),
    (b"[BrokerToControllerChannelManager broker=7 name=forwarding] Node 0 disconnected.", 7),
    (b"[BrokerToControllerChannelManager id=7 name=alterPartition] Node 0 disconnected.", 7),
    (b"[NodeToControllerChannelManager id=7 name=heartbeat] Node 0 disconnected.", 7),
    (b"[ReplicaFetcher replicaId=7, leaderId=2, fetcherId=0] Node 2 was unable to process the fetch request", 7),
    (b"[RaftManager nodeId=7] Node 2 disconnected.", 7),
    (b"[RaftManager id=7] Node 2 disconnected.", 7),
    (b"[TransactionCoordinator id=7] Node 2 disconnected.", 7),
    (b"[AddPartitionsToTxnManager broker=7]Node 2 disconnected.", 7),
    (b"[Worker clientId=connect-1, groupId=connect] Node 7 disconnected.", None),
)
ZOOKEEPER = (
    b"[2014-03-11 10:21:07,123] INFO Opening socket connection to server a/1:2181. (org.apache.zookeeper.ClientCnxn)\n"
)


@pytest.mark.parametrize(
    ("head", "path", "kind", "status", "broker_id"),
    [
        (STATE, "x/anything.txt", "state_change_log", "ingested", 7),
        (SERVER, "x/a", "server_log", "ingested", 3),
        (CONTROLLER, "x/a", "controller_log", "ingested", 4),
        (STATE + SERVER, "x/a", "server_log", "ingested", 7),
        (b"\tat a.B.c(B.scala:1)\n" + CONTROLLER, "x/a", "controller_log", "ingested", 4),
        (
            SERVER.replace(b"[Kafka Server 3], started", b"Property broker.id is overridden to 12"),
            "x/a",
            "server_log",
            "ingested",
            12,
        ),
        (b"[2014-03-11 10:21:07,123] INFO hello (com.example.App)\n", "x/a", "unrecognised", "rejected", None),
        (UNREACHED, "x/server.log", "server_log", "ingested", 0),
        (ZOOKEEPER, "x/server.log", "unrecognised", "not_read_yet", None),
        (ZOOKEEPER + SERVER, "x/server.log", "server_log", "ingested", 3),
        (b'{"captured_at":1,"path":"/","mzxid":3}\n', "x/a", "znode_snapshot", "ingested", None),
        (PROBE, "x/a", "offset_probe", "ingested", None),
        (PROBE[20:] + PROBE, "x/a", "offset_probe", "ingested", None),
        (b'{"sent_at":1,"replica_id":"db-2"}\n', "x/probes-1.jsonl", "unrecognised", "rejected", None),
        (DESCRIBED, "x/a", "cluster_description", "ingested", None),
        (DESCRIBED[9:] + DESCRIBED, "x/a", "cluster_description", "ingested", None),
        (b'{"sent_at":1,"received_at":2,"log_dir":"/d"}\n', "x/a", "cluster_description", "ingested", None),
        (b'{"sent_at":1,"received_at":2,"reassignments":[]}\n', "x/a", "cluster_description", "ingested", None),
        (b'{"received_at":2,"reassignments":[]}\n', "x/a", "unrecognised", "rejected", None),
        (GAP, "x/a", "capture_gap", "ingested", None),
        (METADATA, "d/__cluster_metadata-0/00000000000000000007.log", "metadata_log", "ingested", None),
        (METADATA, "d/orders-0/00000000000000000007.log", "log_segment", "ingested", None),
        (METADATA, "d/00000000000000000042-0000000003.checkpoint", "metadata_snapshot", "ingested", None),
        (METADATA, "d/bootstrap.checkpoint", "metadata_snapshot", "ingested", None),
        (METADATA, "d/00000000000000000042-0000000003.checkpoint.part", "unrecognised", "not_read_yet", None),
        (QUORUM, "d/__cluster_metadata-0/quorum-state", "quorum_state", "ingested", None),
        (GAP.replace(b"reason", b"why"), "x/a", "unrecognised", "rejected", None),
        (b'{"ts": 1, "what": "kill"}\n', "x/a", "scenario_events", "not_read_yet", None),
        (b'{"what": 1}\n', "x/a", "unrecognised", "rejected", None),
        (b"ZKLG\0\0\0\2", "x/a", "znode_transaction_log", "ingested", None),
        (b"ZKSN\0\0\0\2", "x/a", "znode_snapshot_binary", "ingested", None),
        (b"\0" * 5000 + SERVER, "x/a", "server_log", "ingested", 3),
        (CHECKPOINT, "b/replication-offset-checkpoint", "replication_offset_checkpoint", "ingested", None),
        (CHECKPOINT, "b/cleaner-offset-checkpoint/1795231841294", "cleaner_offset_checkpoint", "ingested", None),
        (b"0\n0\n", "b/log-start-offset-checkpoint", "log_start_offset_checkpoint", "ingested", None),
        (b"garbage", "b/recovery-point-offset-checkpoint", "recovery_point_offset_checkpoint", "ingested", None),
        (CHECKPOINT, "b/copy-of-something", "unrecognised", "rejected", None),
        (CHECKPOINT, "b/replication-offset-checkpoint.tmp", "replication_offset_checkpoint", "rejected", None),
        (EPOCHS, "data/a.b-c_d-10/leader-epoch-checkpoint", "leader_epoch_checkpoint", "ingested", None),
        (EPOCHS, "leader-epoch-checkpoint/orders-0", "leader_epoch_checkpoint", "ingested", None),
        (EPOCHS, "data/leader-epoch-checkpoint", "leader_epoch_checkpoint", "rejected", None),
        (EPOCHS, "data/some", "unrecognised", "rejected", None),
        (b"", "b/replication-offset-checkpoint/1795231841294", "replication_offset_checkpoint", "empty", None),
        (b"", "znodes/1795231841294.jsonl", "znode_snapshot", "empty", None),
        (b"", "whatever", "unrecognised", "empty", None),
        (b"#\n#Sat Nov\nbroker.id=5\nversion=0\n", "x/a", "meta_properties", "ingested", 5),
        (b"broker.id=5\nlog.dirs=/a,\\\n  /b\n", "x/a", "server_properties", "ingested", 5),
        (b"log4j.rootLogger=INFO, stdout\n", "x/a", "unrecognised", "rejected", None),
        (b"\0\1\2" * 50, "data/t-0/00000000000000000000.log", "log_segment", "ingested", None),
        (b"\0\1\2" * 50, "data/00000000000000000000.log", "log_segment", "rejected", None),
        (b"", "data/t-0/00000000000000000000.log", "log_segment", "ingested", None),
        (b"\0" * 50, "data/t-0/00000000000000000000.index", "offset_index", "ingested", None),
        (
            b"version: 0\ntopic_id: xyAZ09-_xyAZ09-_xyAZ0w",
            "t-0/partition.metadata",
            "partition_metadata",
            "ingested",
            None,
        ),
        (LISTING, "x/listing", "directory_listing", "ingested", None),
        (b"kafka-1  | " + SERVER + b"kafka-2  | " + SERVER.replace(b"3", b"2"), "x/a", "server_log", "ingested", None),
        (b"\0\1\2" * 50, "x/picture.png", "unrecognised", "not_of_kafka", None),
        (b"\0\1\2" * 50, "x/core.4711", "unrecognised", "rejected", None),
        (b"clientPort=2181\n", "config/zookeeper.properties", "unrecognised", "not_read_yet", None),
        (b"1", "zookeeper/myid", "unrecognised", "not_read_yet", None),
        (b"class A {\n}\n", "src/LogManager.java", "unrecognised", "not_of_kafka", None),
        (b"ref: refs/heads/main\n", "x/.git/HEAD", "unrecognised", "not_of_kafka", None),
        (b"Apache\n", "x/LICENSE", "unrecognised", "not_of_kafka", None),
        (b'{\n  "name": "a",\n  "version": 1\n}\n', "x/package.json", "unrecognised", "not_of_kafka", None),
        (b'{\n  "level": "INFO",\n  "message": "a"\n}\n', "x/export.json", "unrecognised", "rejected", None),
        (b"<log4j:event logger='a'>\n", "x/export.xml", "unrecognised", "rejected", None),
        (b"hello\nworld\n", "x/server-log.md", "unrecognised", "rejected", None),
        (SERVER, "x/notes.md", "server_log", "ingested", 3),
        (b"hello\nworld\n", "x/notes.txt", "unrecognised", "rejected", None),
    ],
)
def test_recognised(head: bytes, path: str, kind: str, status: str, broker_id: int | None) -> None:
    found = recognise(head, paths.segments(path), is_whole=True)
    assert (found.kind, found.status, found.broker_id) == (kind, status, broker_id)
    assert (found.reason is None) == (status in ("ingested", "empty"))


@pytest.mark.parametrize(("message", "broker_id"), CLIENTS)
@pytest.mark.parametrize("logger", [b" (org.apache.kafka.clients.NetworkClient)", b""])
def test_a_log_of_a_brokers_clients_alone_is_the_brokers(message: bytes, broker_id: int | None, logger: bytes) -> None:
    head = b"[2014-03-11 10:21:07,123] INFO " + message + logger + b"\n"
    found = recognise(head, ["server.log.2014-03-11-10"], is_whole=True)
    assert (found.status, found.broker_id) == ("rejected" if broker_id is None else "ingested", broker_id)
    assert broker_id is None or found.kind == "server_log"


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        ("orders-0", ("orders", 0)),
        ("a.b_c-d-12", ("a.b_c-d", 12)),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", ("orders", 3)),
        ("a-b-3.0123456789abcdef0123456789abcdef-future", ("a-b", 3)),
        ("orders-3.1492546354837-delete", ("orders", 3)),
        ("orders", None),
        ("logs", None),
    ],
)
def test_partition_directories(directory: str, expected: tuple[str, int] | None) -> None:
    assert paths.topic_partition(directory) == expected


def test_rotated_names() -> None:
    assert paths.is_rotated("state-change.log.2026-11-21-03")
    assert paths.is_rotated("server.log.1")
    assert paths.is_rotated("0.log.20261121-030405.gz")
    assert not paths.is_rotated("server.log")
    assert not paths.is_rotated("server-1.log")
