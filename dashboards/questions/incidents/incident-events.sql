-- What followed from what, in each incident?
-- numbers: 1, 2, 5, 18
-- needs: state_change_log, controller_log, server_log, znodes
-- read: One row for what happened to a broker, and one for all effects of a kind that one cause had: from the first to
--   the last, rows_count of them, of partitions_count partitions. ended_at is NULL where it is not over.
-- next: incidents, partition-story
SELECT e.cluster_id, e.incident_id, e.sequence, e.began_at, e.ended_at, e.event_kind, e.broker_id, e.description,
  e.rows_count, e.partitions_count, e.partitions, e.evidence
FROM gold.incident_events e JOIN gold.incidents i ON i.cluster_id = e.cluster_id AND i.incident_id = e.incident_id
WHERE coalesce(:cluster, e.cluster_id) = e.cluster_id
  AND coalesce(i.valid_to >= :from, TRUE) AND coalesce(i.valid_from < :to, TRUE)
  AND (:broker IS NULL OR array_contains(i.brokers, CAST(:broker AS INT)))
ORDER BY cluster_id, i.valid_from, incident_id, sequence
