"""Which brokers were alive when: from their registrations in /brokers/ids, and from what controllers saw of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.evidence import BrokerFact
from reconstruct.cluster.view import Registration
from reconstruct.time.intervals import Interval

#: A controller that hears of a lost registration logs it after the fact, and a snapshot's round takes a while.
_SLACK_US: Final = 30_000_000


@dataclass(frozen=True, slots=True)
class RegistrationSpan:
    """One registration; ``ended_before`` bounds its end where only an interval is known."""

    interval: Interval[Registration]
    ended_before: int | None


def broker_registrations(facts: Iterable[BrokerFact]) -> dict[int, list[RegistrationSpan]]:
    """By broker, its registrations in order; by znodes where any were given, else by the controllers' logs."""
    by_broker: dict[int, list[BrokerFact]] = {}
    for fact in sorted(facts, key=lambda f: (f.at, f.kind, f.evidence_id)):
        by_broker.setdefault(fact.broker_id, []).append(fact)
    has_znodes = any(f.kind == "registered" for facts_of in by_broker.values() for f in facts_of)
    build = _from_znodes if has_znodes else _from_logs
    result = {broker_id: build(facts_of) for broker_id, facts_of in sorted(by_broker.items())}
    return {broker_id: spans for broker_id, spans in result.items() if spans}


def _from_znodes(facts: Sequence[BrokerFact]) -> list[RegistrationSpan]:
    registered: dict[int, BrokerFact] = {}
    for fact in facts:
        if fact.kind == "registered" and fact.czxid is not None:
            registered.setdefault(fact.czxid, fact)
    gone = {f.czxid: f for f in facts if f.kind == "unregistered"}
    downs = [f for f in facts if f.kind in ("down", "absent")]
    order = sorted(registered.values(), key=lambda f: f.czxid or 0)
    spans: list[RegistrationSpan] = []
    for index, fact in enumerate(order):
        following = order[index + 1] if index + 1 < len(order) else None
        lost = gone.get(fact.czxid)
        start = max(fact.at, (spans[-1].interval.end if spans else None) or fact.at)
        if lost is None and following is None:
            spans.append(RegistrationSpan(Interval(start, None, Registration(), (fact.evidence_id,)), None))
            continue
        earliest = lost.at if lost else fact.at
        ends = (lost.at_upper if lost else None, following.at if following else None)
        latest = min(at for at in ends if at is not None)
        heard = next((d for d in downs if earliest <= d.at <= latest + _SLACK_US), None)
        end = min(heard.at, latest) if heard else latest
        evidence = tuple(dict.fromkeys(known.evidence_id for known in (fact, lost, heard) if known is not None))
        reason = _end_reason(facts, start, end, was_lost=lost is not None or heard is not None)
        inferred = None if heard else "znode_snapshot"
        interval = Interval(start, max(start, end), Registration(reason), evidence, inferred)
        spans.append(RegistrationSpan(interval, max(start, latest)))
    return spans


def _from_logs(facts: Sequence[BrokerFact]) -> list[RegistrationSpan]:
    spans: list[RegistrationSpan] = []
    opened: BrokerFact | None = None
    for fact in facts:
        if fact.kind in ("up", "live") and opened is None:
            opened = fact
        elif fact.kind in ("down", "absent") and opened is not None:
            inferred = "log_gap" if fact.kind == "absent" else _begun(opened)
            reason = _end_reason(facts, opened.at, fact.at, was_lost=True)
            evidence = (opened.evidence_id, fact.evidence_id)
            spans.append(
                RegistrationSpan(Interval(opened.at, fact.at, Registration(reason), evidence, inferred), fact.at)
            )
            opened = None
    if opened is not None:
        spans.append(
            RegistrationSpan(Interval(opened.at, None, Registration(), (opened.evidence_id,), _begun(opened)), None)
        )
    return spans


def _begun(opened: BrokerFact) -> str | None:
    return None if opened.kind == "up" else "retention_boundary"


def _end_reason(facts: Sequence[BrokerFact], start: int, end: int, *, was_lost: bool) -> str:
    if any(f.kind == "shutdown_requested" and start <= f.at <= end for f in facts):
        return EventType.CONTROLLED_SHUTDOWN
    return "registration_lost" if was_lost else "registered_again"
