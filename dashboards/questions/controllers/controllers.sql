-- Who was controller when, and how long from the loss of one to what the next did?
-- numbers: 8
-- needs: controller_log, znodes, metadata_log
-- read: without_controller_ms: nobody was registered. first_wrote_at: the first leader or ISR that it decided;
--   first_acknowledged_by_all_at: when the last broker had answered its first request. steps: its take-over, with
--   milliseconds since the first step.
-- next: zombie-controllers, controller-trouble, propagation, quorum
WITH wrote AS (
  SELECT cluster_id, controller_epoch, min(valid_from) AS first_wrote_at
  FROM silver.leader_and_isr_timeline WHERE written_by = 'controller' GROUP BY ALL
), answered AS (
  SELECT cluster_id, controller_id, controller_epoch, max(first_at) AS first_acknowledged_by_all_at FROM (
    SELECT cluster_id, controller_id, controller_epoch, to_broker_id, min(acknowledged_at) AS first_at
    FROM gold.propagation_delays GROUP BY ALL)
  GROUP BY ALL
)
SELECT e.cluster_id, e.controller_id, e.controller_epoch, e.elected_at, e.ended_at, e.without_controller_ms,
  e.ready_at, e.took_over_ms, w.first_wrote_at, a.first_acknowledged_by_all_at, e.found_partitions_count,
  e.found_offline_count, e.elections_count, e.left_leaderless_count, e.steps, e.inferred_from, e.evidence
FROM gold.controller_episodes e
  LEFT JOIN wrote w ON w.cluster_id = e.cluster_id AND w.controller_epoch = e.controller_epoch
  LEFT JOIN answered a ON a.cluster_id = e.cluster_id AND a.controller_id = e.controller_id
    AND a.controller_epoch = e.controller_epoch
WHERE coalesce(:cluster, e.cluster_id) = e.cluster_id AND coalesce(:broker, e.controller_id) = e.controller_id
  AND coalesce(e.elected_at < :to, TRUE) AND coalesce(e.ended_at > :from, TRUE)
ORDER BY cluster_id, e.controller_epoch, e.sequence, e.controller_id
