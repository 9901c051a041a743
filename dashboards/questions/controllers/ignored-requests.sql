-- Which requests did brokers ignore, fail or never receive, and rightly?
-- numbers: 12
-- needs: state_change_log
-- read: rightly: no where a finding says that the broker had no reason; yes where it ignored a stale one; NULL where
--   that is no question, or not known.
-- next: zombie-controllers, propagation
SELECT p.cluster_id, p.request_kind, p.controller_id, p.controller_epoch, p.to_broker_id, p.correlation_id,
  coalesce(p.sent_at, p.received_at) AS at, p.outcome,
  CASE WHEN count(d.divergence_id) > 0 THEN 'no' WHEN p.outcome = 'ignored_stale' THEN 'yes' END AS rightly,
  max(d.explanation) AS explanation, p.inferred_from, p.evidence
FROM gold.propagation_delays p LEFT JOIN gold.divergences d
  ON d.cluster_id = p.cluster_id AND d.broker_id = p.to_broker_id AND arrays_overlap(d.evidence, p.evidence)
  AND d.divergence_type IN ('ignored_without_reason', 'request_not_received', 'request_not_handled')
WHERE p.outcome IN ('ignored_stale', 'failed', 'not_received')
  AND coalesce(:cluster, p.cluster_id) = p.cluster_id AND coalesce(:broker, p.to_broker_id) = p.to_broker_id
  AND coalesce(coalesce(p.sent_at, p.received_at) >= :from, TRUE) AND coalesce(coalesce(p.sent_at,
  p.received_at) < :to, TRUE)
GROUP BY ALL
ORDER BY cluster_id, at, to_broker_id, request_kind, correlation_id
