"""When brokers stopped serving: before their registration ended, for ZooKeeper waits a session timeout for the dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.broker_past import BrokerPast, broker_pasts
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.evidence import ClusterFacts, LifeSign
from reconstruct.cluster.spans import Departure
from reconstruct.time.spans import within

#: A broker whose connection failed tries again within this time: failures closer together are one series.
_RETRIED_US: Final = 3_000_000
#: Failed connections longer than this before the end of a registration do not count.
FAILURES_US: Final = 60_000_000


def broker_departures(
    facts: ClusterFacts, registrations: Mapping[int, Sequence[RegistrationSpan]]
) -> dict[int, tuple[Departure, ...]]:
    """By broker, its departures in order: one for each end of a registration before which its own logs, or what it
    wrote to ZooKeeper, give a sign of life."""
    pasts = broker_pasts(facts, registrations)
    found = {}
    for broker_id, spans in registrations.items():
        known = (
            _departure(pasts[broker_id], span, following.interval.start if following else None)
            for span, following in zip_longest(spans, spans[1:])
        )
        found[broker_id] = tuple(departure for departure in known if departure is not None)
    return {broker_id: departures for broker_id, departures in found.items() if departures}


def _departure(past: BrokerPast, span: RegistrationSpan, registered_again: int | None) -> Departure | None:
    start, end = span.interval.start, span.interval.end
    if end is None:
        return None
    next_start = past.next_process_start(start)
    own = past.signs_between(start, end + 1 if next_start is None else min(end + 1, next_start))
    leaving = [sign for sign in own if sign.kind == "leaving"]
    alive = leaving or [sign for sign in own if sign.kind in ("line", "written")]
    if not alive:
        return None
    last = alive[-1]
    silent_from = None if leaving else past.silent_since(span)
    # a broker that lives on past that was paused or cut off: it may have served nobody since the line before
    served = last if silent_from is None else next((sign for sign in reversed(alive) if sign.at <= silent_from), last)
    evidence: tuple[str, ...] = (served.evidence_id, *span.interval.evidence[-1:])
    gone_by: int | None = None
    until = min(end, next_start or end)
    failure = _first_failure(within(past.signs, max(last.at, end - FAILURES_US), until), until)
    lived_on = past.has_line_between(end, next_start) or (
        registered_again is not None and (next_start is None or registered_again < next_start)
    )
    has_lines = past.has_line_between(start, next_start)
    # where nothing tells of its next start, its later lines may only not have been given
    is_dead = has_lines and not lived_on and (next_start is not None or failure is not None)
    if leaving or is_dead:
        known = [(end, evidence[-1])]
        if next_start is not None:
            known.append((next_start, evidence[-1]))
        if silent_from is not None:
            known.append((silent_from, evidence[-1]))
        if failure is not None:
            known.append((failure.at, failure.evidence_id))
        # its last line of all, which nobody else need have seen
        known += [(sign.at, sign.evidence_id) for sign in own if sign.kind == EventType.BROKER_SERVER_SHUTDOWN]
        gone_by, proof = min(one for one in known if one[0] >= last.at)
        evidence = (served.evidence_id, proof)
    after = span.ended_after if span.ended_after is not None else served.at
    return Departure(served.at, gone_by, after, end, tuple(dict.fromkeys(evidence)))


def _first_failure(signs: Sequence[LifeSign], until: int) -> LifeSign | None:
    """The first of the failed connections that went on until the end, none longer than a retry after the one before."""
    first, reached = None, until
    for sign in reversed(signs):
        if sign.kind == "unreachable":
            if reached - sign.at > _RETRIED_US:
                break
            first, reached = sign, sign.at
    return first
