"""One partition's replicas, what the controller decided, and one pure, total function from event to next state.

``step(cluster, event)`` never raises and never changes its argument; an event that cannot happen gives the same
cluster back. Requests reach brokers late or not at all, fetch answers get lost, brokers pause and come
back as zombies: what a failing cluster does, without its network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.oracles.replication import events as e
from tests.oracles.replication import follower as f
from tests.oracles.replication import leader as ld
from tests.oracles.replication.log import Record
from tests.oracles.replication.replica import NO_LEADER, LeaderAndIsr, Replica, Role
from tests.oracles.replication.rules import ReplicationConfig, ReplicationRules


@dataclass(frozen=True, slots=True)
class Cluster:
    """The whole state of one partition.

    ``decisions`` are all states ever written, the last one in force; ``sent_from`` is the first leader epoch that a
    broker is sent since it last registered. ``shown`` is the longest run of records that any
    leader had below its high watermark: what consumers may have read, and producers with acks=all were told is safe.
    """

    rules: ReplicationRules
    config: ReplicationConfig
    replicas: Mapping[int, Replica]
    decisions: tuple[LeaderAndIsr, ...]
    alive: frozenset[int]
    registered: frozenset[int]
    sent_from: Mapping[int, int] = field(default_factory=dict)
    paused: frozenset[int] = frozenset()
    now_ms: int = 0
    next_record_id: int = 0
    shown: tuple[Record, ...] = ()

    @property
    def decided(self) -> LeaderAndIsr:
        """The decision in force: the partition's state znode."""
        return self.decisions[-1]

    def acts(self, broker: int) -> bool:
        return broker in self.alive and broker not in self.paused

    def leaders(self) -> list[Replica]:
        """Every replica that believes itself leader; more than one where one of them is deposed."""
        return [replica for replica in self.replicas.values() if replica.role is Role.LEADER]


def new_cluster(rules: ReplicationRules, config: ReplicationConfig, brokers: Iterable[int] = (1, 2, 3)) -> Cluster:
    """A new partition, its first replica decided as leader with everybody in the ISR, and everybody told so."""
    ids = tuple(brokers)
    decided = LeaderAndIsr(leader=ids[0], leader_epoch=0, isr=frozenset(ids), partition_epoch=0)
    everybody = frozenset(ids)
    cluster = Cluster(rules, config, {b: Replica(b) for b in ids}, (decided,), everybody, everybody)
    for broker in ids:
        cluster = step(cluster, e.Deliver(broker))
    return cluster


def run(cluster: Cluster, events: Iterable[e.Event]) -> Cluster:
    """The cluster after all ``events`` in order."""
    for event in events:
        cluster = step(cluster, event)
    return cluster


def step(cluster: Cluster, event: e.Event) -> Cluster:
    """The cluster after ``event``; the same cluster where it cannot happen."""
    after = _HANDLERS[type(event)](cluster, event)
    return after if after is cluster else _show(after)


def _show(cluster: Cluster) -> Cluster:
    shown = cluster.shown
    for leader in cluster.leaders():
        if leader.high_watermark > len(shown):
            shown += leader.log.records[len(shown) : leader.high_watermark]
    return cluster if shown is cluster.shown else replace(cluster, shown=shown)


def _with(cluster: Cluster, replica: Replica) -> Cluster:
    return replace(cluster, replicas={**cluster.replicas, replica.broker_id: replica})


# --- what brokers do ------------------------------------------------------------------------------------------------


def _produce(cluster: Cluster, event: e.Produce) -> Cluster:
    leader = cluster.replicas[event.broker]
    if not cluster.acts(event.broker) or leader.role is not Role.LEADER:
        return cluster
    ids = range(cluster.next_record_id, cluster.next_record_id + event.count)
    led = ld.append_to_leader(cluster.rules, cluster.config, leader, ids, acks=event.acks, now_ms=cluster.now_ms)
    return cluster if led is None else replace(_with(cluster, led), next_record_id=ids.stop)


def _fetch(cluster: Cluster, event: e.FetchOnce) -> Cluster:
    follower = cluster.replicas[event.broker]
    if not cluster.acts(event.broker) or follower.role is not Role.FOLLOWER or not cluster.acts(follower.leader):
        return cluster
    leader = cluster.replicas[follower.leader]
    if leader.role is not Role.LEADER:
        return cluster
    rules, config = cluster.rules, cluster.config
    if follower.is_truncating:
        if rules.fences_fetches and follower.leader_epoch != leader.leader_epoch:
            return cluster
        if not rules.truncates_on_fetch or follower.log.latest_epoch < 0:
            follower = f.truncate_by_epoch(rules, follower, leader.log)
    fetch = ld.Fetch(
        follower.broker_id,
        follower.log_end_offset,
        event.max_records,
        follower.leader_epoch,
        follower.log.latest_epoch,
    )
    leader, response = ld.handle_fetch(rules, config, leader, fetch, cluster.now_ms)
    if not event.is_answer_lost:
        if response.is_out_of_range:
            follower = f.handle_offset_out_of_range(
                rules, follower, leader.log, is_unclean_allowed=config.unclean_leader_election_enable
            )
        else:
            follower = f.process_fetch_response(rules, follower, response)
            is_done = not response.is_fenced and response.diverging_epoch is None
            follower = replace(follower, is_truncating=follower.is_truncating and not is_done)
    after = _with(_with(cluster, follower), leader)
    return _change_isr(after, leader, ld.isr_after_fetch(rules, leader, follower.broker_id))


def _shrink(cluster: Cluster, event: e.ShrinkIsr) -> Cluster:
    leader = cluster.replicas[event.broker]
    if not cluster.acts(event.broker):
        return cluster
    return _change_isr(cluster, leader, ld.isr_after_shrink(cluster.rules, cluster.config, leader, cluster.now_ms))


def _change_isr(cluster: Cluster, leader: Replica, isr: frozenset[int] | None) -> Cluster:
    """Written at once before 2.7, asked of the controller since; refused where the leader is not the decided one."""
    if isr is None or leader.leadership is None:
        return cluster
    if cluster.rules.alters_isr_through_controller:
        return _with(cluster, ld.with_pending_isr(leader, isr))
    return _write_isr(cluster, leader, isr)


def _write_isr(cluster: Cluster, leader: Replica, isr: frozenset[int]) -> Cluster:
    decided = cluster.decided
    led = leader.leadership
    if led is None or (decided.leader, decided.leader_epoch, decided.partition_epoch) != (
        leader.broker_id,
        leader.leader_epoch,
        led.partition_epoch,
    ):
        return cluster
    written = replace(decided, isr=isr, partition_epoch=decided.partition_epoch + 1)
    told = ld.with_isr(cluster.rules, cluster.config, leader, isr, written.partition_epoch, cluster.now_ms)
    return replace(_with(cluster, told), decisions=(*cluster.decisions, written))


def _answer_alter_isr(cluster: Cluster, event: e.AnswerAlterIsr) -> Cluster:
    leader = cluster.replicas[event.broker]
    led = leader.leadership
    if not cluster.acts(event.broker) or led is None or led.pending_isr is None:
        return cluster
    if not led.pending_isr <= cluster.registered | led.isr:
        return _with(cluster, replace(leader, leadership=replace(led, pending_isr=None)))
    return _write_isr(cluster, leader, led.pending_isr)


def _deliver(cluster: Cluster, event: e.Deliver) -> Cluster:
    replica = cluster.replicas[event.broker]
    request = _next_request(cluster, replica, event.skipped) if cluster.acts(event.broker) else None
    if request is None:
        return cluster
    if request.leader != event.broker:
        return _with(cluster, f.become_follower(cluster.rules, replica, request))
    others = [other for other in cluster.replicas if other != event.broker]
    return _with(cluster, ld.become_leader(cluster.rules, cluster.config, replica, request, others, cluster.now_ms))


def _next_request(cluster: Cluster, replica: Replica, skipped: int) -> LeaderAndIsr | None:
    """The oldest decision of a leader that the replica was sent and has not seen, after ``skipped`` lost ones."""
    above = max(replica.leader_epoch, cluster.sent_from.get(replica.broker_id, 0) - 1)
    unseen: list[LeaderAndIsr] = []
    for decision in reversed(cluster.decisions):
        if decision.leader_epoch <= above:
            break
        if decision.leader == NO_LEADER:
            continue
        if unseen and unseen[-1].leader_epoch == decision.leader_epoch:
            unseen[-1] = decision
        else:
            unseen.append(decision)
    return unseen[max(len(unseen) - 1 - skipped, 0)] if unseen else None


def _checkpoint(cluster: Cluster, event: e.CheckpointHighWatermarks) -> Cluster:
    replica = cluster.replicas[event.broker]
    if not cluster.acts(event.broker) or replica.role is Role.OFFLINE:
        return cluster
    return _with(cluster, f.checkpoint(replica))


def _lose_checkpoint(cluster: Cluster, event: e.LoseCheckpoint) -> Cluster:
    if event.broker in cluster.alive:
        return cluster
    return _with(cluster, replace(cluster.replicas[event.broker], checkpointed_high_watermark=None))


# --- what happens to brokers ----------------------------------------------------------------------------------------


def _pass(cluster: Cluster, event: e.Pass) -> Cluster:
    return replace(cluster, now_ms=cluster.now_ms + event.ms)


def _pause(cluster: Cluster, event: e.Pause) -> Cluster:
    return replace(cluster, paused=cluster.paused | {event.broker}) if event.broker in cluster.alive else cluster


def _resume(cluster: Cluster, event: e.Resume) -> Cluster:
    """A broker whose session expired while it was paused registers again; it still believes what it believed."""
    if event.broker not in cluster.paused:
        return cluster
    back = replace(cluster, paused=cluster.paused - {event.broker})
    return back if event.broker in back.registered else _register(back, event.broker)


def _kill(cluster: Cluster, event: e.Kill) -> Cluster:
    if event.broker not in cluster.alive:
        return cluster
    dead = f.restart(cluster.replicas[event.broker])
    left = _with(cluster, dead)
    return replace(left, alive=cluster.alive - {event.broker}, paused=cluster.paused - {event.broker})


def _restart(cluster: Cluster, event: e.Restart) -> Cluster:
    if event.broker in cluster.alive:
        return cluster
    if event.is_noticed or cluster.rules.notices_bounce:
        cluster = _lose_session(cluster, e.LoseSession(event.broker))
    started = f.restart(cluster.replicas[event.broker], log_end_offset=event.log_end_offset)
    cluster = replace(_with(cluster, started), alive=cluster.alive | {event.broker})
    return _register(cluster, event.broker)


# --- what the controller does ---------------------------------------------------------------------------------------


def _decide(cluster: Cluster, leader: int, isr: frozenset[int]) -> Cluster:
    decided = cluster.decided
    written = LeaderAndIsr(leader, decided.leader_epoch + 1, isr, decided.partition_epoch + 1)
    return replace(cluster, decisions=(*cluster.decisions, written))


def _register(cluster: Cluster, broker: int) -> Cluster:
    """A broker came (back): an offline partition whose ISR it is in gets it as its leader."""
    decided = cluster.decided
    sent_from = {**cluster.sent_from, broker: decided.leader_epoch}
    cluster = replace(cluster, registered=cluster.registered | {broker}, sent_from=sent_from)
    if decided.leader == NO_LEADER and broker in decided.isr:
        return _decide(cluster, broker, decided.isr & cluster.registered)
    return cluster


def _lose_session(cluster: Cluster, event: e.LoseSession) -> Cluster:
    broker = event.broker
    if broker not in cluster.registered or cluster.acts(broker):
        return cluster
    cluster = replace(cluster, registered=cluster.registered - {broker})
    decided = cluster.decided
    isr = decided.isr - {broker} or decided.isr
    if decided.leader != broker:
        return _decide(cluster, decided.leader, isr) if broker in decided.isr else cluster
    heirs = [other for other in cluster.replicas if other in isr and other in cluster.registered]
    return _decide(cluster, heirs[0] if heirs else NO_LEADER, isr)


def _elect(cluster: Cluster, event: e.Elect) -> Cluster:
    decided = cluster.decided
    if event.broker not in cluster.registered or decided.leader == event.broker:
        return cluster
    if event.broker in decided.isr:
        return _decide(cluster, event.broker, decided.isr)
    if not event.is_unclean or decided.isr & cluster.registered:
        return cluster
    return _decide(cluster, event.broker, frozenset({event.broker}))


_HANDLERS: Final[Mapping[type, Callable[[Cluster, Any], Cluster]]] = {
    e.Produce: _produce,
    e.FetchOnce: _fetch,
    e.Deliver: _deliver,
    e.ShrinkIsr: _shrink,
    e.AnswerAlterIsr: _answer_alter_isr,
    e.CheckpointHighWatermarks: _checkpoint,
    e.Pass: _pass,
    e.Pause: _pause,
    e.Resume: _resume,
    e.Kill: _kill,
    e.LoseSession: _lose_session,
    e.Restart: _restart,
    e.Elect: _elect,
    e.LoseCheckpoint: _lose_checkpoint,
}
