"""What the controller reads of ZooKeeper besides the state of partitions, and what it deletes.

Sources: kafka.zk.KafkaZkClient 1.1 to 3.9; kafka.utils.ZkUtils 0.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from reconstruct.model.controller.values import TopicPartition
from reconstruct.model.controller.zookeeper import Code
from reconstruct.model.znode_paths import (
    BROKER_IDS_PATH,
    CONTROLLER_PATH,
    PREFERRED_REPLICA_ELECTION_PATH,
    REASSIGN_PARTITIONS_PATH,
)
from tests.oracles.controller.context_changes import without_keys
from tests.oracles.controller.zookeeper import Operation, ZooKeeper

ISR_CHANGE_NOTIFICATION_PATH: Final = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION_PATH: Final = "/log_dir_event_notification"


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration; a new one has a higher epoch (the znode's czxid)."""

    epoch: int


def children(zookeeper: ZooKeeper, path: str) -> tuple[str, ...]:
    """Names directly below the path."""
    prefix = f"{path}/"
    below = (known[len(prefix) :] for known in zookeeper.znodes if known.startswith(prefix))
    return tuple(sorted({name.split("/", 1)[0] for name in below}))


def broker_epochs(zookeeper: ZooKeeper) -> dict[int, int]:
    """Registered brokers and the epoch of each registration."""
    found = {}
    for name in children(zookeeper, BROKER_IDS_PATH):
        znode = zookeeper.znodes.get(f"{BROKER_IDS_PATH}/{name}")
        if znode is not None and isinstance(znode.content, Registration) and name.isdecimal():
            found[int(name)] = znode.content.epoch
    return found


def controller_id(zookeeper: ZooKeeper) -> int | None:
    znode = zookeeper.znodes.get(CONTROLLER_PATH)
    return znode.content if znode is not None and isinstance(znode.content, int) else None


def reassignments(zookeeper: ZooKeeper) -> dict[TopicPartition, tuple[int, ...]]:
    """What ``/admin/reassign_partitions`` asks for."""
    znode = zookeeper.znodes.get(REASSIGN_PARTITIONS_PATH)
    return dict(znode.content) if znode is not None and isinstance(znode.content, Mapping) else {}


def preferred_elections(zookeeper: ZooKeeper) -> frozenset[TopicPartition]:
    """What ``/admin/preferred_replica_election`` asks for."""
    znode = zookeeper.znodes.get(PREFERRED_REPLICA_ELECTION_PATH)
    return znode.content if znode is not None and isinstance(znode.content, frozenset) else frozenset()


def delete(zookeeper: ZooKeeper, path: str, epoch_zk_version: int | None = None) -> tuple[ZooKeeper, Code]:
    """Remove a znode with all below it; one that is not there is no failure."""
    if Operation.DELETE in zookeeper.unreachable:
        return zookeeper, Code.CONNECTIONLOSS
    code = zookeeper.refusal(epoch_zk_version)
    if code is not None:
        return zookeeper, code
    gone = [known for known in zookeeper.znodes if known == path or known.startswith(f"{path}/")]
    return replace(zookeeper, znodes=without_keys(zookeeper.znodes, gone)), Code.OK
