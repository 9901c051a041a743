-- Did a high watermark go backwards, and were committed records truncated?
-- numbers: 6
-- needs: server_log, replication_offset_checkpoint, log_end
-- read: finding: the high watermark fell, or committed records are gone. truncation: a log was cut where committed
--   records may have been in it: committed_lower is proven, committed_upper the most, NULL not bounded.
-- next: unclean-elections, acks-losses, partition-story
SELECT cluster_id, topic, partition_id, replica_id, detected_at AS at, 'finding' AS what, divergence_type AS cause,
  severity,
  harm, CAST(NULL AS BIGINT) AS truncated_to, CAST(NULL AS BIGINT) AS committed_lower,
    CAST(NULL AS BIGINT) AS committed_upper,
  explanation, inferred_from, evidence
FROM gold.divergences
WHERE divergence_type IN (
    'high_watermark_decreased', 'high_watermark_rolled_back', 'committed_records_lost', 'committed_records_truncated')
  AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
UNION ALL
SELECT cluster_id, topic, partition_id, replica_id, truncated_at, 'truncation', cause, NULL, NULL, truncated_to,
  committed_count_lower, committed_count_upper, NULL, inferred_from, evidence
FROM gold.truncations
WHERE coalesce(committed_count_upper > 0, TRUE) AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(truncated_at >= :from, TRUE) AND coalesce(truncated_at < :to, TRUE)
ORDER BY cluster_id, at, topic, partition_id, replica_id, what, cause
