-- What did each controller fail at, wait for or leave out?
-- numbers: 8, 14, 15
-- needs: controller_log
-- read: trouble: event types of controller.log, with how often; docs/event-types.md has their texts.
-- next: controllers, reassignments, deletions
SELECT cluster_id, controller_id, controller_epoch, elected_at, ended_at, trouble, requests_count,
  requests_not_applied_count, brokers_came_count, brokers_went_count, reassignments_count, deletions_count,
    inferred_from,
  evidence
FROM gold.controller_episodes
WHERE coalesce(:cluster, cluster_id) = cluster_id AND coalesce(:broker, controller_id) = controller_id
  AND coalesce(elected_at < :to, TRUE) AND coalesce(ended_at > :from, TRUE)
ORDER BY cluster_id, controller_epoch, sequence, controller_id
