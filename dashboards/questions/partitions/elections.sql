-- Which elections were there, of which kind, by which controller, and could another leader have come out?
-- numbers: 5, 8
-- needs: controller_log, znodes, metadata_log
-- read: allowed_leaders: every leader that this version's election gives for what was known; with is_exact all inputs
--   are known. observed_leader -1: nobody could be elected.
-- next: unclean-elections, controllers, partition-story
SELECT cluster_id, topic, partition_id, elected_at, election_kind, previous_leader, observed_leader AS leader,
  leader_epoch,
  is_unclean, controller_id, controller_epoch, assigned_replicas, live_brokers, allowed_leaders, is_exact, isr,
    inferred_from,
  evidence
FROM gold.leader_elections
WHERE coalesce(:cluster, cluster_id) = cluster_id
  AND coalesce(:topic, topic) = topic AND coalesce(:partition, partition_id) = partition_id
  AND (:broker IS NULL OR observed_leader = :broker OR previous_leader = :broker)
  AND coalesce(elected_at >= :from, TRUE) AND coalesce(elected_at < :to, TRUE)
ORDER BY cluster_id, elected_at, topic, topic_incarnation, partition_id, leader_epoch, sequence
