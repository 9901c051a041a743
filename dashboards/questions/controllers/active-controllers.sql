-- Why did the active controller of a KRaft cluster change, when, and how long was there none?
-- numbers: 8
-- needs: metadata_log, server_log, controller_log
-- read: One row for each node's time as leader of the quorum. end_reason: shut_down, majority_lost, process_ended (it was
--   killed; when, is known only by doubted_at), controller_failed, removed or resigned by its own lines; voters_timed_out:
--   others heard no more of it; superseded: nothing tells. doubted_at: since when voters gave it up for lost.
--   until_next_ms: how long nobody led then. epochs_tried: epochs in which nobody had been elected before it.
-- next: quorum, missing-voters, controllers
WITH tenures AS (
  SELECT cluster_id, epoch, leader_id, min(valid_from) AS led_from,
    CASE WHEN count(*) = count(valid_to) THEN max(valid_to) END AS led_to,
    min_by(granted_by, sequence) AS granted_by, max(end_reason) AS end_reason, max(doubted_at) AS doubted_at,
    max_by(voters, sequence) AS voters, max(high_watermark) AS high_watermark, min(offset) AS first_offset,
    min_by(source, sequence) AS source, min_by(inferred_from, sequence) AS inferred_from,
    array_sort(array_distinct(flatten(collect_list(evidence)))) AS evidence
  FROM silver.quorum_timeline WHERE leader_id IS NOT NULL AND coalesce(:cluster, cluster_id) = cluster_id
  GROUP BY cluster_id, epoch, leader_id
), tried AS (
  SELECT cluster_id, led_from, count(DISTINCT epoch) AS epochs_tried
  FROM (
    SELECT s.cluster_id, s.epoch, min(t.led_from) AS led_from
    FROM silver.quorum_timeline s JOIN tenures t ON t.cluster_id = s.cluster_id AND t.epoch > s.epoch
    WHERE s.began_by = 'election_started'
      AND NOT EXISTS (SELECT 1 FROM tenures l WHERE l.cluster_id = s.cluster_id AND l.epoch = s.epoch)
    GROUP BY s.cluster_id, s.epoch)
  GROUP BY cluster_id, led_from
), in_order AS (
  SELECT *, lead(leader_id) OVER (PARTITION BY cluster_id ORDER BY epoch) AS next_leader,
    lead(led_from) OVER (PARTITION BY cluster_id ORDER BY epoch) AS next_led_from
  FROM tenures
)
SELECT o.cluster_id, o.epoch, o.leader_id AS leader, o.led_from, o.led_to,
  timestampdiff(MILLISECOND, o.led_from, o.led_to) AS lasted_ms, o.end_reason, o.doubted_at, o.next_leader,
  timestampdiff(MILLISECOND, o.led_to, o.next_led_from) AS until_next_ms, coalesce(t.epochs_tried, 0) AS epochs_tried,
  o.voters, o.granted_by, o.first_offset, o.high_watermark, o.source, o.inferred_from, o.evidence
FROM in_order o LEFT JOIN tried t ON t.cluster_id = o.cluster_id AND t.led_from = o.led_from
WHERE coalesce(:broker, o.leader_id) = o.leader_id
  AND coalesce(o.led_from < :to, TRUE) AND coalesce(o.led_to > :from, TRUE)
ORDER BY cluster_id, epoch
