-- Checkpoint health: what would a hard restart begin from now, and how far is that behind?
-- numbers: 21
-- needs: replication_offset_checkpoint, log_end
-- read: The last high watermark that each replica's checkpoint file holds, and what is known of the replica at the
--   end of the evidence. behind_lower and behind_upper: offsets between the checkpoint and the log's end, which a
--   follower before 0.11 cuts off at a restart, and a leader's clients do not see until the high watermark rises
--   again.
-- next: short-logs, offsets-at
WITH checkpointed AS (
  SELECT cluster_id, topic, topic_incarnation, partition_id, replica_id, max_by(offset, observed_at) AS checkpoint,
    max(observed_at) AS checkpointed_at, max_by(evidence, observed_at) AS evidence
  FROM silver.offset_observations
  WHERE source LIKE '%checkpoint%' AND offset_kind = 'high_watermark' AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
    AND coalesce(:broker, replica_id) = replica_id
    AND coalesce(observed_at >= :from, TRUE) AND coalesce(observed_at < :to, TRUE)
  GROUP BY ALL
), ends AS (
  SELECT cluster_id, topic, topic_incarnation, partition_id, replica_id, max_by(log_end_offset_lower,
    sequence) AS end_lower,
    max_by(log_end_offset_upper, sequence) AS end_upper, max_by(high_watermark_lower, sequence) AS high_watermark_lower
  FROM silver.replica_offset_timeline
  WHERE coalesce(valid_from < :to, TRUE)
  GROUP BY ALL
)
SELECT c.cluster_id, c.topic, c.partition_id, c.replica_id, c.checkpoint, c.checkpointed_at, e.high_watermark_lower,
  e.end_lower AS log_end_lower, e.end_upper AS log_end_upper, greatest(e.end_lower - c.checkpoint, 0) AS behind_lower,
  e.end_upper - c.checkpoint AS behind_upper, c.evidence
FROM checkpointed c LEFT JOIN ends e
  ON e.cluster_id = c.cluster_id AND e.topic = c.topic AND e.topic_incarnation = c.topic_incarnation
  AND e.partition_id = c.partition_id AND e.replica_id = c.replica_id
ORDER BY cluster_id, behind_lower DESC NULLS LAST, topic, c.topic_incarnation, partition_id, replica_id
