-- How many elections were there on each day, of which kind, and how many were unclean or left nobody leader?
-- numbers: 5
-- needs: controller_log, znodes, metadata_log
-- read: One row for each day (UTC) and kind, those of new partitions among them. nobody: partitions that went offline, leaderless.
-- next: elections, unclean-elections
WITH counted AS (
  SELECT cluster_id, topic, elected_at AS at, election_kind, 1 AS elections, CAST(is_unclean AS INT) AS unclean, 0 AS leaderless
  FROM gold.leader_elections
  UNION ALL
  SELECT cluster_id, topic, valid_from, 'nobody', 0, 0, 1 FROM gold.availability_intervals WHERE kind = 'offline'
)
SELECT cluster_id, to_date(at) AS day, election_kind, sum(elections) AS elections, coalesce(sum(unclean), 0) AS unclean_elections,
  sum(leaderless) AS leaderless_elections
FROM counted
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) = topic
  AND coalesce(at >= :from, TRUE) AND coalesce(at < :to, TRUE)
GROUP BY cluster_id, day, election_kind
ORDER BY cluster_id, day, election_kind
