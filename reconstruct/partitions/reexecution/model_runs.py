"""One transition of one partition, done again by the model of the controller: which requests it must send.

The controller is built from what its log says just before: states, assignment, leader and ISR, live brokers. The model
(:mod:`reconstruct.model.controller`) then moves the partition or the replica. What the log does not say (the occasion
of an election, who is shutting down, whether the topic is being deleted) is tried in each way that fits what was
logged; only what every way sends *must* be sent.

All is pure and depends on few values, so runs are remembered. The recipients do not depend on the leader epoch: give 0
for the one before, and the same run serves all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ingest.shapes.event_types import EventType
from reconstruct.model.controller import partition_state_machine, replica_state_machine
from reconstruct.model.controller.context import ControllerContext, Settings
from reconstruct.model.controller.leader_election import Choice, Election
from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Reason,
    Request,
    Result,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import ZooKeeper, partition_state_path
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import KafkaVersion

_PARTITION = TopicPartition("t", 0)
_EPOCH = 1


class SentRequest(NamedTuple):
    """One request to one broker; ``is_delete`` is of StopReplica."""

    kind: str
    broker_id: int
    is_delete: bool = False


class Leadership(NamedTuple):
    """A leader, its epoch and its ISR, as a line shows them."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


class ControllerCache(NamedTuple):
    """What the controller holds just before: its version, the assignment, who is live, who leads (None: nobody yet)."""

    version: KafkaVersion
    replicas: tuple[int, ...]
    live: frozenset[int]
    leadership: Leadership | None
    is_deleted: bool = False
    #: those that may be shutting down, besides the leader.
    may_leave: frozenset[int] = frozenset()


@lru_cache(maxsize=1 << 14)
def requests_of_replica(
    cache: ControllerCache, replica_id: int, from_state: str, to_state: str
) -> frozenset[SentRequest] | None:
    """What the transition of a replica sends; None where the model refuses it."""
    replica = PartitionAndReplica(_PARTITION, replica_id)
    context = _context(cache, replica_states={replica: ReplicaState(from_state)})
    result = replica_state_machine.handle_state_changes(
        context, _zookeeper(cache.leadership), (replica,), ReplicaState(to_state)
    )
    if result.failures or not result.transitions:
        return None
    return _sent_requests(result.requests)


@lru_cache(maxsize=1 << 14)
def requests_of_creation(cache: ControllerCache, decided: Leadership) -> frozenset[SentRequest] | None:
    """What a new partition's first leader sends; None where the model decides otherwise."""
    context = _context(cache._replace(leadership=None), partition_state=PartitionState.NEW)
    result = partition_state_machine.handle_state_changes(
        context, ZooKeeper(), (_PARTITION,), PartitionState.ONLINE, partition_state_machine.OFFLINE_ELECTION
    )
    return _sent_requests(result.requests) if _decides(result, decided) else None


@lru_cache(maxsize=1 << 14)
def requests_of_election(
    cache: ControllerCache, from_state: str, decided: Leadership, unclean: bool | None
) -> frozenset[SentRequest] | None:
    """What an election sends in every way that gives ``decided``; None where none does."""
    before = cache.leadership
    if before is None:
        return None
    leaving = {frozenset[int](), frozenset({before.leader}), cache.may_leave - set(decided.isr) - {decided.leader}}
    fitting: list[frozenset[SentRequest]] = []
    for isr in _isrs_before(before, decided):
        cached = before._replace(isr=isr)
        for shutting_down in leaving:
            context = _context(
                cache._replace(leadership=cached), PartitionState(from_state), shutting_down=shutting_down
            )
            for election in _elections(unclean):
                if not _may_decide(context, cached, election, decided):
                    continue
                result = partition_state_machine.handle_state_changes(
                    context, _zookeeper(cached), (_PARTITION,), PartitionState.ONLINE, election
                )
                if _decides(result, decided) or (result.transitions and not result.elected):
                    fitting.append(_sent_requests(result.requests))
    return frozenset.intersection(*fitting) if fitting else None


def _may_decide(context: ControllerContext, cached: Leadership, election: Election, decided: Leadership) -> bool:
    """Whether the election alone gives that leader and ISR, or counts as held without being needed (up to 1.0)."""
    outcome = Choice(context, _PARTITION, election).decide(_info(cached))
    if isinstance(outcome, LeaderAndIsr):
        return outcome.leader == decided.leader and set(outcome.isr) == set(decided.isr)
    is_not_needed = outcome is not None and outcome.reason is Reason.ELECTION_NOT_NEEDED
    return is_not_needed and cached.leader == decided.leader


def _isrs_before(before: Leadership, decided: Leadership) -> list[tuple[int, ...]]:
    """A leader may have changed the ISR since the controller heard of it."""
    isrs = (before.isr, decided.isr, tuple(dict.fromkeys((*before.isr, *decided.isr))))
    return list({frozenset(isr): isr for isr in isrs}.values())


def _elections(unclean: bool | None) -> list[Election]:
    allowed = (False, True) if unclean is None else (unclean,)
    offline = [Election(ElectionKind.OFFLINE_PARTITION, allow_unclean=is_allowed) for is_allowed in allowed]
    return [*offline, *(Election(kind) for kind in ElectionKind if kind is not ElectionKind.OFFLINE_PARTITION)]


def _decides(result: Result, decided: Leadership) -> bool:
    info = result.context.leadership.get(_PARTITION)
    return (
        info is not None
        and bool(result.transitions)
        and info.leader == decided.leader
        and info.leader_and_isr.leader_epoch == decided.leader_epoch
        and set(info.isr) == set(decided.isr)
    )


def _context(
    cache: ControllerCache,
    partition_state: PartitionState = PartitionState.ONLINE,
    replica_states: dict[PartitionAndReplica, ReplicaState] | None = None,
    shutting_down: frozenset[int] = frozenset(),
) -> ControllerContext:
    info = cache.leadership
    return ControllerContext(
        settings=Settings(version=cache.version, unclean_leader_election_enable=False),
        epoch=_EPOCH,
        live_broker_epochs=dict.fromkeys(cache.live, 0),
        shutting_down_broker_ids=shutting_down,
        all_topics=frozenset({_PARTITION.topic}),
        assignments={_PARTITION: ReplicaAssignment(cache.replicas)},
        leadership={} if info is None else {_PARTITION: _info(info)},
        partition_states={_PARTITION: partition_state},
        replica_states=replica_states or {},
        topics_to_be_deleted=frozenset({_PARTITION.topic} if cache.is_deleted else ()),
    )


def _zookeeper(leadership: Leadership | None) -> ZooKeeper:
    if leadership is None:
        return ZooKeeper()
    return ZooKeeper().with_znodes({partition_state_path(_PARTITION): _info(leadership)})


def _info(leadership: Leadership) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(LeaderAndIsr(leadership.leader, leadership.isr, leadership.leader_epoch), _EPOCH)


def _sent_requests(requests: Iterable[Request]) -> frozenset[SentRequest]:
    found: set[SentRequest] = set()
    for request in requests:
        if isinstance(request, StopReplicaRequest):
            found.update(
                SentRequest(EventType.STOP_REPLICA_SENT, request.broker_id, p.delete_partition)
                for p in request.partitions
            )
        elif isinstance(request, LeaderAndIsrRequest):
            found.add(SentRequest(EventType.LEADER_AND_ISR_SENT, request.broker_id))
        elif isinstance(request, UpdateMetadataRequest) and request.partitions:
            found.add(SentRequest(EventType.UPDATE_METADATA_SENT, request.broker_id))
    return frozenset(found)
