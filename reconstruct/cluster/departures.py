"""When brokers stopped serving: before their registration ended, for ZooKeeper waits a session timeout for the dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.evidence import ClusterFacts, LifeSign
from reconstruct.cluster.view import Departure

#: A broker whose connection failed tries again within this time: failures closer together are one series.
_RETRIED_US: Final = 3_000_000
#: Failed connections longer than this before the end of a registration do not count.
FAILURES_US: Final = 60_000_000
#: With its default tick of two seconds ZooKeeper grants no longer session timeout, whatever a broker asks for.
_LONGEST_TIMEOUT_MS: Final = 40_000


def broker_departures(
    facts: ClusterFacts, registrations: Mapping[int, Sequence[RegistrationSpan]]
) -> dict[int, tuple[Departure, ...]]:
    """By broker, its departures in order: one for each end of a registration before which its own logs, or what it
    wrote to ZooKeeper, give a sign of life."""
    signs = facts.life_signs_by_broker
    found = {}
    for broker_id, spans in registrations.items():
        known = (
            _departure(
                facts, broker_id, span, following.interval.start if following else None, signs.get(broker_id, ())
            )
            for span, following in zip_longest(spans, spans[1:])
        )
        found[broker_id] = tuple(departure for departure in known if departure is not None)
    return {broker_id: departures for broker_id, departures in found.items() if departures}


def next_process_start(facts: ClusterFacts, broker_id: int, span: RegistrationSpan) -> int | None:
    """When the process after the one that made this registration started; None where none is known to have."""
    starts = (at for id_, at, _ in facts.process_starts if id_ == broker_id and at > span.interval.start)
    return min(starts, default=None)


def silent_since(facts: ClusterFacts, broker_id: int, span: RegistrationSpan) -> int | None:
    """From when on the broker sent ZooKeeper nothing, at the latest, where its session expired: a client that lives
    pings each third of the timeout, and ZooKeeper waits for the whole of it after the last ping. The rest is allowed
    for pings that were late. None where its configuration does not give the timeout, or the session may have been
    closed: the broker was asked to be shut down, or no line of its start proves that its log would tell.
    """
    end, least = span.interval.end, least_silence_us(facts, broker_id, span)
    has_start = any(id_ == broker_id and at <= span.interval.start for id_, at, _ in facts.process_starts)
    if least is None or end is None or not has_start or was_asked_to_stop(facts, broker_id, span):
        return None
    return end - least


def least_silence_us(facts: ClusterFacts, broker_id: int, span: RegistrationSpan) -> int | None:
    """How long a process was silent, at the least, before its session expired; None where that is not known."""
    own = facts.configuration_of(broker_id)
    timeout_ms = None if own is None else own.number(BrokerSetting.SESSION_TIMEOUT, span.interval.start, -1)
    if timeout_ms is None or timeout_ms < 0:
        return None
    return min(timeout_ms, _LONGEST_TIMEOUT_MS) * 1000 // 2


def was_asked_to_stop(facts: ClusterFacts, broker_id: int, span: RegistrationSpan) -> bool:
    """Whether its controller was asked to let the broker shut down in the time of the registration."""
    return any(
        fact.broker_id == broker_id and fact.kind == "shutdown_requested" and span.interval.holds_at(fact.at)
        for fact in facts.brokers
    )


def _departure(
    facts: ClusterFacts, broker_id: int, span: RegistrationSpan, registered_again: int | None, signs: Sequence[LifeSign]
) -> Departure | None:
    end = span.interval.end
    if end is None:
        return None
    next_start = next_process_start(facts, broker_id, span)
    own = [sign for sign in signs if span.interval.start < sign.at and (next_start is None or sign.at < next_start)]
    leaving = [sign for sign in own if sign.kind == "leaving" and sign.at <= end]
    alive = leaving or [sign for sign in own if sign.kind in ("line", "written") and sign.at <= end]
    if not alive:
        return None
    last = alive[-1]
    silent_from = None if leaving else silent_since(facts, broker_id, span)
    # a broker that lives on past that was paused or cut off: it may have served nobody since the line before
    served = last if silent_from is None else next((sign for sign in reversed(alive) if sign.at <= silent_from), last)
    evidence: tuple[str, ...] = (served.evidence_id, *span.interval.evidence[-1:])
    gone_by: int | None = None
    failure = _first_failure(signs, max(last.at, end - FAILURES_US), min(end, next_start or end))
    lines = [sign.at for sign in own if sign.kind == "line"]
    lived_on = any(at > end for at in lines) or (
        registered_again is not None and (next_start is None or registered_again < next_start)
    )
    # where nothing tells of its next start, its later lines may only not have been given
    is_dead = bool(lines) and not lived_on and (next_start is not None or failure is not None)
    if leaving or is_dead:
        known = [(end, evidence[-1])]
        if next_start is not None:
            known.append((next_start, evidence[-1]))
        if silent_from is not None:
            known.append((silent_from, evidence[-1]))
        if failure is not None:
            known.append((failure.at, failure.evidence_id))
        gone_by, proof = min(one for one in known if one[0] >= last.at)
        evidence = (served.evidence_id, proof)
    after = span.ended_after if span.ended_after is not None else served.at
    return Departure(served.at, gone_by, after, end, tuple(dict.fromkeys(evidence)))


def _first_failure(signs: Sequence[LifeSign], since: int, until: int) -> LifeSign | None:
    """The first of the failed connections that went on until the end, none longer than a retry after the one before."""
    first, reached = None, until
    for sign in reversed(signs):
        if sign.kind == "unreachable" and since <= sign.at <= until:
            if reached - sign.at > _RETRIED_US:
                break
            first, reached = sign, sign.at
    return first
