"""Faults of elections: who becomes leader, and what each broker then does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tests.support.bends.editing import StateRow, partition_of
from tests.support.bends.faults.drafts import ERROR, WARNING, Draft, Fault, Faults, Site
from tests.support.bends.faults.restating import State, restated
from tests.support.bends.faults.states import WITHIN_US, elections_of, state_fault
from tests.support.evidence.lines import Line


def _lines_without_epoch(site: Site, row: StateRow) -> list[Line]:
    """The lines of an election that print its leader and no epoch."""
    at = site.written_at(row)
    return [
        line
        for line in site.about(row.partition, "partition_state_change", "leader_elected", "leader_selected")
        if "leader_epoch" not in line.fields
        and line.fields.get("leader") == str(row.state["leader"])
        and abs(line.at - at) < WITHIN_US
    ]


def _as_leader(site: Site, row: StateRow) -> list[Line]:
    """The lines of a leader's own changes of the ISR at the leader epoch of a write."""
    later = [r for r in site.writes[row.partition] if r.state["leader_epoch"] > row.state["leader_epoch"]]
    until = site.written_at(later[0]) if later else None
    return [
        line
        for line in site.about(row.partition, "isr_shrink_proposed", "isr_expand_proposed", "isr_update_committed")
        if line.source_kind == "server_log" and site.written_at(row) <= line.at and (until is None or line.at < until)
    ]


def elected(site: Site, row: StateRow, leader: int, isr: tuple[int, ...] | None = None) -> Draft:
    """Another leader at one leader epoch, in all znodes and lines; each of the two brokers does what it then would."""
    draft, epoch, old = Draft(site), row.state["leader_epoch"], row.state["leader"]
    was = tuple(row.state["isr"])

    def change(state: State) -> State:
        if state.leader_epoch != epoch:
            return state
        is_first = state.isr is not None and set(state.isr) == set(was)
        grown = isr if isr is None or is_first or state.isr is None else tuple(dict.fromkeys((*isr, *state.isr)))
        return replace(
            state,
            leader=leader if state.leader == old else state.leader,
            isr=grown if isr is not None and state.isr is not None else state.isr,
        )

    restated(draft, row.partition, change)
    # what the old one wrote as a leader it does not write
    draft.drop(line for line in _as_leader(site, row) if line.broker_id == old)
    for line in _lines_without_epoch(site, row):
        text = re.sub(r"(with leader |elected leader |new leader = )\d+", rf"\g<1>{leader}", draft.text(line))
        draft.put(line, text)
    _swap_roles(draft, row, old, leader)
    return draft


_ROLES = ("become_leader_started", "become_leader_completed", "become_follower_started", "become_follower_completed")
_DETAILS = ("fetchers_stopped", "fetcher_started", "log_truncated", "become_follower_skipped", "become_leader_skipped")


def _swap_roles(draft: Draft, row: StateRow, old: int, new: int) -> None:
    site, epoch = draft.site, str(row.state["leader_epoch"])
    received = {
        (line.file, line.fields.get("correlation_id"), line.fields.get("controller_id"))
        for line in site.about(row.partition, "leader_and_isr_received")
        if line.fields.get("leader_epoch") == epoch
    }
    to = {old: ("become-leader", "become-follower"), new: ("become-follower", "become-leader")}
    for line in site.about(row.partition, *_ROLES, *_DETAILS):
        key = (line.file, line.fields.get("correlation_id"), line.fields.get("controller_id"))
        if key in received and line.broker_id in to and draft.text(line):
            before, after = to[line.broker_id]
            text = draft.text(line).replace(before, after)
            draft.put(line, _with_leader(site, text, after, new) if line.event_type in _ROLES else text)
    for line in site.about(row.partition, "leader_and_isr_sent"):
        receiver = line.fields.get("to_broker_id", "")
        if line.fields.get("leader_epoch") == epoch and receiver.isdigit() and int(receiver) in to:
            before, after = to[int(receiver)]
            draft.put(line, draft.text(line).replace(before, after))
    for line in site.about(row.partition, "leader_epoch_started"):
        if line.fields.get("leader_epoch") == epoch and line.broker_id in to:
            draft.put(line)


def _with_leader(site: Site, text: str, role: str, leader: int) -> str:
    """In the versions in which a follower's line names its leader."""
    text = re.sub(r" with leader -?\d+", "", text)
    if role == "become-follower" and any("leader" in line.fields for line in site.events("become_follower_started")):
        return re.sub(r" \(state\.change\.logger\)$", f" with leader {leader} (state.change.logger)", text)
    return text


def wrong_leader(site: Site) -> Iterator[Fault]:
    """A live member of the ISR is elected, but not the one whose turn the assignment says it is."""
    for before, after in elections_of(site):
        isr, leader = after.state["isr"], after.state["leader"]
        at = site.written_at(after)
        replicas = site.assignment(after.partition, at)
        others = [m for m in isr if m not in (leader, before.state["leader"])]
        if replicas is None or set(site.ever_assigned(after.partition)) != set(replicas):
            continue
        for other in others[:1]:
            yield state_fault("wrong leader elected", "R09", elected(site, after, other), after)


def dead_leader(site: Site) -> Iterator[Fault]:
    """The broker whose death made the election necessary is elected again."""
    for before, after in elections_of(site):
        old, at = before.state["leader"], site.written_at(after)
        if old >= 0 and old not in after.state["isr"] and is_gone(site, old, at):
            isr = (old, *after.state["isr"])
            # the dead leader is also one that no algorithm gives, and one that the shrink leaves in the ISR
            yield state_fault("dead leader elected", "R07 R09 R15", elected(site, after, old, isr), after)


def is_gone(site: Site, broker: int, at: int) -> bool:
    """Whether the controller's last list before an election lacks the broker, and lists it again only later."""
    lists = [
        line
        for line in site.events("broker_change", "brokers_active", source_kind="controller_log")
        if "live_broker_ids" in line.fields and line.at <= at
    ]
    newest = max(lists, key=lambda line: line.at, default=None)
    return newest is not None and str(broker) not in newest.fields["live_broker_ids"].split(",")


def unclean_election(site: Site) -> Iterator[Fault]:
    """A replica outside of the last ISR is elected while a member of it lives: no version does that, wherever unclean
    elections are allowed or not."""
    for before, after in elections_of(site):
        at = site.written_at(after)
        replicas = site.assignment(after.partition, at) or ()
        outside = [r for r in replicas if r not in before.state["isr"] and not is_gone(site, r, at)]
        is_clean = after.state["leader"] in before.state["isr"]
        for replica in outside[:1] if is_clean else ():
            draft = elected(site, after, replica, (replica,))
            # Since 2.4 an administrator may ask for one (KIP-460).
            yield state_fault("unclean election", "R08 R09", draft, after, ERROR if site.minor < (2, 4) else WARNING)


def unclean_election_of_last(site: Site) -> Iterator[Fault]:
    """Where a partition got its only in-sync replica back, another one is elected."""
    for before, after in elections_of(site):
        at = site.written_at(after)
        replicas = site.assignment(after.partition, at) or ()
        is_recovery = before.state["leader"] == -1 and set(before.state["isr"]) == {after.state["leader"]}
        outside = [r for r in replicas if r not in before.state["isr"] and not is_gone(site, r, at)]
        if is_recovery and outside:
            draft = elected(site, after, outside[0], (outside[0],))
            severity = ERROR if site.minor < (2, 4) else WARNING
            yield state_fault("unclean election in place of the last member", "R08 R09", draft, after, severity)


def leaders_of_two_sources(site: Site) -> Iterator[Fault]:
    """The controller's own line of an election names another leader than the znode it wrote."""
    for line in site.events("partition_state_change"):
        epoch, leader = line.fields.get("leader_epoch"), line.fields.get("leader", "")
        partition = partition_of(line)
        if epoch is None or partition is None or not leader.isdigit():
            continue
        rows = [r for r in site.writes.get(partition, ()) if str(r.state["leader_epoch"]) == epoch]
        other = next((m for m in site.ever_assigned(partition) if m != int(leader)), None)
        if rows and other is not None:
            draft = Draft(site)
            draft.put(line, re.sub(r"(\bleader=|Leader:)\d+", rf"\g<1>{other}", site.raw(line)))
            yield Fault("two leaders for one epoch", partition, frozenset({"R02"}), draft.made(), line.id)


ELECTIONS: tuple[Faults, ...] = (
    wrong_leader,
    dead_leader,
    unclean_election,
    unclean_election_of_last,
    leaders_of_two_sources,
)
