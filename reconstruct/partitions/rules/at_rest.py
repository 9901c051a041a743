"""At rest, what each live broker holds is what was decided last; leaders stuck on an old version of it (R24).

Requests may be late: a controller works through thousands of partitions before it sends, a broker may be paused, a
connection is given up after ``controller.socket.timeout.ms`` (30 s) and tried again. So a difference is reported only
where nothing was decided for longer than that, by a controller in office all the time, to a broker that was registered,
whose process ran, and whose log covers all of it; it is a warning, since the request may still be under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import LEADER_DURING_DELETE, NO_LEADER
from reconstruct.model.versions import EPOCH_BUMP_CACHED_SINCE, SHRUNK_ISR_SENT_TO_ALL_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import ZNODE_DELETION_REQUESTED, Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.partitions.processes import shows_no_loss
from reconstruct.partitions.roles import CACHED, FOLLOWER, LEADER, Role
from reconstruct.partitions.rules.beliefs import acted_as, decided_leaders
from reconstruct.partitions.sightings import Rank
from reconstruct.time.instants import utc
from reconstruct.time.intervals import Interval

#: The default of controller.socket.timeout.ms, all versions.
_REST_US: Final = 30_000_000
#: Lines after which a broker need not be what it was told to be.
_EXCUSES: Final = (EventType.LEADER_AND_ISR_FAILED, EventType.BECOME_LEADER_FAILED, EventType.BECOME_FOLLOWER_FAILED)


@dataclass(frozen=True, slots=True)
class _LastDecision:
    """The state decided last, and since when its leader epoch has held."""

    state: LeaderAndIsrState
    since: int
    evidence: tuple[str, ...]
    #: neither a znode nor a controller shows it.
    is_inferred: bool


def judge_at_rest(case: Case, verdicts: Verdicts) -> None:
    """R24: each broker's cache, and each assigned replica's role, against the state decided last."""
    latest = _last_decision(case)
    if latest is None:
        return
    for broker_id, timeline in sorted(case.caches.items()):
        _judge(case, latest, broker_id, timeline[-1], verdicts)
    assigned = case.assignments[-1].value.replicas if case.assignments else ()
    for broker_id, timeline in sorted(case.roles.items()):
        if broker_id in assigned:
            _judge(case, latest, broker_id, timeline[-1], verdicts)


def _last_decision(case: Case) -> _LastDecision | None:
    """None where nothing is decided at the end, or the topic is on its way out."""
    last = case.decided[-1] if case.decided else None
    if last is None or last.end is not None or case.deleted_at is not None:
        return None
    if any(
        fact.kind in (ZNODE_DELETION_REQUESTED, EventType.METADATA_DELETED) or fact.leader == LEADER_DURING_DELETE
        for fact in case.facts
    ):
        return None
    of_epoch = [i for i in case.decided if i.value.leader_epoch == last.value.leader_epoch]
    leaders = decided_leaders(case).get(last.value.leader_epoch, {})
    if sum(sighting.rank <= Rank.DECIDED for sighting in leaders.values()) > 1:
        return None  # nothing says which of the two was decided last: R02
    is_sighted = last.value.leader in leaders
    return _LastDecision(last.value, of_epoch[0].start, last.evidence, not is_sighted)


def _judge(case: Case, latest: _LastDecision, broker_id: int, last: Interval[Role], verdicts: Verdicts) -> None:
    believed = last.value
    if believed.role not in (CACHED, LEADER, FOLLOWER) or believed.leader_epoch is None:
        verdicts.unjudged("R24")
    elif _agrees(case, latest, broker_id, believed):
        verdicts.kept("R24")
    elif _is_excused(case, latest, broker_id, believed) or not _is_at_rest(case, latest, broker_id):
        verdicts.unjudged("R24")
    else:
        verdicts.broken(_differs(latest, broker_id, last))


def _agrees(case: Case, latest: _LastDecision, broker_id: int, believed: Role) -> bool:
    """Same leader, and the same leader epoch where the version tells it to this broker."""
    state = latest.state
    if believed.role != CACHED and (believed.role == LEADER) is not (state.leader == broker_id):
        return False
    if believed.leader is not None and believed.leader != state.leader:
        return False
    if believed.leader_epoch == state.leader_epoch:
        return True
    version = case.cluster.version
    if believed.role == CACHED:
        # a reassignment raised the epoch without refreshing what the controller tells
        return version.may_be_before(EPOCH_BUMP_CACHED_SINCE)
    return believed.role == FOLLOWER and version.may_be_before(SHRUNK_ISR_SENT_TO_ALL_SINCE)


def _is_excused(case: Case, latest: _LastDecision, broker_id: int, believed: Role) -> bool:
    """A later epoch than any decided is another finding; no leader cannot be followed; a failure is logged."""
    if latest.is_inferred or believed.leader_epoch is None or believed.leader_epoch > latest.state.leader_epoch:
        return True
    return believed.role != CACHED and (
        latest.state.leader == NO_LEADER
        or any(fact.kind in _EXCUSES and fact.broker_id == broker_id for fact in case.facts if fact.at >= latest.since)
    )


def _is_at_rest(case: Case, latest: _LastDecision, broker_id: int) -> bool:
    cluster = case.cluster
    until = max((span.end for span in cluster.logs.get(broker_id, ())), default=None)
    registered = [span for span in cluster.liveness.get(broker_id, ()) if until is not None and span.holds_at(until)]
    tenure = None if until is None else cluster.tenure_at(until)
    if until is None or not registered or tenure is None or tenure.end is not None:
        return False
    starts = [at for at, _ in cluster.process_starts.get(broker_id, ()) if at <= until]
    since = max(latest.since, registered[-1].start, tenure.start, *starts)
    is_covered = until - since > _REST_US and cluster.logs_all(broker_id, since, until)
    return is_covered and shows_no_loss(case, broker_id)


def _differs(latest: _LastDecision, broker_id: int, last: Interval[Role]) -> Finding:
    believed, state = last.value, latest.state
    decided = f"leader {state.leader} at leader epoch {state.leader_epoch}"
    if believed.role == CACHED:
        kind, holds = (
            DivergenceType.CACHE_DIFFERS_AT_REST,
            f"leader {believed.leader} at leader epoch {believed.leader_epoch}",
        )
        subject = f"the metadata cache of broker {broker_id} still held {holds}"
    else:
        kind, holds = (
            DivergenceType.ROLE_DIFFERS_AT_REST,
            f"{acted_as(believed.role, believed.leader)} at leader epoch {believed.leader_epoch}",
        )
        subject = f"broker {broker_id} still acted as {holds}"
    return Divergence(kind, "warning", last.start, broker_id=broker_id).explained(
        decided,
        holds,
        f"Since {utc(latest.since)} {decided} was decided and nothing changed it; {subject} (since {utc(last.start)}),"
        f" though it was registered and its log covers more than {_REST_US // 1_000_000} s of rest.",
        (*last.evidence, *latest.evidence[:1]),
    )


#: A deposed leader hears of its successor within seconds; one that fails for longer does not hear at all.
_STUCK_US: Final = 30_000_000
_NEWS: Final = (
    EventType.LEADER_AND_ISR_RECEIVED,
    EventType.LEADER_EPOCH_STARTED,
    EventType.BECOME_LEADER_COMPLETED,
    EventType.BECOME_FOLLOWER_COMPLETED,
    EventType.ISR_UPDATE_COMMITTED,
    EventType.STOP_REPLICA_HANDLED,
)


def judge_stuck_leaders(case: Case, verdicts: Verdicts) -> None:
    """R24: a leader whose changes of the ISR are refused again and again, for one version, and that hears nothing."""
    for run in _runs(case.facts):
        first, last = run[0], run[-1]
        if last.at - first.at < _STUCK_US:
            verdicts.kept("R24")
            continue
        assert first.broker_id is not None
        verdicts.broken(
            Divergence(
                DivergenceType.LEADER_STUCK_ON_STALE_VERSION, "warning", first.at, broker_id=first.broker_id
            ).explained(
                "a leader that learns of the state that stands in ZooKeeper, or of its successor",
                f"{len(run)} changes of the ISR refused for partition epoch {first.partition_epoch}",
                f"From {utc(first.at)} to {utc(last.at)} broker {first.broker_id} tried {len(run)} times to change the"
                f" ISR with partition epoch {first.partition_epoch}, which was not the znode's, and no LeaderAndIsr"
                " reached it in between: it goes on as a leader without knowing that it may be none.",
                tuple(fact.evidence_id for fact in (first, last)),
                known_issue=known_issue("KAFKA-2729", case.cluster.version),
            )
        )


def _runs(facts: Sequence[Evidence]) -> Iterator[list[Evidence]]:
    """By broker: failures for one version, with nothing heard between them."""
    open_runs: dict[int | None, list[Evidence]] = {}
    for fact in facts:
        run = open_runs.get(fact.broker_id, [])
        if fact.kind == EventType.ISR_UPDATE_FAILED and fact.partition_epoch is not None:
            if run and run[-1].partition_epoch != fact.partition_epoch:
                yield open_runs.pop(fact.broker_id)
            open_runs.setdefault(fact.broker_id, []).append(fact)
        elif fact.kind in _NEWS and run:
            yield open_runs.pop(fact.broker_id)
    yield from open_runs.values()
