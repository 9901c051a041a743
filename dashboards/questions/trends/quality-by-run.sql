-- How did what is measured of the evidence and the tables change from run to run?
-- numbers: 25
-- needs: state_change_log, controller_log, server_log, znodes
-- read: One row for each run of check and metric; docs/checks.md says what each measures. run_at is our clock.
-- next: trust, findings-by-run
SELECT cluster_id, run_at, metric, subject, value
FROM quality.run_metrics
WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(run_at >= :from, TRUE) AND coalesce(run_at < :to, TRUE)
ORDER BY cluster_id, metric, subject, run_at
