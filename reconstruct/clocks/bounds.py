"""Difference constraints over clocks: the tightest bounds that "this happened before that" allows.

A constraint says ``offset(later) - offset(earlier) <= at_most``. Read as an edge ``earlier -> later`` of that length,
the shortest path from the reference to a clock is the largest offset the clock can have, and the shortest path back,
negated, the smallest. A cycle of negative length is a contradiction: some constraint on it is wrong, or a clock on it
was not the same clock throughout. (Bellman-Ford; the clocks of a cluster are few.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

#: A clock, and which of its segments, counted from 0 in the order of time.
Node = tuple[int, int]
UNBOUNDED: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Edge:
    """``offset(later) - offset(earlier) <= at_most_us``, by the constraint ``index`` of the caller's."""

    earlier: Node
    later: Node
    at_most_us: int
    index: int


def distances(edges: Iterable[Edge], source: Node, *, slack_us: int = 0, backwards: bool = False) -> dict[Node, int]:
    """The shortest path from ``source`` (to it, if ``backwards``) for each node that has one; no negative cycles.

    >>> a, b = (1, 0), (2, 0)
    >>> distances([Edge(a, b, 5, 0), Edge(b, a, -3, 1)], a)
    {(1, 0): 0, (2, 0): 5}
    """
    links: dict[Node, list[tuple[Node, int]]] = {}
    for edge in edges:
        start, end = (edge.later, edge.earlier) if backwards else (edge.earlier, edge.later)
        links.setdefault(start, []).append((end, edge.at_most_us + slack_us))
    found = {source: 0}
    waiting = [source]
    while waiting:
        following: list[Node] = []
        for node in waiting:
            for other, length in links.get(node, ()):
                if found[node] + length < found.get(other, UNBOUNDED):
                    found[other] = found[node] + length
                    following.append(other)
        waiting = list(dict.fromkeys(following))
    return found


def negative_cycle(edges: Mapping[tuple[Node, Node], Edge], slack_us: int = 0) -> Sequence[Edge]:
    """Edges of one contradiction in their order, empty where there is none; ``slack_us`` is added to each length."""
    nodes = sorted({node for pair in edges for node in pair})
    ordered = [edges[pair] for pair in sorted(edges)]
    length = dict.fromkeys(nodes, 0)
    came_by: dict[Node, Edge] = {}
    changed: Node | None = None
    for _ in nodes:
        changed = None
        for edge in ordered:
            candidate = length[edge.earlier] + edge.at_most_us + slack_us
            if candidate < length[edge.later]:
                length[edge.later] = candidate
                came_by[edge.later] = edge
                changed = edge.later
        if changed is None:
            return ()
    if changed is None:
        return ()
    node = changed
    for _ in nodes:  # into the cycle, whose tail the change may have been on
        node = came_by[node].earlier
    cycle = []
    at = node
    while True:
        edge = came_by[at]
        cycle.append(edge)
        at = edge.earlier
        if at == node:
            return cycle[::-1]
