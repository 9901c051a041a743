-- How many findings did each run find first, how many did it withdraw, and how many stood then?
-- numbers: 25
-- needs: state_change_log, controller_log, server_log, znodes
-- read: One row for each run that changed any. Runs are counted by what they found new in bronze, from 1.
-- next: findings, findings-by-day
WITH changes AS (
  SELECT cluster_id, first_seen_run AS run, 1 AS found, 0 AS withdrawn FROM gold.finding_history
  UNION ALL
  SELECT cluster_id, withdrawn_run, 0, 1 FROM gold.finding_history WHERE withdrawn_run IS NOT NULL
)
SELECT cluster_id, run, sum(found) AS found_first, sum(withdrawn) AS withdrawn,
  sum(sum(found - withdrawn)) OVER (PARTITION BY cluster_id ORDER BY run) AS standing
FROM changes
WHERE coalesce(:cluster, cluster_id) = cluster_id
GROUP BY cluster_id, run
ORDER BY cluster_id, run
