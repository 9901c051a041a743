-- Which elections were unclean, and what did each lose, at least and at most?
-- numbers: 5
-- needs: server_properties, server_log, log_end
-- read: lost_count_lower 0: no loss is proven; lost_count_upper NULL: not bounded, both NULL: the offsets prove that
--   nothing was lost or nothing is known of them (offsets-at tells). diverging_offsets: records that followers kept
--   where the new leader has others.
-- next: lost-records, high-watermark-back, acks-losses, partition-story
SELECT e.cluster_id, e.topic, e.partition_id, e.elected_at, e.election_kind, e.previous_leader, e.previous_isr,
  e.observed_leader AS leader, e.leader_epoch, l.cause, l.lost_from_offset, l.lost_count_lower, l.lost_count_upper,
  l.diverging_replicas, l.diverging_offsets, e.inferred_from, array_union(e.evidence, coalesce(l.evidence,
    array())) AS evidence
FROM gold.leader_elections e LEFT JOIN gold.data_loss_bounds l
  ON l.cluster_id = e.cluster_id AND l.topic = e.topic AND l.topic_incarnation = e.topic_incarnation
  AND l.partition_id = e.partition_id AND l.leader_epoch = e.leader_epoch AND l.leader = e.observed_leader
WHERE (e.is_unclean OR l.cause IS NOT NULL) AND coalesce(:cluster, e.cluster_id) = e.cluster_id
  AND coalesce(:topic, e.topic) = e.topic AND coalesce(:partition, e.partition_id) = e.partition_id
  AND coalesce(e.elected_at >= :from, TRUE) AND coalesce(e.elected_at < :to, TRUE)
ORDER BY cluster_id, elected_at, topic, partition_id, leader_epoch
