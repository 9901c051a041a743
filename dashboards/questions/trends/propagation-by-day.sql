-- How late did brokers learn what was decided on each day: half of them, and the slowest of a hundred?
-- numbers: 11
-- needs: state_change_log, controller_log, metadata_log
-- read: Milliseconds from decision to effect: of half of the requests less than p50, of one in a hundred more than p99;
--   NULL where no request shows both. not_applied: ignored, failed or not received. Of a KRaft cluster request_kind is
--   metadata_record, as in propagation.
-- next: propagation-by-broker, propagation
SELECT cluster_id, to_date(coalesce(sent_at, received_at)) AS day, request_kind, count(*) AS requests,
  round(percentile(decided_to_applied_ms, 0.5), 3) AS p50_ms,
  round(percentile(decided_to_applied_ms, 0.99), 3) AS p99_ms,
  count_if(outcome IN ('ignored_stale', 'failed', 'not_received')) AS not_applied
FROM (
  SELECT cluster_id, to_broker_id, request_kind, sent_at, received_at, decided_to_applied_ms, outcome
  FROM gold.propagation_delays
  UNION ALL
  SELECT cluster_id, broker_id, 'metadata_record', decided_at, NULL, lag_ms, 'applied'
  FROM gold.metadata_lag WHERE was_live)
WHERE coalesce(sent_at, received_at) IS NOT NULL AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:broker, to_broker_id) = to_broker_id
  AND coalesce(coalesce(sent_at, received_at) >= :from, TRUE) AND coalesce(coalesce(sent_at, received_at) < :to, TRUE)
GROUP BY cluster_id, day, request_kind
ORDER BY cluster_id, day, request_kind
