-- Which partitions were led by another than their preferred leader, and for how long?
-- numbers: 17
-- needs: znodes, state_change_log, metadata_log
-- read: preferred is the first of the assignment then. Many at once after a broker came back: nobody has run a
--   preferred election.
-- next: leaders-by-broker, elections
SELECT i.cluster_id, i.topic, i.partition_id, i.valid_from, i.valid_to,
  timestampdiff(MILLISECOND, i.valid_from, i.valid_to) AS lasted_ms, min_by(a.replicas[0], a.sequence) AS preferred,
  i.opened_by, i.closed_by, i.inferred_from, i.evidence
FROM gold.availability_intervals i LEFT JOIN silver.assignment_timeline a
  ON a.cluster_id = i.cluster_id AND a.topic = i.topic AND a.topic_incarnation = i.topic_incarnation
  AND a.partition_id = i.partition_id AND a.valid_from <= i.valid_from AND coalesce(a.valid_to > i.valid_from, TRUE)
WHERE i.kind = 'non_preferred_leader' AND coalesce(:cluster, i.cluster_id) = i.cluster_id
  AND coalesce(:topic, i.topic) = i.topic AND coalesce(:partition, i.partition_id) = i.partition_id
  AND coalesce(i.valid_from < :to, TRUE) AND coalesce(i.valid_to > :from, TRUE)
GROUP BY i.cluster_id, i.topic, i.topic_incarnation, i.partition_id, i.sequence, i.valid_from, i.valid_to, i.opened_by,
  i.closed_by, i.inferred_from, i.evidence
ORDER BY cluster_id, valid_from, topic, partition_id
