"""What brokers ignored as stale, recomputed (R21): by the numbers that the line prints, and by what the broker held.

A broker compares the request's leader epoch with its own. Up to 2.2 it takes only a higher one and calls any other
old; since 2.3 it says whether the request's is smaller or matches; since 2.6 StopReplica is compared too, unless its
epoch is -1 (a request without one) or -2 (a deletion) (ReplicaManager.becomeLeaderOrFollower, stopReplicas; KIP-570).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import any_of
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import LEADER_DURING_DELETE
from reconstruct.model.versions import EPOCH_BUMP_CACHED_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.controller_view import VIEW_SLACK_US
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.processes import (
    AcceptedEpoch,
    is_between,
    is_one_process,
    shows_no_loss,
    walk,
)
from reconstruct.partitions.sightings import Rank
from reconstruct.time.instants import utc

#: What ignores a request, and what tells of its receipt.
_RECEIPT: Final[Mapping[str, str]] = {
    EventType.LEADER_AND_ISR_IGNORED: EventType.LEADER_AND_ISR_RECEIVED,
    EventType.STOP_REPLICA_IGNORED: EventType.STOP_REPLICA_RECEIVED,
}
#: "is smaller than the current leader epoch": equal would have been called a match.
_SMALLER: Final = frozenset({"SC-RM-85", "SC-RM-93"})
#: "matches the current leader epoch", which is not printed.
_MATCHES: Final = frozenset({"SC-RM-86", "SC-RM-94"})
#: "as itself is not in assigned replica list".
_NOT_ASSIGNED: Final = frozenset({"SC-RM-17", "SC-RM-32", "SC-RM-60"})
#: "Topic ID in memory ... does not match the topic ID for partition".
_OTHER_TOPIC_ID: Final = frozenset({"SC-RM-103", "SC-PART-09"})
#: "as replica doesn't exist on broker".
_NO_REPLICA: Final = frozenset({"SC-RM-13", "SC-RM-45", "SC-RM-52"})
#: What a controller tells a broker of the leader epoch as it is.
_TELLS_EPOCH: Final = (EventType.LEADER_AND_ISR_RECEIVED, EventType.METADATA_CACHED)
#: A reassignment raises the leader epoch at most so often before an election does.
_MOST_RAISED: Final = 2
#: StopReplica without a leader epoch, and of a deletion: never compared.
_SENTINELS: Final = (-1, -2)


#: By kind, controller, its epoch and correlation id: the receipts of a broker's log, in order.
_Receipts = Mapping[tuple[str, int | None, int | None, int | None], Sequence[Evidence]]


def judge_refusals(case: Case, verdicts: Verdicts) -> None:
    """R21: a request is ignored only for the reason given."""
    for broker_id, facts in case.facts_of_brokers.items():
        own = [change for change in case.role_changes if change.broker_id == broker_id]
        receipts = _receipts(facts)
        for line, last in walk(case.cluster, broker_id, facts, own):
            if line.kind in _RECEIPT:
                is_known = last is not None and not is_between(case.recreated_at, last.change.at, line.at)
                _judge(case, broker_id, line, last if is_known else None, receipts, verdicts)
        _judge_topic_ids(case, broker_id, facts, verdicts)


def _judge_topic_ids(case: Case, broker_id: int, facts: Sequence[Evidence], verdicts: Verdicts) -> None:
    """A broker that refuses a partition, since the topic's id is another than the one it holds."""
    refused = [fact for fact in facts if fact.shape_id in _OTHER_TOPIC_ID]
    if refused:
        verdicts.broken(
            Divergence(
                DivergenceType.TOPIC_ID_DIFFERS, "warning", refused[0].at, broker_id=broker_id, replica_id=broker_id
            ).explained(
                "one id of the topic, from its creation to its deletion",
                f"{len(refused)} refusals from {utc(refused[0].at)} on",
                f"Broker {broker_id} refused the partition {len(refused)} times, since the controller's request names"
                " another id of the topic than its log has: the topic lost its id, or was created again while the"
                " broker kept the old replica. It follows no leader until the ids agree.",
                tuple(fact.evidence_id for fact in refused[:8]),
                any_of(case.cluster.version, "KAFKA-12835", "KAFKA-14190"),
            )
        )


def _receipts(facts: Sequence[Evidence]) -> _Receipts:
    found: dict[tuple[str, int | None, int | None, int | None], list[Evidence]] = {}
    for fact in facts:
        if fact.kind in _RECEIPT.values():
            request = (fact.kind, fact.controller_id, fact.controller_epoch, fact.correlation_id)
            found.setdefault(request, []).append(fact)
    return found


def _judge(
    case: Case, broker_id: int, line: Evidence, last: AcceptedEpoch | None, receipts: _Receipts, verdicts: Verdicts
) -> None:
    receipt = _receipt_of(case, broker_id, line, receipts)
    reason = (
        _refuted_by_itself(broker_id, line)
        or _refuted_by_receipt(line, receipt)
        or _refuted_by_log(case, broker_id, line, last, receipt)
    )
    is_held = last is not None and last.leader_epoch >= (line.known_leader_epoch or 0)
    if reason is None and not is_held:  # else its own log shows the epoch that it says it held
        reason = (
            _refuted_by_later(case, broker_id, line)
            or _refuted_by_znode(case, line)
            or _refuted_by_order(case, broker_id, line, last, receipt)
        )
    if reason is not None:
        verdicts.broken(_without_reason(case, broker_id, line, reason, last))
    elif _is_justified(case, line, last):
        verdicts.kept("R21")
    else:
        verdicts.unjudged("R21")


def _receipt_of(case: Case, broker_id: int, line: Evidence, receipts: _Receipts) -> Evidence | None:
    """The receipt, in the same process, of the request that the line ignores."""
    if line.correlation_id is None:
        return None
    request = (_RECEIPT[line.kind], line.controller_id, line.controller_epoch, line.correlation_id)
    before = [fact for fact in receipts.get(request, ()) if fact.order < line.order]
    if not before or not is_one_process(case.cluster, broker_id, before[-1].at, line.at):
        return None
    return before[-1]


def _refuted_by_itself(broker_id: int, line: Evidence) -> str | None:
    """What the line's own numbers say against it."""
    epoch, known = line.leader_epoch, line.known_leader_epoch
    if line.shape_id in _NOT_ASSIGNED and line.replicas is not None and broker_id in line.replicas:
        return f"the request assigns the partition to {list(line.replicas)}, this broker among them"
    if line.kind == EventType.STOP_REPLICA_IGNORED and epoch in _SENTINELS and line.shape_id in _SMALLER | _MATCHES:
        return f"a StopReplica with leader epoch {epoch} is not compared"
    if epoch is None or known is None:
        return None
    if line.shape_id in _SMALLER and epoch >= known:
        return f"leader epoch {epoch} is not smaller than {known}"
    if epoch > known:
        return f"leader epoch {epoch} is higher than {known}"
    return None


def _refuted_by_receipt(line: Evidence, receipt: Evidence | None) -> str | None:
    """What the receipt of the same request says against the line."""
    requested = receipt.leader_epoch if receipt is not None else None
    if requested is None or line.leader_epoch in (None, requested):
        return None
    return f"that request told leader epoch {requested}"


def _refuted_by_log(
    case: Case, broker_id: int, line: Evidence, last: AcceptedEpoch | None, receipt: Evidence | None
) -> str | None:
    """What the broker's own log says against the line; ``last`` is the least that it can have held."""
    if last is None:
        return None
    epoch = line.leader_epoch
    accepted = f"it had accepted leader epoch {last.leader_epoch} ({utc(last.change.at)})"
    if line.shape_id in _NO_REPLICA:
        return f"{accepted} for this replica, which nothing removed since"
    if epoch is None or epoch in _SENTINELS or line.shape_id in _NOT_ASSIGNED:
        return None
    if line.shape_id in _MATCHES and epoch < last.leader_epoch:
        return f"{accepted}, and leader epoch {epoch} is smaller"
    if epoch > last.leader_epoch and _is_never_requested(case, broker_id, line, last, receipt):
        return f"{accepted}, and no higher one since"
    return None


def _refuted_by_later(case: Case, broker_id: int, line: Evidence) -> str | None:
    """What happened later against the epoch that the line says the broker held: epochs only rise, so it accepts no
    lower one, names none as its own, and its controller, whose requests come in order, tells it none. Up to 2.3 a
    controller does not itself learn of the epoch that a reassignment raises."""
    known, cluster = line.known_leader_epoch, case.cluster
    if known is None or line.controller_epoch is None or not cluster.keeps_order(broker_id):
        return None
    for change in case.role_changes:
        epoch, fact = change.role.leader_epoch, change.fact
        is_later = change.broker_id == broker_id and _is_later(fact, line)
        if is_later and epoch is not None and epoch < known and not is_between(case.recreated_at, line.at, fact.at):
            return f"it accepted leader epoch {epoch} later ({utc(fact.at)}), never {known}"
    lag = 0 if cluster.version.is_since(EPOCH_BUMP_CACHED_SINCE) else _MOST_RAISED
    own = [fact for fact in case.facts_of_brokers[broker_id] if fact.file == line.file]
    newest = max(f.controller_epoch or 0 for f in own if f.offset <= line.offset)
    for fact in own:
        held = fact.known_leader_epoch
        is_lower = held is not None and (fact.leader_epoch or 0) <= held < known
        if is_lower and _is_later(fact, line) and not is_between(case.recreated_at, line.at, fact.at):
            return f"it held leader epoch {held} later ({utc(fact.at)}), by its own line"
        if not _is_later(fact, line) or fact.kind not in _TELLS_EPOCH or fact.leader_epoch is None:
            continue
        successor = cluster.successor_start(fact.controller_epoch or 0)
        is_current = (fact.controller_epoch or 0) >= newest and (successor is None or successor > fact.at)
        is_lower = 0 <= fact.leader_epoch < known - lag and fact.leader != LEADER_DURING_DELETE
        if is_current and is_lower and not is_between(case.recreated_at, line.at, fact.at):
            return f"its controller told it leader epoch {fact.leader_epoch} later ({utc(fact.at)}), never {known}"
    return None


def _refuted_by_znode(case: Case, line: Evidence) -> str | None:
    """What was written later against the epoch that the line says the broker held: writes of the znode are in order,
    and none lowers the epoch. A broker whose clock has it refuse what was not yet decided is believed no time."""
    known = line.known_leader_epoch
    decided = [s.at for s in case.sightings if s.rank is Rank.WRITTEN and s.leader_epoch == line.leader_epoch]
    if not decided or min(decided) > line.at:
        return None
    for sighting in case.sightings:
        is_later = sighting.rank is Rank.WRITTEN and sighting.at > line.at + VIEW_SLACK_US
        if known is not None and is_later and sighting.leader_epoch < known:
            if is_between(case.recreated_at, line.at, sighting.at):
                return None
            return f"the znode was written at leader epoch {sighting.leader_epoch} later ({utc(sighting.at)})"
    return None


def _refuted_by_order(
    case: Case, broker_id: int, line: Evidence, last: AcceptedEpoch | None, receipt: Evidence | None
) -> str | None:
    """What its controller had decided by then against the epoch that the line says the broker held.

    A controller's requests come in order, and a request of a controller before it is refused as a whole. So where the
    controller itself decided the request's epoch, the broker can hold a higher one only if that was decided, too.
    """
    epoch, known = line.leader_epoch, line.known_leader_epoch
    if receipt is None or epoch is None or known is None or line.controller_epoch is None:
        return None
    decided = [
        sighting
        for sighting in case.sightings
        if sighting.rank <= Rank.DECIDED
        and sighting.leader_epoch == epoch
        and line.controller_epoch in (sighting.fact.controller_epoch, sighting.fact.state_controller_epoch)
        and sighting.at <= line.at
    ]
    if not decided or epoch >= known or case.names_epoch(known, line.at + VIEW_SLACK_US, line):
        return None
    if _may_be_raised_unseen(case) or not _is_of_this_incarnation(case, broker_id, line, last):
        return None
    if is_between(case.recreated_at, decided[-1].at, line.at):
        return None
    return (
        f"that controller decided leader epoch {epoch} itself ({utc(decided[-1].at)}), its requests come in order, and"
        f" no leader epoch {known} had been decided by then"
    )


def _may_be_raised_unseen(case: Case) -> bool:
    """Whether a reassignment may have raised an epoch that its controller does not know of (up to 2.2)."""
    if case.cluster.version.is_since(EPOCH_BUMP_CACHED_SINCE):
        return False
    replicas = {assigned.value.replicas for assigned in case.assignments}
    return bool(case.reassigning) or len(replicas) != 1


def _is_of_this_incarnation(case: Case, broker_id: int, line: Evidence, last: AcceptedEpoch | None) -> bool:
    """Whether the broker's process can know no epoch of a topic of that name before this one."""
    starts = [at for at, _ in case.cluster.process_starts.get(broker_id, ()) if at <= line.at]
    return last is not None or bool(starts and case.decided and case.decided[0].start < starts[-1])


def _is_later(fact: Evidence, line: Evidence) -> bool:
    """Whether it is later by the file and by its time: within an instant the order may be that of a sorting tool."""
    return fact.file == line.file and fact.offset > line.offset and fact.at > line.at


def _is_never_requested(
    case: Case, broker_id: int, line: Evidence, last: AcceptedEpoch, receipt: Evidence | None
) -> bool:
    """Whether the log is whole, and nothing but the request of the line itself shows an epoch as high."""
    return (
        case.cluster.logs_all(broker_id, last.change.at, line.at)
        and shows_no_loss(case, broker_id)
        and not any(
            fact.leader_epoch is not None
            and fact.leader_epoch >= (line.leader_epoch or 0)
            and fact is not line
            and fact is not receipt
            for fact in case.facts
        )
    )


def _is_justified(case: Case, line: Evidence, last: AcceptedEpoch | None) -> bool:
    """Whether the reason given is shown to hold: the epoch that the broker says it held was there by then."""
    if line.shape_id in _NOT_ASSIGNED:
        return line.replicas is not None
    if line.shape_id in _MATCHES:
        return last is not None and line.leader_epoch == last.leader_epoch
    known = line.known_leader_epoch
    if line.leader_epoch is None or known is None:
        return False
    return case.names_epoch(known, line.at + VIEW_SLACK_US, line)


def _without_reason(case: Case, broker_id: int, line: Evidence, reason: str, last: AcceptedEpoch | None) -> Finding:
    what = "StopReplica" if line.kind == EventType.STOP_REPLICA_IGNORED else "LeaderAndIsr"
    of = "" if line.leader_epoch is None else f" at leader epoch {line.leader_epoch}"
    return Divergence(DivergenceType.IGNORED_WITHOUT_REASON, case.severity(), line.at, broker_id=broker_id).explained(
        f"the {what}{of} accepted",
        f"the {what}{of} ignored",
        f"Broker {broker_id} ignored a {what}{of} of controller {line.controller_id} ({utc(line.at)}), but {reason}.",
        (line.evidence_id, *(last.change.evidence if last is not None else ())),
    )
