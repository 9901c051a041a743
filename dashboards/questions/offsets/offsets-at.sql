-- At an instant: the high watermark and log end offset of every replica, and which records are at risk?
-- numbers: 22
-- needs: log_end, server_log, replication_offset_checkpoint
-- give: at
-- read: lower and upper are proven bounds at that instant. held_by: replicas proven to hold every committed record;
--   clean_lost, unclean_lost: what would be gone if the leader died then and a member of the ISR, or the worst other
--   replica, were elected.
-- next: leader-at, unclean-elections
WITH bounds AS (
  SELECT cluster_id, topic, topic_incarnation, partition_id, replica_id,
    max(high_watermark_lower) AS high_watermark_lower,
    min(high_watermark_upper) AS high_watermark_upper, max(log_end_offset_lower) AS log_end_offset_lower,
    min(log_end_offset_upper) AS log_end_offset_upper, max(inferred_from) AS inferred_from,
    array_distinct(flatten(collect_list(evidence))) AS evidence
  FROM silver.replica_offset_timeline
  WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
    AND coalesce(:broker, replica_id) = replica_id AND valid_from <= :at AND coalesce(valid_to > :at, TRUE)
  GROUP BY ALL
)
SELECT b.cluster_id, b.topic, b.partition_id, b.replica_id, r.leader, r.isr, b.high_watermark_lower,
  b.high_watermark_upper,
  b.log_end_offset_lower, b.log_end_offset_upper, r.uncommitted_upper, r.held_by, r.next_leader, r.clean_lost_upper,
  r.worst_replica, r.unclean_lost_lower, r.unclean_lost_upper, b.inferred_from, b.evidence
FROM bounds b LEFT JOIN gold.records_at_risk r
  ON r.cluster_id = b.cluster_id AND r.topic = b.topic AND r.topic_incarnation = b.topic_incarnation
  AND r.partition_id = b.partition_id AND r.valid_from <= :at AND coalesce(r.valid_to > :at, TRUE)
ORDER BY cluster_id, topic, partition_id, b.topic_incarnation, replica_id
