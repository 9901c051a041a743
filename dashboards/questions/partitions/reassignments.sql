-- Which reassignments ran, and which are stuck: since when, waiting for which replica?
-- numbers: 14
-- needs: controller_log, znodes, metadata_log
-- read: waiting_for: assigned replicas, without those that are to go, that were not in the ISR when the interval
--   ended, or at the end of the evidence. A valid_to of NULL: it had not ended.
-- next: isr-changes, fetchers, partition-story
WITH moving AS (
  SELECT * FROM gold.availability_intervals
  WHERE kind = 'reassigning' AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
)
SELECT m.cluster_id, m.topic, m.partition_id, m.valid_from, m.valid_to,
  timestampdiff(MILLISECOND, m.valid_from, m.valid_to) AS lasted_ms, max_by(a.replicas, a.sequence) AS replicas,
  max_by(a.adding_replicas, a.sequence) AS adding_replicas,
  max_by(a.removing_replicas, a.sequence) AS removing_replicas, max_by(l.isr, l.sequence) AS isr,
  array_except(max_by(array_except(a.replicas, coalesce(a.removing_replicas, array())), a.sequence),
    max_by(l.isr, l.sequence)) AS waiting_for, m.opened_by, m.closed_by, m.inferred_from, m.evidence
FROM moving m
  LEFT JOIN silver.assignment_timeline a
    ON a.cluster_id = m.cluster_id AND a.topic = m.topic AND a.topic_incarnation = m.topic_incarnation
    AND a.partition_id = m.partition_id AND coalesce(a.valid_from < m.valid_to, TRUE)
    AND coalesce(a.valid_to > m.valid_from, TRUE)
  LEFT JOIN silver.leader_and_isr_timeline l
    ON l.cluster_id = m.cluster_id AND l.topic = m.topic AND l.topic_incarnation = m.topic_incarnation
    AND l.partition_id = m.partition_id AND coalesce(l.valid_from < m.valid_to, TRUE)
    AND coalesce(l.valid_to > m.valid_from, TRUE)
GROUP BY m.cluster_id, m.topic, m.topic_incarnation, m.partition_id, m.sequence, m.valid_from, m.valid_to, m.opened_by,
  m.closed_by, m.inferred_from, m.evidence
ORDER BY cluster_id, valid_from, topic, partition_id
