"""Snapshots of partition states beside the replayed ones."""

from __future__ import annotations

from typing import Final

from reconstruct.model.znode_paths import PARTITION_STATE_PATTERN

SNAPSHOTS_AND_REPLAY_READS: Final = ("bronze.znode_snapshots", "silver.leader_and_isr_timeline")

#: The znode of a partition's state; Kafka writes it as one JSON object (kafka.zk.TopicPartitionStateZNode).
_PATH: Final = PARTITION_STATE_PATTERN
_SCHEMA: Final = "leader INT, leader_epoch INT, isr ARRAY<INT>, controller_epoch INT"
_ONE: Final = "cluster_id, record_id, source"

#: One row per partition state that a snapshot shows. A snapshot is not atomic: the znode was read at or after
#: ``captured_at``, where its round began, at or after its own last write, and before the next round of the same file.
#: ``is_equal``: the timeline holds the same leader, leader epoch, controller epoch and ISR (in whatever order) at some
#: instant of that span; a controller epoch that the timeline does not know contradicts none. The last state of a
#: partition that is being deleted stays in its znode until the deletion is done. ``source``: ``zookeeper`` for its own
#: snapshot files, else ``capture``.
SNAPSHOTS_AND_REPLAY: Final = (
    "WITH rounds AS (SELECT *, lead(captured_at) OVER (PARTITION BY cluster_id, file_id ORDER BY captured_at) AS next"
    " FROM (SELECT DISTINCT cluster_id, file_id, captured_at FROM {znode_snapshots})),"
    " parsed AS (SELECT cluster_id, file_id, record_id, captured_at, mtime, snapshot_zxid,"
    f" regexp_extract(path, '{_PATH}', 1) AS topic,"
    f" try_cast(regexp_extract(path, '{_PATH}', 2) AS INT) AS partition_id,"
    f" from_json(data, '{_SCHEMA}') AS state FROM {{znode_snapshots}} WHERE path RLIKE '{_PATH}'),"
    " seen AS (SELECT p.cluster_id, p.record_id, p.topic, p.partition_id, p.state.leader, p.state.leader_epoch,"
    " array_sort(p.state.isr) AS isr, p.state.controller_epoch, p.captured_at AS begins,"
    " greatest(p.captured_at, p.mtime, r.next) AS ends,"
    " if(p.snapshot_zxid IS NULL, 'capture', 'zookeeper') AS source FROM parsed AS p JOIN rounds AS r"
    " ON p.cluster_id = r.cluster_id AND p.file_id = r.file_id AND p.captured_at = r.captured_at"
    " WHERE p.state.leader IS NOT NULL AND p.state.leader_epoch IS NOT NULL AND p.state.isr IS NOT NULL),"
    " replayed AS (SELECT cluster_id, topic, partition_id, leader, leader_epoch, array_sort(isr) AS isr,"
    " controller_epoch, valid_from, valid_to, lead(sequence) OVER (PARTITION BY cluster_id, topic, topic_incarnation,"
    " partition_id ORDER BY sequence) IS NULL AS is_last FROM {leader_and_isr_timeline})"
    f" SELECT {_ONE}, max(is_same) AS is_equal FROM ("
    "SELECT s.cluster_id, s.record_id, s.source, t.leader IS NOT NULL AS is_same"
    " FROM seen AS s LEFT JOIN replayed AS t ON s.cluster_id = t.cluster_id AND s.topic = t.topic"
    " AND s.partition_id = t.partition_id AND s.leader = t.leader AND s.leader_epoch = t.leader_epoch AND s.isr = t.isr"
    " AND coalesce(s.controller_epoch = t.controller_epoch, true)"
    " AND t.valid_from <= s.ends AND (t.valid_to IS NULL OR t.valid_to >= s.begins OR t.is_last))"
    f" GROUP BY {_ONE}"
)
