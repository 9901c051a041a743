-- How late did each broker learn each decision, and what became of the request?
-- numbers: 11
-- needs: state_change_log, controller_log, metadata_log
-- read: One row for each request of a controller to one broker, the slowest first. What took long: decided_to_sent
--   (the controller), sent_to_received (its send thread, the network, the broker's queue; two clocks),
--   received_to_applied (the broker). outcome says why a request changed nothing. A KRaft cluster has no requests: its
--   brokers fetch the metadata log. There, request_kind metadata_record, it is one row for each record about a partition
--   and broker with a replica of it: sent_at is when it was appended, decided_to_applied_ms until the broker's log tells
--   that it leads or follows so; of brokers that were there, not fenced, when it was appended.
-- next: propagation-by-broker, ignored-requests, clocks, metadata-images
SELECT cluster_id, request_kind, controller_id, controller_epoch, to_broker_id, correlation_id, partitions_count,
  sent_at, decided_to_applied_ms, decided_to_sent_ms, sent_to_received_ms, received_to_applied_ms,
  sent_to_acknowledged_ms, outcome, inferred_from, evidence
FROM (
  SELECT cluster_id, request_kind, controller_id, controller_epoch, to_broker_id, correlation_id, partitions_count,
    sent_at, received_at, decided_to_applied_ms, decided_to_sent_ms, sent_to_received_ms, received_to_applied_ms,
    sent_to_acknowledged_ms, outcome, sequence, inferred_from, evidence
  FROM gold.propagation_delays
  UNION ALL
  SELECT cluster_id, 'metadata_record', controller_id, controller_epoch, broker_id, NULL, 1, decided_at, NULL, lag_ms,
    NULL, NULL, NULL, NULL, 'applied', offset, NULL, evidence
  FROM gold.metadata_lag WHERE was_live)
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, to_broker_id) = to_broker_id
  AND coalesce(coalesce(sent_at, received_at) >= :from, TRUE) AND coalesce(coalesce(sent_at, received_at) < :to, TRUE)
ORDER BY cluster_id, coalesce(decided_to_applied_ms, sent_to_acknowledged_ms) DESC NULLS LAST, controller_epoch,
  to_broker_id, request_kind, sequence
