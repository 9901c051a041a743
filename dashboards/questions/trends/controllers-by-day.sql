-- How often did the controller change on each day, and how long was there none?
-- numbers: 8
-- needs: controller_log, znodes, metadata_log
-- read: One row for each day (UTC) on which a controller's epoch began. without_controller_ms: before those, where known.
-- next: controllers, controller-trouble
SELECT cluster_id, to_date(elected_at) AS day, count(*) AS controllers_elected,
  count(DISTINCT controller_id) AS controllers, sum(without_controller_ms) AS without_controller_ms
FROM gold.controller_episodes
WHERE elected_at IS NOT NULL AND coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(elected_at >= :from, TRUE) AND coalesce(elected_at < :to, TRUE)
GROUP BY cluster_id, day
ORDER BY cluster_id, day
