-- Which topics were created again, and did folders of the old one stay?
-- numbers: 16
-- needs: znodes, metadata_log
-- read: One row for each incarnation of a name that had several. old_directories: partition directories whose
--   partition.metadata states this incarnation's id though a later one exists (since 2.8), copied after its end.
-- next: deletions
WITH counted AS (
  SELECT *, count(*) OVER (PARTITION BY cluster_id, topic) AS incarnations FROM silver.topic_incarnations
)
SELECT c.cluster_id, c.topic, c.topic_incarnation, c.valid_from, c.valid_to, c.incarnations,
  count(DISTINCT s.broker_id, s.directory) AS old_directories, c.inferred_from, c.evidence
FROM counted c LEFT JOIN bronze.log_segments s
  ON s.cluster_id = c.cluster_id AND s.topic = c.topic AND s.topic_id = c.topic_incarnation AND c.valid_to IS NOT NULL
  AND coalesce(s.captured_at > c.valid_to, TRUE)
WHERE c.incarnations > 1 AND coalesce(:cluster, c.cluster_id) = c.cluster_id AND coalesce(:topic, c.topic) = c.topic
  AND coalesce(c.valid_from < :to, TRUE) AND coalesce(c.valid_to > :from, TRUE)
GROUP BY ALL
ORDER BY cluster_id, topic, valid_from NULLS FIRST
