"""Whom followers fetch from, and what became of the partitions that their fetchers gave up (R26)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.partitions.case import Case
from reconstruct.partitions.fetchers import FAILED, FETCHING, TROUBLE, Fetching
from reconstruct.partitions.sightings import Rank
from reconstruct.time.instants import utc
from reconstruct.time.intervals import as_of

#: A fetcher is added while the request that tells of the leader is handled; both lines are of one broker.
_WHILE_HANDLED_US: Final = 1_000_000
#: A thread that is told to stop may still handle an answer: as long as a fetch may wait for one.
_IN_FLIGHT_US: Final = 30_000_000
#: A partition that was given up and added again is back in the ISR within this, or was not added again.
_CAUGHT_UP_US: Final = 60_000_000


def judge_fetchers(case: Case, verdicts: Verdicts) -> None:
    """R26: each fetcher that is added, and each line of a fetcher thread, is of a leader that the broker was told of
    then; a partition that was given up does not stay so while its replica is out of the ISR. Nothing of it is judged
    of a broker whose clock was set back: then its two logs, of which one may be corrected, have no order."""
    leaders = _leaders(case)
    for broker_id, timeline in case.fetchers.items():
        if broker_id in case.cluster.set_back:
            verdicts.unjudged("R26")
            continue
        roles = [(c.at, c.role.leader_epoch) for c in case.role_changes if c.broker_id == broker_id]
        epochs = _Told([(at, epoch) for at, epoch in roles if epoch is not None], _received(case, broker_id))
        for span in timeline:
            if span.state == FETCHING and span.leader is not None:
                _judge_leader(case, span, _WHILE_HANDLED_US, epochs, leaders, verdicts)
        for span in _of_other_threads(case, broker_id, timeline):
            _judge_leader(case, span, _IN_FLIGHT_US, epochs, leaders, verdicts)
        if timeline and timeline[-1].state == FAILED:
            _judge_given_up(case, timeline[-1], verdicts)


class _Told:
    """When a broker was told of which leader epoch, (instant, epoch): by what it became, and by each request that
    reached it."""

    def __init__(self, roles: Iterable[tuple[int, int]], received: Iterable[tuple[int, int]]) -> None:
        self._roles = sorted(roles)
        self._highest = list(accumulate((epoch for _, epoch in self._roles), max))
        self._all = sorted([*self._roles, *received])
        self._lowest_from = list(accumulate((epoch for _, epoch in reversed(self._all)), min))[::-1]

    def highest_before(self, instant: int) -> list[int]:
        """Of the roles; empty where there is none."""
        return self._highest[: bisect_left(self._roles, instant, key=_instant)][-1:]

    def roles_between(self, first: int, last: int) -> list[int]:
        """The epochs of the roles of [first, last]."""
        begin, end = bisect_left(self._roles, first, key=_instant), bisect_right(self._roles, last, key=_instant)
        return [epoch for _, epoch in self._roles[begin:end]]

    def lowest_after(self, instant: int, least: int) -> int | None:
        """The lowest that is ``least`` or higher."""
        index = bisect_right(self._all, instant, key=_instant)
        if index == len(self._all) or self._lowest_from[index] >= least:
            return self._lowest_from[index] if index < len(self._all) else None
        return min((epoch for _, epoch in self._all[index:] if epoch >= least), default=None)


_instant: Final[Callable[[tuple[int, int]], int]] = itemgetter(0)


def _received(case: Case, broker_id: int) -> list[tuple[int, int]]:
    """Of each LeaderAndIsr of the controller that held then the instant and the leader epoch: no request before it had
    a higher one, since a controller begins from what ZooKeeper has, and raises epochs only."""
    found = []
    for fact in case.facts_of_brokers.get(broker_id, ()):
        if fact.kind == EventType.LEADER_AND_ISR_RECEIVED and fact.leader_epoch is not None:
            tenure = case.cluster.tenure_at(fact.at)
            if tenure is not None and tenure.controller_epoch == fact.controller_epoch:
                found.append((fact.at, fact.leader_epoch))
    return found


def _leaders(case: Case) -> dict[int, set[int]]:
    """By leader epoch: who was decided, or was told to a broker, to lead."""
    result: dict[int, set[int]] = {}
    for interval in case.decided:
        result.setdefault(interval.value.leader_epoch, set()).add(interval.value.leader)
    for change in case.role_changes:
        if change.role.leader_epoch is not None and change.role.leader is not None:
            result.setdefault(change.role.leader_epoch, set()).add(change.role.leader)
    return result


def _of_other_threads(case: Case, broker_id: int, timeline: Sequence[Fetching]) -> list[Fetching]:
    """Lines of a thread of another leader than the one that the partition is fetched from by then."""
    result = []
    for fact in case.facts_of_brokers.get(broker_id, ()):
        if fact.kind not in TROUBLE or fact.leader is None:
            continue
        at_once = [s for s in timeline if s.start <= fact.at and (s.end is None or fact.at < s.end)]
        if at_once and at_once[-1].leader not in (None, fact.leader):
            result.append(
                Fetching(
                    broker_id, fact.at, fact.at, FETCHING, fact.leader, fact.fetcher_id, evidence=(fact.evidence_id,)
                )
            )
    return result


def _judge_leader(
    case: Case,
    span: Fetching,
    slack: int,
    told: _Told,
    leaders: Mapping[int, set[int]],
    verdicts: Verdicts,
) -> None:
    """Only a leader of the leader epoch that the line prints may be meant, or else, by the order of the broker's own
    logs, of those that it was told of around the line; of each of them it must be known who led. Each incarnation of a
    topic counts its epochs anew, and by its clock alone a line is told to one of them."""
    is_printed = span.leader_epoch is not None and span.leader_epoch >= 0 and case.is_only_incarnation
    if is_printed and span.leader_epoch is not None:
        possible = [span.leader_epoch]
    else:
        possible = _told_around(case, span, slack, told, len(leaders))
    if not possible or any(epoch not in leaders for epoch in possible):
        verdicts.unjudged("R26")
    elif any(span.leader in leaders[epoch] for epoch in possible):
        verdicts.kept("R26")
    else:
        named = "; ".join(f"{epoch}: {', '.join(map(str, sorted(leaders[epoch])))}" for epoch in possible)
        verdicts.broken(
            Divergence(
                DivergenceType.FETCHED_FROM_WRONG_LEADER,
                case.severity(),
                span.start,
                broker_id=span.broker_id,
                replica_id=span.broker_id,
            ).explained(
                f"a fetcher for a leader of leader epochs {possible[0]} to {possible[-1]}",
                f"a fetcher for broker {span.leader}",
                f"Broker {span.broker_id} fetched from broker {span.leader} ({utc(span.start)}), which led at none of"
                f" the leader epochs that {'the line prints' if is_printed else 'it was told of around then'} (leader"
                f" epoch: leader: {named}).",
                span.evidence,
            )
        )


def _told_around(case: Case, span: Fetching, slack: int, told: _Told, most: int) -> list[int]:
    """The leader epochs that the broker may have been told of last, and those that it acted upon just then, lower ones
    too (R21 tells of them); none where nothing tells up to which, or where they are more than the ``most`` of which it
    is known who led: damaged text may name any number."""
    before = told.highest_before(span.start - slack)
    near = told.roles_between(span.start - slack, span.start + slack)
    last = told.lowest_after(span.start + slack, max((*before, *near), default=0))
    if last is None and near and _is_written_after(case, max(near), span.start + slack):
        last = max(near)
    possible = range(max(before, default=0), (-1 if last is None else last) + 1)
    return sorted({*possible, *near}) if 0 < possible.stop - possible.start <= most else []


def _is_written_after(case: Case, epoch: int, at: int) -> bool:
    """Whether a znode still showed that epoch later, so that none after it had been decided at ``at``."""
    return any(
        sighting.rank is Rank.WRITTEN and sighting.leader_epoch == epoch and sighting.fact.at > at + _CAUGHT_UP_US
        for sighting in case.sightings
    )


def _judge_given_up(case: Case, span: Fetching, verdicts: Verdicts) -> None:
    since = span.start + _CAUGHT_UP_US
    states = [interval for interval in case.decided if interval.end is None or interval.end > since]
    assigned = None if not case.decided else as_of(case.assignments, case.decided[-1].start)
    is_over = case.deleted_at is not None or not case.facts or case.facts[-1].at < since
    if is_over or not states or assigned is None or span.broker_id not in assigned.value.replicas:
        verdicts.unjudged("R26")
    elif any(span.broker_id in interval.value.isr for interval in states):
        verdicts.kept("R26")
    else:
        verdicts.broken(
            Divergence.of_replica(DivergenceType.FETCHER_LEFT_FAILED, "warning", span.start, span.broker_id).explained(
                "a fetcher that is added again, or a replica that is back in the ISR",
                "a partition that no fetcher fetches",
                f"The fetcher of broker {span.broker_id} gave the partition up ({utc(span.start)}) and was not added"
                " again: the replica has not been in the ISR since. Kafka does not try again by itself.",
                span.evidence,
            )
        )
