"""Faults of the controller's episodes: a new topic, a preferred election, a failover; each elects a
member of the ISR that is live, but not the one that its algorithm gives."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.bends.editing import StateRow
from tests.support.bends.faults.drafts import Fault, Faults, Site
from tests.support.bends.faults.elections import elected, is_gone
from tests.support.bends.faults.states import elections_of, state_fault
from tests.support.evidence.lines import Line, by_partition

#: What a controller begins it has written within this time, µs.
_DONE_US = 3_000_000
_ELECTED = ("controller_elected", "controller_epoch_incremented")
#: So long after its election a controller takes over, µs.
_TAKES_OVER_US = 5_000_000


def first_leader_out_of_turn(site: Site) -> Iterator[Fault]:
    """The second live replica of a new partition is its first leader: the first one's turn it was."""
    for partition, rows in site.writes.items():
        first = rows[0]
        isr, leader = first.state["isr"], first.state["leader"]
        others = [member for member in isr if member != leader]
        if first.version == 0 and sum(row.version == 0 for row in rows) == 1 and others and leader == isr[0]:
            kind = "first leader out of turn"
            yield state_fault(kind, "R09", elected(site, first, others[0]), first)
            assert partition == first.partition


def preferred_election_of_another(site: Site) -> Iterator[Fault]:
    """A preferred election takes another member of the ISR than the first replica."""
    lines = list(site.events("preferred_election_started", "leader_election_started", source_kind="controller_log"))
    for before, after in elections_of(site):
        replicas, at = site.assignment(after.partition, site.written_at(after)), site.written_at(after)
        others = [m for m in after.state["isr"] if m not in (after.state["leader"], before.state["leader"])]
        is_preferred = replicas is not None and after.state["leader"] == replicas[0]
        if is_preferred and others and any(_names(line, after) and 0 <= at - line.at <= _DONE_US for line in lines):
            yield state_fault("preferred election of another", "R09", elected(site, after, others[0]), after)


def _names(line: Line, row: StateRow) -> bool:
    return any(named == row.partition for named, _ in by_partition(line.fields))


def failover_elects_another(site: Site) -> Iterator[Fault]:
    """A new controller that finds a leader gone elects another member of the ISR than the one whose turn it is."""
    taken_over = [line.at for line in site.events(*_ELECTED, source_kind="controller_log")]
    for before, after in elections_of(site):
        at = site.written_at(after)
        others = [m for m in after.state["isr"] if m != after.state["leader"] and not is_gone(site, m, at)]
        if others and any(0 <= at - since <= _TAKES_OVER_US for since in taken_over):
            draft = elected(site, after, others[0])
            yield state_fault("new controller elects out of turn", "R09", draft, after)
            assert before.partition == after.partition


EPISODES: tuple[Faults, ...] = (
    first_leader_out_of_turn,
    preferred_election_of_another,
    failover_elects_another,
)
