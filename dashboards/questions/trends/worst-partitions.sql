-- Which partitions were worst off: longest without a leader or under min.insync.replicas, with the most elections?
-- numbers: 1, 2, 5
-- needs: znodes, state_change_log, controller_log, metadata_log
-- read: Minutes as in outages-by-day. without_leader_minutes counts a time once where it was both offline and without a
--   live leader, by the longer of the two. elections count those that ended with another leader.
-- next: partition-story, outages-by-day
WITH seen AS (
  SELECT cluster_id, max(valid_to) AS until FROM quality.evidence_coverage GROUP BY cluster_id
), lasted AS (
  SELECT i.cluster_id, i.topic, i.partition_id, i.kind, sum(timestampdiff(MILLISECOND, i.valid_from,
    greatest(coalesce(i.valid_to, s.until), i.valid_from))) / 60000 AS minutes
  FROM gold.availability_intervals i LEFT JOIN seen s ON s.cluster_id = i.cluster_id
  WHERE coalesce(:cluster, i.cluster_id) = i.cluster_id AND coalesce(:topic, i.topic) = i.topic
    AND coalesce(i.valid_from < :to, TRUE) AND coalesce(i.valid_to > :from, TRUE)
  GROUP BY ALL
), outages AS (
  SELECT cluster_id, topic, partition_id,
    coalesce(max(minutes) FILTER (WHERE kind IN ('offline', 'no_live_leader')), 0) AS without_leader_minutes,
    coalesce(max(minutes) FILTER (WHERE kind = 'under_min_isr'), 0) AS under_min_isr_minutes,
    coalesce(max(minutes) FILTER (WHERE kind = 'under_replicated'), 0) AS under_replicated_minutes
  FROM lasted GROUP BY ALL
), elected AS (
  SELECT cluster_id, topic, partition_id, count(*) AS elections, count_if(is_unclean) AS unclean_elections
  FROM gold.leader_elections
  WHERE observed_leader >= 0 AND observed_leader <> previous_leader AND coalesce(:cluster, cluster_id) = cluster_id
    AND coalesce(:topic, topic) = topic AND coalesce(elected_at >= :from, TRUE) AND coalesce(elected_at < :to, TRUE)
  GROUP BY ALL
)
SELECT coalesce(o.cluster_id, e.cluster_id) AS cluster_id, coalesce(o.topic, e.topic) AS topic,
  coalesce(o.partition_id, e.partition_id) AS partition_id,
  round(coalesce(o.without_leader_minutes, 0), 3) AS without_leader_minutes,
  round(coalesce(o.under_min_isr_minutes, 0), 3) AS under_min_isr_minutes,
  round(coalesce(o.under_replicated_minutes, 0), 3) AS under_replicated_minutes,
  coalesce(e.elections, 0) AS elections, coalesce(e.unclean_elections, 0) AS unclean_elections
FROM outages o FULL JOIN elected e
  ON e.cluster_id = o.cluster_id AND e.topic = o.topic AND e.partition_id = o.partition_id
ORDER BY cluster_id, without_leader_minutes DESC, under_min_isr_minutes DESC, unclean_elections DESC,
  under_replicated_minutes DESC, elections DESC, topic, partition_id
