-- How long were partitions of each topic without a leader, under min.insync.replicas or under-replicated on each day?
-- numbers: 1, 2
-- needs: znodes, state_change_log, controller_log, metadata_log
-- read: minutes add up the times of partitions_count partitions on that day, UTC. What had not ended counts to the last
--   instant that the cluster's evidence tells of. offline: no leader was registered; no_live_leader: one was, but dead:
--   the two may overlap.
-- next: offline-partitions, under-replicated, worst-partitions, incidents
WITH seen AS (
  SELECT cluster_id, max(valid_to) AS until FROM quality.evidence_coverage GROUP BY cluster_id
), lasting AS (
  SELECT i.cluster_id, i.topic, i.partition_id, i.kind, i.valid_from,
    greatest(coalesce(i.valid_to, s.until), i.valid_from) AS until
  FROM gold.availability_intervals i LEFT JOIN seen s ON s.cluster_id = i.cluster_id
  WHERE i.kind IN ('offline', 'no_live_leader', 'under_min_isr', 'under_replicated')
    AND coalesce(:cluster, i.cluster_id) = i.cluster_id AND coalesce(:topic, i.topic) = i.topic
    AND coalesce(i.valid_from < :to, TRUE) AND coalesce(i.valid_to > :from, TRUE)
), days AS (
  SELECT *, explode(sequence(to_date(valid_from), to_date(until))) AS day FROM lasting
)
SELECT cluster_id, day, topic, kind, count(DISTINCT partition_id) AS partitions_count,
  round(sum(timestampdiff(MILLISECOND, greatest(valid_from, CAST(day AS TIMESTAMP)),
    least(until, CAST(date_add(day, 1) AS TIMESTAMP)))) / 60000, 3) AS minutes
FROM days
GROUP BY cluster_id, day, topic, kind
ORDER BY cluster_id, day, topic, kind
