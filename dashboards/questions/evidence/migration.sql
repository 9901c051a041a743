-- Did the migration from ZooKeeper to a quorum of controllers lose anything?
-- numbers: 8
-- needs: metadata_log, znodes
-- read: One row for each cluster that began one. taken_over_at, taken_over_by: when a controller of the quorum named itself
--   in /controller. pre_migration_at, migrated_at, finished_at: the states that the metadata log says (3.4 wrote the first as 1,
--   which 3.5 and later take for the second). topics, partitions: what stands in records; by the last offset that the
--   znodes were said to be up to. differing: findings of R60, each a znode that is not what the records made; 0 says that
--   none was lost or changed, of those that could be judged.
-- next: findings, controllers, active-controllers
WITH states AS (
  SELECT cluster_id, offset, min(appended_at) AS at,
    min(CAST(get_json_object(fields, '$.zkMigrationState') AS INT)) AS state
  FROM bronze.metadata_records WHERE record_type = 'ZkMigrationStateRecord' GROUP BY cluster_id, offset
), of_states AS (
  SELECT cluster_id,
    coalesce(min(CASE WHEN state = 2 THEN at END), min(CASE WHEN state = 1 THEN at END)) AS pre_migration_at,
    min(CASE WHEN state = 1 AND offset > first_pre THEN at END) AS migrated_at,
    min(CASE WHEN state = 3 THEN at END) AS finished_at
  FROM (SELECT *, min(CASE WHEN state = 2 THEN offset END) OVER (PARTITION BY cluster_id) AS first_pre FROM states)
  GROUP BY cluster_id HAVING max(state) > 0
), taken AS (
  SELECT cluster_id, min(changed_at) AS taken_over_at,
    min_by(CAST(get_json_object(data, '$.brokerid') AS INT), mzxid) AS taken_over_by, min_by(evidence, mzxid) AS evidence
  FROM silver.znode_changes
  WHERE path = '/controller' AND change = 'written' AND get_json_object(data, '$.kraftControllerEpoch') >= 0
  GROUP BY cluster_id
), written AS (
  SELECT cluster_id, max(CAST(get_json_object(data, '$.kraft_metadata_offset') AS BIGINT)) AS znodes_up_to
  FROM silver.znode_changes WHERE path = '/migration' AND change = 'written' GROUP BY cluster_id
), held AS (
  SELECT m.cluster_id, count(DISTINCT CASE WHEN subject_kind = 'topic' THEN subject END) AS topics,
    count(DISTINCT CASE WHEN subject_kind = 'partition' THEN struct(subject, partition_id) END) AS partitions
  FROM silver.metadata_changes m JOIN written w ON w.cluster_id = m.cluster_id AND m.offset <= w.znodes_up_to
  WHERE m.topic IS NOT NULL GROUP BY m.cluster_id
), differing AS (
  SELECT cluster_id, count(*) AS differing FROM gold.divergences WHERE rule_id = 'R60' GROUP BY cluster_id
)
SELECT s.cluster_id, s.pre_migration_at, t.taken_over_at, t.taken_over_by, s.migrated_at, s.finished_at, w.znodes_up_to,
  h.topics, h.partitions, coalesce(d.differing, 0) AS differing, CAST(NULL AS STRING) AS inferred_from, t.evidence
FROM of_states s LEFT JOIN taken t ON t.cluster_id = s.cluster_id LEFT JOIN written w ON w.cluster_id = s.cluster_id
  LEFT JOIN held h ON h.cluster_id = s.cluster_id LEFT JOIN differing d ON d.cluster_id = s.cluster_id
WHERE coalesce(:cluster, s.cluster_id) = s.cluster_id
  AND coalesce(s.pre_migration_at < :to, TRUE) AND coalesce(s.finished_at > :from, TRUE)
ORDER BY cluster_id
