-- Which partitions had no leader, from when to when, and what ended it?
-- numbers: 1
-- needs: znodes, state_change_log, controller_log, metadata_log
-- read: kind offline: no leader was registered; no_live_leader: one was, but it had died. It began between earliest
--   and valid_from, at valid_from where earliest is NULL. A valid_to of NULL: it had not ended when the evidence
--   ends.
-- next: elections, unclean-elections, partition-story
SELECT cluster_id, topic, partition_id, kind, valid_from_lower AS earliest, valid_from, valid_to,
  timestampdiff(MILLISECOND, valid_from, valid_to) AS lasted_ms, opened_by, closed_by, inferred_from, evidence
FROM gold.availability_intervals
WHERE kind IN ('offline', 'no_live_leader') AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
ORDER BY cluster_id, valid_from, topic, topic_incarnation, partition_id, kind, sequence
