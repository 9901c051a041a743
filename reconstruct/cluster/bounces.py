"""Brokers that were gone and back: whether a controller took notice (R16, KAFKA-7235)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.evidence import BrokerFact
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import BROKER_EPOCHS_SINCE
from reconstruct.time.instants import utc

#: A controller takes notice of a change of /brokers/ids within this time, or says something else before.
_NOTICED_US: Final = 30_000_000
_NOTICES: Final = ("up", "down")


def judge_bounces(
    registrations: Mapping[int, Sequence[RegistrationSpan]],
    facts: Iterable[BrokerFact],
    view: ClusterView,
    verdicts: Verdicts,
) -> None:
    """R16: a broker that registers anew is taken for one that failed and started.

    Judged only where one controller's lists of live brokers stand before and after, so that its log covers the bounce.
    """
    noticed: dict[int, list[int]] = {}
    for fact in facts:
        if fact.kind in _NOTICES:
            noticed.setdefault(fact.broker_id, []).append(fact.at)
    for broker_id, spans in sorted(registrations.items()):
        for before, after in pairwise(spans):
            if before.interval.end is None:
                continue
            begin, end = before.interval.end - _NOTICED_US, after.interval.start + _NOTICED_US
            if any(begin <= at <= end for at in noticed.get(broker_id, ())):
                verdicts.kept("R16")
            elif not _is_covered(view, begin, end):
                verdicts.unjudged("R16")
            else:
                verdicts.broken(_not_noticed(broker_id, before, after, view))


def _is_covered(view: ClusterView, begin: int, end: int) -> bool:
    """Whether one controller was in office all the time, and lists live brokers on both sides, or its log goes on."""
    tenure = view.tenure_at(begin)
    if tenure is None or (tenure.end is not None and tenure.end <= end) or tenure.start > begin:
        return False
    own = [listed.at for listed in view.live_views if listed.controller_id == tenure.controller_id]
    return any(tenure.start - _NOTICED_US <= at <= begin for at in own) and any(at >= end for at in own)


def _not_noticed(broker_id: int, before: RegistrationSpan, after: RegistrationSpan, view: ClusterView) -> Finding:
    gone, back = before.interval.end, after.interval.start
    assert gone is not None
    by_design = view.version.may_be_before(BROKER_EPOCHS_SINCE)
    return Divergence(
        DivergenceType.BOUNCE_NOT_NOTICED, "warning" if by_design else "error", back, broker_id=broker_id
    ).explained(
        "a controller that takes the replicas of a broker that registers anew offline and online again",
        f"no controller tells of the end of broker {broker_id}'s registration or of its next one",
        f"Broker {broker_id}'s registration ended by {utc(gone)} and another began at {utc(back)}; the controller,"
        " whose log covers both, tells of neither. It sends that broker no LeaderAndIsr for what it led or followed,"
        " until something else makes it.",
        (*before.interval.evidence[-1:], *after.interval.evidence[:1]),
        known_issue=known_issue("KAFKA-7235", view.version),
    )
