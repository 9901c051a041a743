"""What must hold of a cluster: the invariants of the published TLA+ specification of Kafka's replication, and ours.

Source: ``KafkaReplication.tla`` of github.com/hachikuji/kafka-specification (LeaderInIsr, WeakIsr, StrongIsr). Each
function gives None where the invariant holds, else one sentence that says where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.oracles.replication.cluster import Cluster
from tests.oracles.replication.replica import NO_LEADER, Replica, Role


def leader_in_isr(cluster: Cluster) -> str | None:
    """The decided leader is a member of the decided ISR."""
    decided = cluster.decided
    if decided.leader in (NO_LEADER, *decided.isr):
        return None
    return f"the leader {decided.leader} is not in the ISR {sorted(decided.isr)}"


def weak_isr(cluster: Cluster) -> str | None:
    """Every record below the high watermark of a presumed leader is, at its offset, on all of the ISR it knows."""
    for leader in cluster.leaders():
        if leader.leadership is not None and (broken := _differs(cluster, leader, leader.leadership.isr)):
            return broken
    return None


def strong_isr(cluster: Cluster) -> str | None:
    """The same for the decided ISR: whoever may be elected has all that any leader showed as committed."""
    for leader in cluster.leaders():
        if broken := _differs(cluster, leader, cluster.decided.isr):
            return broken
    return None


def _differs(cluster: Cluster, leader: Replica, isr: frozenset[int]) -> str | None:
    below = leader.high_watermark
    committed = leader.log.records[:below]
    for member in sorted(isr):
        records = cluster.replicas[member].log.records[:below]
        if records == committed:
            continue
        at = next((i for i, (a, b) in enumerate(zip(records, committed, strict=False)) if a != b), len(records))
        has = "another record" if at < len(records) else "no record"
        return f"replica {member} of the ISR has {has} at offset {at}, below leader {leader.broker_id}'s HW {below}"
    return None


def committed_is_kept(cluster: Cluster) -> str | None:
    """The leader in force, once it leads, has every record that was ever shown as committed."""
    decided = cluster.decided
    leader = cluster.replicas.get(decided.leader)
    if leader is None or leader.role is not Role.LEADER or leader.leader_epoch != decided.leader_epoch:
        return None
    shown = cluster.shown
    if leader.log.records[: len(shown)] == shown:
        return None
    return f"leader {leader.broker_id} at epoch {leader.leader_epoch} lacks or changed a committed record"


def followers_agree(cluster: Cluster) -> str | None:
    """A follower that fetches from the leader of its own epoch has nothing but what that leader has."""
    for follower in cluster.replicas.values():
        leader = cluster.replicas.get(follower.leader)
        if follower.role is not Role.FOLLOWER or follower.is_truncating or leader is None:
            continue
        if leader.role is not Role.LEADER or leader.leader_epoch != follower.leader_epoch:
            continue
        records = leader.log.records
        for at, record in enumerate(follower.log.records):
            if at >= len(records) or records[at] != record:
                return f"follower {follower.broker_id} has its own record at offset {at}"
    return None


def high_watermark_within_log(cluster: Cluster) -> str | None:
    """A high watermark lies within its replica's log (since 2.4; before, a truncation could leave it above)."""
    for replica in cluster.replicas.values():
        if not replica.log.log_start_offset <= replica.high_watermark <= replica.log_end_offset:
            return f"replica {replica.broker_id}'s HW {replica.high_watermark} is not within its log"
    return None


#: By name, as the specification has them.
INVARIANTS: Final[Mapping[str, Callable[[Cluster], str | None]]] = {
    "LeaderInIsr": leader_in_isr,
    "WeakIsr": weak_isr,
    "StrongIsr": strong_isr,
    "CommittedIsKept": committed_is_kept,
    "FollowersAgree": followers_agree,
    "HighWatermarkWithinLog": high_watermark_within_log,
}
