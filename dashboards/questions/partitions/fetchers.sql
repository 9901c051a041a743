-- Whom did each follower fetch from, and which fetchers failed?
-- numbers: 3, 23
-- needs: server_log
-- read: state failed: the fetcher gave the partition up, and nothing fetched it until the interval ended.
--   fetch_offset: where it began. NULL leader or fetcher_id: not told.
-- next: isr-changes, partition-story
SELECT cluster_id, topic, partition_id, broker_id, state, leader, fetcher_id, fetch_offset, valid_from, valid_to,
  ended_by,
  failure_count, last_failure, inferred_from, evidence
FROM silver.fetcher_timeline
WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(:broker, broker_id) = broker_id AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
ORDER BY cluster_id, topic, topic_incarnation, partition_id, valid_from, broker_id, sequence
