"""What an incident was, told from its causes and its effects: rows of gold.incidents and gold.incident_events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ingest.lake.tables.incidents import INCIDENT_EVENT_KINDS
from ingest.lake.tables.shared import HARMS
from reconstruct.incidents.causes import Absence
from reconstruct.time.instants import duration, utc

_WENT: Final = {
    "broker_died": "died {when}",
    "broker_halted": "ended itself over an error {when}",
    "session_expired": "lost its session {when}, though it lived on",
    "broker_stopped": "was stopped {when}",
    "broker_lost": "lost its registration {when}",
}
#: Kinds of effects in words: what so many partitions, elections or findings did.
_EFFECTS: Final = {
    "no_live_leader": "{partitions} had no live leader",
    "offline": "{partitions} without a registered leader",
    "under_min_isr": "{partitions} under min.insync.replicas: producers with acks=all would be refused",
    "under_replicated": "{partitions} under-replicated",
    "election": "{rows} of {partitions} to another leader of the ISR",
    "unclean_election": "{rows} of {partitions} to a leader outside of the ISR",
    "two_leaders": "a deposed leader of {partitions} went on while another led",
    "records_lost": "{records} committed records of {partitions} lost",
    "records_perhaps_lost": "{records} committed records of {partitions} may be lost",
    "uncommitted_records_cut": "{records} records of {partitions} cut that were not committed yet",
    "finding": "{rows}: {names}",
}
_ROWS: Final = {"election": "election", "unclean_election": "election", "finding": "finding"}
#: The harm that each effect of a kind may be, or is, if it is not said of the effects themselves.
_HARM: Final = {
    "records_lost": "records_lost",
    "two_leaders": "possible",
    "no_live_leader": "possible",
    "offline": "possible",
    "records_perhaps_lost": "possible",
    "under_min_isr": "possible",
    "uncommitted_records_cut": "possible",
}


@dataclass(frozen=True, slots=True)
class Effects:
    """All effects of one kind that one cause had: from the first's begin to the last's end, µs since the epoch.

    ``broker_id`` is the cause's, ``brokers`` those that the effects name. ``partitions`` are the first ten of
    ``partitions_count``. ``count_lower`` and ``count_upper`` count records; None: not bounded. ``harms`` are those that
    are proven, ``names`` rule and type of findings (``R08 unclean_election``).
    ``inferred_from`` is None where all of them were observed.
    """

    event_kind: str
    broker_id: int | None
    start: int
    end: int
    is_open: bool
    rows_count: int
    partitions_count: int
    count_lower: int
    count_upper: int | None
    brokers: tuple[int, ...]
    partitions: tuple[str, ...]
    harms: tuple[str, ...]
    names: tuple[str, ...]
    evidence: tuple[str, ...]
    inferred_from: str | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What cannot be added up from the effects of each kind: partitions, each once, and their time without a leader."""

    partitions_count: int = 0
    unavailable_partitions_count: int = 0
    unavailable_us: int = 0
    under_min_isr_partitions_count: int = 0


@dataclass(frozen=True, slots=True)
class Successor:
    """Who was elected controller at ``elected_at`` because ``broker_id`` was away."""

    broker_id: int
    controller_id: int
    controller_epoch: int
    elected_at: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One row of gold.incident_events."""

    began_at: int
    ended_at: int | None
    event_kind: str
    broker_id: int | None
    description: str
    evidence: tuple[str, ...]
    rows_count: int = 1
    partitions_count: int = 0
    partitions: tuple[str, ...] = ()
    inferred_from: str | None = None
    finding_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """One row of gold.incidents, but for what :class:`Totals` has."""

    start: int
    end: int | None
    valid_from_lower: int | None
    cause: str
    confidence: str
    brokers: tuple[int, ...]
    harm: str
    unavailable_ms: int | None
    elections_count: int
    unclean_elections_count: int
    lost_count_lower: int
    lost_count_upper: int | None
    findings_count: int
    summary: str
    evidence: tuple[str, ...]
    inferred_from: str | None


def events_of(absences: Iterable[Absence], successors: Iterable[Successor], effects: Iterable[Effects]) -> list[Event]:
    """The events of an incident in their order."""
    events = []
    for away in absences:
        went = Event(away.start, away.end, away.cause, away.broker_id, _went(away), away.evidence)
        events.append(replace(went, inferred_from=away.inferred_from))
        if away.end is not None and away.return_evidence:
            after = f" after {_lasted(away.end - away.start)}" if away.end > away.start else ""
            back = f"broker {away.broker_id} was registered again{after}"
            events.append(Event(away.end, away.end, "broker_returned", away.broker_id, back, away.return_evidence))
    for new in successors:
        words = f"broker {new.controller_id} became controller, epoch {new.controller_epoch}"
        at = new.elected_at
        events.append(Event(at, at, "controller_elected", new.broker_id, words, new.evidence))
    for one in effects:
        until = None if one.is_open else one.end
        counts = (one.rows_count, one.partitions_count, one.partitions, one.inferred_from, one.names)
        events.append(Event(one.start, until, one.event_kind, one.broker_id, _effect(one), one.evidence, *counts))
    order = INCIDENT_EVENT_KINDS.index
    return sorted(events, key=lambda event: (event.began_at, order(event.event_kind), event.broker_id or -1))


def incident_of(absences: Sequence[Absence], effects: Sequence[Effects], totals: Totals) -> Incident:
    """The incident of these causes, in their order, and effects; one of both is not empty."""
    ends = [away.end for away in absences] + [None if one.is_open else one.end for one in effects]
    start = min([away.start for away in absences] + [one.start for one in effects])
    lower = min([away.start_lower for away in absences] + [start])
    findings = [one for one in effects if one.event_kind == "finding"]
    harms = {_HARM[one.event_kind] for one in effects if one.event_kind in _HARM}
    harms |= {harm for one in effects for harm in one.harms}
    by_kind = {kind: [one for one in effects if one.event_kind == kind] for kind in _EFFECTS}
    losses = [*by_kind["records_lost"], *by_kind["records_perhaps_lost"]]
    without = [*by_kind["no_live_leader"], *by_kind["offline"]]
    named = {away.broker_id for away in absences} or {broker for one in effects for broker in one.brokers}
    inferred = [away.inferred_from for away in absences] + [one.inferred_from for one in effects]
    shown = [away.evidence for away in absences] + [one.evidence for one in effects]
    unclean = sum(one.rows_count for one in by_kind["unclean_election"])
    incident = Incident(
        start=start,
        end=None if None in ends else max(end for end in ends if end is not None),
        valid_from_lower=None if lower == start else lower,
        cause=absences[0].cause if absences else "rule_broken" if len(findings) == len(effects) else "replicas_behind",
        confidence="unknown" if not absences else "observed" if absences[0].is_explained else "inferred",
        brokers=tuple(sorted(named)),
        harm=min(harms, key=HARMS.index, default="none"),
        unavailable_ms=None if any(one.is_open for one in without) else totals.unavailable_us // 1000,
        elections_count=unclean + sum(one.rows_count for one in by_kind["election"]),
        unclean_elections_count=unclean,
        lost_count_lower=sum(one.count_lower for one in losses),
        lost_count_upper=_sum(one.count_upper for one in losses),
        findings_count=sum(one.rows_count for one in findings),
        summary="",
        evidence=tuple(dict.fromkeys(record for records in shown for record in records))[:10],
        inferred_from=next(filter(None, inferred), None),
    )
    return _with_summary(incident, absences, totals)


def _with_summary(incident: Incident, absences: Sequence[Absence], totals: Totals) -> Incident:
    said = [_sentence(_went(away) + _returned(away)) for away in absences[:3]]
    if len(absences) > 3:
        said.append(f"{len(absences) - 3} more absences of brokers followed.")
    if not absences and incident.cause == "rule_broken":
        said.append(f"{_count(incident.findings_count, 'finding')} that no absence of a broker explains.")
    elif not absences:
        said.append(f"Partitions lost replicas or leaders{_of(incident.brokers)}, and no broker was seen to be away.")
    if totals.unavailable_partitions_count:
        without = f"{_count(totals.unavailable_partitions_count, 'partition')} had no live or no registered leader"
        lasted = None if incident.unavailable_ms is None else _lasted(incident.unavailable_ms * 1000)
        said.append(
            f"{without}; not all have one again." if lasted is None else f"{without}, at least {lasted} together."
        )
    if totals.under_min_isr_partitions_count:
        said.append(f"{_count(totals.under_min_isr_partitions_count, 'partition')} under min.insync.replicas.")
    if incident.elections_count:
        unclean = incident.unclean_elections_count
        outside = f", {unclean:,} to a replica outside of the ISR" if unclean else ""
        said.append(f"{_count(incident.elections_count, 'election')} of another leader{outside}.")
    if incident.lost_count_lower or incident.lost_count_upper != 0:
        are = "lost" if incident.lost_count_lower else "that may be lost"
        said.append(f"Committed records {are}: {count_range(incident.lost_count_lower, incident.lost_count_upper)}.")
    if incident.findings_count and incident.cause != "rule_broken":
        said.append(f"{_count(incident.findings_count, 'finding')} beside it.")
    if not totals.partitions_count and not incident.findings_count:
        said.append("The evidence shows no partition that it did anything to.")
    said.append("Not over where the evidence ends." if incident.end is None else f"Over at {utc(incident.end)}.")
    return replace(incident, summary=" ".join(said))


def _went(away: Absence) -> str:
    when = f"at {utc(away.start)}" if away.is_exact else f"by {utc(away.start)}"
    is_earlier = away.start_lower < away.start and away.cause != "broker_stopped"
    seen = f" (last sign of life {utc(away.start_lower)})" if is_earlier else ""
    return f"broker {away.broker_id} {_WENT[away.cause].format(when=when)}{seen}"


def _returned(away: Absence) -> str:
    if away.end is None:
        return ", and has not come back"
    if not away.return_evidence:
        return f", and had not come back when the cluster was created again ({utc(away.end)})"
    if away.end == away.start:
        return ", and was registered again by then"
    return f", and was back after {_lasted(away.end - away.start)}"


def _effect(one: Effects) -> str:
    return _EFFECTS[one.event_kind].format(
        partitions=_count(one.partitions_count, "partition"),
        rows=_count(one.rows_count, _ROWS.get(one.event_kind, "interval")),
        records=count_range(one.count_lower, one.count_upper),
        names=", ".join(one.names).replace("_", " "),
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def count_range(lower: int, upper: int | None) -> str:
    """So many, at least and at most; None: not bounded."""
    if upper is None:
        return f"at least {lower:,}" if lower else "nobody knows how many"
    if lower == 0 < upper:
        return f"at most {upper:,}"
    return f"{lower:,}" if lower == upper else f"{lower:,} to {upper:,}"


def _of(brokers: Sequence[int]) -> str:
    if len(brokers) < 2:
        return f", those of broker {brokers[0]}" if brokers else ""
    return f", those of brokers {', '.join(map(str, brokers[:-1]))} and {brokers[-1]}"


def _lasted(micros: int) -> str:
    """In seconds up to a minute, of which nobody knows more than tenths."""
    return f"{micros / 1_000_000:.1f} s" if 1_000_000 <= micros < 59_950_000 else duration(micros / 1000)


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
