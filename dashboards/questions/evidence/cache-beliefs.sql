-- Does a broker's cache hold what the cluster never decided?
-- numbers: 13
-- needs: state_change_log, znodes
-- read: One row for each finding about a broker's metadata cache or role; observed is what it held, expected what was
--   decided.
-- next: propagation, ignored-requests, partition-story
SELECT cluster_id, topic, partition_id, broker_id, detected_at, divergence_type, severity, expected, observed,
  explanation,
  inferred_from, evidence
FROM gold.divergences
WHERE divergence_type IN (
    'cache_never_decided', 'caches_disagree', 'cache_differs_at_rest', 'role_differs_at_rest', 'role_not_decided')
  AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(:broker, broker_id) <=> broker_id
  AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
ORDER BY cluster_id, detected_at, topic, partition_id, broker_id, divergence_id
