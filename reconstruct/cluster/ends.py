"""How each registration of a broker ended: by a stop in order, an expired session, or a process that died or ended
itself over an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.broker_past import BrokerPast, broker_pasts
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.evidence import FOUND_CLEAN, FOUND_UNCLEAN, HALTS, LIVES, ClusterFacts, LifeSign

CLEAN_STOP: Final = "clean_stop"
STOP_NOT_FINISHED: Final = "stop_not_finished"
SESSION_EXPIRED: Final = "session_expired"
CRASH: Final = "crash"
HALTED: Final = "halted"
#: A process that ends itself over an error may say so so long after it closed its session, µs.
_CLOSING_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RegistrationEnd:
    """``ended_as`` None where the logs do not tell; the rest is of a controlled shutdown, None without one.

    ``shutdown_began_at`` is when the broker asked its controller first, ``shutdown_took_ms`` how long until that had
    moved its leaders away or the broker went without, ``shutdown_retry_count`` how often it asked again.
    """

    ended_as: str | None = None
    shutdown_began_at: int | None = None
    shutdown_took_ms: int | None = None
    shutdown_retry_count: int | None = None


def registration_ends(
    facts: ClusterFacts, registrations: Mapping[int, Sequence[RegistrationSpan]]
) -> dict[int, list[RegistrationEnd]]:
    """By broker, one for each of its registrations, in their order."""
    pasts = broker_pasts(facts, registrations)
    return {
        broker_id: [
            _end(pasts[broker_id], span, None if after is None else after.interval.start)
            for span, after in zip_longest(spans, spans[1:])
        ]
        for broker_id, spans in registrations.items()
    }


def _end(past: BrokerPast, span: RegistrationSpan, registered_again: int | None) -> RegistrationEnd:
    start, end = span.interval.start, span.interval.end
    if end is None:
        return RegistrationEnd()
    # a line of the next start, where the one that says so is missing
    next_start = _earlier(past.next_starting_line(start), past.next_process_start(start))
    # what comes after it registered again may be another process's, of whose start no line tells
    own = past.signs_between(start, _earlier(next_start, registered_again))
    kinds = {sign.kind for sign in own}
    if any(sign.kind in HALTS and sign.at <= end + _CLOSING_US for sign in own):
        return _shutdown(own, HALTED)
    found = _found_by_the_next(past, next_start, registered_again)
    is_leaving = any(sign.kind == "leaving" and sign.at <= end for sign in own)
    if is_leaving or past.was_asked_to_stop(span):
        if EventType.BROKER_SERVER_SHUTDOWN in kinds or found == {FOUND_CLEAN}:
            return _shutdown(own, CLEAN_STOP)
        if found == {FOUND_UNCLEAN}:
            return _shutdown(own, STOP_NOT_FINISHED)
        return _shutdown(own, CLEAN_STOP if _closed_its_session(past, span, own) else None)
    if "line" not in kinds:
        return RegistrationEnd()
    if EventType.SESSION_EXPIRED in kinds or any(sign.kind == LIVES and sign.at > end for sign in own):
        return RegistrationEnd(SESSION_EXPIRED)
    if registered_again is not None and (next_start is None or registered_again < next_start):
        return RegistrationEnd()  # a process that lived on, or one whose start no line tells of
    return RegistrationEnd({FOUND_UNCLEAN: CRASH, FOUND_CLEAN: CLEAN_STOP}[found.pop()] if len(found) == 1 else None)


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((at for at in (one, other) if at is not None), default=None)


def _found_by_the_next(past: BrokerPast, start: int | None, registered_again: int | None) -> set[str]:
    """What the process that started at ``start`` found of the stop before it. Where its lines lack that, those of a
    later start are of another stop; a broker loads its logs before it registers."""
    if start is None or (registered_again is not None and registered_again < start):
        return set()
    again = registered_again if registered_again is not None and registered_again > start else None
    until = _earlier(past.next_process_start(start), again)
    found = past.signs_between(start - 1, until)
    return {sign.kind for sign in found if sign.kind in (FOUND_UNCLEAN, FOUND_CLEAN)}


def _closed_its_session(past: BrokerPast, span: RegistrationSpan, own: Sequence[LifeSign]) -> bool:
    """Whether the registration ended earlier after the broker's last line than its session could have expired."""
    least, end = past.least_silence_us(span), span.interval.end
    if least is None or end is None or past.is_of_quorum:
        return False  # a quorum fences by another timeout
    return any(sign.kind in ("line", "leaving") and end - least < sign.at <= end for sign in own)


def _shutdown(own: Sequence[LifeSign], ended_as: str | None) -> RegistrationEnd:
    began = min((s.at for s in own if s.kind == EventType.CONTROLLED_SHUTDOWN_STARTED), default=None)
    if began is None:
        return RegistrationEnd(ended_as)
    done = (EventType.CONTROLLED_SHUTDOWN_SUCCEEDED, EventType.CONTROLLED_SHUTDOWN_FAILED)
    over = max((s.at for s in own if s.kind in done and s.at >= began), default=None)
    retries = sum(s.kind == EventType.CONTROLLED_SHUTDOWN_RETRIED for s in own)
    return RegistrationEnd(ended_as, began, None if over is None else (over - began) // 1000, retries)
