"""The causes of incidents: brokers that were away, and which of their absences an effect is of.

An effect (an outage of a partition, an election, a loss) is of the absence of a broker that it names, if it began
between the broker's last sign of life and a minute after its return: a replica that comes back is still catching up.
Of several the one that began last is its cause. An effect that names no broker is of an absence at that time. Absences
are one incident where a partition could not be written or read, or lost records, because of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Final

from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.ends import RegistrationEnd
from reconstruct.cluster.spans import Departure, Tenure

#: How much later than a broker's return what its absence did may begin; and how far apart effects of one incident are
#: that have no cause. Microseconds.
CONNECTED_US: Final = 60_000_000
#: How much earlier than the last sign of life an effect may be dated: times are rounded to milliseconds.
_EARLY_US: Final = 1_000
#: Effects that connect absences: nobody could read or write, or records were lost, because of all brokers they name.
CONNECTING: Final = frozenset(
    ("offline", "no_live_leader", "under_min_isr", "unclean_election", "records_lost", "records_perhaps_lost")
)
_CAUSES: Final = {
    "clean_stop": "broker_stopped",
    "stop_not_finished": "broker_died",
    "crash": "broker_died",
    "halted": "broker_halted",
    "session_expired": "session_expired",
}


@dataclass(frozen=True, slots=True)
class Absence:
    """A broker that was away from ``start`` to ``end`` (None: it has not come back), µs since the epoch.

    By ``start`` it was gone; ``is_exact`` where it went just then. What that did may begin at ``start_lower``: its last
    sign of life, or its request to be shut down. ``is_explained``: its own logs, or those of others, tell how it went.
    ``return_evidence`` shows that it came back at ``end``; without any the cluster was created again then, and it had
    not.
    """

    broker_id: int
    start: int
    start_lower: int
    end: int | None
    cause: str
    is_explained: bool
    evidence: tuple[str, ...]
    return_evidence: tuple[str, ...] = ()
    is_exact: bool = True
    inferred_from: str | None = None

    @property
    def key(self) -> str:
        """What tells it from the cluster's others."""
        return f"{self.broker_id}@{self.start}"


def absences(
    registrations: Mapping[int, Sequence[RegistrationSpan]],
    ends: Mapping[int, Sequence[RegistrationEnd]],
    departures: Mapping[int, Sequence[Departure]],
    recreations: Sequence[int] = (),
) -> list[Absence]:
    """All absences of a cluster's brokers, in order of their begin; none lasts beyond one of ``recreations``, when the
    cluster was created again in the same folders."""
    found = []
    for broker_id, spans in registrations.items():
        for span, end, after in zip_longest(spans, ends[broker_id], spans[1:]):
            if span.interval.end is None:
                continue
            gone = next((d for d in departures.get(broker_id, ()) if d.unregistered_by == span.interval.end), None)
            start = span.interval.end
            lower = start if span.ended_after is None else min(start, span.ended_after)
            inferred_from = span.interval.inferred_from
            is_exact = lower == start and inferred_from != "log_gap"
            if gone is not None:
                if gone.gone_by is not None and gone.gone_by < start:
                    start, is_exact, inferred_from = gone.gone_by, False, "effect_logged"
                lower = min(start, gone.served_until)
            if end.shutdown_began_at is not None:
                lower = min(lower, end.shutdown_began_at)
            back = () if after is None else after.interval.evidence[:1]
            ended = None if after is None else after.interval.start
            anew = next((at for at in recreations if at >= span.interval.end and (ended is None or at <= ended)), None)
            unexplained = "broker_stopped" if span.interval.value.end_reason == "controlled_shutdown" else "broker_lost"
            found.append(
                Absence(
                    broker_id,
                    start,
                    lower,
                    ended if anew is None else anew,
                    _CAUSES.get(end.ended_as or "", unexplained),
                    end.ended_as is not None or unexplained == "broker_stopped",
                    (*(() if gone is None else gone.evidence), *span.interval.evidence)[:2],
                    back if anew is None else (),
                    is_exact,
                    inferred_from,
                )
            )
    return sorted(found, key=lambda absence: (absence.start, absence.broker_id))


def causes_of(
    kind: str, brokers: Sequence[int], at: int, at_lower: int | None, known: Sequence[Absence]
) -> tuple[Absence, ...]:
    """The absences that an effect may be of, its cause first; nothing where none explains it.

    ``brokers`` are those that the effect names, ``at`` when it began and ``at_lower`` the earliest that it may have.
    """
    first = at if at_lower is None else at_lower
    possible = [
        absence
        for absence in known
        if (not brokers or absence.broker_id in brokers)
        and absence.start_lower - _EARLY_US <= at
        and (absence.end is None or first <= absence.end + CONNECTED_US)
    ]
    latest = {absence.broker_id: absence for absence in possible}  # of one broker the last
    ordered = sorted(latest.values(), key=lambda absence: (absence.start, absence.broker_id), reverse=True)
    return tuple(ordered) if kind in CONNECTING and brokers else tuple(ordered[:1])


def connected(keys: Iterable[str], links: Iterable[Sequence[str]]) -> dict[str, str]:
    """Of each key the first of those that links connect it with, itself perhaps; the order of ``keys`` says which."""
    order = {key: number for number, key in enumerate(keys)}
    above: dict[str, str] = {key: key for key in order}

    def root(key: str) -> str:
        while above[key] != key:
            above[key] = key = above[above[key]]
        return key

    for link in links:
        roots = sorted({root(key) for key in link}, key=lambda key: order[key])
        above |= dict.fromkeys(roots[1:], roots[0])
    return {key: root(key) for key in order}


def successors(absence: Absence, tenures: Sequence[Tenure]) -> list[Tenure]:
    """Tenures of other controllers that began because the broker, then controller, was away."""
    return [
        tenure
        for before, tenure in pairwise(tenures)
        if before.controller_id == absence.broker_id != tenure.controller_id
        and absence.start_lower - _EARLY_US <= tenure.start
        and (absence.end is None or tenure.start <= absence.end)
    ]
