-- Which records are gone, by their times and the hashes of their keys, as far as copies of segments hold them?
-- numbers: 5, 22
-- needs: server_log, log_end
-- read: A row for each record that a copy still holds at an offset from which on a new leader wrote others, at an older
--   leader epoch; of several such elections the first. is_gone: yes, it is in no log that follows that leader, or maybe,
--   where it is not proven from which offset on that leader wrote. was_committed: yes, if the leader before it held it
--   below what it had committed, no (acknowledged with acks=0 or 1 at most), or maybe. key_hash: the first 16 digits of
--   the SHA-256 of the key, NULL without one; of a key of yours it is printf %s KEY | sha256sum. No row: no copy is known to
--   hold one. Copy the log of the broker that died before it starts again; of each segment the last 4,096 records are
--   known, of message format 2 (since 0.11), but of batches of more than a MiB and of such as cannot be decompressed.
-- next: unclean-elections, acks-losses, partition-story
WITH copies AS (
  SELECT *, max(topic_id) OVER (
      PARTITION BY cluster_id, broker_id, directory, topic, partition_id) AS of_topic_id
  FROM bronze.log_segments WHERE is_read
), held AS (
  SELECT cluster_id, topic, partition_id, broker_id, record_id, source_file, of_topic_id, inline(last_records) FROM copies
), incarnations AS (
  SELECT cluster_id, topic, count(*) AS number FROM silver.topic_incarnations GROUP BY ALL
), lost AS (
  SELECT l.*, h.offset, h.timestamp_ms, h.key_hash, h.leader_epoch AS record_epoch, h.broker_id, h.source_file, h.record_id,
    min(l.leader_epoch) OVER one AS first_epoch,
    max(coalesce(h.offset > l.lost_to_offset_lower - l.lost_count_lower, FALSE)) OVER one AS is_certain
  FROM gold.data_loss_bounds l
    JOIN held h ON h.cluster_id = l.cluster_id AND h.topic = l.topic AND h.partition_id = l.partition_id
      AND h.offset >= l.lost_from_offset AND h.leader_epoch < l.leader_epoch
    LEFT JOIN incarnations i ON i.cluster_id = l.cluster_id AND i.topic = l.topic
  WHERE coalesce(i.number, 1) = 1 OR h.of_topic_id = l.topic_incarnation
  WINDOW one AS (
    PARTITION BY l.cluster_id, l.topic, l.topic_incarnation, l.partition_id, h.offset, h.leader_epoch)
)
SELECT cluster_id, topic, partition_id, offset, timestamp_millis(timestamp_ms) AS record_time, key_hash,
  if(is_certain, 'yes', 'maybe') AS is_gone,
  CASE WHEN offset > lost_to_offset_upper THEN 'no'
    WHEN offset <= lost_to_offset_lower AND bool_or(broker_id = previous_leader) THEN 'yes' ELSE 'maybe' END AS was_committed,
  record_epoch AS leader_epoch, leader_epoch AS lost_in_epoch, event_at AS lost_at, cause, leader, previous_leader,
  sort_array(collect_set(broker_id)) AS held_by, sort_array(collect_set(source_file)) AS files, inferred_from,
  array_union(any_value(evidence), sort_array(collect_set(record_id))) AS evidence
FROM lost
WHERE leader_epoch = first_epoch
  AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(event_at >= :from, TRUE) AND coalesce(event_at < :to, TRUE)
GROUP BY cluster_id, topic, topic_incarnation, partition_id, offset, timestamp_ms, key_hash, is_certain,
  lost_to_offset_lower, lost_to_offset_upper, record_epoch, leader_epoch, event_at, cause, leader, previous_leader, inferred_from
HAVING is_certain OR NOT coalesce(bool_or(broker_id = leader), FALSE)
ORDER BY cluster_id, event_at, topic, topic_incarnation, partition_id, offset, record_epoch, key_hash
