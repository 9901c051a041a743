"""How each registration of a broker ended: by a stop in order, an expired session, or a process that died or ended
itself over an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.departures import next_process_start
from reconstruct.cluster.evidence import HALTS, ClusterFacts, LifeSign

CLEAN_STOP: Final = "clean_stop"
STOP_NOT_FINISHED: Final = "stop_not_finished"
SESSION_EXPIRED: Final = "session_expired"
CRASH: Final = "crash"
HALTED: Final = "halted"


@dataclass(frozen=True, slots=True)
class RegistrationEnd:
    """``ended_as`` None where the logs do not tell; the rest is of a controlled shutdown, None without one.

    ``shutdown_began_at`` is when the broker asked its controller first, ``shutdown_took_ms`` how long until that had
    moved its leaders away or the broker went without, ``shutdown_retry_count`` how often it had to ask again.
    """

    ended_as: str | None = None
    shutdown_began_at: int | None = None
    shutdown_took_ms: int | None = None
    shutdown_retry_count: int | None = None


def registration_ends(
    facts: ClusterFacts, registrations: Mapping[int, Sequence[RegistrationSpan]]
) -> dict[int, list[RegistrationEnd]]:
    """By broker, one for each of its registrations, in their order."""
    signs: dict[int, list[LifeSign]] = {}
    for sign in sorted(facts.life_signs, key=lambda sign: (sign.at, sign.kind, sign.evidence_id)):
        signs.setdefault(sign.broker_id, []).append(sign)
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
    next_start = next_process_start(facts, broker_id, span)
    own = [s for s in signs if span.interval.start < s.at and (next_start is None or s.at < next_start)]
    kinds = {sign.kind for sign in own}
    if not kinds.isdisjoint(HALTS):
        return _shutdown(own, HALTED)
    if any(sign.kind == "leaving" and sign.at <= end for sign in own):
        is_finished = EventType.BROKER_SERVER_SHUTDOWN in kinds or next_start is None
        return _shutdown(own, CLEAN_STOP if is_finished else STOP_NOT_FINISHED)
    if "line" not in kinds:
        return RegistrationEnd()
    lived_on = (
        EventType.SESSION_EXPIRED in kinds
        or any(sign.kind == "line" and sign.at > end for sign in own)
        or (registered_again is not None and next_start is not None and registered_again < next_start)
    )
    if lived_on:
        return RegistrationEnd(SESSION_EXPIRED)
    return RegistrationEnd(CRASH if next_start is not None else None)


def _shutdown(own: Sequence[LifeSign], ended_as: str) -> RegistrationEnd:
    began = min((s.at for s in own if s.kind == EventType.CONTROLLED_SHUTDOWN_STARTED), default=None)
    if began is None:
        return RegistrationEnd(ended_as)
    done = (EventType.CONTROLLED_SHUTDOWN_SUCCEEDED, EventType.CONTROLLED_SHUTDOWN_FAILED)
    over = max((s.at for s in own if s.kind in done and s.at >= began), default=None)
    retries = sum(s.kind == EventType.CONTROLLED_SHUTDOWN_RETRIED for s in own)
    return RegistrationEnd(ended_as, began, None if over is None else (over - began) // 1000, retries)
