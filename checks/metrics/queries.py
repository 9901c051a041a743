"""The longer queries behind metrics: which hours each broker's logs cover, and snapshots beside the replayed states."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze import LOG_KINDS
from ingest.lake.tables.spec import literals
from reconstruct.model.znode_paths import PARTITION_STATE_PATTERN as _STATE_PATH

#: Hours looked at, the latest ones of a cluster: a year. One line with a wrong year must not give a million hours.
HOURS_AT_MOST: Final = 366 * 24

_FIRST_HOUR: Final = (
    f"greatest(date_trunc('HOUR', first), date_trunc('HOUR', last) - INTERVAL {HOURS_AT_MOST - 1} HOURS)"
)

#: One row per (``cluster_id``, ``broker_id``, ``hour``) for the brokers known from logs or from their registration, and
#: the hours between the first and the last line of any log of the cluster: ``covered_ratio``, the share of what of
#: the hour lies between those lines that a log of the broker spans (from its first line to its last), and
#: ``is_touched``, whether one has a part in it at all.
BROKER_HOURS: Final = (
    "WITH logs AS (SELECT cluster_id, broker_id, valid_from, valid_to FROM {evidence_coverage}"
    f" WHERE source_kind IN ({literals(LOG_KINDS)}) AND coverage = 'covered' AND broker_id >= 0),"
    " spans AS (SELECT cluster_id, min(valid_from) AS first, max(valid_to) AS last FROM logs GROUP BY cluster_id),"
    f" bounds AS (SELECT *, {_FIRST_HOUR} AS first_hour FROM spans),"
    " hours AS (SELECT cluster_id, first, last,"
    " explode(sequence(first_hour, date_trunc('HOUR', last), INTERVAL 1 HOUR)) AS hour FROM bounds),"
    " brokers AS (SELECT cluster_id, broker_id FROM logs"
    " UNION SELECT cluster_id, broker_id FROM {broker_liveness_timeline}),"
    " reached AS (SELECT *, max(valid_to) OVER (PARTITION BY cluster_id, broker_id ORDER BY valid_from, valid_to"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach FROM logs),"
    " numbered AS (SELECT *, count_if(reach IS NULL OR valid_from > reach) OVER"
    " (PARTITION BY cluster_id, broker_id ORDER BY valid_from, valid_to) AS island FROM reached),"
    " islands AS (SELECT cluster_id, broker_id, min(valid_from) AS begins, max(valid_to) AS ends FROM numbered"
    " GROUP BY cluster_id, broker_id, island),"
    " pieces AS (SELECT cluster_id, broker_id, begins, ends,"
    " explode(sequence(greatest(date_trunc('HOUR', begins), first_hour), date_trunc('HOUR', ends), INTERVAL 1 HOUR))"
    " AS hour FROM islands JOIN bounds USING (cluster_id) WHERE date_trunc('HOUR', ends) >= first_hour),"
    " covered AS (SELECT cluster_id, broker_id, hour,"
    " sum(unix_micros(least(ends, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(begins, hour))) AS covered_us"
    " FROM pieces GROUP BY cluster_id, broker_id, hour)"
    " SELECT cluster_id, broker_id, hour, coalesce(covered_us, 0) / length_us AS covered_ratio,"
    " covered_us IS NOT NULL AS is_touched"
    " FROM (SELECT *, unix_micros(least(last, hour + INTERVAL 1 HOUR))"
    " - unix_micros(greatest(first, hour)) AS length_us"
    " FROM hours JOIN brokers USING (cluster_id))"
    " LEFT JOIN covered USING (cluster_id, broker_id, hour) WHERE length_us > 0"
)

#: Those of :data:`BROKER_HOURS` in which some log of the cluster has a part and the broker lived: one of its own logs
#: has a part, or it was registered. An hour in which nobody logged, as where machines were off, says nothing of a log.
LOGGED_HOURS: Final = (
    "WITH logged AS (SELECT *, max(is_touched) OVER (PARTITION BY cluster_id, hour) AS is_logged"
    f" FROM ({BROKER_HOURS})),"
    " ends AS (SELECT cluster_id, min(hour) AS first_hour, max(hour) AS last_hour FROM logged GROUP BY cluster_id),"
    " registered AS (SELECT DISTINCT cluster_id, broker_id, explode(sequence("
    "greatest(date_trunc('HOUR', valid_from), first_hour),"
    " least(date_trunc('HOUR', coalesce(valid_to, last_hour)), last_hour), INTERVAL 1 HOUR)) AS hour, true AS is_live"
    " FROM {broker_liveness_timeline} JOIN ends USING (cluster_id)"
    " WHERE date_trunc('HOUR', valid_from) <= last_hour AND coalesce(valid_to, last_hour) >= first_hour)"
    " SELECT logged.* FROM logged LEFT JOIN registered USING (cluster_id, broker_id, hour)"
    " WHERE is_logged AND (is_touched OR is_live)"
)

#: The JSON object that Kafka writes into the znode of a partition's state (kafka.zk.TopicPartitionStateZNode).
_STATE: Final = "leader INT, leader_epoch INT, isr ARRAY<INT>, controller_epoch INT"
_SNAPSHOT_KEY: Final = "cluster_id, record_id, source"

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
    f" regexp_extract(path, '{_STATE_PATH}', 1) AS topic,"
    f" try_cast(regexp_extract(path, '{_STATE_PATH}', 2) AS INT) AS partition_id,"
    f" from_json(data, '{_STATE}') AS state FROM {{znode_snapshots}} WHERE path RLIKE '{_STATE_PATH}'),"
    " seen AS (SELECT p.cluster_id, p.record_id, p.topic, p.partition_id, p.state.leader, p.state.leader_epoch,"
    " array_sort(p.state.isr) AS isr, p.state.controller_epoch, p.captured_at AS begins,"
    " greatest(p.captured_at, p.mtime, r.next) AS ends,"
    " if(p.snapshot_zxid IS NULL, 'capture', 'zookeeper') AS source FROM parsed AS p JOIN rounds AS r"
    " ON p.cluster_id = r.cluster_id AND p.file_id = r.file_id AND p.captured_at = r.captured_at"
    " WHERE p.state.leader IS NOT NULL AND p.state.leader_epoch IS NOT NULL AND p.state.isr IS NOT NULL),"
    " replayed AS (SELECT cluster_id, topic, partition_id, leader, leader_epoch, array_sort(isr) AS isr,"
    " controller_epoch, valid_from, valid_to, lead(sequence) OVER (PARTITION BY cluster_id, topic, topic_incarnation,"
    " partition_id ORDER BY sequence) IS NULL AS is_last FROM {leader_and_isr_timeline})"
    f" SELECT {_SNAPSHOT_KEY}, max(is_same) AS is_equal FROM ("
    "SELECT s.cluster_id, s.record_id, s.source, t.leader IS NOT NULL AS is_same"
    " FROM seen AS s LEFT JOIN replayed AS t ON s.cluster_id = t.cluster_id AND s.topic = t.topic"
    " AND s.partition_id = t.partition_id AND s.leader = t.leader AND s.leader_epoch = t.leader_epoch AND s.isr = t.isr"
    " AND coalesce(s.controller_epoch = t.controller_epoch, true)"
    " AND t.valid_from <= s.ends AND (t.valid_to IS NULL OR t.valid_to >= s.begins OR t.is_last))"
    f" GROUP BY {_SNAPSHOT_KEY}"
)

#: Written per broker and hour by Spark and never collected; :data:`BROKER_HOURS` says what it is.
HOURLY_METRIC: Final = "broker_hour_covered_ratio"
#: ``cluster_id``, ``subject``, ``metric`` and ``value`` of every broker and hour. The subject is the two, the hour in
#: UTC: ``1 2026-11-21T10``.
HOURLY_QUERY: Final = (
    "SELECT cluster_id, concat(broker_id, ' ', date_format(hour, \"yyyy-MM-dd'T'HH\")) AS subject,"
    f" '{HOURLY_METRIC}' AS metric, CAST(covered_ratio AS DOUBLE) AS value FROM ({BROKER_HOURS})"
)
