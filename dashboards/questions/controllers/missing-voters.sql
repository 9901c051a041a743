-- Which voter of a KRaft quorum was missing, since when, and did the quorum have one to spare?
-- numbers: 8
-- needs: metadata_log, server_log
-- read: One row for each voter of the last voters known. fetched_at: when the leader last heard of it, by the last answer
--   to DescribeQuorum, at asked_at; behind_ms and behind_records: how far it was behind then. most_behind_ms: the most of
--   all answers. log_end: how far the copy of its metadata log that was given goes. logged_at, last_state: its last line
--   about its own state. votes: how many leaders it helped to elect. Where is_missing, its last fetch was more than 10 s
--   before the answer; to_spare is how many more voters may go before nothing can be decided.
-- next: active-controllers, quorum, broker-lives
WITH last_known AS (
  SELECT cluster_id, max_by(voters, sequence) AS voters
  FROM silver.quorum_timeline WHERE voters IS NOT NULL AND coalesce(:cluster, cluster_id) = cluster_id
  GROUP BY cluster_id
), voters AS (
  SELECT cluster_id, size(voters) AS voters_count, explode(voters) AS voter FROM last_known
), answers AS (
  SELECT cluster_id, sent_at, record_id, one.replica_id AS voter, one.log_end_offset,
    array_max(transform(voters, v -> v.log_end_offset)) AS leader_end, one.replica_id = quorum_leader AS leads,
    CASE WHEN one.last_fetch_at_ms > 0 THEN timestamp_millis(one.last_fetch_at_ms) END AS fetched_at
  FROM (SELECT *, explode(voters) AS one FROM bronze.cluster_descriptions WHERE description_type = 'quorum'
    AND coalesce(:cluster, cluster_id) = cluster_id AND coalesce(sent_at < :to, TRUE) AND coalesce(sent_at >= :from, TRUE))
), described AS (
  SELECT cluster_id, voter, max(sent_at) AS asked_at, max_by(leads, sent_at) AS leads, max(fetched_at) AS fetched_at,
    max_by(CASE WHEN log_end_offset >= 0 THEN leader_end - log_end_offset END, sent_at) AS behind_records,
    max(CASE WHEN NOT leads THEN timestampdiff(MILLISECOND, fetched_at, sent_at) END) AS most_behind_ms,
    max_by(record_id, sent_at) AS record_id
  FROM answers GROUP BY cluster_id, voter
), said AS (
  SELECT cluster_id, CAST(coalesce(fields['broker_id'], broker_id) AS INT) AS voter, max(corrected_time) AS logged_at,
    max_by(fields['quorum_state'], struct(corrected_time, byte_offset)) AS last_state,
    max_by(record_id, struct(corrected_time, byte_offset)) AS record_id
  FROM silver.replication_events WHERE event_type = 'quorum_state_changed' AND fields['step'] = 'completed'
    AND coalesce(corrected_time < :to, TRUE) AND coalesce(corrected_time >= :from, TRUE)
  GROUP BY ALL
), copies AS (
  SELECT cluster_id, broker_id AS voter, max(last_offset) + 1 AS log_end, max_by(record_id, last_offset) AS record_id
  FROM bronze.metadata_records WHERE broker_id IS NOT NULL GROUP BY cluster_id, broker_id
), votes AS (
  SELECT cluster_id, voter, count(*) AS votes
  FROM (SELECT cluster_id, explode(granted_by) AS voter FROM silver.quorum_timeline WHERE began_by = 'leader_elected')
  GROUP BY cluster_id, voter
), judged AS (
  SELECT v.cluster_id, v.voter, v.voters_count, d.asked_at, d.fetched_at, d.behind_records, d.most_behind_ms,
    CASE WHEN d.leads THEN 0 ELSE timestampdiff(MILLISECOND, d.fetched_at, d.asked_at) END AS behind_ms,
    d.asked_at IS NOT NULL AND NOT d.leads AND coalesce(d.fetched_at < d.asked_at - INTERVAL 10 SECONDS, TRUE)
      AS is_missing, c.log_end, s.logged_at, s.last_state, coalesce(n.votes, 0) AS votes,
    array_sort(array_compact(array(d.record_id, s.record_id, c.record_id))) AS evidence
  FROM voters v LEFT JOIN described d ON d.cluster_id = v.cluster_id AND d.voter = v.voter
    LEFT JOIN said s ON s.cluster_id = v.cluster_id AND s.voter = v.voter
    LEFT JOIN copies c ON c.cluster_id = v.cluster_id AND c.voter = v.voter
    LEFT JOIN votes n ON n.cluster_id = v.cluster_id AND n.voter = v.voter
)
SELECT cluster_id, voter, CASE WHEN asked_at IS NOT NULL THEN is_missing END AS is_missing, fetched_at, asked_at,
  behind_ms, behind_records, most_behind_ms, log_end, last_state, logged_at, votes,
  CASE WHEN asked_at IS NOT NULL
    THEN CAST((voters_count - 1) DIV 2 - count_if(is_missing) OVER (PARTITION BY cluster_id) AS INT) END AS to_spare,
  evidence
FROM judged WHERE coalesce(:broker, voter) = voter
ORDER BY cluster_id, voter
