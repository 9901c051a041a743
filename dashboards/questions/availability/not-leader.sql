-- How long did clients get NOT_LEADER_FOR_PARTITION: when did the last live broker's cache learn each new leader?
-- numbers: 11
-- needs: state_change_log
-- read: One row for each election that put a leader in another's place. told_count brokers cached that leader epoch,
--   the last of them at
--   last_cached_at; from elected_at until then clients could be sent to the leader before. NULL: no cache is seen
--   (state-change.log above TRACE).
-- next: propagation, elections
SELECT e.cluster_id, e.topic, e.partition_id, e.elected_at, e.previous_leader, e.observed_leader AS leader,
  e.leader_epoch,
  count(DISTINCT r.broker_id) AS told_count, max(r.first_at) AS last_cached_at,
  timestampdiff(MILLISECOND, e.elected_at, max(r.first_at)) AS until_last_cached_ms, e.inferred_from, e.evidence
FROM gold.leader_elections e LEFT JOIN (
  SELECT cluster_id, topic, topic_incarnation, partition_id, broker_id, leader_epoch, min(valid_from) AS first_at
  FROM silver.replica_role_timeline
  WHERE view = 'metadata_cache' AND role = 'cached'
  GROUP BY ALL
) r
  ON r.cluster_id = e.cluster_id AND r.topic = e.topic AND r.topic_incarnation = e.topic_incarnation
  AND r.partition_id = e.partition_id AND r.leader_epoch = e.leader_epoch
WHERE e.observed_leader >= 0 AND e.previous_leader IS NOT NULL AND coalesce(:cluster, e.cluster_id) = e.cluster_id
  AND coalesce(:topic, e.topic) = e.topic AND coalesce(:partition, e.partition_id) = e.partition_id
  AND coalesce(e.elected_at >= :from, TRUE) AND coalesce(e.elected_at < :to, TRUE)
GROUP BY ALL
ORDER BY cluster_id, elected_at, topic, partition_id, leader_epoch
