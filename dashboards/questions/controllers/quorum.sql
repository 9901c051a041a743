-- Which node led the KRaft quorum in each epoch, by whose votes, and which voter lacked a copy or was behind?
-- numbers: 8
-- needs: metadata_log
-- read: One row for each leader that wrote to the metadata log, from its first record on. epochs_without_leader: epochs
--   since the one before in which nobody was elected, or wrote nothing; NULL for the first. granted_by: the voters
--   whose votes made it leader. not_seen: voters of which no copy of the log that was given has a record of that epoch.
--   most_behind: by DescribeQuorum, for each voter, the most records that it lacked of the leader's in that epoch.
-- next: controllers, controller-trouble, fenced-brokers
WITH records AS (
  SELECT cluster_id, leader_epoch AS epoch, offset, broker_id, record_type, fields, appended_at, record_id
  FROM bronze.metadata_records WHERE coalesce(:cluster, cluster_id) = cluster_id
), elected AS (
  SELECT cluster_id, epoch, min(offset) AS offset, min(appended_at) AS elected_at,
    from_json(min(fields), 'leaderId int, voters array<struct<voterId: int>>,
      grantingVoters array<struct<voterId: int>>') AS told, sort_array(collect_set(record_id)) AS evidence
  FROM records WHERE record_type = 'LeaderChangeMessage'
  GROUP BY cluster_id, epoch
), copies AS (
  SELECT cluster_id, epoch, collect_set(broker_id) AS nodes, max(offset) AS last_offset
  FROM records GROUP BY cluster_id, epoch
), lags AS (
  SELECT cluster_id, quorum_epoch AS epoch, voter.replica_id AS voter_id,
    max(array_max(transform(voters, v -> v.log_end_offset)) - voter.log_end_offset) AS lacked
  FROM (
    SELECT cluster_id, quorum_epoch, voters, explode(voters) AS voter FROM bronze.cluster_descriptions
    WHERE description_type = 'quorum' AND coalesce(:cluster, cluster_id) = cluster_id)
  WHERE voter.log_end_offset >= 0
  GROUP BY cluster_id, quorum_epoch, voter.replica_id
), behind AS (
  SELECT cluster_id, epoch, array_sort(collect_list(concat(voter_id, ': ', lacked))) AS most_behind
  FROM lags GROUP BY cluster_id, epoch
), tenures AS (
  SELECT *, lead(elected_at) OVER (PARTITION BY cluster_id ORDER BY epoch) AS ended_at,
    epoch - lag(epoch) OVER (PARTITION BY cluster_id ORDER BY epoch) - 1 AS epochs_without_leader
  FROM elected
)
SELECT t.cluster_id, t.epoch, t.told.leaderId AS leader, t.elected_at, t.ended_at,
  timestampdiff(MILLISECOND, t.elected_at, t.ended_at) AS lasted_ms, t.epochs_without_leader,
  t.offset AS first_offset, c.last_offset, transform(t.told.voters, v -> v.voterId) AS voters,
  transform(t.told.grantingVoters, v -> v.voterId) AS granted_by,
  array_except(transform(t.told.voters, v -> v.voterId), c.nodes) AS not_seen, b.most_behind, t.evidence
FROM tenures t
  JOIN copies c ON c.cluster_id = t.cluster_id AND c.epoch = t.epoch
  LEFT JOIN behind b ON b.cluster_id = t.cluster_id AND b.epoch = t.epoch
WHERE coalesce(:broker, t.told.leaderId) = t.told.leaderId
  AND coalesce(t.elected_at < :to, TRUE) AND coalesce(t.ended_at > :from, TRUE)
ORDER BY cluster_id, epoch
