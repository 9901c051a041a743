"""Brokers that were gone and back: whether a controller took notice (R16, KAFKA-7235)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.evidence import BrokerFact
from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import BROKER_EPOCHS_SINCE
from reconstruct.time.instants import utc

#: A controller takes notice of a change of /brokers/ids within this time, or says something else before.
_NOTICED_US: Final = 30_000_000
_NOTICES: Final = ("up", "down")
#: Clocks of ZooKeeper's servers may differ by this much, µs.
_CLOCK_US: Final = 1_000_000


def judge_bounces(
    registrations: Mapping[int, Sequence[RegistrationSpan]],
    facts: Iterable[BrokerFact],
    view: ClusterView,
    verdicts: Verdicts,
) -> None:
    """R16: a broker that registers anew is taken for one that failed and started.

    Judged only where one controller's lists of live brokers stand before and after, so that its log covers the bounce;
    not where such a list is what tells of it; and not where it tells of the broker at a time at which nothing happened
    to that: its clock may have been set.
    """
    noticed: dict[int, list[int]] = {}
    for fact in facts:
        if fact.kind in _NOTICES:
            noticed.setdefault(fact.broker_id, []).append(fact.at)
    for broker_id, spans in sorted(registrations.items()):
        told, changes = sorted(noticed.get(broker_id, ())), sorted(at for span in spans for at in _changes(span))
        is_told_elsewhere = any(not _has_within(changes, at - _NOTICED_US, at + _NOTICED_US) for at in told)
        for before, after in pairwise(spans):
            if before.interval.end is None:
                continue
            begin, end = before.interval.end - _NOTICED_US, after.interval.start + _NOTICED_US
            if _has_within(told, begin, end):
                verdicts.kept("R16")
            elif before.interval.inferred_from == "log_gap" or is_told_elsewhere or not _is_covered(view, begin, end):
                verdicts.unjudged("R16")
            else:
                verdicts.broken(_not_noticed(broker_id, before, after, view))


def _has_within(instants: Sequence[int], first: int, last: int) -> bool:
    return bisect_left(instants, first) < bisect_right(instants, last)


def _changes(span: RegistrationSpan) -> tuple[int, ...]:
    start, end = span.interval.start, span.interval.end
    return (start,) if end is None else (start, end)


def _is_covered(view: ClusterView, begin: int, end: int) -> bool:
    """Whether one controller was in office all the time, and lists live brokers on both sides, or its log goes on."""
    tenure = view.tenure_at(begin)
    if tenure is None or (tenure.end is not None and tenure.end <= end) or tenure.start > begin:
        return False
    own = [listed.at for listed in view.live_views if listed.controller_id == tenure.controller_id]
    return any(tenure.start - _NOTICED_US <= at <= begin for at in own) and any(at >= end for at in own)


def _not_noticed(broker_id: int, before: RegistrationSpan, after: RegistrationSpan, view: ClusterView) -> Finding:
    gone, back = before.interval.end, after.interval.start
    assert gone is not None
    by_design = view.version.may_be_before(BROKER_EPOCHS_SINCE)
    return Divergence(
        DivergenceType.BOUNCE_NOT_NOTICED, "warning" if by_design else "error", back, broker_id=broker_id
    ).explained(
        "a controller that takes the replicas of a broker that registers anew offline and online again",
        f"no controller tells of the end of broker {broker_id}'s registration or of its next one",
        f"Broker {broker_id}'s registration ended by {utc(gone)} and another began at {utc(back)}; the controller,"
        " whose log covers both, tells of neither. It sends that broker no LeaderAndIsr for what it led or followed,"
        " until something else makes it.",
        (*before.interval.evidence[-1:], *after.interval.evidence[:1]),
        known_issue=known_issue("KAFKA-7235", view.version),
    )


def judge_registration_order(facts: Iterable[BrokerFact], verdicts: Verdicts) -> None:
    """R16: a broker's next registration has a higher zxid, which is its broker epoch since 2.2, and a later time.

    Which of two is the later one, the snapshots tell, in which the other was found gone. A lower zxid is an error where
    another broker's registration, which lasted, has a higher one: else ZooKeeper may have been restored or wiped.
    A quorum counts by the offsets of its log, which say nothing beside zxids.
    """
    known = list(facts)
    for is_of_quorum in (False, True):
        _judge_order([fact for fact in known if fact.is_of_quorum is is_of_quorum], verdicts)


def _judge_order(facts: Iterable[BrokerFact], verdicts: Verdicts) -> None:
    registered: dict[tuple[int, int], BrokerFact] = {}
    gone: dict[tuple[int, int], BrokerFact] = {}
    for fact in facts:
        if fact.czxid is not None and fact.kind in ("registered", "unregistered"):
            found = registered if fact.kind == "registered" else gone
            found.setdefault((fact.broker_id, fact.czxid), fact)
    for low_key, high_key in pairwise(sorted(registered)):
        if low_key[0] != high_key[0]:
            continue
        low, high = registered[low_key], registered[high_key]
        low_gone, high_gone = gone.get(low_key), gone.get(high_key)
        if _is_later(high_gone, low_gone) and low.at > high.at:
            witness = next((f for key, f in registered.items() if _lasts(f, low, gone.get(key))), None)
            verdicts.broken(_older_epoch(high, low, witness))
        elif _is_later(low_gone, high_gone) and high.at < low.at - _CLOCK_US:
            verdicts.broken(_older_time(low, high))


def judge_listed_epochs(facts: Iterable[BrokerFact], view: ClusterView, verdicts: Verdicts) -> None:
    """R16: within a tenure no list of the controller's (since 2.2) has a lower broker epoch than the one before: it is
    the zxid of the registration. A higher one of another broker that stayed shows that ZooKeeper did, too. The lists of
    a controller whose clock was set back have no order."""
    lists: dict[tuple[int, int, str], dict[int, BrokerFact]] = {}
    for fact in facts:
        if fact.kind == "epoch_listed" and fact.controller_id is not None and fact.czxid is not None:
            lists.setdefault((fact.controller_id, fact.at, fact.evidence_id), {})[fact.broker_id] = fact
    tenure: Tenure | None = None
    newest: dict[int, dict[int, BrokerFact]] = {}
    for (controller_id, at, _), listed in sorted(lists.items(), key=lambda item: item[0]):
        if controller_id in view.set_back:
            verdicts.unjudged("R16")
            continue
        before, tenure = tenure, view.tenure_at(at)
        if tenure is None or tenure != before or tenure.controller_id != controller_id:
            newest = {}
        for broker_id, fact in sorted(listed.items()):
            if broker_id in newest:
                _judge_listed(newest[broker_id][broker_id], newest[broker_id], fact, listed, verdicts)
        newest |= dict.fromkeys(listed, listed)


def _judge_listed(
    was: BrokerFact,
    before: Mapping[int, BrokerFact],
    now: BrokerFact,
    after: Mapping[int, BrokerFact],
    verdicts: Verdicts,
) -> None:
    """One broker's epoch in the last list that had it, and in one later."""
    if (now.czxid or 0) >= (was.czxid or 0) or now.at <= was.at:
        verdicts.kept("R16")
        return
    for id_, other in sorted(after.items()):
        if id_ in before and other.czxid == before[id_].czxid and (other.czxid or 0) > (now.czxid or 0):
            verdicts.broken(_older_epoch(was, now, other))
            return
    verdicts.unjudged("R16")


def _is_later(first_gone: BrokerFact | None, other_gone: BrokerFact | None) -> bool:
    """Whether the one was found gone, and the other not, or later."""
    return first_gone is not None and (other_gone is None or other_gone.at > first_gone.at)


def _lasts(other: BrokerFact, low: BrokerFact, gone: BrokerFact | None) -> bool:
    """Whether another broker's registration with a higher zxid was there before and after."""
    is_other = other.broker_id != low.broker_id and (other.czxid or 0) > (low.czxid or 0)
    return is_other and other.at < low.at and (gone is None or gone.at > low.at)


def _older_epoch(before: BrokerFact, after: BrokerFact, witness: BrokerFact | None) -> Finding:
    why = (
        "ZooKeeper may have been wiped, or restored from a copy, in between."
        if witness is None
        else f"ZooKeeper was not restored in between: broker {witness.broker_id}'s registration {witness.czxid} lasted."
    )
    return Divergence(
        DivergenceType.REGISTRATION_OUT_OF_ORDER,
        "warning" if witness is None else "error",
        after.at,
        broker_id=after.broker_id,
    ).explained(
        f"a registration created by a transaction after {before.czxid}",
        f"a registration created by transaction {after.czxid}",
        f"Broker {after.broker_id} registered again ({utc(after.at)}) with the older transaction {after.czxid}, its"
        f" broker epoch since 2.2: before it had {before.czxid}. {why}",
        (before.evidence_id, after.evidence_id, *((witness.evidence_id,) if witness is not None else ())),
    )


def _older_time(before: BrokerFact, after: BrokerFact) -> Finding:
    return Divergence(
        DivergenceType.REGISTRATION_OUT_OF_ORDER, "warning", after.at, broker_id=after.broker_id
    ).explained(
        f"a registration after {utc(before.at)}",
        f"a registration at {utc(after.at)}",
        f"Broker {after.broker_id} registered again by the later transaction {after.czxid}, with a time before that of"
        f" {before.czxid} ({utc(before.at)}): ZooKeeper's clock was set back, or another of its servers leads, whose"
        " clock is behind.",
        (before.evidence_id, after.evidence_id),
    )
