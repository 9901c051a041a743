-- What was lost that producers took for written: with acks=0 and 1, and with acks=all?
-- numbers: 6, 22
-- needs: server_log, log_end
-- read: Each cut of a replica's log. uncommitted: acknowledged with acks=1 or 0 only; committed: with acks=all, too
--   (with min.insync.replicas of 1). lower is proven, upper the most, NULL not bounded. A replica that cuts what
--   others still hold loses nothing by it: unclean-elections tells what is gone.
-- next: unclean-elections, lost-records, offsets-at
SELECT cluster_id, topic, partition_id, replica_id, truncated_at, truncated_at_upper, cause, leader, leader_epoch,
  truncated_to,
  uncommitted_count_lower, uncommitted_count_upper, committed_count_lower, committed_count_upper, inferred_from,
    evidence
FROM gold.truncations
WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(:broker, replica_id) = replica_id
  AND coalesce(truncated_at >= :from, TRUE) AND coalesce(truncated_at < :to, TRUE)
ORDER BY cluster_id, truncated_at, topic, partition_id, replica_id, sequence
