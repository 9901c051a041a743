-- Which node's image of a KRaft cluster's metadata is behind, or wrong?
-- numbers: 11, 13
-- needs: metadata_log, state_change_log, server_log, controller_log
-- read: One row for each node that anything tells of, the worst first. Of its snapshots_compared, those whose records before
--   are in the log too, snapshots_differing held something else than these records make (R52): then its image was wrong.
--   applied_to: it is known to have applied every record before that offset, the last of them of applied_epoch, at
--   applied_at, known_by a snapshot that it wrote, a line of its log, a line of the controller that did not unfence it, or
--   what it became of a partition that such a record changed (role). It may have applied more. log_end_then: where the log
--   ended at that instant; lag_records and lag_ms: at most so many records (NoOps not counted), and so old ones, it lacked.
--   log_end, records_since: the same at the end of the evidence; a node that applies nothing any more shows there.
--   fetched_to, fetched_behind: what it had fetched by the last answer to DescribeQuorum, at asked_at, and how many records
--   that lacked of the leader's. copy_end: where the copy of its log that was given ends.
-- next: findings, propagation, missing-voters
WITH records AS (
  SELECT DISTINCT cluster_id, offset, last_offset, leader_epoch, record_type = 'NoOpRecord' AS is_no_op, appended_at
  FROM bronze.metadata_records
  WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(appended_at < :to, TRUE)
), runs AS (
  SELECT *, sum(is_first) OVER (PARTITION BY cluster_id ORDER BY offset, last_offset) AS run
  FROM (SELECT *, CASE WHEN offset <= max(last_offset) OVER (PARTITION BY cluster_id ORDER BY offset, last_offset
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) + 1 THEN 0 ELSE 1 END AS is_first FROM records)
), held AS (
  SELECT cluster_id, min(offset) AS first, max(last_offset) + 1 AS end FROM runs GROUP BY cluster_id, run
), snapshots AS (
  SELECT cluster_id, broker_id AS node_id, snapshot_end_offset AS end, min(appended_at) AS at, min(record_id) AS record_id,
    count_if(record_type = 'SnapshotFooterRecord') > 0 AS is_whole
  FROM bronze.metadata_snapshots
  WHERE snapshot_end_offset > 0 AND broker_id IS NOT NULL AND coalesce(:cluster, cluster_id) = cluster_id
    AND coalesce(appended_at >= :from, TRUE) AND coalesce(appended_at < :to, TRUE)
  GROUP BY cluster_id, broker_id, snapshot_end_offset
), compared AS (
  SELECT s.cluster_id, s.node_id, count(DISTINCT s.end) AS snapshots_compared
  FROM snapshots s
    JOIN held h ON h.cluster_id = s.cluster_id AND h.first < s.end AND s.end <= h.end
    LEFT JOIN snapshots b ON b.cluster_id = s.cluster_id AND b.is_whole AND h.first <= b.end AND b.end < s.end
  WHERE s.is_whole AND (h.first = 0 OR b.end IS NOT NULL)
  GROUP BY s.cluster_id, s.node_id
), differing AS (
  SELECT cluster_id, broker_id AS node_id, count(DISTINCT detected_at) AS snapshots_differing,
    min_by(explanation, detected_at) AS explanation
  FROM gold.divergences WHERE rule_id = 'R52'
    AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
  GROUP BY cluster_id, broker_id
), lines AS (
  SELECT cluster_id, broker_id AS node_id, CAST(fields['metadata_offset'] AS BIGINT) + 1 AS end, corrected_time AS at,
    'line' AS known_by, record_id
  FROM silver.replication_events
  WHERE event_type = 'metadata_published' AND fields['metadata_offset'] IS NOT NULL
  UNION ALL
  SELECT cluster_id, broker_id, CAST(fields['metadata_offset'] AS BIGINT) + 1, corrected_time, 'line', record_id
  FROM silver.controller_events WHERE event_type = 'metadata_transaction' AND fields['metadata_offset'] IS NOT NULL
  UNION ALL
  SELECT cluster_id, CAST(fields['broker_id'] AS INT), CAST(fields['current_metadata_offset'] AS BIGINT) + 1,
    corrected_time, 'controller', record_id
  FROM silver.controller_events WHERE fields['current_metadata_offset'] RLIKE '^[0-9]+$'
), roles AS (
  SELECT cluster_id, broker_id AS node_id, offset + 1 AS end, applied_at AS at, 'role' AS known_by,
    evidence[0] AS record_id
  FROM gold.metadata_lag
), sightings AS (
  SELECT * FROM (
    SELECT cluster_id, node_id, end, at, 'snapshot' AS known_by, record_id FROM snapshots
    UNION ALL SELECT * FROM lines
    UNION ALL SELECT * FROM roles)
  WHERE node_id IS NOT NULL AND end > 0 AND coalesce(:cluster, cluster_id) = cluster_id
    AND coalesce(at >= :from, TRUE) AND coalesce(at < :to, TRUE)
), applied AS (
  SELECT cluster_id, node_id, max(end) AS applied_to, min(at) AS applied_at, min_by(known_by, at) AS known_by,
    array(min_by(record_id, at)) AS evidence
  FROM (SELECT *, rank() OVER (PARTITION BY cluster_id, node_id ORDER BY end DESC) AS place FROM sightings)
  WHERE place = 1 GROUP BY cluster_id, node_id
), answers AS (
  SELECT cluster_id, one.replica_id AS node_id, sent_at, one.log_end_offset AS end,
    array_max(transform(voters, v -> v.log_end_offset)) AS leader_end
  FROM (SELECT *, explode(concat(voters, coalesce(observers, array()))) AS one FROM bronze.cluster_descriptions
    WHERE description_type = 'quorum' AND coalesce(:cluster, cluster_id) = cluster_id
      AND coalesce(sent_at >= :from, TRUE) AND coalesce(sent_at < :to, TRUE))
  WHERE one.log_end_offset >= 0
), described AS (
  SELECT cluster_id, node_id, max(sent_at) AS asked_at, max_by(end, sent_at) AS fetched_to,
    max_by(leader_end - end, sent_at) AS fetched_behind
  FROM answers GROUP BY cluster_id, node_id
), copies AS (
  SELECT cluster_id, broker_id AS node_id, max(last_offset) + 1 AS copy_end
  FROM bronze.metadata_records WHERE broker_id IS NOT NULL AND coalesce(:cluster, cluster_id) = cluster_id
    AND coalesce(appended_at < :to, TRUE)
  GROUP BY cluster_id, broker_id
), nodes AS (
  SELECT cluster_id, node_id FROM applied UNION SELECT cluster_id, node_id FROM described
  UNION SELECT cluster_id, node_id FROM copies
), lagging AS (
  SELECT a.cluster_id, a.node_id, max(CASE WHEN r.offset < a.applied_to THEN r.leader_epoch END) AS applied_epoch,
    max(CASE WHEN r.appended_at <= a.applied_at THEN r.offset END) + 1 AS log_end_then,
    count(DISTINCT CASE WHEN r.offset >= a.applied_to AND r.appended_at <= a.applied_at THEN r.offset END) AS lag_records,
    timestampdiff(MILLISECOND, min(CASE WHEN r.offset >= a.applied_to AND r.appended_at <= a.applied_at
      THEN r.appended_at END), min(a.applied_at)) AS lag_ms,
    max(r.offset) + 1 AS log_end, count(DISTINCT CASE WHEN r.offset >= a.applied_to THEN r.offset END) AS records_since
  FROM applied a JOIN records r ON r.cluster_id = a.cluster_id AND NOT r.is_no_op
  GROUP BY a.cluster_id, a.node_id
)
SELECT n.cluster_id, n.node_id, coalesce(c.snapshots_compared, 0) AS snapshots_compared,
  coalesce(d.snapshots_differing, 0) AS snapshots_differing, d.explanation, a.applied_to, l.applied_epoch, a.applied_at,
  a.known_by, l.log_end_then, l.lag_records, coalesce(l.lag_ms, CASE WHEN l.lag_records = 0 THEN 0 END) AS lag_ms,
  l.log_end, l.records_since, q.fetched_to, q.fetched_behind, q.asked_at, p.copy_end, a.evidence
FROM nodes n
  LEFT JOIN compared c ON c.cluster_id = n.cluster_id AND c.node_id = n.node_id
  LEFT JOIN differing d ON d.cluster_id = n.cluster_id AND d.node_id = n.node_id
  LEFT JOIN applied a ON a.cluster_id = n.cluster_id AND a.node_id = n.node_id
  LEFT JOIN lagging l ON l.cluster_id = n.cluster_id AND l.node_id = n.node_id
  LEFT JOIN described q ON q.cluster_id = n.cluster_id AND q.node_id = n.node_id
  LEFT JOIN copies p ON p.cluster_id = n.cluster_id AND p.node_id = n.node_id
WHERE coalesce(:broker, n.node_id) = n.node_id
ORDER BY cluster_id, snapshots_differing DESC, records_since DESC NULLS LAST, lag_records DESC, node_id
