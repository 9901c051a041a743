"""What to do about an incident: the steps that follow from its events, from what of them lasts, and its findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dashboards import words
from dashboards.meanings import meanings
from dashboards.section import Cluster
from dashboards.sections import incidents
from dashboards.sections.incidents import Event, Incident

#: Steps that a cluster's first paragraphs name; each incident has all of its own.
_SHOWN: Final = 5
_NO_LEADER: Final = ("no_live_leader", "offline")
_LOST: Final = ("records_lost", "records_perhaps_lost")
_WENT: Final = ("broker_died", "broker_halted", "session_expired", "broker_stopped", "broker_lost")


@dataclass(frozen=True)
class Step:
    """What somebody should do, in plain text, and the command of this program that says more; empty where none does."""

    text: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.command})" if self.command else self.text


@dataclass(frozen=True)
class _Advice:
    """What events of these kinds ask for: while they last (True), once they are over (False), or in any case (None)."""

    kinds: tuple[str, ...]
    lasting: bool | None
    text: str
    command: str = ""


#: By urgency: what still does harm, what was lost, why, what may do it again.
_ADVICE: Final = (
    _Advice(
        _NO_LEADER,
        True,
        "Start the brokers that may lead {partitions}, with their directories as they are: there was no leader where"
        " the evidence ends. An unclean election instead would lose what only they hold.",
        "ask offline-partitions",
    ),
    _Advice(
        ("under_min_isr",),
        True,
        "Stop no other broker: {partitions} had too few replicas in sync for producers with acks=all where the evidence"
        " ends.",
        "ask under-replicated",
    ),
    _Advice(
        _WENT,
        True,
        "Start {brokers} again, or move the replicas away: not back where the evidence ends.",
    ),
    _Advice(
        ("under_replicated",),
        True,
        "Stop no broker that holds {partitions} before the other replicas have caught up: some were missing where the"
        " evidence ends.",
        "ask under-replicated",
    ),
    _Advice(
        ("records_lost",),
        None,
        "Tell the owners of {topics} that acknowledged records are gone, and have their producers send them again from"
        " where they came. Consumers may have read them before.",
        "ask unclean-elections",
    ),
    _Advice(
        ("records_perhaps_lost",),
        None,
        "Ask the owners of {topics} whether records are missing: some that were committed may be lost.",
        "ask unclean-elections",
    ),
    _Advice(
        ("two_leaders", "uncommitted_records_cut"),
        None,
        "Find out which producers of {topics} use acks=0 or acks=1: records of theirs that no other replica had are"
        " gone.",
        "ask acks-losses",
    ),
    _Advice(
        ("unclean_election",),
        None,
        "Decide whether {topics} may lose records to stay available: a replica that was not in sync was let lead"
        " (unclean.leader.election.enable, or an order). If not, set it to false there.",
    ),
    _Advice(
        ("broker_died",),
        None,
        "Find out why {brokers} died (gone {times}): the kernel's log (out of memory), the JVM's crash file"
        " (hs_err_pid*.log), the host or container.",
    ),
    _Advice(
        ("broker_halted",),
        None,
        "Read the last errors in server.log of {brokers} {times}: a broker ends itself mostly over its disks.",
    ),
    _Advice(
        ("session_expired",),
        None,
        "Find out why nothing was heard of {brokers}, which lived on, {times}: garbage collection, a slow disk, the"
        " network.",
    ),
    _Advice(
        ("broker_lost",),
        None,
        "Give server.log of {brokers} {times}, too: nothing that was given tells why that was lost.",
    ),
    _Advice(
        ("under_min_isr",),
        False,
        "Check that producers of {topics} with acks=all, which were refused, sent again until they succeeded.",
    ),
)


def next_steps(events: Sequence[Event]) -> tuple[Step, ...]:
    """The steps of the incident of these events, the most urgent first; none where nothing asks for one."""
    return (*_saving(events), *_of_events(events), *_of_findings(events))


def of_cluster(cluster: Cluster) -> tuple[Step, ...]:
    """The first steps of all incidents that the report shows, what lasts before what is over, each once."""
    known: tuple[Incident, ...] = cluster.of(incidents.SECTION)
    shown = sorted(known, key=lambda incident: incident.to_ms is not None)
    return tuple(dict.fromkeys(step for incident in shown for step in next_steps(incident.events)))[:_SHOWN]


def state(cluster: Cluster) -> str:
    """Whether the cluster's incidents are over, in a sentence; empty where it had none."""
    shown: tuple[Incident, ...] = cluster.of(incidents.SECTION)
    if not shown:
        return ""
    total, lasting = shown[0].total, shown[0].lasting
    counted = words.count(total, "incident")
    if lasting:
        return f"Not over where the evidence ends: {f'{lasting} of ' if lasting < total else ''}{counted}."
    over = "it is over" if total == 1 else "all are over"
    return f"{counted}; {over} since {cluster.span.stamp(shown[0].last_ms)} UTC."


def _saving(events: Sequence[Event]) -> Iterable[Step]:
    """Who is still away may hold what was lost, until it follows the new leader."""
    lost = [event for event in events if event.event_kind in _LOST]
    away = [event for event in events if event.event_kind in _WENT and event.to_ms is None]
    if lost and away:
        yield Step(
            f"Before you start {_brokers(away)} again, copy the directories of {_partitions(lost)} there: they may hold"
            " records that are lost elsewhere, and are cut as soon as they follow the new leader."
        )


def _of_events(events: Sequence[Event]) -> Iterable[Step]:
    for advice in _ADVICE:
        meant = [
            event
            for event in events
            if event.event_kind in advice.kinds and advice.lasting in (None, event.to_ms is None)
        ]
        if meant:
            text = advice.text.format(
                brokers=_brokers(meant),
                partitions=_partitions(meant),
                topics=_topics(meant),
                times=words.listing(f"at {words.instant(event.from_ms)} UTC" for event in meant),
            )
            yield Step(text, advice.command)


def _of_findings(events: Sequence[Event]) -> Iterable[Step]:
    """What the documents say of findings of that rule and type."""
    for name in dict.fromkeys(name for event in events for name in event.finding_types):
        rule, _, kind = name.partition(" ")
        meaning = meanings().get((kind, rule))
        if meaning and (meaning.ask or meaning.usually):
            said = (
                f": {meaning.ask}" if meaning.ask else f", usually {meaning.usually[:1].lower()}{meaning.usually[1:]}"
            )
            yield Step(f"Look into {rule} {words.named(kind)}{said.replace('`', '').replace('*', '')}")


def _brokers(events: Iterable[Event]) -> str:
    ids = dict.fromkeys(str(event.broker_id) for event in events if event.broker_id is not None)
    return f"broker{'s' if len(ids) > 1 else ''} {words.listing(ids)}" if ids else "the broker"


def _topics(events: Sequence[Event]) -> str:
    """The first topics by name; where partitions are not all named, how many these are."""
    names = [words.visible(name) for name in dict.fromkeys(p.rpartition("-")[0] for e in events for p in e.partitions)]
    total = max(event.partitions_count for event in events)
    if not names or all(event.partitions_count <= len(event.partitions) for event in events):
        return words.listing(names) or "the topics"
    others = " and others" if len(names) > 3 else ", perhaps others"
    return f"{', '.join(names[:3])}{others} ({words.count(total, 'partition')})"


def _partitions(events: Sequence[Event]) -> str:
    """The first partitions by name, the others counted."""
    names = dict.fromkeys(words.visible(name) for event in events for name in event.partitions)
    total = max(event.partitions_count for event in events)
    return words.listing(names, total=total) or words.count(total, "partition")
