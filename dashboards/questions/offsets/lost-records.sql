-- Which records are gone, by their times and the hashes of their keys, as far as copies of segments hold them?
-- numbers: 5, 22
-- needs: server_log, log_end
-- read: A row for each record that a copy still holds at an offset from which on a new leader wrote others, and at an
--   older leader epoch: it is in no log that follows that leader. was_committed: yes, no (acknowledged with acks=0 or 1
--   at most), or maybe. key_hash: the first 16 digits of the SHA-256 of the key, NULL without one; of a key of yours it is
--   printf %s KEY | sha256sum. No row: no copy holds one. Copy the log of the broker that died before it starts again; of
--   each segment the last 4,096 records are known, of message format 2 (since 0.11).
-- next: unclean-elections, acks-losses, partition-story
WITH copies AS (
  SELECT *, max(topic_id) OVER (
      PARTITION BY cluster_id, broker_id, directory, topic, partition_id) AS of_topic_id
  FROM bronze.log_segments WHERE is_read
), incarnations AS (
  SELECT cluster_id, topic, count(*) AS number FROM silver.topic_incarnations GROUP BY ALL
), held AS (
  SELECT cluster_id, topic, partition_id, broker_id, record_id, source_file, of_topic_id, inline(last_records) FROM copies
)
SELECT l.cluster_id, l.topic, l.partition_id, h.offset, timestamp_millis(h.timestamp_ms) AS record_time, h.key_hash,
  CASE WHEN h.offset <= l.lost_to_offset_lower THEN 'yes' WHEN h.offset > l.lost_to_offset_upper THEN 'no'
    ELSE 'maybe' END AS was_committed,
  h.leader_epoch, l.leader_epoch AS lost_in_epoch, l.event_at AS lost_at, l.cause, l.leader, l.previous_leader,
  sort_array(collect_set(h.broker_id)) AS held_by, sort_array(collect_set(h.source_file)) AS files,
  array_union(any_value(l.evidence), sort_array(collect_set(h.record_id))) AS evidence
FROM gold.data_loss_bounds l
  JOIN held h ON h.cluster_id = l.cluster_id AND h.topic = l.topic AND h.partition_id = l.partition_id
    AND h.offset >= l.lost_from_offset AND h.leader_epoch < l.leader_epoch
  LEFT JOIN incarnations i ON i.cluster_id = l.cluster_id AND i.topic = l.topic
WHERE (coalesce(i.number, 1) = 1 OR h.of_topic_id = l.topic_incarnation)
  AND coalesce(:cluster, l.cluster_id) = l.cluster_id
  AND coalesce(:topic, l.topic) = l.topic AND coalesce(:partition, l.partition_id) = l.partition_id
  AND coalesce(l.event_at >= :from, TRUE) AND coalesce(l.event_at < :to, TRUE)
GROUP BY ALL
ORDER BY cluster_id, lost_at, topic, partition_id, offset, h.leader_epoch
