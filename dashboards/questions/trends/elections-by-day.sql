-- How many elections were there on each day, of which kind, and how many were unclean or left nobody leader?
-- numbers: 5
-- needs: controller_log, znodes, metadata_log
-- read: One row for each day (UTC) and kind. leaderless: nobody could be elected. Those of new partitions are among them.
-- next: elections, unclean-elections
SELECT cluster_id, to_date(elected_at) AS day, election_kind, count(*) AS elections,
  count_if(is_unclean) AS unclean_elections, count_if(observed_leader < 0) AS leaderless_elections
FROM gold.leader_elections
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) = topic
  AND coalesce(elected_at >= :from, TRUE) AND coalesce(elected_at < :to, TRUE)
GROUP BY cluster_id, day, election_kind
ORDER BY cluster_id, day, election_kind
