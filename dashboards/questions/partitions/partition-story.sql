-- What is the whole story of one partition, in order, from every source?
-- numbers: 24
-- needs: state_change_log, controller_log, server_log, znodes, metadata_log
-- give: topic, partition
-- read: at is corrected by what is proven of each broker's clock. source: the log of a broker, a decided state, an
--   election, a finding, a record of a quorum's metadata log. Lines at one instant stand in the order of their files.
-- next: leader-at, isr-changes, offsets-at
WITH story AS (
  SELECT cluster_id, corrected_time AS at, 'state-change.log' AS source, broker_id, event_type AS what,
    array_join(transform(map_entries(fields), f -> concat(f.key, '=', f.value)), ' ') AS text, source_file, source_line,
    inferred_from, evidence
  FROM silver.state_change_events WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  UNION ALL
  SELECT cluster_id, corrected_time, 'controller.log', broker_id, event_type,
    array_join(transform(map_entries(fields), f -> concat(f.key, '=', f.value)), ' '), source_file, source_line,
      inferred_from,
    evidence
  FROM silver.controller_events WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  UNION ALL
  SELECT cluster_id, corrected_time, 'server.log', broker_id, event_type,
    array_join(transform(map_entries(fields), f -> concat(f.key, '=', f.value)), ' '), source_file, source_line,
      inferred_from,
    evidence
  FROM silver.replication_events WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  UNION ALL
  SELECT cluster_id, changed_at, 'metadata log', NULL, coalesce(record_type, 'snapshot'), coalesce(state, 'removed'),
    concat('offset ', offset), NULL, inferred_from, evidence
  FROM silver.metadata_changes WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND subject_kind = 'partition' AND coalesce(:topic, topic) = topic
  AND coalesce(:partition, partition_id) = partition_id
  UNION ALL
  SELECT cluster_id, valid_from, 'decided', leader, coalesce(concat('written by ', written_by), 'decided'),
    concat('leader=', leader, ' leader_epoch=', leader_epoch, ' isr=', array_join(isr, ',')), NULL, NULL,
      inferred_from, evidence
  FROM silver.leader_and_isr_timeline WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  UNION ALL
  SELECT cluster_id, detected_at, 'finding', broker_id, divergence_type, concat(severity, ' ', rule_id, ': ',
    explanation),
    NULL, NULL, inferred_from, evidence
  FROM gold.divergences WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
)
SELECT * FROM story
WHERE coalesce(at >= :from, TRUE) AND coalesce(at < :to, TRUE) AND (:broker IS NULL OR broker_id = :broker)
ORDER BY cluster_id, at, source, source_file, source_line, what, text
