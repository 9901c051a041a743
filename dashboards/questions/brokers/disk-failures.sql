-- Which disks or log directories failed?
-- numbers: 23
-- needs: server_log
-- read: One row for each kind of line and broker; example is the first of them.
-- next: broker-lives, offline-partitions
SELECT cluster_id, broker_id, event_type, count(*) AS lines, min(corrected_time) AS first_at,
  max(corrected_time) AS last_at,
  min_by(coalesce(cause, array_join(transform(map_entries(fields), f -> concat(f.key, '=', f.value)), ' ')),
    corrected_time)
    AS example
FROM silver.replication_events
WHERE event_type IN (
    'log_dir_failed', 'disk_full', 'log_load_failed', 'log_corruption_found', 'log_flush_failed', 'checkpoint_error',
    'log_deletion_failed', 'append_failed', 'replicas_marked_offline')
  AND coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, broker_id) <=> broker_id
  AND coalesce(corrected_time >= :from, TRUE) AND coalesce(corrected_time < :to, TRUE)
GROUP BY cluster_id, broker_id, event_type
ORDER BY cluster_id, first_at, broker_id, event_type
