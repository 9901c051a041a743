-- How did each broker stop and come back: in order, by a crash, by an expired session, or too quickly to be noticed?
-- numbers: 18
-- needs: server_log, controller_log, znodes, metadata_log
-- read: One row for each registration; in a KRaft cluster for each time that it was not fenced. ended_as is what the
--   broker's own logs tell, end_reason what ZooKeeper or the quorum saw (registration_lost: fenced too);
--   ended_after and ended_before bound when the registration can have ended: a
--   broker that died did so up to a session's timeout before. down_ms: until it registered again.
-- next: controlled-shutdowns, fenced-brokers, offline-partitions, short-logs
SELECT cluster_id, broker_id, valid_from, valid_to, end_reason, ended_as, ended_after, ended_before, shutdown_took_ms,
  timestampdiff(MILLISECOND, valid_to,
    lead(valid_from) OVER (PARTITION BY cluster_id, broker_id ORDER BY sequence)) AS down_ms,
  inferred_from, evidence
FROM silver.broker_liveness_timeline
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, broker_id) = broker_id
  AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
ORDER BY cluster_id, valid_from, broker_id, sequence
