-- Which ISRs flap most, which broker do they have in common, and with what period?
-- numbers: 4
-- needs: server_log, znodes, metadata_log
-- read: One row for each spell of departures and returns of one replica. broker_shrinks counts all departures of that
--   broker in the cluster: one broker far above the others is the common factor, one leader in most rows may be.
-- next: isr-changes, common-broker
SELECT cluster_id, topic, partition_id, replica_id, leaders, valid_from, valid_to, shrink_count, expand_count,
  shrinks_by_leader_count, shrinks_by_controller_count, period_ms, longest_absence_ms, lag_count_max, lag_ms_max,
  sum(shrink_count) OVER (PARTITION BY cluster_id, replica_id) AS broker_shrinks, inferred_from, evidence
FROM gold.isr_flapping
WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND coalesce(:broker, replica_id) = replica_id
  AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
ORDER BY cluster_id, shrink_count DESC, topic, topic_incarnation, partition_id, replica_id, sequence
