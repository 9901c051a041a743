-- Could a wiped or restarted broker have led with a short log?
-- numbers: 19
-- needs: server_log, replication_offset_checkpoint, znodes
-- read: what: a finding about a log directory or checkpoint of the broker, or a leadership that began below the high
--   watermark before it. lost_upper NULL: not bounded.
-- next: broker-lives, unclean-elections, checkpoint-health
SELECT cluster_id, topic, partition_id, broker_id, detected_at AS at, divergence_type AS what,
  CAST(NULL AS BIGINT) AS lost_lower,
  CAST(NULL AS BIGINT) AS lost_upper, explanation, inferred_from, evidence
FROM gold.divergences
WHERE divergence_type IN ('log_directory_wiped', 'checkpoint_beyond_log', 'checkpoint_missing', 'checkpoint_zero')
  AND coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) <=> topic
  AND coalesce(:broker, broker_id) <=> broker_id
  AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
UNION ALL
SELECT cluster_id, topic, partition_id, leader, event_at, cause, lost_count_lower, lost_count_upper,
  concat('broker ', leader, ' led from offset ', lost_from_offset, ' on after broker ', previous_leader), inferred_from,
  evidence
FROM gold.data_loss_bounds
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) = topic
  AND coalesce(:broker, leader) = leader AND coalesce(event_at >= :from, TRUE) AND coalesce(event_at < :to, TRUE)
ORDER BY cluster_id, at, topic, partition_id, broker_id, what
