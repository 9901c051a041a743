-- How far was each broker's clock off, and was it corrected?
-- numbers: 25
-- needs: state_change_log, controller_log, znodes
-- read: offset lower and upper: the clock was at least and at most so far ahead of the reference (-1: ZooKeeper's).
--   verdict agrees: no correction was needed.
-- next: propagation, trust
SELECT cluster_id, broker_id, source_file AS segment, valid_from, valid_to, clock_verdict, clock_reference,
  clock_offset_lower_ms, clock_offset_upper_ms, clock_zone_offset_minutes, clock_correction_us, clock_pairs_count,
  clock_dropped_pairs_count
FROM quality.evidence_coverage
WHERE clock_verdict IS NOT NULL AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:broker, broker_id) = broker_id AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
ORDER BY cluster_id, broker_id, valid_from, segment
