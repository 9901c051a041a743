-- How late did each broker learn what was decided, on the whole?
-- numbers: 11
-- needs: state_change_log, controller_log, metadata_log
-- read: Milliseconds: of half of the requests less than p50, of one in a hundred more than p99. not_applied counts
--   those that were ignored, failed or not received. Of a KRaft cluster request_kind is metadata_record: each record
--   about a partition, until a broker with a replica acted by it.
-- next: propagation
SELECT cluster_id, to_broker_id, request_kind, count(*) AS requests,
  percentile(decided_to_applied_ms, 0.5) AS decided_to_applied_p50_ms,
  percentile(decided_to_applied_ms, 0.99) AS decided_to_applied_p99_ms,
  max(decided_to_applied_ms) AS decided_to_applied_max_ms,
  percentile(sent_to_acknowledged_ms, 0.5) AS sent_to_acknowledged_p50_ms,
  percentile(sent_to_acknowledged_ms, 0.99) AS sent_to_acknowledged_p99_ms,
  count_if(outcome IN ('ignored_stale', 'failed', 'not_received')) AS not_applied
FROM (
  SELECT cluster_id, to_broker_id, request_kind, sent_at, received_at, decided_to_applied_ms, sent_to_acknowledged_ms,
    outcome
  FROM gold.propagation_delays
  UNION ALL
  SELECT cluster_id, broker_id, 'metadata_record', decided_at, NULL, lag_ms, NULL, 'applied'
  FROM gold.metadata_lag WHERE was_live)
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, to_broker_id) = to_broker_id
  AND coalesce(coalesce(sent_at, received_at) >= :from, TRUE) AND coalesce(coalesce(sent_at, received_at) < :to, TRUE)
GROUP BY cluster_id, to_broker_id, request_kind
ORDER BY cluster_id, to_broker_id, request_kind
