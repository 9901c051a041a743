-- How many partitions did each broker lead, and how many as the preferred leader, over time?
-- numbers: 17
-- needs: znodes, state_change_log, metadata_log
-- read: One row for each instant at which a broker's number of leaderships changed: the number from then on.
-- next: non-preferred-leaders, elections
WITH turns AS (
  SELECT cluster_id, leader AS broker_id, valid_from AS at, 1 AS change FROM silver.leader_and_isr_timeline
    WHERE leader >= 0
  UNION ALL
  SELECT cluster_id, leader, valid_to, -1 FROM silver.leader_and_isr_timeline WHERE leader >= 0 AND valid_to IS NOT NULL
), summed AS (
  SELECT cluster_id, broker_id, at, sum(change) AS change FROM turns GROUP BY ALL
), counted AS (
  SELECT cluster_id, broker_id, at, change,
    sum(change) OVER (PARTITION BY cluster_id, broker_id ORDER BY at) AS led_partitions
  FROM summed
)
SELECT cluster_id, at, broker_id, led_partitions
FROM counted
WHERE change <> 0 AND coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, broker_id) = broker_id
  AND coalesce(at >= :from, TRUE) AND coalesce(at < :to, TRUE)
ORDER BY cluster_id, at, broker_id
