-- Which rules were broken, by whom, and was harm done?
-- numbers: 25
-- needs: state_change_log, controller_log, server_log, znodes
-- read: severity error: no behaviour that the rules allow explains the evidence. harm: what is proven of it, whether
--   or not a rule was broken. alternatives: explanations without a broken rule that are not ruled out. docs/findings
--   says what to check now.
-- next: partition-story, trust, common-broker
SELECT cluster_id, severity, harm, rule_id, divergence_type, detected_at, topic, partition_id, broker_id, replica_id,
  explanation, alternatives, known_issue, inferred_from, evidence
FROM gold.divergences
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:topic, topic) <=> topic
  AND coalesce(:partition, partition_id) <=> partition_id
  AND (:broker IS NULL OR broker_id = :broker OR replica_id = :broker)
  AND coalesce(detected_at >= :from, TRUE) AND coalesce(detected_at < :to, TRUE)
ORDER BY cluster_id, array_position(array('error', 'warning', 'info'), severity), detected_at, divergence_id
