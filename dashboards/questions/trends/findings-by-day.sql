-- How many findings are there of each day, of which rule and severity?
-- numbers: 25
-- needs: state_change_log, controller_log, server_log, znodes
-- read: One row for each day (UTC) that findings are about, severity and rule. with_harm: those that prove harm.
-- next: findings, findings-by-run
SELECT cluster_id, to_date(detected_at) AS day, severity, rule_id, count(*) AS findings,
  count_if(harm NOT IN ('none', 'possible')) AS with_harm
FROM gold.divergences
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) <=> topic
  AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
GROUP BY cluster_id, day, severity, rule_id
ORDER BY cluster_id, day, severity, rule_id
