-- Who shrank each ISR, the leader for lag or the controller for a death, and how far behind was the follower?
-- numbers: 3
-- needs: server_log, znodes, metadata_log
-- read: removed and added are against the state before. lag_count_max and lag_ms_max are the most that the leader's
--   lines print of that replica's departures in the same spell (gold.isr_flapping); NULL where they print
--   none: before 2.2 no count, before 3.6 no time.
-- next: isr-flapping, fetchers, partition-story
WITH steps AS (
  SELECT *, lag(isr) OVER (
    PARTITION BY cluster_id, topic, topic_incarnation, partition_id ORDER BY sequence) AS previous_isr
  FROM silver.leader_and_isr_timeline
  WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
), changes AS (
  SELECT *, array_except(previous_isr, isr) AS removed, array_except(isr, previous_isr) AS added
  FROM steps
  WHERE coalesce(valid_from >= :from, TRUE) AND coalesce(valid_from < :to, TRUE)
)
SELECT c.cluster_id, c.topic, c.partition_id, c.valid_from AS changed_at, c.written_by, c.leader, c.leader_epoch,
  c.previous_isr, c.isr, c.removed, c.added, max(f.lag_count_max) AS lag_count_max, max(f.lag_ms_max) AS lag_ms_max,
  c.inferred_from, c.evidence
FROM changes c LEFT JOIN gold.isr_flapping f
  ON f.cluster_id = c.cluster_id AND f.topic = c.topic AND f.topic_incarnation = c.topic_incarnation
  AND f.partition_id = c.partition_id AND array_contains(c.removed, f.replica_id)
  AND f.valid_from <= c.valid_from AND coalesce(f.valid_to >= c.valid_from, TRUE)
WHERE (size(c.removed) > 0 OR size(c.added) > 0)
  AND (:broker IS NULL OR array_contains(c.removed, CAST(:broker AS INT))
    OR array_contains(c.added, CAST(:broker AS INT)))
GROUP BY ALL
ORDER BY cluster_id, changed_at, topic, partition_id, leader_epoch
