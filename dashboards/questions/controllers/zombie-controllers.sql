-- Did a controller that had been replaced still send or write?
-- numbers: 9
-- needs: controller_log, state_change_log, znodes, znode_transaction_log
-- read: finding: a rule that the deposed controller, or a broker that listened to it, broke. request: sent by a
--   controller after its epoch had ended; ignored_stale is the right answer to it.
-- next: controllers, ignored-requests
SELECT cluster_id, 'finding' AS what, detected_at AS at, broker_id AS controller_or_broker,
  CAST(NULL AS INT) AS to_broker_id,
  divergence_type AS outcome, explanation, inferred_from, evidence
FROM gold.divergences
WHERE divergence_type IN (
    'stale_controller_wrote', 'accepted_stale_controller', 'acted_on_lower_controller_epoch',
    'two_controllers_for_one_epoch')
  AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
UNION ALL
SELECT p.cluster_id, 'request', p.sent_at, p.controller_id, p.to_broker_id, p.outcome,
  concat(p.request_kind, ' of epoch ', p.controller_epoch, ', which ended ',
    timestampdiff(MILLISECOND, e.valid_to, p.sent_at), ' ms before'), p.inferred_from, p.evidence
FROM gold.propagation_delays p JOIN silver.controller_epoch_timeline e
  ON e.cluster_id = p.cluster_id AND e.controller_id = p.controller_id AND e.controller_epoch = p.controller_epoch
WHERE p.sent_at > e.valid_to AND coalesce(:cluster, p.cluster_id) = p.cluster_id
  AND coalesce(p.sent_at >= :from, TRUE) AND coalesce(p.sent_at < :to, TRUE)
ORDER BY cluster_id, at, what, controller_or_broker, to_broker_id, explanation
