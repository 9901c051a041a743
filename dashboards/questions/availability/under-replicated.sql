-- Which partitions were under-replicated, at or under min.insync.replicas, and did the high watermark stall?
-- numbers: 2
-- needs: server_properties, znodes, metadata_log
-- read: high_watermark: stalled where the leader's did not rise from begin to end of the interval, moved where it
--   did, unknown where its bounds leave that open or the interval has not ended. Without records to append it stands
--   still, too.
-- next: isr-changes, acks-losses, offsets-at
WITH short AS (
  SELECT * FROM gold.availability_intervals
  WHERE kind IN ('under_replicated', 'at_min_isr', 'under_min_isr') AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
    AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
), led AS (
  SELECT s.*, l.leader FROM short s LEFT JOIN silver.leader_and_isr_timeline l
    ON l.cluster_id = s.cluster_id AND l.topic = s.topic AND l.topic_incarnation = s.topic_incarnation
    AND l.partition_id = s.partition_id AND l.valid_from <= s.valid_from AND coalesce(l.valid_to > s.valid_from, TRUE)
), bounded AS (
  SELECT s.cluster_id, s.topic, s.topic_incarnation, s.partition_id, s.kind, s.sequence, s.leader, s.valid_from,
    s.valid_to, s.opened_by, s.closed_by, s.inferred_from, s.evidence,
    max(CASE WHEN o.valid_from <= s.valid_from THEN o.high_watermark_upper END) AS begin_upper,
    max(CASE WHEN o.valid_from <= s.valid_from THEN o.high_watermark_lower END) AS begin_lower,
    max(CASE WHEN coalesce(o.valid_to >= s.valid_to, TRUE) THEN o.high_watermark_lower END) AS end_lower,
    max(CASE WHEN coalesce(o.valid_to >= s.valid_to, TRUE) THEN o.high_watermark_upper END) AS end_upper
  FROM led s LEFT JOIN silver.replica_offset_timeline o
    ON o.cluster_id = s.cluster_id AND o.topic = s.topic AND o.topic_incarnation = s.topic_incarnation
    AND o.partition_id = s.partition_id AND o.replica_id = s.leader
    AND (o.valid_from <= s.valid_from AND coalesce(o.valid_to > s.valid_from, TRUE)
      OR o.valid_from < s.valid_to AND coalesce(o.valid_to >= s.valid_to, TRUE))
  GROUP BY ALL
)
SELECT cluster_id, topic, partition_id, kind, leader, valid_from, valid_to,
  timestampdiff(MILLISECOND, valid_from, valid_to) AS lasted_ms,
  CASE WHEN valid_to IS NULL THEN 'unknown' WHEN end_lower > begin_upper THEN 'moved'
    WHEN end_upper <= begin_lower THEN 'stalled' ELSE 'unknown' END AS high_watermark,
  opened_by, closed_by, inferred_from, evidence
FROM bounded
ORDER BY cluster_id, valid_from, topic, topic_incarnation, partition_id, kind, sequence
