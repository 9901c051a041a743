-- Which replicas disagree on what they hold below the high watermark?
-- numbers: 7
-- needs: leader_epoch_checkpoint, log_end
-- read: A finding of rule R36, or an election after which replicas kept records of their own (FIRST-LAST offsets of
--   each).
-- next: unclean-elections, partition-story
SELECT cluster_id, topic, partition_id, replica_id, detected_at AS at, divergence_type AS what, severity,
  CAST(NULL AS STRING) AS offsets, explanation, inferred_from, evidence
FROM gold.divergences
WHERE rule_id = 'R36' AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
UNION ALL
SELECT cluster_id, topic, partition_id, pair.diverging_replicas, event_at, cause, NULL, pair.diverging_offsets,
  concat('kept its own where leader ', leader, ' of epoch ', leader_epoch, ' has others'), inferred_from, evidence
FROM gold.data_loss_bounds LATERAL VIEW inline(arrays_zip(diverging_replicas, diverging_offsets)) pair
WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(event_at >= :from, TRUE) AND coalesce(event_at < :to, TRUE)
ORDER BY cluster_id, at, topic, partition_id, replica_id, what
