"""The steps of a controller's take-over, in the order in which it logs them (``KafkaController.onControllerFailover``).

Up to 0.11 it tells of few of them; the order of those it tells is that of every release. What it does afterwards
(preferred elections that wait, reassignments resumed, the scheduler) comes once it is ready.
"""

from __future__ import annotations

from typing import Final

READY: Final = "ready"
#: By name of the step: its place among all of them. Steps of one place come in either order.
TAKE_OVER_ORDER: Final[dict[str, int]] = {
    name: place
    for place, names in enumerate(
        (
            ("begin",),
            ("read_controller_epoch",),
            ("increment_controller_epoch",),
            ("epoch_incremented",),
            ("register_handlers",),
            ("delete_log_dir_event_notifications",),
            ("initialise_context",),
            ("fetch_topic_deletions",),
            ("initialise_topic_deletion",),
            ("initialise_replica_states",),
            ("trigger_online_replicas",),
            ("trigger_offline_replicas",),
            ("replica_states_initialised",),
            ("initialise_partition_states",),
            ("trigger_online_partitions",),
            ("partition_states_initialised",),
            (READY,),
            ("start_scheduler",),
            ("start_token_expiry_scheduler",),
        )
    )
    for name in names
}
