"""From pairs of events to steady stretches of each clock: when it was set, and which pairs contradict all others.

As long as many pairs contradict each other, the clock without which the fewest do is put aside. What is left agrees,
and bounds each of its clocks. Then each clock that was put aside comes back: its pairs with all the others bound its
own offset (:mod:`reconstruct.clocks.cuts`), which changes where it was set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from reconstruct.clocks.bounds import Edge, Node, distances, negative_cycle
from reconstruct.clocks.cuts import MIN_RUN, WANDER_US, Bound, Part, parts

#: (earlier clock, later clock, earlier µs, later µs, slack µs): an event of one clock before one of another.
Pair = tuple[int, int, int, int, int]
Span = tuple[int | None, int | None]
#: Slack: none, or all that a disciplined clock may wander, where pairs contradict each other by no more: µs.
_SLACKS_US: Final = (0, WANDER_US)
#: Clocks this close to each other agree: µs.
TOLERANCE_US: Final = 50_000
#: A pair is plainly wrong where so many others stand against it.
_MAJORITY: Final = 20
#: An effect this long after its cause is as unlikely as one that is longer after: µs.
_LONG_DELAY_US: Final = 600_000_000
#: Contradictions name more clocks than were set; as many of them are looked at.
_MOST_SUSPECTS: Final = 8


@dataclass(slots=True)
class Solved:
    """Constraints between segments of clocks, free of contradictions with ``slack_us`` added to each.

    ``edges`` are the tightest; ``all_edges`` all that could be placed; ``dropped`` the indices of the pairs found
    wrong; ``spans`` the printed time, ``[from, to)``, of each segment of each clock; ``disputed`` the clocks of
    which one was set, and nothing says which.
    """

    all_edges: list[Edge] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    spans: dict[int, dict[Node, Span]] = field(default_factory=dict)
    edges: Sequence[Edge] = ()
    slack_us: int = 0
    disputed: set[int] = field(default_factory=set)

    @property
    def nodes(self) -> set[Node]:
        return {node for spans in self.spans.values() for node in spans}

    def settle(self) -> None:
        """Find the tightest edges that do not contradict each other; what contradicts the rest is dropped."""
        self.edges, self.slack_us = _consistent(self.all_edges, self.dropped)

    def bounds(self, reference: Node) -> tuple[dict[Node, int], dict[Node, int]]:
        """The largest and the smallest offset of each node, relative to ``reference``, where there is one."""
        upper = distances(self.edges, reference, slack_us=self.slack_us)
        lower = distances(self.edges, reference, slack_us=self.slack_us, backwards=True)
        return upper, {node: -length for node, length in lower.items()}

    def agreeing(self, reference: Node) -> list[Node]:
        """The nodes, ``reference`` included, whose offset from it may be none."""
        upper, lower = self.bounds(reference)
        return [n for n in upper if n in lower and lower[n] <= TOLERANCE_US and upper[n] >= -TOLERANCE_US]

    def most_agreed(self) -> Node:
        """The clock that most others may agree with; one that was set is none, the lowest id wins a tie."""
        steady = [next(iter(spans)) for _, spans in sorted(self.spans.items()) if len(spans) == 1]
        return max(steady or sorted(self.nodes), key=lambda node: (len(self.agreeing(node)), -node[0]), default=(0, 0))

    def node_at(self, clock: int, printed_us: int) -> Node | None:
        """The segment of a printed time; None where it may be one of two."""
        found = [
            node
            for node, (start, end) in self.spans[clock].items()
            if (start is None or start <= printed_us) and (end is None or printed_us < end)
        ]
        return found[0] if len(found) == 1 else None


def solve_segments(pairs: Sequence[Pair], reference: int) -> Solved:
    """Place every pair between two segments of clocks, the wrong ones dropped; ``reference`` is taken to be steady."""
    members = {clock for pair in pairs for clock in pair[:2]}
    aside: list[int] = []
    while True:
        solved = _steady(pairs, members)
        suspects = _suspects(pairs, solved.dropped, reference)
        if not suspects or len(members) < 2:
            break
        guilty = min(suspects, key=lambda clock: _unlikeliness(clock, pairs, members, reference))
        members.remove(guilty)
        aside.append(guilty)
    anchor = reference if reference in members else _busiest(pairs, members)
    for clock in reversed(aside):
        _bring_back(clock, pairs, solved, (anchor, 0))
    solved.disputed = _disputed(solved, (anchor, 0), reference)
    return solved


def _disputed(solved: Solved, anchor: Node, reference: int) -> set[int]:
    """Clocks of which one was set, and nothing but the other tells of that time: either may have been."""
    heard: dict[Node, set[int]] = {}
    for edge in solved.all_edges:
        if edge.index not in solved.dropped:
            heard.setdefault(edge.earlier, set()).add(edge.later[0])
            heard.setdefault(edge.later, set()).add(edge.earlier[0])
    found: set[int] = set()
    right = set(solved.agreeing(anchor))
    for clock, spans in solved.spans.items():
        wrong = [node for node in spans if len(spans) > 1 and node not in right]
        for others in (heard.get(node, set()) for node in wrong):
            if len(others) == 1 and reference not in others:
                found |= {clock, *others}
    return found


def _unlikeliness(clock: int, pairs: Sequence[Pair], members: set[int], reference: int) -> tuple[int, int, int, int]:
    """Of the belief that it was this clock that was set: what contradicts all the same, and how well it explains.

    Where two beliefs contradict nothing, the one is likelier under which fewer clocks are wrong, then the one under
    which causes and effects lie closer together.
    """
    solved = _steady(pairs, members - {clock})
    anchor = (reference if reference in members else _busiest(pairs, members - {clock}), 0)
    _bring_back(clock, pairs, solved, anchor)
    upper, lower = solved.bounds(anchor)
    middle = {node: (upper[node] + lower[node]) // 2 for node in upper if node in lower}
    delays = [
        min(edge.at_most_us + middle[edge.earlier] - middle[edge.later], _LONG_DELAY_US)
        for edge in solved.all_edges
        if edge.index not in solved.dropped and edge.earlier in middle and edge.later in middle
    ]
    unplaced = len(pairs) - len(delays)
    # a few pairs on either side of a change contradict even the truth
    contradictions = len(solved.dropped) * _MAJORITY // len(pairs)
    strangers = len(solved.nodes) - len(solved.agreeing(anchor if anchor[0] == reference else solved.most_agreed()))
    return contradictions, strangers, sum(delays) + unplaced * _LONG_DELAY_US, -clock


def _steady(pairs: Sequence[Pair], members: set[int]) -> Solved:
    """All ``members`` taken for clocks that were never set, with the pairs between them."""
    edges = [
        Edge((earlier, 0), (later, 0), later_us - earlier_us + slack, index)
        for index, (earlier, later, earlier_us, later_us, slack) in enumerate(pairs)
        if earlier in members and later in members
    ]
    solved = Solved(edges, spans={clock: {(clock, 0): (None, None)} for clock in sorted(members)})
    solved.settle()
    return solved


def _suspects(pairs: Sequence[Pair], dropped: set[int], reference: int) -> list[int]:
    """Clocks of which several events, not one wrong record, are in contradictions; those with the most."""
    events: dict[int, tuple[set[int], set[int]]] = {}
    for index in dropped:
        earlier, later, earlier_us, later_us, _ = pairs[index]
        for clock, own, other in ((earlier, earlier_us, later_us), (later, later_us, earlier_us)):
            of_clock = events.setdefault(clock, (set(), set()))
            of_clock[0].add(own)
            of_clock[1].add(other)
    counts = {clock: min(len(own), len(others)) for clock, (own, others) in events.items() if clock != reference}
    enough = [clock for clock, count in counts.items() if count >= MIN_RUN]
    return sorted(enough, key=lambda clock: (-counts[clock], clock))[:_MOST_SUSPECTS]


def _busiest(pairs: Sequence[Pair], members: set[int]) -> int:
    counts = dict.fromkeys(sorted(members), 0)
    for pair in pairs:
        if members.issuperset(pair[:2]):
            counts[pair[0]] += 1
            counts[pair[1]] += 1
    return max(counts, key=lambda clock: (counts[clock], -clock), default=0)


def _bring_back(clock: int, pairs: Sequence[Pair], solved: Solved, anchor: Node) -> None:
    """Add a clock to those solved: its segments, and its pairs with them."""
    upper, lower = solved.bounds(anchor)
    placed: dict[int, Node] = {}
    bounds = []
    for index, (earlier, later, earlier_us, later_us, slack) in enumerate(pairs):
        if clock not in (earlier, later) or (earlier if later == clock else later) not in solved.spans:
            continue
        own, other = (later_us, (earlier, earlier_us)) if later == clock else (earlier_us, (later, later_us))
        node = solved.node_at(*other)
        if node is None:
            continue
        placed[index] = node
        at_most = later_us - earlier_us + slack
        known = upper if later == clock else lower
        if node in known:
            value = known[node] + (at_most if later == clock else -at_most)
            true_us = other[1] - (upper.get(node, known[node]) + lower.get(node, known[node])) // 2
            bounds.append(Bound(later == clock, value, true_us, own, index))
    found = parts(bounds, lambda bound: bound.at_a)
    changes = [_change(one, other) for one, other in pairwise(found)]
    solved.spans[clock] = _spans(clock, found, changes)
    of_part = {
        b.index: number for number, part in enumerate(found) for b in part.bounds if _is_sure(b, number, changes)
    }
    bounded = {b.index for b in bounds}
    for index, node in placed.items():
        earlier, later, earlier_us, later_us, slack = pairs[index]
        if index in bounded:
            number = of_part.get(index)
            mine = None if number is None else (clock, number)
        else:
            mine = solved.node_at(clock, later_us if later == clock else earlier_us)
        if mine is not None:
            ends = (node, mine) if later == clock else (mine, node)
            solved.all_edges.append(Edge(*ends, later_us - earlier_us + slack, index))
    solved.dropped |= {index for part in found for index in part.dropped}
    solved.settle()


@dataclass(frozen=True, slots=True)
class _Change:
    """A clock was set: the last bound that must be before, the first that must be behind."""

    last: Bound
    first: Bound


def _change(one: Part, other: Part) -> _Change:
    """Between the pairs that do not fit the other part; one that fits both may lie on either side."""
    last = next((b for b in reversed(one.kept) if not _fits(b, other)), one.bounds[-1])
    first = next((b for b in other.kept if not _fits(b, one)), other.bounds[0])
    return _Change(last, first)


def _fits(bound: Bound, part: Part) -> bool:
    lower, upper = part.region
    if bound.is_upper:
        return lower is None or bound.value >= lower
    return upper is None or bound.value <= upper


def _is_sure(bound: Bound, number: int, changes: Sequence[_Change]) -> bool:
    """Whether a bound of a part lies on the sure side of the changes around it."""
    is_behind = number == 0 or changes[number - 1].first.at_a <= bound.at_a
    return is_behind and (number == len(changes) or bound.at_a <= changes[number].last.at_a)


def _spans(clock: int, found: Sequence[Part], changes: Sequence[_Change]) -> dict[Node, Span]:
    """The printed times of each segment of a clock.

    A clock set forward leaves a gap, in whose middle the next segment begins. One that was set back prints times
    twice: then a segment is what was surely printed in it, open where no other segment can be.
    """
    if all(change.last.at_b <= change.first.at_b for change in changes):
        middles = [(change.last.at_b + change.first.at_b) // 2 + 1 for change in changes]
        starts: list[int | None] = [None, *middles]
        return {(clock, i): (start, end) for i, (start, end) in enumerate(zip(starts, [*middles, None], strict=True))}
    times: Mapping[int, list[int]] = {
        number: [b.at_b for b in part.kept if _is_sure(b, number, changes)] or [b.at_b for b in part.bounds]
        for number, part in enumerate(found)
    }
    known = {number: [min(at), max(at) + 1] for number, at in times.items()}
    by_start = sorted(known.values())
    for one, other in pairwise(by_start):
        if one[1] < other[0]:  # no record lies between them: half of that time belongs to each
            one[1] = other[0] = (one[1] + other[0]) // 2
    least, greatest = by_start[0][0], max(end for _, end in by_start)
    return {
        (clock, number): (None if start == least else start, None if end == greatest else end)
        for number, (start, end) in known.items()
    }


def _consistent(edges: Sequence[Edge], dropped: set[int]) -> tuple[Sequence[Edge], int]:
    """Drop what contradicts the rest, into ``dropped``; the tightest edges left, and the slack they need."""
    by_pair: dict[tuple[Node, Node], list[Edge]] = {}
    for edge in sorted(edges, key=lambda e: (e.at_most_us, e.index)):
        by_pair.setdefault((edge.earlier, edge.later), []).append(edge)
    for slack in _SLACKS_US:
        while cycle := negative_cycle(_tightest(by_pair, dropped), slack):
            lack = -sum(edge.at_most_us + slack for edge in cycle)
            against = [_to_drop(by_pair[edge.earlier, edge.later], edge, lack, dropped) for edge in cycle]
            fewest = min(len(indices) for indices in against)
            rivals = sorted(len(indices) for indices in against)[1:]
            is_plain = not rivals or rivals[0] >= _MAJORITY * fewest
            if not is_plain and slack < _SLACKS_US[-1]:
                break
            # where the sides are even, neither is believed
            dropped.update(index for indices in against if len(indices) == fewest for index in indices)
        else:
            return list(_tightest(by_pair, dropped).values()), slack
    raise AssertionError("the last slack drops until nothing contradicts")


def _tightest(by_pair: Mapping[tuple[Node, Node], Sequence[Edge]], dropped: set[int]) -> dict[tuple[Node, Node], Edge]:
    """The shortest edge of each direction between two nodes that is not dropped; the edges of a pair are in order."""
    found = ((pair, next((e for e in alike if e.index not in dropped), None)) for pair, alike in by_pair.items())
    return {pair: edge for pair, edge in found if edge is not None}


def _to_drop(alike: Sequence[Edge], edge: Edge, lack: int, dropped: set[int]) -> list[int]:
    """The indices of the constraints that would have to be wrong for this side of a contradiction to give way."""
    return [other.index for other in alike if other.index not in dropped and other.at_most_us < edge.at_most_us + lack]
