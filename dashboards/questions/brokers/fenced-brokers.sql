-- When was each broker of a KRaft cluster fenced, shut down or registered anew, and what did that take away?
-- numbers: 18
-- needs: metadata_log
-- read: One row for each record of the metadata log that changed whether a broker may lead; a broker is fenced when no
--   heartbeat came for broker.session.timeout.ms. Of the partitions that were changed at the same instant, leaders_lost
--   had the broker as leader, isr_lost had it in their ISR.
-- next: broker-lives, offline-partitions, controlled-shutdowns
WITH standing AS (
  SELECT cluster_id, CAST(subject AS INT) AS broker_id, changed_at, offset, record_type, commitment, inferred_from,
    evidence, from_json(state, 'broker_epoch bigint, is_fenced boolean, is_in_controlled_shutdown boolean') AS now
  FROM silver.metadata_changes WHERE subject_kind = 'broker' AND coalesce(:cluster, cluster_id) = cluster_id
), changed AS (
  SELECT *, lag(now) OVER (PARTITION BY cluster_id, broker_id ORDER BY offset) AS earlier,
    lead(changed_at) OVER (PARTITION BY cluster_id, broker_id ORDER BY offset) AS next_at
  FROM standing
), partitions AS (
  SELECT cluster_id, topic, topic_incarnation, partition_id, changed_at, offset,
    from_json(state, 'leader int, isr array<int>') AS now,
    lag(from_json(state, 'leader int, isr array<int>')) OVER (
      PARTITION BY cluster_id, topic, topic_incarnation, partition_id ORDER BY offset) AS earlier
  FROM silver.metadata_changes WHERE subject_kind = 'partition' AND coalesce(:cluster, cluster_id) = cluster_id
)
SELECT c.cluster_id, c.broker_id, c.changed_at, c.offset,
  CASE WHEN c.now IS NULL THEN 'unregistered'
    WHEN c.earlier IS NULL OR c.earlier.broker_epoch <> c.now.broker_epoch THEN 'registered'
    WHEN NOT c.now.is_fenced AND c.earlier.is_fenced THEN 'unfenced'
    WHEN c.now.is_fenced AND NOT c.earlier.is_fenced AND c.earlier.is_in_controlled_shutdown THEN 'shut down'
    WHEN c.now.is_fenced AND NOT c.earlier.is_fenced THEN 'fenced'
    ELSE 'asked to be shut down' END AS what,
  timestampdiff(MILLISECOND, c.changed_at, c.next_at) AS lasted_ms,
  count_if(p.earlier.leader = c.broker_id AND p.now.leader <> c.broker_id) AS leaders_lost,
  count_if(array_contains(p.earlier.isr, c.broker_id) AND NOT array_contains(p.now.isr, c.broker_id)) AS isr_lost,
  c.record_type, c.commitment, c.inferred_from, c.evidence
FROM changed c LEFT JOIN partitions p
  ON p.cluster_id = c.cluster_id AND p.changed_at = c.changed_at
WHERE NOT (c.now <=> c.earlier) AND coalesce(:broker, c.broker_id) = c.broker_id
  AND coalesce(c.changed_at < :to, TRUE) AND coalesce(c.changed_at >= :from, TRUE)
GROUP BY ALL
ORDER BY cluster_id, offset, broker_id
