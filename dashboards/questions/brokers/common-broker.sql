-- Which broker is the common factor?
-- numbers: 4, 18
-- needs: znodes, server_log, metadata_log
-- read: For each broker what it took part in. One that stands out in one column is where to look first;
--   leaderships_lost counts the partitions that lost their leader with it.
-- next: broker-lives, isr-flapping, findings
WITH counted AS (
  SELECT cluster_id, broker_id, 'findings' AS what, count(*) AS n FROM gold.divergences
  WHERE severity IN ('error', 'warning') AND broker_id IS NOT NULL
    AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE) GROUP BY ALL
  UNION ALL
  SELECT cluster_id, replica_id, 'isr_departures', sum(shrink_count) FROM gold.isr_flapping
    WHERE coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE) GROUP BY ALL
  UNION ALL
  SELECT cluster_id, previous_leader, 'leaderships_lost', count(*) FROM gold.leader_elections
  WHERE previous_leader >= 0 AND election_kind IN ('offline_partition', 'unknown')
    AND observed_leader <> previous_leader
    AND coalesce(elected_at >= :from, TRUE) AND coalesce(elected_at < :to, TRUE) GROUP BY ALL
  UNION ALL
  SELECT cluster_id, broker_id, 'registrations_lost', count(*) FROM silver.broker_liveness_timeline
  WHERE valid_to IS NOT NULL AND end_reason <> 'controlled_shutdown'
    AND coalesce(valid_to >= :from, TRUE) AND coalesce(valid_to < :to, TRUE) GROUP BY ALL
  UNION ALL
  SELECT cluster_id, to_broker_id, 'requests_not_applied', count(*) FROM gold.propagation_delays
  WHERE outcome IN ('failed', 'not_received')
    AND coalesce(coalesce(sent_at, received_at) >= :from, TRUE) AND coalesce(coalesce(sent_at, received_at) < :to,
    TRUE) GROUP BY ALL
)
SELECT cluster_id, broker_id, coalesce(sum(n) FILTER (WHERE what = 'findings'), 0) AS findings,
  coalesce(sum(n) FILTER (WHERE what = 'isr_departures'), 0) AS isr_departures,
  coalesce(sum(n) FILTER (WHERE what = 'leaderships_lost'), 0) AS leaderships_lost,
  coalesce(sum(n) FILTER (WHERE what = 'registrations_lost'), 0) AS registrations_lost,
  coalesce(sum(n) FILTER (WHERE what = 'requests_not_applied'), 0) AS requests_not_applied
FROM counted
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, broker_id) = broker_id
GROUP BY cluster_id, broker_id
ORDER BY cluster_id, sum(n) DESC, broker_id
