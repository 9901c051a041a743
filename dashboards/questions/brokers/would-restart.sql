-- What if a broker had stopped at an instant: which partitions would have gone offline, or refused writes?
-- numbers: 2, 20, 22
-- needs: znodes, state_change_log, metadata_log
-- read: One row per broker and partition that it had a replica of, each broker alone (--broker: this one), at an instant
--   (--at), else at the end of the cluster's evidence. offline: no other replica of the ISR was there, and none that KRaft
--   held for eligible, so nobody would lead but by an unclean election, which loses unclean_lost_lower to
--   unclean_lost_upper committed records at worst. refuses_writes: the ISR had no replica to spare for min.insync.replicas, so producers with acks=all would be refused
--   (where it is known: gold.availability_intervals). new_leader: another of the ISR would lead, next_leader where it is
--   known; records that the leader had not replicated yet, clean_lost_upper at most, would be lost to producers with
--   acks=1. fewer_replicas, none: only that. Brokers that were away then count as away; a controlled shutdown waits
--   for the new leaders, and loses nothing of clean_lost_upper.
-- next: leader-at, offsets-at, incidents
WITH asked AS (
  SELECT cluster_id, coalesce(:at, max(told_at)) AS at
  FROM (
    SELECT cluster_id, last_event_time AS told_at FROM bronze.ingested_files
    UNION ALL
    SELECT cluster_id, valid_from FROM silver.leader_and_isr_timeline
  )
  WHERE coalesce(:cluster, cluster_id) = cluster_id
  GROUP BY cluster_id
), live AS (
  SELECT l.cluster_id, collect_set(CASE WHEN coalesce(l.valid_to > q.at, TRUE) THEN l.broker_id END) AS brokers
  FROM silver.broker_liveness_timeline l JOIN asked q ON q.cluster_id = l.cluster_id AND l.valid_from <= q.at
  GROUP BY l.cluster_id
), placed AS (
  SELECT s.*, q.at, a.replicas, explode(a.replicas) AS stopped, l.brokers
  FROM silver.leader_and_isr_timeline s
    JOIN asked q ON q.cluster_id = s.cluster_id AND s.valid_from <= q.at AND coalesce(s.valid_to > q.at, TRUE)
    JOIN silver.assignment_timeline a ON a.cluster_id = s.cluster_id AND a.topic = s.topic
      AND a.topic_incarnation = s.topic_incarnation AND a.partition_id = s.partition_id
      AND a.valid_from <= q.at AND coalesce(a.valid_to > q.at, TRUE)
    LEFT JOIN live l ON l.cluster_id = s.cluster_id
  WHERE coalesce(:topic, s.topic) = s.topic
), states AS (
  SELECT *,
    filter(isr, b -> b <> stopped AND coalesce(array_contains(brokers, b), TRUE)) AS others,
    filter(elr, b -> b <> stopped AND coalesce(array_contains(brokers, b), TRUE)) AS eligible
  FROM placed
  WHERE coalesce(:broker, stopped) = stopped
), judged AS (
  SELECT s.*, CASE
      WHEN s.leader < 0 THEN 'none'
      WHEN size(concat(s.others, coalesce(s.eligible, array()))) = 0 AND array_contains(s.isr, s.stopped) THEN 'offline'
      WHEN array_contains(s.isr, s.stopped) AND count(m.kind) > 0 THEN 'refuses_writes'
      WHEN s.leader = s.stopped THEN 'new_leader'
      WHEN array_contains(s.isr, s.stopped) THEN 'fewer_replicas'
      ELSE 'none' END AS effect
  FROM states s LEFT JOIN gold.availability_intervals m ON m.cluster_id = s.cluster_id AND m.topic = s.topic
    AND m.topic_incarnation = s.topic_incarnation AND m.partition_id = s.partition_id
    AND m.kind IN ('at_min_isr', 'under_min_isr') AND m.valid_from <= s.at AND coalesce(m.valid_to > s.at, TRUE)
  GROUP BY ALL
)
SELECT j.cluster_id, j.stopped AS broker_id, j.at, j.topic, j.partition_id, j.effect, j.leader, j.isr, j.replicas,
  j.others AS left_in_isr,
  CASE WHEN j.effect <> 'offline' AND j.leader = j.stopped THEN r.next_leader END AS next_leader,
  CASE WHEN j.leader = j.stopped AND j.effect <> 'offline' THEN r.clean_lost_upper END AS clean_lost_upper,
  CASE WHEN j.effect = 'offline' THEN r.unclean_lost_lower END AS unclean_lost_lower,
  CASE WHEN j.effect = 'offline' THEN r.unclean_lost_upper END AS unclean_lost_upper,
  j.inferred_from, j.evidence
FROM judged j LEFT JOIN gold.records_at_risk r ON r.cluster_id = j.cluster_id AND r.topic = j.topic
  AND r.topic_incarnation = j.topic_incarnation AND r.partition_id = j.partition_id
  AND r.valid_from <= j.at AND coalesce(r.valid_to > j.at, TRUE)
ORDER BY cluster_id, broker_id,
  array_position(array('fewer_replicas', 'new_leader', 'refuses_writes', 'offline'), effect) DESC, topic, partition_id
