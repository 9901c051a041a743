-- How much was missing in what each day's last run of the checks measured, as shares?
-- numbers: 25
-- needs: state_change_log, controller_log, server_log, znodes
-- read: day is that of the run, UTC, by our clock. missing_share is 1 less what quality-by-run has as metric, where there
--   more is better (0: nothing is missing), of its worst subject: a version, a broker, a timeline. unknown_messages:
--   records of no known shape; rejected_records; inferred_intervals: of timelines, whose begin nothing shows;
--   snapshots_not_replayed; unexplained_elections: the rules give another leader for what is known of their inputs;
--   unlogged_hours: in which a broker lived and no log of its own speaks.
-- next: quality-by-run, trust
WITH measured AS (
  SELECT cluster_id, to_date(run_at) AS day, run_at, subject, CASE metric
      WHEN 'typed_records_by_version_ratio' THEN 'unknown_messages'
      WHEN 'rejected_records_ratio' THEN 'rejected_records'
      WHEN 'observed_transitions_ratio' THEN 'inferred_intervals'
      WHEN 'snapshots_replayed_ratio' THEN 'snapshots_not_replayed'
      WHEN 'elections_with_inputs_explained_ratio' THEN 'unexplained_elections'
      WHEN 'broker_live_hours_logged_ratio' THEN 'unlogged_hours' END AS quality,
    CASE WHEN metric = 'rejected_records_ratio' THEN value ELSE 1 - value END AS missing
  FROM quality.run_metrics
  WHERE coalesce(:cluster, cluster_id) = cluster_id
    AND coalesce(run_at >= :from, TRUE) AND coalesce(run_at < :to, TRUE)
), latest AS (
  SELECT *, max(run_at) OVER (PARTITION BY cluster_id, day) AS last_run FROM measured WHERE quality IS NOT NULL
)
SELECT cluster_id, day, quality, max_by(subject, missing) AS worst_subject, max(missing) AS missing_share,
  last_run AS run_at
FROM latest
WHERE run_at = last_run
GROUP BY cluster_id, day, quality, last_run
ORDER BY cluster_id, day, quality
