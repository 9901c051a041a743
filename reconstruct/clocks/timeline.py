"""What each broker's clock showed against true time: solved from causal pairs, with bounds that are proven.

``offset`` = the time a log prints, read as UTC, minus true time: a broker whose log is in UTC+2 and whose clock is
right has +7,200,000 ms. True time is ZooKeeper's clock where znodes are given; else no clock is absolute, and offsets
are relative to the broker's that most others agree with.

A pair says that one clock's event came before another's, so ``offset(later) - offset(earlier)`` is at most the
difference of the printed times. Enough pairs in both directions leave a narrow interval. Offsets are taken to be
constant within a segment; where many pairs in a row contradict the others, the clock was set (daylight saving time, a
step of NTP, a paused machine) and another segment begins. A few pairs against all others are dropped and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconstruct.clocks.bounds import Node
from reconstruct.clocks.lateness import ZONE_SKEW_US, ZONE_STEP_US, Effect, may_be_set_forward
from reconstruct.clocks.segments import TOLERANCE_US, Solved, solve_segments
from reconstruct.time.instants import may_be_later_us

#: The clock of the ZooKeeper ensemble's leader, in UTC.
ZOOKEEPER: Final = -1
#: Both clocks print whole milliseconds, cut off: what looks simultaneous may be this much later; and more where what
#: follows has lost its milliseconds (:func:`reconstruct.time.instants.may_be_later_us`).
TRUNCATION_US: Final = 1000
#: A clock this close to the reference agrees with it: ms.
TOLERANCE_MS: Final = TOLERANCE_US // 1000
#: Time zones are multiples of this: ms.
ZONE_STEP_MS: Final = ZONE_STEP_US // 1000
#: A clock beside a zone is at most this wrong: ms.
ZONE_SKEW_MS: Final = ZONE_SKEW_US // 1000
#: Where one pair in so many was dropped, the evidence contradicts itself and no bound of the clock is given.
CONTRADICTED: Final = 20
_ZONE_LIMIT_MS: Final = 14 * 60 * 60_000

#: ``agrees``: within the tolerance of 0, as far as is proven. ``skewed``, ``other_zone``: provably not. ``unbounded``:
#: a bound is missing. ``unknown``: no evidence, or such as contradicts itself.
VERDICTS: Final = ("agrees", "skewed", "other_zone", "unbounded", "unknown")


@dataclass(frozen=True, slots=True)
class CausalPair:
    """An event of one clock that came before an event of another; times as printed, µs since the epoch, UTC.

    ``pairs_count`` is how many pairs it stands for (the tightest of many); ``evidence`` the ids of both records.
    """

    earlier_clock: int
    later_clock: int
    earlier_us: int
    later_us: int
    rule: str = ""
    evidence: tuple[str, ...] = ()
    pairs_count: int = 1


@dataclass(frozen=True, slots=True)
class ClockSegment:
    """A stretch of one broker's printed time, ``[from_us, to_us)`` (None: open), and the bounds of its offset.

    Segments of a broker are numbered in the order of time. Where a clock was set back, two segments cover the same
    printed times, and only the order of the records in their file tells them apart. ``reference`` is
    :data:`ZOOKEEPER`, or the broker that offsets are relative to. A bound of None: nothing proves one. ``is_disputed``:
    this clock was set, or another one was, and of that time nothing but these two tells; or as much of the reference
    contradicts its bounds as bounds it; or it may have been set forward (:mod:`reconstruct.clocks.lateness`).
    """

    broker_id: int
    sequence: int
    from_us: int | None
    to_us: int | None
    offset_lower_ms: int | None
    offset_upper_ms: int | None
    pairs_count: int
    dropped_pairs_count: int
    reference: int
    zone_offset_minutes: int | None
    verdict: str
    is_disputed: bool = False


def solve_clocks(pairs: Iterable[CausalPair], brokers: Iterable[int] = ()) -> list[ClockSegment]:
    """Segments of every broker that a pair or ``brokers`` names, by broker and time; in any order of the pairs."""
    given = sorted(
        (p for p in pairs if p.earlier_clock != p.later_clock),
        key=lambda p: (p.earlier_clock, p.later_clock, p.earlier_us, p.later_us, p.rule, p.evidence),
    )
    solved = solve_segments(
        [
            (p.earlier_clock, p.later_clock, p.earlier_us, p.later_us, TRUNCATION_US + may_be_later_us(p.later_us))
            for p in given
        ],
        ZOOKEEPER,
    )
    named = {clock for p in given for clock in (p.earlier_clock, p.later_clock)} | set(brokers)
    has_zookeeper = any(node[0] == ZOOKEEPER for node in solved.nodes)
    reference = (ZOOKEEPER, 0) if has_zookeeper else solved.most_agreed()
    upper, lower = solved.bounds(reference)
    kept, dropped = _counts(given, solved)
    disputed = solved.disputed | _set_forward(
        given, solved, reference, {n: (lower[n] + upper[n]) // 2 for n in lower if n in upper}
    )
    disputed |= _against(reference, given, solved) if has_zookeeper else set()
    disputed |= _known_by(disputed, solved, reference)
    result = []
    for broker_id in sorted(named - {ZOOKEEPER}):
        for node, (start, end) in sorted(solved.spans.get(broker_id, {(broker_id, 0): (None, None)}).items()):
            least = lower[node] // 1000 if node in lower else None
            most = -(-upper[node] // 1000) if node in upper else None
            zone = zone_minutes(least, most)
            counts = kept[node], dropped[node]
            result.append(
                ClockSegment(
                    broker_id,
                    node[1],
                    start,
                    end,
                    least,
                    most,
                    *counts,
                    reference[0],
                    zone,
                    _verdict(least, most, zone, *counts),
                    broker_id in disputed,
                )
            )
    return result


def _set_forward(given: Sequence[CausalPair], solved: Solved, reference: Node, middle: Mapping[Node, int]) -> set[int]:
    """Clocks that may have been set forward unnoticed: by all they follow, or, where all were set at once, by the
    reference."""
    effects: dict[int, dict[bool, list[Effect]]] = {}
    for edge in solved.all_edges:
        if edge.index not in solved.dropped and edge.earlier in middle and edge.later in middle:
            delay = edge.at_most_us + middle[edge.earlier] - middle[edge.later]
            effect = Effect(given[edge.index].later_us, delay)
            effects.setdefault(edge.later[0], {}).setdefault(edge.earlier == reference, []).append(effect)
    return {
        clock
        for clock, found in effects.items()
        if may_be_set_forward([*found.get(True, ()), *found.get(False, ())]) or may_be_set_forward(found.get(True, ()))
    }


def _against(reference: Node, given: Sequence[CausalPair], solved: Solved) -> set[int]:
    """Clocks of whose events that bound them by the steady reference, on one side, as many were dropped as kept: the
    many pairs of brokers with each other outweigh them, and fit another's having been set as well."""
    times: dict[tuple[int, bool], tuple[set[int], set[int]]] = {}
    for edge in solved.all_edges:
        if reference in (edge.earlier, edge.later):
            pair, is_later = given[edge.index], edge.earlier == reference
            clock, at = (edge.later[0], pair.later_us) if is_later else (edge.earlier[0], pair.earlier_us)
            times.setdefault((clock, is_later), (set(), set()))[edge.index in solved.dropped].add(at)
    return {clock for (clock, _), (kept, dropped) in times.items() if dropped and len(dropped) >= len(kept)}


def _known_by(disputed: set[int], solved: Solved, reference: Node) -> set[int]:
    """Clocks with a segment that nothing but these clocks bounds on one of its sides: if they were set, it was, too."""
    upper, lower = solved.bounds(reference)
    found: set[int] = set()
    while True:
        trusted = replace(
            solved, edges=[e for e in solved.edges if not {e.earlier[0], e.later[0]} & (disputed | found)]
        )
        still_upper, still_lower = trusted.bounds(reference)
        more = {node[0] for node in (upper.keys() - still_upper.keys()) | (lower.keys() - still_lower.keys())}
        if more <= disputed | found:
            return found
        found |= more - disputed


def zone_minutes(lower_ms: int | None, upper_ms: int | None) -> int | None:
    """The time zone that explains an offset: the one multiple of 15 minutes near the bounds; None for none or several.

    >>> zone_minutes(7_199_980, 7_200_015)
    120
    >>> zone_minutes(-60_010, -59_990) is None
    True
    """
    if lower_ms is None or upper_ms is None:
        return None
    if lower_ms < ZONE_STEP_MS // 2 and upper_ms > -ZONE_STEP_MS // 2:
        return None
    first = -(-(lower_ms - ZONE_SKEW_MS) // ZONE_STEP_MS)
    last = (upper_ms + ZONE_SKEW_MS) // ZONE_STEP_MS
    if first != last or abs(first * ZONE_STEP_MS) > _ZONE_LIMIT_MS:
        return None
    return first * ZONE_STEP_MS // 60_000


def remaining_bounds_ms(segment: ClockSegment) -> tuple[int | None, int | None]:
    """Bounds of what the clock is wrong by beside its time zone: ms."""
    zone = (segment.zone_offset_minutes or 0) * 60_000
    lower, upper = segment.offset_lower_ms, segment.offset_upper_ms
    return (None if lower is None else lower - zone, None if upper is None else upper - zone)


def correction_us(segment: ClockSegment) -> int | None:
    """What to subtract from a printed time, µs; None where nothing proves that a correction would be one.

    The zone exactly, and the middle of what remains where that is provably not 0: but never so much that the corrected
    time could be further from the truth than the printed one.
    """
    if segment.verdict not in ("skewed", "other_zone"):
        return None
    lower, upper = remaining_bounds_ms(segment)
    zone = (segment.zone_offset_minutes or 0) * 60_000_000
    if lower is None or upper is None:
        return None
    if lower - TOLERANCE_MS > 0:
        return zone + min((lower + upper) * 500, 2 * lower * 1000)
    if upper + TOLERANCE_MS < 0:
        return zone + max((lower + upper) * 500, 2 * upper * 1000)
    return zone or None


def _verdict(lower_ms: int | None, upper_ms: int | None, zone: int | None, pairs_count: int, dropped_count: int) -> str:
    if dropped_count * CONTRADICTED >= max(pairs_count, 1):
        return "unknown"
    if zone is not None:
        return "other_zone"
    if (lower_ms is not None and lower_ms > TOLERANCE_MS) or (upper_ms is not None and upper_ms < -TOLERANCE_MS):
        return "skewed"
    if lower_ms is None or upper_ms is None:
        return "unbounded" if pairs_count else "unknown"
    return "agrees"


def _counts(given: Sequence[CausalPair], solved: Solved) -> tuple[Counter[Node], Counter[Node]]:
    """By segment of a clock: the pairs that bound it, and those that were dropped."""
    kept: Counter[Node] = Counter()
    dropped: Counter[Node] = Counter()
    for edge in solved.all_edges:
        for node in (edge.earlier, edge.later):
            if edge.index in solved.dropped:
                dropped[node] += 1
            else:
                kept[node] += given[edge.index].pairs_count
    return kept, dropped
