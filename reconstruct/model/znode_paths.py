"""Where Kafka keeps what in ZooKeeper, below its chroot (``kafka.zk.ZkData``; in 0.8 ``kafka.utils.ZkUtils``).

Names in capitals that end in ``_PATH`` are the paths of single znodes and of folders; those that end in ``_PATTERN``
are regular expressions of a whole path, whose groups are its variable parts.
"""

from __future__ import annotations

from typing import Final

CONTROLLER_PATH: Final = "/controller"
CONTROLLER_EPOCH_PATH: Final = "/controller_epoch"
#: How far a quorum's controller has written to ZooKeeper what it decided (KIP-866).
MIGRATION_PATH: Final = "/migration"
BROKER_IDS_PATH: Final = "/brokers/ids"
TOPICS_PATH: Final = "/brokers/topics"
DELETE_TOPICS_PATH: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS_PATH: Final = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION_PATH: Final = "/admin/preferred_replica_election"

#: Group 1: broker id.
BROKER_PATTERN: Final = f"^{BROKER_IDS_PATH}/([0-9]+)$"
#: Group 1: topic.
TOPIC_PATTERN: Final = f"^{TOPICS_PATH}/([^/]+)$"
TOPIC_CONFIG_PATTERN: Final = "^/config/topics/([^/]+)$"
#: Group 1: broker id, or <default>.
BROKER_CONFIG_PATTERN: Final = "^/config/brokers/([0-9]+|<default>)$"
DELETE_TOPIC_PATTERN: Final = f"^{DELETE_TOPICS_PATH}/([^/]+)$"
#: Groups: topic, partition.
PARTITION_STATE_PATTERN: Final = f"^{TOPICS_PATH}/([^/]+)/partitions/([0-9]+)/state$"
