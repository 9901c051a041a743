-- How much of this can be trusted: gaps, levels, clocks, coverage?
-- numbers: 25
-- needs: state_change_log, controller_log, server_log, znodes, metadata_log
-- read: covered: files that were read of one kind and broker, together, or a clock's segments; everything else is a
--   hole, one row each: gap, too_coarse (nothing
--   below level_floor), out_of_order, clock_set_back. A clock_offset says how far the broker's clock was ahead, at
--   least and at most.
-- next: findings
SELECT cluster_id, coverage, source_kind, broker_id, gap_reason, min(level_floor) AS level_floor,
  min(valid_from) AS valid_from, max(valid_to) AS valid_to, count(*) AS files, min(source_file) AS source_file,
  sum(records_count) AS records_count, min(clock_verdict) AS clock_verdict,
  min(clock_offset_lower_ms) AS clock_offset_lower_ms, max(clock_offset_upper_ms) AS clock_offset_upper_ms
FROM quality.evidence_coverage
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, broker_id) = broker_id
  AND coalesce(valid_from < :to, TRUE) AND coalesce(valid_to > :from, TRUE)
GROUP BY cluster_id, coverage, source_kind, broker_id, gap_reason,
  CASE WHEN coverage <> 'covered' THEN concat(source_file, ' ', valid_from) END
ORDER BY cluster_id, coverage = 'covered', source_kind, broker_id, valid_from, source_file, coverage
