-- Which leaders were stuck on an old version of their partition's state?
-- numbers: 10
-- needs: server_log
-- read: lines: refused or ignored ISR updates of one leader ('Cached zkVersion ... not equal', INVALID_UPDATE_VERSION
--   and their kin), of which it makes one every few seconds while it is stuck. is_finding: rule R24 proves that it
--   never recovered.
-- next: isr-changes, partition-story
SELECT r.cluster_id, r.topic, r.partition_id, r.broker_id, min(r.corrected_time) AS first_at,
  max(r.corrected_time) AS last_at,
  count(*) AS lines, max(d.divergence_id) IS NOT NULL AS is_finding, max(d.explanation) AS explanation
FROM silver.replication_events r LEFT JOIN gold.divergences d
  ON d.cluster_id = r.cluster_id AND d.topic = r.topic AND d.partition_id = r.partition_id AND d.broker_id = r.broker_id
  AND d.divergence_type = 'leader_stuck_on_stale_version'
WHERE r.event_type IN ('isr_update_ignored', 'isr_update_rejected', 'isr_update_failed')
  AND coalesce(:cluster, r.cluster_id) = r.cluster_id AND coalesce(:topic, r.topic) = r.topic
  AND coalesce(:partition, r.partition_id) = r.partition_id AND coalesce(:broker, r.broker_id) = r.broker_id
  AND coalesce(r.corrected_time >= :from, TRUE) AND coalesce(r.corrected_time < :to, TRUE)
GROUP BY r.cluster_id, r.topic, r.topic_incarnation, r.partition_id, r.broker_id
ORDER BY cluster_id, first_at, topic, partition_id, broker_id
