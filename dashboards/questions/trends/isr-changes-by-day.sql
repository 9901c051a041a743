-- How often did each broker leave and enter ISRs on each day?
-- numbers: 3
-- needs: server_log, znodes, metadata_log
-- read: One row for each day (UTC) and broker: one far above the others is the common factor.
-- next: isr-changes, common-broker
WITH steps AS (
  SELECT cluster_id, valid_from, isr, lag(isr) OVER (
    PARTITION BY cluster_id, topic, topic_incarnation, partition_id ORDER BY sequence) AS previous_isr
  FROM silver.leader_and_isr_timeline
  WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) = topic
), changes AS (
  SELECT cluster_id, valid_from, explode(array_except(previous_isr, isr)) AS broker_id, TRUE AS has_left FROM steps
  UNION ALL
  SELECT cluster_id, valid_from, explode(array_except(isr, previous_isr)), FALSE FROM steps
)
SELECT cluster_id, to_date(valid_from) AS day, broker_id, count_if(has_left) AS left_count,
  count_if(NOT has_left) AS entered_count
FROM changes
WHERE coalesce(:broker, broker_id) = broker_id
  AND coalesce(valid_from >= :from, TRUE) AND coalesce(valid_from < :to, TRUE)
GROUP BY cluster_id, day, broker_id
ORDER BY cluster_id, day, broker_id
