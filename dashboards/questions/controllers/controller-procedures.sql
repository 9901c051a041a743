-- What did each controller notice, or was it asked for, what did it then do, and how long did that take?
-- numbers: 8, 14, 15
-- needs: controller_log, state_change_log, znodes
-- read: One row for each trigger that a controller logged (with ZooKeeper: of a quorum's the records tell), and what it
--   led to (gold.controller_procedures). about: the brokers, topics or partitions that the trigger names. told_at: when
--   its watch or listener fired, up to 0.10.2, where a line says so. elections: leaders that it elected, the last of them
--   elections_ms after the trigger; judged: those that the model held again, as_decided: with the same leader.
--   transitions of partitions and replicas, and requests, to one broker each, until its next procedure: the model does
--   each transition again where its inputs are known; what differs is among finding_ids. took_ms: until the last
--   election, request, answer or completion.
-- next: controllers, elections, propagation, reassignments, deletions
SELECT cluster_id, controller_id, controller_epoch, procedure, array_join(about, ',') AS about, told_at, began_at,
  elections_count AS elections, last_elected_ms AS elections_ms, median_elected_ms, unclean_count AS unclean,
  tried_partitions_count AS tried_partitions, went_offline_count AS went_offline, left_offline_count AS left_offline,
  transitions_count AS transitions, requests_count AS requests, requests_not_applied_count AS not_applied, last_acknowledged_at, completed_at, last_effect,
  took_ms, judged_count AS judged, as_decided_count AS as_decided, finding_ids, trouble, inferred_from, evidence
FROM gold.controller_procedures
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, controller_id) = controller_id
  AND coalesce(began_at >= :from, TRUE) AND coalesce(began_at < :to, TRUE)
ORDER BY cluster_id, began_at, controller_id, controller_epoch, sequence
