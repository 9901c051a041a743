"""When each replica led, followed and could lose offsets: the spans that carry bounds, and the drops that end them.

A high watermark falls in three cases only. A start sets it to the checkpoint's. A follower's first fetch from a new
leader sets it to min(that leader's, own log end), which may be lower. From 2.4 on, a truncation below it takes it
along. A log end offset falls by a truncation, and by what recovery drops at a start.

The first fetch is not logged. It is *proven* by two high watermarks of one stint of following, both written after its
begin, the second higher: only a fetch raises a follower's high watermark. Until then the high watermark may still fall,
but not below the leader's at the begin of the stint, nor below where the log was cut to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconstruct.history.offset_curves import EVER_AFTER, EVER_BEFORE, Drop
from reconstruct.history.offset_evidence import DecidedState, OffsetEvidence, ReplicaEvent, ReplicaEventKind

#: The leader of a stint of following whose line does not name it: nothing is proven in it.
NOBODY_KNOWN: Final = -1
#: A line and the act it tells of lie within this; nothing in a log says how far apart they are.
LINE_TO_ACT_US: Final = 1_000_000
#: A line that prints an offset prints it as of an instant this close to its own time.
LINE_TO_VALUE_US: Final = 50_000


@dataclass(frozen=True, slots=True)
class Held:
    """One value that a quantity had at some instant of ``[earliest, latest]``."""

    earliest: int
    latest: int
    offset: int
    is_minimum: bool = False
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stint:
    """One replica in one role without a break; a follower's ``proven_from`` is when its first fetch surely was over."""

    replica_id: int
    start: int
    end: int
    leader: int
    proven_from: int = EVER_AFTER
    proven_offset: int | None = None

    @property
    def is_leader(self) -> bool:
        return self.replica_id == self.leader


def stints_of(evidence: OffsetEvidence, high_watermarks: Mapping[int, Sequence[Held]]) -> list[Stint]:
    """Every stint of every replica. A follower's also ends with its leader's, and when another leader is decided."""
    by_replica = _by_replica(evidence.events)
    led = {
        replica: [_span(event, events) for event in events if event.kind is ReplicaEventKind.LEADS]
        for replica, events in by_replica.items()
    }
    result = [
        Stint(replica, start, end, replica, proven_from=start) for replica, spans in led.items() for start, end in spans
    ]
    for replica, events in by_replica.items():
        for event in events:
            if event.kind is not ReplicaEventKind.FOLLOWS:
                continue
            start, end = _span(event, events)
            if event.leader is None:
                result.append(Stint(replica, start, end, NOBODY_KNOWN))
                continue
            begins = [start, *(at for at in _ends_of_reign(by_replica.get(event.leader, ())) if start < at < end)]
            for begin, until in zip(begins, [*begins[1:], end], strict=True):
                stint = Stint(replica, begin, _cut(begin, until, event.leader, evidence.decided), event.leader)
                result.append(_proven(stint, high_watermarks.get(replica, ()), begin))
    return sorted(result, key=lambda stint: (stint.start, stint.replica_id))


def _by_replica(events: Sequence[ReplicaEvent]) -> dict[int, list[ReplicaEvent]]:
    result: dict[int, list[ReplicaEvent]] = {}
    for event in events:
        result.setdefault(event.replica_id, []).append(event)
    return result


_CHANGES_ROLE: Final = (
    ReplicaEventKind.STARTED, ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS, ReplicaEventKind.DELETED,
)  # fmt: skip


def _span(event: ReplicaEvent, events: Sequence[ReplicaEvent]) -> tuple[int, int]:
    """From ``event`` to the replica's next change of role: less what a line may be late, but for a new process."""
    later = [e for e in events[events.index(event) + 1 :] if e.kind in _CHANGES_ROLE]
    for follower in later:
        if (follower.kind, follower.leader) == (event.kind, event.leader):
            continue  # the same role again, in a new epoch
        late = 0 if follower.kind is ReplicaEventKind.STARTED else LINE_TO_ACT_US
        return event.at, max(event.at, follower.at - late)
    return event.at, EVER_AFTER


def _ends_of_reign(events: Sequence[ReplicaEvent]) -> list[int]:
    """Instants after which a leader is another one, even if it leads again and its followers never heard of it."""
    return [event.at for event in events if event.kind in _CHANGES_ROLE and event.kind is not ReplicaEventKind.LEADS]


def _cut(begin: int, end: int, leader: int, decided: Sequence[DecidedState]) -> int:
    """``end``, or the first decision of another leader after the begin of following ``leader``."""
    others = [state.valid_from for state in decided if state.leader != leader and begin < state.valid_from < end]
    return min(others, default=end)


def _proven(stint: Stint, seen: Sequence[Held], begin: int) -> Stint:
    """With the earliest proof: a value, and a higher one after it."""
    lowest: Held | None = None
    proof: Stint = stint
    for held in sorted(seen, key=lambda h: (h.earliest, h.latest, h.offset)):
        if held.earliest < begin or held.latest >= stint.end or held.is_minimum:
            continue
        if lowest is not None and held.offset > lowest.offset:
            over = max(held.latest, lowest.latest)
            if over < proof.proven_from:
                proof = replace(stint, proven_from=over, proven_offset=held.offset if over == held.latest else None)
        if lowest is None or held.offset < lowest.offset:
            lowest = held
    return proof


def log_drops(evidence: OffsetEvidence, replica: int) -> list[Drop]:
    """When the replica's log end offset may fall."""
    drops = _common_drops(evidence, replica)
    for event in evidence.events:
        if event.replica_id == replica and event.kind is ReplicaEventKind.TRUNCATED:
            drops.append(Drop(event.at, event.at + LINE_TO_ACT_US, event.offset))
    return sorted(drops, key=lambda drop: (drop.start, drop.end))


def high_watermark_drops(
    evidence: OffsetEvidence, replica: int, stints: Sequence[Stint], floors: Mapping[tuple[int, int], int], *,
    is_kept_in_log: bool,
) -> list[Drop]:  # fmt: skip
    """When the replica's high watermark may fall; ``floors`` by (leader, instant) is the leader's, where known."""
    drops = _common_drops(evidence, replica)
    cuts = [e for e in evidence.events if e.replica_id == replica and e.kind is ReplicaEventKind.TRUNCATED]
    if is_kept_in_log:
        drops += [Drop(cut.at, cut.at + LINE_TO_ACT_US, cut.offset) for cut in cuts]
    for stint in stints:
        if stint.replica_id != replica or stint.is_leader:
            continue
        proven = _first_proof(stints, stint)
        begin, end = stint.start - LINE_TO_ACT_US, min(proven.proven_from, _next_role(evidence, replica, stint))
        proof = proven.proven_offset if end == proven.proven_from else None
        floor = floors.get((stint.leader, stint.start))
        for cut in cuts:
            if floor is not None and begin <= cut.at <= end:
                floor = None if cut.offset is None else min(floor, cut.offset)
        drops.append(Drop(begin, end, floor, proof))
    return sorted(drops, key=lambda drop: (drop.start, drop.end))


def _first_proof(stints: Sequence[Stint], stint: Stint) -> Stint:
    """Of the stints from ``stint`` on, the one whose first fetch is proven first: by then it was over in all before."""
    later = [s for s in stints if s.replica_id == stint.replica_id and not s.is_leader and s.start >= stint.start]
    return min(later, key=lambda s: (s.proven_from, s.start), default=stint)


def _next_role(evidence: OffsetEvidence, replica: int, stint: Stint) -> int:
    """When an unproven follower certainly was no follower of that leader any more."""
    later = [
        event.at
        for event in evidence.events
        if event.replica_id == replica
        and event.at > stint.start
        and event.kind in _CHANGES_ROLE
        and not (event.kind is ReplicaEventKind.FOLLOWS and event.leader == stint.leader)
    ]
    return min(later, default=EVER_AFTER)


def _common_drops(evidence: OffsetEvidence, replica: int) -> list[Drop]:
    drops = []
    end = EVER_BEFORE
    for start, until in sorted(evidence.covered.get(replica, ())):
        if start > end:
            drops.append(Drop(end, start))
        end = max(end, until)
    if end < EVER_AFTER:
        drops.append(Drop(end, EVER_AFTER))
    for event in evidence.events:
        if event.replica_id != replica:
            continue
        if event.kind is ReplicaEventKind.STARTED:
            drops.append(Drop(event.at, event.at))
        elif event.kind is ReplicaEventKind.DELETED:
            drops.append(Drop(event.at - LINE_TO_ACT_US, event.at + LINE_TO_ACT_US))
    return drops
