"""The procedures of the controllers of ZooKeeper: what set each off, what it was about, and until when what its
controller did is taken to be of it.

A controller works off one event after the other (one thread since 0.11, under one lock before), so what it does between
two triggers that it logs is of the first one; but a leader that it elects is of the last procedure that may set off an
election of that kind, and a deletion or a reassignment goes on beside others until a line says that it is complete.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from ingest.lake.tables.gold import ELECTION_KINDS
from ingest.shapes.event_types import EventType
from reconstruct.cluster.controllers import TenureSpan
from reconstruct.cluster.episodes.tenures import reigns
from reconstruct.cluster.evidence import ProcedureLine
from reconstruct.model.elections import ElectionKind

TAKE_OVER: Final = "take_over"
#: Which elections a procedure may set off; a take-over goes on with whatever the controller before left. ``unknown``
#: are the elections of which the evidence leaves the kind open.
MAY_ELECT: Final[Mapping[str, tuple[str, ...]]] = {
    TAKE_OVER: ELECTION_KINDS,
    "broker_start": (ElectionKind.OFFLINE_PARTITION, "unknown"),
    "broker_failure": (ElectionKind.OFFLINE_PARTITION, "unknown"),
    "broker_bounce": (ElectionKind.OFFLINE_PARTITION, "unknown"),
    "brokers_changed": (ElectionKind.OFFLINE_PARTITION, "unknown"),
    "topic_creation": ("new_partition", "unknown"),
    "partition_addition": ("new_partition", "unknown"),
    "topic_deletion": (),
    "reassignment": (ElectionKind.REASSIGNED_PARTITION, "unknown"),
    "preferred_election": (ElectionKind.PREFERRED_REPLICA, "unknown"),
    "unclean_election": (ElectionKind.OFFLINE_PARTITION, "unknown"),
    "controlled_shutdown": (ElectionKind.CONTROLLED_SHUTDOWN, "unknown"),
}
#: Lines that tell, up to 0.10.2, that a watch fired, and the lines of what the controller then finds.
_TELLS_OF: Final[Mapping[str, str]] = {
    EventType.BROKER_CHANGE_NOTIFIED: EventType.BROKER_CHANGE,
    EventType.TOPIC_CHANGE_NOTIFIED: EventType.TOPIC_CHANGE,
    EventType.PARTITION_MODIFICATION_NOTIFIED: EventType.PARTITION_ADDITION,
}
#: The lines of controller.log that this reads.
PROCEDURE_EVENTS: Final = (
    *_TELLS_OF,
    *_TELLS_OF.values(),
    EventType.TOPIC_DELETION_REQUESTED,
    EventType.TOPIC_DELETION_COMPLETED,
    EventType.REASSIGNMENT_STARTED,
    EventType.REASSIGNMENT_ASSIGNMENT_UPDATED,
    EventType.REASSIGNMENT_COMPLETED,
    EventType.PREFERRED_ELECTION_STARTED,
    EventType.LEADER_ELECTION_STARTED,
    EventType.CONTROLLED_SHUTDOWN_REQUESTED,
)
#: The fields of these lines that are read, beside the partitions.
NAMED_FIELDS: Final = (
    "added_broker_ids",
    "deleted_broker_ids",
    "bounced_broker_ids",
    "shutting_down_broker_ids",
    "new_topics",
    "topics",
    "topic",
    "election_type",
    "adding_replicas",
    "removing_replicas",
)
#: A watch fired at most this long before the line of what the controller found, µs.
_TOLD_WITHIN_US: Final = 60_000_000


@dataclass(frozen=True, slots=True)
class Procedure:
    """One procedure of one controller; instants in µs.

    ``about``: the brokers, topics or partitions that its trigger names. ``told_at``: when its watch fired, where a line
    says so. ``until``: when the same controller's next one began; None for its last. ``completed_at``: when lines say
    that a deletion or a reassignment is complete, of all that it is about; None where they do not.
    """

    controller_id: int
    controller_epoch: int | None
    procedure: str
    began_at: int
    about: tuple[str, ...] = ()
    told_at: int | None = None
    until: int | None = None
    completed_at: int | None = None
    evidence: tuple[str, ...] = ()
    inferred_from: str | None = None


def procedures(
    tenures: Sequence[TenureSpan], windows: Sequence[tuple[int, int]], lines: Iterable[ProcedureLine]
) -> list[Procedure]:
    """Those of all controllers; ``tenures`` are ZooKeeper's alone, ``windows`` theirs by
    :func:`reconstruct.cluster.take_overs.line_windows`. By controller, each in the order of its log."""
    by_controller: dict[int, list[ProcedureLine]] = {}
    for line in sorted(lines, key=lambda line: line.place):
        by_controller.setdefault(line.controller_id, []).append(line)
    ends = [done for own in by_controller.values() for line in own for done in _completions(line)]
    found = []
    for controller_id in sorted({*by_controller, *(span.tenure.controller_id for span in tenures)}):
        of_controller = [
            (span, window)
            for span, window in zip(tenures, windows, strict=True)
            if span.tenure.controller_id == controller_id
        ]
        found += _until_the_next(_begun(controller_id, of_controller, by_controller.get(controller_id, ())))
    return _completed(found, sorted(ends))


def _begun(
    controller_id: int, tenures: Sequence[tuple[TenureSpan, tuple[int, int]]], lines: Iterable[ProcedureLine]
) -> list[Procedure]:
    """One controller's, in order; that a watch fired is of the next procedure that begins as it tells."""
    begun = [
        Procedure(
            controller_id,
            span.tenure.controller_epoch,
            TAKE_OVER,
            span.tenure.start,
            evidence=tuple(span.tenure.evidence),
            inferred_from=span.inferred_from,
        )
        for span, _ in tenures
    ]
    in_turn = sorted(tenures, key=lambda one: one[1][0])
    begins = [since for _, (since, _) in in_turn]
    told: dict[str, ProcedureLine] = {}
    before: Procedure | None = None
    for line in lines:
        if line.controller_event in _TELLS_OF:
            told[_TELLS_OF[line.controller_event]] = line
            continue
        trigger = _trigger(line)
        if trigger is None or _is_of(before, trigger):
            continue
        kind, about = trigger
        watch = told.get(line.controller_event)
        told.clear()
        if watch is not None and watch.at <= line.at - _TOLD_WITHIN_US:
            watch = None
        place = bisect_right(begins, line.at) - 1
        is_known = place >= 0 and line.at < in_turn[place][1][1]
        before = Procedure(
            controller_id,
            in_turn[place][0].tenure.controller_epoch if is_known else None,
            kind,
            line.at,
            about,
            told_at=None if watch is None else watch.at,
            evidence=(line.evidence_id,) if watch is None else (line.evidence_id, watch.evidence_id),
        )
        begun.append(before)
    return sorted(begun, key=lambda one: (one.began_at, one.procedure != TAKE_OVER))


def _is_of(before: Procedure | None, trigger: tuple[str, tuple[str, ...]]) -> bool:
    """Up to 1.0 the selector of preferred leaders says of each partition again that its election begins."""
    is_same = before is not None and before.procedure == trigger[0] == "preferred_election"
    return is_same and before is not None and set(trigger[1]) <= set(before.about)


def _trigger(line: ProcedureLine) -> tuple[str, tuple[str, ...]] | None:
    """The procedure that a line begins, and what that is about; None where it begins none."""
    named = line.partitions
    match line.controller_event:
        case EventType.BROKER_CHANGE:
            ways = {
                "broker_start": line.listed("added_broker_ids"),
                "broker_failure": line.listed("deleted_broker_ids"),
                "broker_bounce": line.listed("bounced_broker_ids"),
            }
            kinds = [kind for kind, brokers in ways.items() if brokers]
            about = tuple(broker for brokers in ways.values() for broker in brokers)
            return (kinds[0] if len(kinds) == 1 else "brokers_changed", about) if kinds else None
        case EventType.TOPIC_CHANGE:
            return ("topic_creation", line.listed("new_topics")) if line.listed("new_topics") else None
        case EventType.PARTITION_ADDITION:
            return "partition_addition", named or line.listed("topic")
        case EventType.TOPIC_DELETION_REQUESTED if line.log_level != "DEBUG":
            return "topic_deletion", line.listed("topics")
        case EventType.REASSIGNMENT_STARTED:
            return "reassignment", named
        case EventType.REASSIGNMENT_ASSIGNMENT_UPDATED:
            is_begun = line.listed("adding_replicas") or line.listed("removing_replicas")
            return ("reassignment", named) if is_begun else None
        case EventType.PREFERRED_ELECTION_STARTED if named:
            return "preferred_election", named
        case EventType.LEADER_ELECTION_STARTED if named:
            kind = f"{line.named.get('election_type', '').lower()}_election"
            return (kind, named) if kind in MAY_ELECT else None
        case EventType.CONTROLLED_SHUTDOWN_REQUESTED:
            return "controlled_shutdown", line.listed("shutting_down_broker_ids")
    return None


def _completions(line: ProcedureLine) -> Iterator[tuple[int, str, str, str]]:
    """When what was completed of which procedure, and the line that says so. Since 2.4 the assignment is written when a
    reassignment is done, without replicas that come or go."""
    subjects, event = line.partitions, line.controller_event
    if event == EventType.TOPIC_DELETION_COMPLETED:
        subjects = line.listed("topic")
    elif event == EventType.REASSIGNMENT_ASSIGNMENT_UPDATED:
        if "adding_replicas" not in line.named or _trigger(line) is not None:
            return
    elif event != EventType.REASSIGNMENT_COMPLETED:
        return
    procedure = "topic_deletion" if event == EventType.TOPIC_DELETION_COMPLETED else "reassignment"
    for subject in subjects:
        yield line.at, line.evidence_id, procedure, subject


def _until_the_next(found: Sequence[Procedure]) -> list[Procedure]:
    ends = [*(later.began_at for _, later in pairwise(found)), None]
    return [replace(one, until=end) for one, end in zip(found, ends, strict=False)]


def _completed(found: Sequence[Procedure], ends: Sequence[tuple[int, str, str, str]]) -> list[Procedure]:
    """Each with the last of the completions of its subjects, which any controller may tell; what was begun again
    before it was completed is of the later procedure."""
    done: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for at, evidence_id, procedure, subject in sorted(ends):
        done.setdefault((procedure, subject), []).append((at, evidence_id))
    begins: dict[tuple[str, str], list[int]] = {}
    for one in sorted(found, key=attrgetter("began_at")):
        for subject in one.about:
            if (one.procedure, subject) in done:
                begins.setdefault((one.procedure, subject), []).append(one.began_at)
    result = []
    for one in found:
        told = []
        for subject in one.about:
            key = one.procedure, subject
            of_subject, begun = done.get(key, ()), begins.get(key, ())
            first, later = bisect_left(of_subject, (one.began_at,)), bisect_right(begun, one.began_at)
            is_own = first < len(of_subject) and (later == len(begun) or of_subject[first][0] < begun[later])
            told.append(of_subject[first] if is_own else None)
        known = [end for end in told if end is not None]
        if known and len(known) == len(told):
            at, evidence_id = max(known)
            one = replace(one, completed_at=at, evidence=tuple(dict.fromkeys((*one.evidence, evidence_id))))
        result.append(one)
    return result


class ElectionWindow(NamedTuple):
    """From when until when (None: for ever) an election of ``kind`` by the controller of a procedure is of it; of
    ``partition`` alone, or of every partition that no window of that kind names."""

    number: int
    kind: str
    since: int
    until: int | None
    partition: str | None = None


def election_windows(found: Sequence[Procedure]) -> Iterator[ElectionWindow]:
    """Of procedures, by their number: each until its controller's next one that may set off an election of that kind.
    Reassignments, of which many are under way at once, are told apart by their partitions."""
    of_partition: dict[str, list[tuple[int, Procedure]]] = {}
    for number, one in enumerate(found):
        for partition in dict.fromkeys(one.about) if one.procedure == "reassignment" else ():
            of_partition.setdefault(partition, []).append((number, one))
    for kind in ELECTION_KINDS:
        may = [(number, one) for number, one in enumerate(found) if kind in MAY_ELECT[one.procedure]]
        if kind != ElectionKind.REASSIGNED_PARTITION:
            yield from _windows(kind, may)
            continue
        take_overs = [(number, one) for number, one in may if one.procedure == TAKE_OVER]
        yield from _windows(kind, take_overs)
        for partition, own in sorted(of_partition.items()):
            yield from _windows(kind, merge(take_overs, own, key=itemgetter(0)), partition)


def _windows(
    kind: str, found: Iterable[tuple[int, Procedure]], partition: str | None = None
) -> Iterator[ElectionWindow]:
    last: dict[int, tuple[int, Procedure]] = {}
    for number, one in found:
        if one.controller_id in last:
            earlier, before = last[one.controller_id]
            yield ElectionWindow(earlier, kind, before.began_at, one.began_at, partition)
        last[one.controller_id] = number, one
    for number, one in last.values():
        yield ElectionWindow(number, kind, one.began_at, None, partition)


def reigning_windows(
    tenures: Sequence[TenureSpan], spans: Iterable[tuple[int, int, int | None]], found: Sequence[Procedure]
) -> Iterator[tuple[int, int, int | None]]:
    """Of spans of procedures, by their number, the part in which their controller was the cluster's."""
    held = reigns(tenures)
    starts = [start for _, start, _ in held]
    for number, since, until in spans:
        first = max(0, bisect_right(starts, since) - 1)
        last = len(held) if until is None else bisect_left(starts, until, first)
        for tenure, start, end in held[first:last]:
            ends = [at for at in (until, end) if at is not None]
            begin, stop = max(since, start), min(ends, default=None)
            if tenure.controller_id == found[number].controller_id and (stop is None or begin < stop):
                yield number, begin, stop
