-- What did each controller notice, or was it asked for, what did it then do, and how long did that take?
-- numbers: 8, 14, 15
-- needs: controller_log, state_change_log, znodes
-- read: One row for each trigger that a controller logged (with ZooKeeper: of a quorum's the records tell), and what it
--   did until it logged the next one; a deletion or a reassignment goes on after that (deletions, reassignments).
--   about: the brokers, topics or partitions that the trigger names. told_at: when its watch or listener fired, up to
--   0.10.2, where a line says so. elections: leaders that it elected, the last of them elections_ms after the trigger.
--   requests: to one broker each. took_ms: until the last election, request or answer.
-- next: controllers, elections, propagation, reassignments, deletions
WITH lines AS (
  SELECT cluster_id, coalesce(controller_id, broker_id) AS controller_id, record_id, event_type, log_level,
    min(corrected_time) AS at, min(byte_offset) AS byte_offset, any_value(fields) AS fields,
    array_sort(collect_set(concat(topic, '-', partition_id))) AS partitions
  FROM silver.controller_events
  WHERE event_type IN ('broker_change', 'topic_change', 'partition_addition', 'topic_deletion_requested',
      'reassignment_started', 'reassignment_assignment_updated', 'preferred_election_started', 'leader_election_started',
      'controlled_shutdown_requested', 'broker_change_notified', 'topic_change_notified',
      'partition_modification_notified')
    AND coalesce(:cluster, cluster_id) = cluster_id
  GROUP BY ALL
), named AS (
  SELECT *, CASE event_type
      WHEN 'broker_change' THEN CASE concat_ws(' ', if(fields['added_broker_ids'] <> '', 'start', NULL),
          if(fields['deleted_broker_ids'] <> '', 'failure', NULL), if(fields['bounced_broker_ids'] <> '', 'bounce', NULL))
        WHEN 'start' THEN 'broker_start' WHEN 'failure' THEN 'broker_failure' WHEN 'bounce' THEN 'broker_bounce'
        WHEN '' THEN NULL ELSE 'brokers_changed' END
      WHEN 'topic_change' THEN if(fields['new_topics'] <> '', 'topic_creation', NULL)
      WHEN 'partition_addition' THEN 'partition_addition'
      WHEN 'topic_deletion_requested' THEN if(log_level <> 'DEBUG', 'topic_deletion', NULL)
      WHEN 'reassignment_started' THEN 'reassignment'
      WHEN 'reassignment_assignment_updated' THEN
        if(fields['adding_replicas'] <> '' OR fields['removing_replicas'] <> '', 'reassignment', NULL)
      WHEN 'preferred_election_started' THEN if(size(partitions) > 0, 'preferred_election', NULL)
      WHEN 'leader_election_started' THEN
        if(size(partitions) > 0, concat(lower(fields['election_type']), '_election'), NULL)
      WHEN 'controlled_shutdown_requested' THEN 'controlled_shutdown' END AS procedure,
    CASE event_type WHEN 'broker_change_notified' THEN 'broker_change' WHEN 'topic_change_notified' THEN 'topic_change'
      WHEN 'partition_modification_notified' THEN 'partition_addition' END AS tells_of
  FROM lines
), triggers AS (
  SELECT cluster_id, controller_id, record_id, at, byte_offset, event_type, procedure,
    CASE WHEN event_type = 'broker_change' THEN
        concat_ws(',', nullif(fields['added_broker_ids'], ''), nullif(fields['deleted_broker_ids'], ''),
          nullif(fields['bounced_broker_ids'], ''))
      WHEN size(partitions) > 0 AND event_type <> 'topic_change' THEN array_join(partitions, ',')
      ELSE coalesce(fields['new_topics'], fields['topics'], fields['shutting_down_broker_ids']) END AS about,
    NULL AS inferred_from, array(record_id) AS evidence
  FROM named WHERE procedure IS NOT NULL
  UNION ALL
  SELECT c.cluster_id, c.controller_id, NULL, c.elected_at, -1, 'take_over', 'take_over', NULL, c.inferred_from, c.evidence
  FROM gold.controller_episodes c LEFT ANTI JOIN silver.quorum_timeline q
    ON q.cluster_id = c.cluster_id AND q.epoch = c.controller_epoch AND q.leader_id = c.controller_id
  WHERE coalesce(:cluster, c.cluster_id) = c.cluster_id
), turns AS (
  SELECT *, row_number() OVER w AS turn, lag(at) OVER w AS before_at, lead(at) OVER w AS until_at
  FROM triggers WINDOW w AS (PARTITION BY cluster_id, controller_id ORDER BY at, byte_offset, coalesce(record_id, ''))
), told AS (
  SELECT t.cluster_id, t.controller_id, t.turn, max(n.at) AS told_at
  FROM turns t JOIN named n ON n.cluster_id = t.cluster_id AND n.controller_id = t.controller_id
    AND n.tells_of = t.event_type AND n.at <= t.at AND n.at > t.at - INTERVAL 1 MINUTE
    AND coalesce(n.at > t.before_at, TRUE)
  GROUP BY ALL
), elected AS (
  SELECT t.cluster_id, t.controller_id, t.turn, count(*) AS elections, max(e.elected_at) AS last_elected_at
  FROM turns t JOIN gold.leader_elections e ON e.cluster_id = t.cluster_id AND e.controller_id = t.controller_id
    AND e.elected_at >= t.at AND coalesce(e.elected_at < t.until_at, TRUE)
  GROUP BY ALL
), sent AS (
  SELECT t.cluster_id, t.controller_id, t.turn, count(*) AS requests, count_if(p.outcome <> 'applied') AS not_applied,
    max(p.sent_at) AS last_sent_at, max(p.acknowledged_at) AS last_acknowledged_at
  FROM turns t JOIN gold.propagation_delays p ON p.cluster_id = t.cluster_id AND p.controller_id = t.controller_id
    AND p.sent_at >= t.at AND coalesce(p.sent_at < t.until_at, TRUE)
  GROUP BY ALL
)
SELECT t.cluster_id, t.controller_id, t.procedure, t.about, d.told_at, t.at AS began_at,
  coalesce(e.elections, 0) AS elections, timestampdiff(MILLISECOND, t.at, e.last_elected_at) AS elections_ms,
  coalesce(s.requests, 0) AS requests, coalesce(s.not_applied, 0) AS not_applied, s.last_acknowledged_at,
  timestampdiff(MILLISECOND, t.at, greatest(e.last_elected_at, s.last_sent_at, s.last_acknowledged_at)) AS took_ms,
  t.inferred_from, t.evidence
FROM turns t
  LEFT JOIN told d ON d.cluster_id = t.cluster_id AND d.controller_id = t.controller_id AND d.turn = t.turn
  LEFT JOIN elected e ON e.cluster_id = t.cluster_id AND e.controller_id = t.controller_id AND e.turn = t.turn
  LEFT JOIN sent s ON s.cluster_id = t.cluster_id AND s.controller_id = t.controller_id AND s.turn = t.turn
WHERE coalesce(:broker, t.controller_id) = t.controller_id AND coalesce(t.at >= :from, TRUE) AND coalesce(t.at < :to, TRUE)
ORDER BY cluster_id, began_at, t.controller_id, t.turn
