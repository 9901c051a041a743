-- Which topics were deleted, which deletions are stuck, and on which replica?
-- numbers: 15
-- needs: controller_log, state_change_log, znodes, metadata_log
-- read: waiting_for: replicas that were not yet deleted when the interval ended, with their last state;
--   ReplicaDeletionIneligible means that the broker was down or refused. A valid_to of NULL: the deletion had not
--   ended. A KRaft controller deletes a topic by one record, and waits for no replica: valid_from and valid_to are its
--   time.
-- next: topics-created-again, broker-lives
WITH deleting AS (
  SELECT * FROM gold.availability_intervals
  WHERE kind = 'deleting' AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
), last_states AS (
  SELECT d.cluster_id, d.topic, d.topic_incarnation, d.partition_id, d.sequence, r.replica_id,
    max_by(r.state, r.sequence) AS state
  FROM deleting d JOIN silver.replica_state_timeline r
    ON r.cluster_id = d.cluster_id AND r.topic = d.topic AND r.topic_incarnation = d.topic_incarnation
    AND r.partition_id = d.partition_id AND coalesce(r.valid_from < d.valid_to, TRUE)
  GROUP BY ALL
)
SELECT d.cluster_id, d.topic, d.partition_id, d.valid_from, d.valid_to,
  timestampdiff(MILLISECOND, d.valid_from, d.valid_to) AS lasted_ms,
  array_sort(collect_list(concat('replica ', s.replica_id, ': ', s.state))
    FILTER (WHERE s.state NOT IN ('ReplicaDeletionSuccessful', 'NonExistentReplica'))) AS waiting_for,
  d.opened_by, d.closed_by, d.inferred_from, d.evidence
FROM deleting d LEFT JOIN last_states s
  ON s.cluster_id = d.cluster_id AND s.topic = d.topic AND s.topic_incarnation = d.topic_incarnation
  AND s.partition_id = d.partition_id AND s.sequence = d.sequence
GROUP BY ALL
UNION ALL
SELECT cluster_id, topic, partition_id, changed_at, changed_at, 0, array(), record_type, record_type, inferred_from,
  evidence
FROM silver.metadata_changes
WHERE subject_kind = 'partition' AND state IS NULL AND record_type IS NOT NULL
  AND coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) = topic
  AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(changed_at < :to, TRUE) AND coalesce(changed_at > :from, TRUE)
ORDER BY cluster_id, valid_from, topic, partition_id
