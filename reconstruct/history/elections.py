"""Elections of one partition: what the controller had before it, what the rules allow, and what it chose.

A change of leader is an election of one of four kinds, or of a new partition. Its inputs (the ISR before, who was
live) are known only as far as the evidence goes: ``allowed`` holds every leader that some possible input gives, and
whether an election was clean is said only where the state just before it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from reconstruct.history.assignment import Assignment
from reconstruct.history.availability import Window
from reconstruct.history.cluster import ClusterView
from reconstruct.history.evidence import Evidence
from reconstruct.history.intervals import Interval, as_of
from reconstruct.history.leader_and_isr import LeaderAndIsr
from reconstruct.history.sightings import NO_LEADER
from reconstruct.model.elections import Brokers, Elected, ElectionKind, PartitionView, elect
from reconstruct.model.versions import KafkaVersion

NEW_PARTITION: Final = "new_partition"
UNKNOWN_KIND: Final = "unknown"
#: How long before or after a change of a broker's registration the controller's view of it is uncertain.
_VIEW_SLACK_US: Final = 2_000_000
#: A broker that asks for a controlled shutdown is gone within this time, or has given up.
_SHUTDOWN_US: Final = 120_000_000
#: More unknown brokers than this, and any assigned replica is taken to be possible.
_MOST_UNKNOWN: Final = 6


@dataclass(frozen=True, slots=True)
class Election:
    """One change of leader. ``is_unclean`` is None where the ISR just before it is not known."""

    at: int
    kind: str
    previous_leader: int | None
    observed_leader: int
    leader_epoch: int
    allowed: tuple[int, ...]
    is_unclean: bool | None
    isr_before: tuple[int, ...] | None
    isr: tuple[int, ...]
    evidence: tuple[str, ...]
    inferred_from: str | None


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What is known besides the states themselves; ``unclean`` are the settings that the evidence allows."""

    decided: Sequence[Interval[LeaderAndIsr]]
    assignments: Sequence[Interval[Assignment]]
    reassigning: Sequence[Window]
    said_unclean: Sequence[Evidence]
    unclean: tuple[bool, ...]
    cluster: ClusterView


def elections(
    topic: str,
    decided: Sequence[Interval[LeaderAndIsr]],
    assignments: Sequence[Interval[Assignment]],
    reassigning: Sequence[Window],
    evidence: Iterable[Evidence],
    cluster: ClusterView,
) -> list[Election]:
    """The elections that the decided states show, in their order."""
    result = []
    is_allowed = cluster.unclean_election_allowed(topic)
    inputs = _Inputs(
        decided,
        assignments,
        reassigning,
        [fact for fact in evidence if fact.kind == "unclean_leader_selected"],
        (False, True) if is_allowed is None else (is_allowed,),
        cluster,
    )
    if decided and decided[0].value.leader_epoch == 0 and decided[0].value.leader != NO_LEADER:
        result.append(_first(decided[0], assignments, cluster))
    for before, after in pairwise(decided):
        old, new = before.value, after.value
        if new.leader in (NO_LEADER, old.leader) or new.leader_epoch <= old.leader_epoch:
            continue
        result.append(_election(before, after, inputs))
    return result


def _first(
    state: Interval[LeaderAndIsr], assignments: Sequence[Interval[Assignment]], cluster: ClusterView
) -> Election:
    """A new partition: the first live assigned replica leads, all live ones are in the ISR."""
    value = state.value
    assigned = as_of(assignments, state.start) or (assignments[0] if assignments else None)
    replicas = assigned.value.replicas if assigned else value.isr
    allowed = []
    for replica in replicas:
        is_live = _is_live(replica, state.start, cluster)
        if is_live is not False:
            allowed.append(replica)
        if is_live:
            break
    return Election(
        state.start, NEW_PARTITION, None, value.leader, 0, tuple(sorted(allowed)), False, None, value.isr,
        state.evidence[:2],
        state.inferred_from,
    )  # fmt: skip


def _election(
    before: Interval[LeaderAndIsr],
    after: Interval[LeaderAndIsr],
    inputs: _Inputs,
) -> Election:
    old, new, at, cluster = before.value, after.value, after.start, inputs.cluster
    assigned = as_of(inputs.assignments, at)
    replicas = assigned.value.replicas if assigned else ()
    kind = _kind(old, new, at, replicas, inputs)
    allowed: set[int] = set()
    if kind != UNKNOWN_KIND and replicas:
        target = assigned.value.target if assigned and kind == ElectionKind.REASSIGNED_PARTITION else None
        view = PartitionView(replicas, old.isr, old.leader, old.leader_epoch, target)
        leaving = _shutting_down(at, cluster) | ({old.leader} if kind == ElectionKind.CONTROLLED_SHUTDOWN else set())
        for live in _possibly_live(replicas, at, cluster):
            for version in (cluster.version.low, cluster.version.high):
                brokers = Brokers(live | leaving, frozenset(leaving))
                allowed |= _outcomes(ElectionKind(kind), view, brokers, inputs.unclean, version)
    witness = [f for f in inputs.said_unclean if abs(f.at - at) <= _VIEW_SLACK_US]
    is_unclean = _is_unclean(before, after, bool(witness))
    evidence = dict.fromkeys((*after.evidence[:2], *before.evidence[:1], *(f.evidence_id for f in witness[:1])))
    return Election(
        at, str(kind), old.leader, new.leader, new.leader_epoch, tuple(sorted(allowed)), is_unclean,
        _last_known_isr(before, inputs.decided), new.isr, tuple(evidence), after.inferred_from,
    )  # fmt: skip


def _kind(
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    at: int,
    replicas: tuple[int, ...],
    inputs: _Inputs,
) -> str:
    cluster = inputs.cluster
    same_isr = frozenset(old.isr) == frozenset(new.isr)
    if old.leader in _shutting_down(at, cluster) and old.leader not in new.isr:
        return ElectionKind.CONTROLLED_SHUTDOWN
    if old.leader == NO_LEADER or _is_live(old.leader, at, cluster) is False or old.leader not in new.isr:
        return ElectionKind.OFFLINE_PARTITION
    is_reassigned = any(
        start <= at and (end is None or at <= end + _VIEW_SLACK_US) for start, end, _ in inputs.reassigning
    )
    if same_isr and is_reassigned:
        return ElectionKind.REASSIGNED_PARTITION
    if same_isr and replicas[:1] == (new.leader,):
        return ElectionKind.PREFERRED_REPLICA
    return UNKNOWN_KIND


def _is_unclean(before: Interval[LeaderAndIsr], after: Interval[LeaderAndIsr], is_said: bool) -> bool | None:
    """Against the ISR just before: certain where the versions follow each other, or the controller says so itself."""
    old, new = before.value, after.value
    if is_said or (new.leader_recovery_state == 1 and old.leader_recovery_state != 1):
        return True
    if len(new.isr) > 1:
        return False  # an unclean leader is alone in its ISR
    versions = (old.partition_epoch, new.partition_epoch)
    follows = None not in versions and versions[1] == (versions[0] or 0) + 1
    return new.leader not in old.isr if follows else None


def _last_known_isr(before: Interval[LeaderAndIsr], decided: Sequence[Interval[LeaderAndIsr]]) -> tuple[int, ...]:
    """The ISR before the election; where it was empty, the last that was not."""
    for interval in reversed(decided):
        is_earlier = interval.start <= before.start and interval.value.leader_epoch <= before.value.leader_epoch
        if is_earlier and interval.value.isr:
            return interval.value.isr
    return before.value.isr


def _is_live(broker_id: int, at: int, cluster: ClusterView) -> bool | None:
    """Whether the controller held the broker for live; None near a change of its registration, or where unknown."""
    states = {cluster.is_live(broker_id, at + shift) for shift in (-_VIEW_SLACK_US, 0, _VIEW_SLACK_US)}
    return states.pop() if len(states) == 1 else None


def _shutting_down(at: int, cluster: ClusterView) -> set[int]:
    return {
        broker_id
        for broker_id, registrations in cluster.liveness.items()
        for interval in registrations
        if interval.value.end_reason == "controlled_shutdown"
        and interval.end is not None
        and interval.start <= at <= interval.end + _VIEW_SLACK_US
        and interval.end - at <= _SHUTDOWN_US
    }


def _possibly_live(replicas: Sequence[int], at: int, cluster: ClusterView) -> Iterator[frozenset[int]]:
    """Every set of live replicas that the evidence allows."""
    states = {replica: _is_live(replica, at, cluster) for replica in replicas}
    certain = frozenset(replica for replica, is_live in states.items() if is_live)
    unknown = [replica for replica, is_live in states.items() if is_live is None]
    if len(unknown) > _MOST_UNKNOWN:
        yield from (certain | {replica} for replica in unknown)
        return
    for size in range(len(unknown) + 1):
        for chosen in combinations(unknown, size):
            yield certain | frozenset(chosen)


def _outcomes(
    kind: ElectionKind, view: PartitionView, brokers: Brokers, unclean: tuple[bool, ...], version: KafkaVersion
) -> set[int]:
    """Leaders that the election gives; unclean ones unless the configuration is known to forbid them."""
    results = (elect(kind, view, brokers, allowed, version) for allowed in unclean)
    return {result.leader for result in results if isinstance(result, Elected)}
