"""How each registration of a broker ended: by a stop in order, an expired session, or a process that died or ended
itself over an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.departures import least_silence_us, next_process_start, was_asked_to_stop
from reconstruct.cluster.evidence import FOUND_CLEAN, FOUND_UNCLEAN, HALTS, LIVES, STARTS, ClusterFacts, LifeSign

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
    signs = facts.life_signs_by_broker
    return {
        broker_id: [
            _end(facts, broker_id, span, None if after is None else after.interval.start, signs.get(broker_id, ()))
            for span, after in zip_longest(spans, spans[1:])
        ]
        for broker_id, spans in registrations.items()
    }


def _end(
    facts: ClusterFacts, broker_id: int, span: RegistrationSpan, registered_again: int | None, signs: Sequence[LifeSign]
) -> RegistrationEnd:
    end = span.interval.end
    if end is None:
        return RegistrationEnd()
    since = [sign for sign in signs if sign.at > span.interval.start]
    starts = [sign.at for sign in since if sign.kind == STARTS]  # where the line that says so is missing
    stated = next_process_start(facts, broker_id, span)
    next_start = min((*starts, *(() if stated is None else (stated,))), default=None)
    # what comes after it registered again may be another process's, of whose start no line tells
    until = min((at for at in (next_start, registered_again) if at is not None), default=None)
    own = [sign for sign in since if until is None or sign.at < until]
    kinds = {sign.kind for sign in own}
    if any(sign.kind in HALTS and sign.at <= end + _CLOSING_US for sign in own):
        return _shutdown(own, HALTED)
    found = _found_by_the_next(facts, broker_id, since, next_start, registered_again)
    is_leaving = any(sign.kind == "leaving" and sign.at <= end for sign in own)
    if is_leaving or was_asked_to_stop(facts, broker_id, span):
        if EventType.BROKER_SERVER_SHUTDOWN in kinds or found == {FOUND_CLEAN}:
            return _shutdown(own, CLEAN_STOP)
        if found == {FOUND_UNCLEAN}:
            return _shutdown(own, STOP_NOT_FINISHED)
        return _shutdown(own, CLEAN_STOP if _closed_its_session(facts, broker_id, span, own) else None)
    if "line" not in kinds:
        return RegistrationEnd()
    if EventType.SESSION_EXPIRED in kinds or any(sign.kind == LIVES and sign.at > end for sign in own):
        return RegistrationEnd(SESSION_EXPIRED)
    if registered_again is not None and (next_start is None or registered_again < next_start):
        return RegistrationEnd()  # a process that lived on, or one whose start no line tells of
    return RegistrationEnd({FOUND_UNCLEAN: CRASH, FOUND_CLEAN: CLEAN_STOP}[found.pop()] if len(found) == 1 else None)


def _found_by_the_next(
    facts: ClusterFacts, broker_id: int, since: Sequence[LifeSign], start: int | None, registered_again: int | None
) -> set[str]:
    """What the process that started at ``start`` found of the stop before it. Where its lines lack that, those of a
    later start are of another stop; a broker loads its logs before it registers."""
    if start is None or (registered_again is not None and registered_again < start):
        return set()
    later = (at for id_, at, _ in facts.process_starts if id_ == broker_id and at > start)
    bounds = [at for at in (min(later, default=None), registered_again) if at is not None and at > start]
    until = min(bounds, default=None)
    return {
        sign.kind
        for sign in since
        if sign.kind in (FOUND_UNCLEAN, FOUND_CLEAN) and sign.at >= start and (until is None or sign.at < until)
    }


def _closed_its_session(facts: ClusterFacts, broker_id: int, span: RegistrationSpan, own: Sequence[LifeSign]) -> bool:
    """Whether the registration ended earlier after the broker's last line than its session could have expired."""
    least, end = least_silence_us(facts, broker_id, span), span.interval.end
    if least is None or end is None or any(f.is_of_quorum for f in facts.brokers if f.broker_id == broker_id):
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
