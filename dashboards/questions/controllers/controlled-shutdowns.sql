-- Controlled shutdowns: which leaders moved, which did not, and how long did it take?
-- numbers: 20
-- needs: controller_log, server_log, znodes, metadata_log
-- read: moved: partitions whose leader the shutdown moved away. left_behind: those that the broker still led when its
--   registration ended, which then had no leader until the controller noticed.
-- next: broker-lives, offline-partitions
WITH stopped AS (
  SELECT * FROM silver.broker_liveness_timeline
  WHERE (shutdown_began_at IS NOT NULL OR end_reason = 'controlled_shutdown')
    AND coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, broker_id) = broker_id
    AND coalesce(coalesce(shutdown_began_at, valid_to) >= :from, TRUE) AND coalesce(coalesce(shutdown_began_at,
    valid_to) < :to, TRUE)
), moved AS (
  SELECT s.cluster_id, s.broker_id, s.sequence, count(*) AS moved
  FROM stopped s JOIN gold.leader_elections e
    ON e.cluster_id = s.cluster_id AND e.previous_leader = s.broker_id AND e.election_kind = 'controlled_shutdown'
    AND e.elected_at >= s.valid_from AND coalesce(e.elected_at <= s.valid_to, TRUE)
  GROUP BY ALL
), kept AS (
  SELECT s.cluster_id, s.broker_id, s.sequence,
    array_sort(collect_list(concat(l.topic, '-', l.partition_id))) AS left_behind
  FROM stopped s JOIN silver.leader_and_isr_timeline l
    ON l.cluster_id = s.cluster_id AND l.leader = s.broker_id AND l.valid_from < s.valid_to
    AND coalesce(l.valid_to >= s.valid_to, TRUE)
  GROUP BY ALL
)
SELECT s.cluster_id, s.broker_id, s.shutdown_began_at, s.valid_to AS registration_ended_at, s.shutdown_took_ms,
  s.shutdown_retry_count, s.ended_as, coalesce(m.moved, 0) AS moved, size(coalesce(k.left_behind,
    array())) AS left_count,
  coalesce(k.left_behind, array()) AS left_behind, s.inferred_from, s.evidence
FROM stopped s
  LEFT JOIN moved m ON m.cluster_id = s.cluster_id AND m.broker_id = s.broker_id AND m.sequence = s.sequence
  LEFT JOIN kept k ON k.cluster_id = s.cluster_id AND k.broker_id = s.broker_id AND k.sequence = s.sequence
ORDER BY cluster_id, coalesce(s.shutdown_began_at, s.valid_to), s.broker_id, s.sequence
