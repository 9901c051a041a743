-- What happened, what caused it, whom did it harm, and is it over?
-- numbers: 1, 2, 5, 18
-- needs: state_change_log, controller_log, server_log, znodes
-- read: An incident is the absence of a broker, or of several that one outage connects, with all that followed; or what
--   happened within a minute of one another and no absence explains. confidence says how the cause is known.
--   valid_to is NULL where it is not over. The worst harm stands first.
-- next: incident-events, partition-story, findings
SELECT cluster_id, incident_id, harm, cause, confidence, brokers, valid_from_lower, valid_from, valid_to,
  partitions_count, unavailable_partitions_count, unavailable_ms, under_min_isr_partitions_count, elections_count,
  unclean_elections_count, lost_count_lower, lost_count_upper, findings_count, summary, evidence
FROM gold.incidents
WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(valid_to >= :from, TRUE) AND coalesce(valid_from < :to, TRUE)
  AND (:broker IS NULL OR array_contains(brokers, CAST(:broker AS INT)))
ORDER BY cluster_id,
  array_position(array('records_lost', 'replicas_differ', 'two_leaders', 'unavailable', 'possible', 'none'), harm),
  valid_from, incident_id
