-- Who would lead each partition of a KRaft cluster if two of its brokers stopped at an instant?
-- numbers: 2, 22
-- needs: metadata_log
-- give: at
-- read: One row for each partition and each two of its replicas; of a broker, those pairs that it is in. stopped one
--   after the other, in either order. next_leader: the first assigned replica that is left in the ISR, else (KIP-966) in
--   the ELR, and not fenced; may_lead says which. unclean: nobody is left but replicas that may lack committed records,
--   which lead only where unclean.leader.election.enable allows. offline: none is left at all. no_change: neither led.
--   elr is as the metadata log has it at the instant; a stop may add the stopped to it, never another.
-- next: would-restart, leader-at, fenced-brokers
WITH live AS (
  SELECT cluster_id, collect_set(broker_id) AS brokers
  FROM silver.broker_liveness_timeline
  WHERE valid_from <= :at AND coalesce(valid_to > :at, TRUE)
  GROUP BY cluster_id
), states AS (
  SELECT cluster_id, topic, topic_incarnation, partition_id,
    from_json(max_by(state, offset), 'replicas array<int>, isr array<int>, leader int, leader_epoch int, elr array<int>')
      AS now,
    max(offset) AS offset, max_by(commitment, offset) AS commitment, max_by(inferred_from, offset) AS inferred_from,
    max_by(evidence, offset) AS evidence
  FROM silver.metadata_changes
  WHERE subject_kind = 'partition' AND changed_at <= :at AND coalesce(:cluster, cluster_id) = cluster_id
    AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  GROUP BY cluster_id, topic, topic_incarnation, partition_id
  HAVING max_by(struct(state), offset).state IS NOT NULL
), firsts AS (
  SELECT *, explode(now.replicas) AS one FROM states
), pairs AS (
  SELECT *, explode(filter(now.replicas, r -> r > one)) AS other FROM firsts
), left_over AS (
  SELECT p.*, array_sort(array(one, other)) AS stopped,
    filter(p.now.replicas, r -> r <> one AND r <> other AND coalesce(array_contains(l.brokers, r), TRUE)) AS left_live
  FROM pairs p LEFT JOIN live l ON l.cluster_id = p.cluster_id
), judged AS (
  SELECT *, try_element_at(filter(left_live, r -> array_contains(now.isr, r)), 1) AS of_isr,
    try_element_at(filter(left_live, r -> array_contains(now.elr, r)), 1) AS of_elr
  FROM left_over
)
SELECT cluster_id, topic, partition_id, stopped,
  CASE WHEN now.leader >= 0 AND NOT array_contains(stopped, now.leader) THEN 'no_change'
    WHEN of_isr IS NOT NULL THEN 'isr' WHEN of_elr IS NOT NULL THEN 'elr'
    WHEN size(left_live) > 0 THEN 'unclean' ELSE 'offline' END AS may_lead,
  CASE WHEN now.leader >= 0 AND NOT array_contains(stopped, now.leader) THEN now.leader
    ELSE coalesce(of_isr, of_elr) END AS next_leader,
  now.leader, now.leader_epoch, now.isr, now.elr, now.replicas, left_live, offset, commitment, inferred_from, evidence
FROM judged WHERE coalesce(:broker, one) IN (one, other)
ORDER BY cluster_id, array_position(array('no_change', 'isr', 'elr', 'unclean', 'offline'), may_lead) DESC,
  topic, partition_id, stopped
