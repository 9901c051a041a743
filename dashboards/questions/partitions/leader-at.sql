-- Who led each partition at an instant, and by whose decision?
-- numbers: 24
-- needs: znodes, state_change_log, metadata_log
-- give: at
-- read: leader -1: nobody. since is when that state began; written_by_broker_id is the broker that written_by is; election_kind and controller_id tell of the election that
--   made that leader, NULL where no line of a controller does. inferred_from NULL: observed.
-- next: partition-story, offsets-at, elections
SELECT l.cluster_id, l.topic, l.partition_id, l.leader, l.leader_epoch, l.isr, l.valid_from AS since,
  l.valid_to AS until,
  l.written_by, l.written_by_broker_id, max_by(e.election_kind, e.elected_at) AS election_kind, max(e.elected_at) AS elected_at,
  max_by(e.controller_id, e.elected_at) AS controller_id, l.controller_epoch, max_by(e.is_unclean,
    e.elected_at) AS is_unclean,
  l.inferred_from, l.evidence
FROM silver.leader_timeline l LEFT JOIN gold.leader_elections e
  ON e.cluster_id = l.cluster_id AND e.topic = l.topic AND e.topic_incarnation = l.topic_incarnation
  AND e.partition_id = l.partition_id AND e.elected_at <= l.valid_from AND e.observed_leader = l.leader
WHERE coalesce(:cluster, l.cluster_id) = l.cluster_id AND coalesce(:topic, l.topic) = l.topic
  AND coalesce(:partition, l.partition_id) = l.partition_id AND coalesce(:broker, l.leader) = l.leader
  AND l.valid_from <= :at AND coalesce(l.valid_to > :at, TRUE)
GROUP BY ALL
ORDER BY cluster_id, topic, partition_id, since
