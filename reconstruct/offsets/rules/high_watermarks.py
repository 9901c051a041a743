"""R30: a replica's high watermark falls only where a start, a truncation or a new leader explains it."""

from __future__ import annotations

import heapq
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import LINE_TO_ACT_US, ReplicaEvent, ReplicaEventKind
from reconstruct.offsets.rules.case import Curves, OffsetCase, names
from reconstruct.offsets.timed_offsets import TimedOffset
from reconstruct.time.instants import utc

#: What lowers a high watermark by design.
_EXPLANATIONS: Final = {
    ReplicaEventKind.STARTED: "its broker started ({at}), with what its checkpoint held, 0 without an entry",
    ReplicaEventKind.TRUNCATED: "its log was cut to {offset} ({at})",
    ReplicaEventKind.FOLLOWS: "it began to follow leader {leader} ({at}), whose high watermark it takes",
    ReplicaEventKind.LOWERED: "its broker says so ({at}), as it does where it cuts a log or fetches from a new leader",
}


def judge_high_watermarks(case: OffsetCase, verdicts: Verdicts) -> None:
    """R30, of every replica: each value against the highest that was surely before it."""
    curves = case.curves
    for replica_id in case.judged_with(oe.HIGH_WATERMARK):
        highest: TimedOffset | None = None
        recent: list[tuple[int, int, TimedOffset]] = []
        for number, value in enumerate(curves.of(replica_id, oe.HIGH_WATERMARK)):
            if value.is_minimum:
                continue
            while recent and recent[0][0] <= value.earliest:
                before = heapq.heappop(recent)[2]
                highest = before if highest is None or before.offset > highest.offset else highest
            if highest is None:
                verdicts.unjudged("R30")
            elif value.offset >= highest.offset:
                verdicts.kept("R30")
            else:
                _judge_fall(case, curves, replica_id, highest, value, verdicts)
                highest, recent = None, []
            heapq.heappush(recent, (value.latest, number, value))


def _judge_fall(
    case: OffsetCase, curves: Curves, replica_id: int, before: TimedOffset, value: TimedOffset, verdicts: Verdicts
) -> None:
    known = curves.least(replica_id, oe.HIGH_WATERMARK, value.earliest, value.latest)
    causes = _causes(case, replica_id, before, value)
    is_cut = any(cause.kind is ReplicaEventKind.TRUNCATED for cause in causes)
    if known is not None and known.offset > value.offset and not is_cut:
        verdicts.broken(
            Divergence.of_replica(
                DivergenceType.HIGH_WATERMARK_DECREASED, "error", value.earliest, replica_id
            ).explained(
                f"high watermark {known.offset} or higher",
                f"high watermark {value.offset}",
                f"Replica {replica_id} had the high watermark {before.offset} by {utc(before.latest)} and"
                f" {value.offset} after {utc(value.earliest)}. Its broker's log, which is complete there, shows no"
                " start, no truncation and no change of its leader between.",
                names(known.evidence, before.evidence, value.evidence),
            )
        )
    elif causes and all(cause.kind is ReplicaEventKind.LOWERED for cause in causes):
        verdicts.broken(
            Divergence.of_replica(
                DivergenceType.HIGH_WATERMARK_DECREASED, "warning", value.earliest, replica_id
            ).explained(
                f"high watermark {before.offset} or higher",
                f"high watermark {value.offset}",
                f"Replica {replica_id}'s high watermark went back from {before.offset} to {value.offset} between"
                f" {utc(before.latest)} and {utc(value.latest)}, and its broker says so ({utc(causes[0].at)}). No line"
                " tells of a start, a truncation or a new leader: what tells why is missing.",
                names(before.evidence, value.evidence, (cause.evidence_id for cause in causes)),
            )
        )
    elif causes:
        why = "; ".join(
            _EXPLANATIONS[cause.kind].format(at=utc(cause.at), leader=cause.leader, offset=cause.offset)
            for cause in causes
        )
        verdicts.broken(
            Divergence.of_replica(
                DivergenceType.HIGH_WATERMARK_ROLLED_BACK, "info", value.earliest, replica_id
            ).explained(
                f"high watermark {before.offset} or higher",
                f"high watermark {value.offset}",
                f"Replica {replica_id}'s high watermark went back from {before.offset} to {value.offset} between"
                f" {utc(before.latest)} and {utc(value.latest)}: {why}. Kafka does so by"
                " design; while such a replica leads, consumers see the partition end earlier than before.",
                names(before.evidence, value.evidence, (cause.evidence_id for cause in causes)),
            )
        )
    else:
        verdicts.unjudged("R30")


def _causes(case: OffsetCase, replica_id: int, before: TimedOffset, value: TimedOffset) -> list[ReplicaEvent]:
    """What the replica did between two values that may lower a high watermark: the last of each kind."""
    slack = case.clocks.slack_us(replica_id) + LINE_TO_ACT_US
    found = [
        event
        for event in case.events_of(replica_id, *_EXPLANATIONS)
        if before.earliest - slack <= event.at <= value.latest + slack
        and (
            event.kind is not ReplicaEventKind.TRUNCATED or (event.offset is not None and event.offset < before.offset)
        )
    ]
    return list({event.kind: event for event in found}.values())
