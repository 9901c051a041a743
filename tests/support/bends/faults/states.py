"""Faults of what was decided: the leader, the ISR and the epochs of a partition, in every source that shows them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace

from reconstruct.partitions.evidence import Evidence
from tests.support.bends.editing import StateRow
from tests.support.bends.faults.drafts import ERROR, INFO, WARNING, Draft, Fault, Faults, Site, number
from tests.support.bends.faults.restating import State, restated

#: A broker that is in no cluster of the captures.
STRANGER = 9
WITHIN_US = 1_000_000


def state_fault(kind: str, rules: str, draft: Draft, row: StateRow, severity: str = ERROR) -> Fault:
    return Fault(
        kind, row.partition, frozenset(rules.split()), draft.made(), f"version {row.version}", severity=severity
    )


def _is_election(before: StateRow, after: StateRow) -> bool:
    old, new = before.state, after.state
    return bool(old["leader_epoch"] < new["leader_epoch"] and new["leader"] >= 0 and old["leader"] != new["leader"])


def elections_of(site: Site) -> Iterator[tuple[StateRow, StateRow]]:
    return ((before, after) for before, after in site.successive() if _is_election(before, after))


def leader_epoch_jumps(site: Site) -> Iterator[Fault]:
    """From one write to the next the leader epoch rises by four, and never falls back."""
    for before, after in site.successive():
        old, new = before.state["leader_epoch"], after.state["leader_epoch"]
        if new == old + 1:
            draft = Draft(site)
            restated(draft, after.partition, lambda s, new=new: _raised(s, 3, new))  # type: ignore[misc]
            yield state_fault("leader epoch jumps", "R10", draft, after)


def _raised(state: State, by: int, since: int) -> State:
    is_later = state.leader_epoch is not None and state.leader_epoch >= since
    return replace(state, leader_epoch=state.leader_epoch + by) if is_later else state  # type: ignore[operator]


def leader_epoch_repeats(site: Site) -> Iterator[Fault]:
    """Another leader is elected at the epoch of the last one; all that follows is one lower."""
    for before, after in elections_of(site):
        if before.state["leader"] >= 0 and after.state["leader_epoch"] == before.state["leader_epoch"] + 1:
            draft = Draft(site)
            restated(draft, after.partition, lambda s, e=after.state["leader_epoch"]: _raised(s, -1, e))  # type: ignore[misc]
            yield state_fault("leader epoch repeats", "R02 R10", draft, after)


def leader_epoch_falls(site: Site) -> Iterator[Fault]:
    """An election sets the leader epoch back by two."""
    for before, after in elections_of(site):
        epoch = after.state["leader_epoch"]
        if epoch >= 3 and epoch == before.state["leader_epoch"] + 1:
            draft = Draft(site)
            restated(draft, after.partition, lambda s, e=epoch: _raised(s, -2, e) if s.leader_epoch == e else s)  # type: ignore[misc]
            yield state_fault("leader epoch falls", "R01 R02 R10", draft, after)


def _same(state: State, row: StateRow, after_us: int) -> bool:
    """Whether a sighting shows this write: its version, or where it has none its epoch, leader and ISR."""
    if state.version is not None:
        return state.version == row.version
    shown = (state.leader_epoch, state.leader, set(state.isr or ()))
    written = (row.state["leader_epoch"], row.state["leader"], set(row.state["isr"]))
    return shown == written and state.at >= after_us - WITHIN_US


def _of(fact: Evidence) -> State:
    return State(fact.leader, fact.leader_epoch, fact.isr, fact.partition_epoch, fact.at)


def leader_outside_isr(site: Site) -> Iterator[Fault]:
    for _, after in elections_of(site):
        leader, isr = after.state["leader"], after.state["isr"]
        if len(isr) >= 2:
            draft, at = Draft(site), site.written_at(after)
            restated(
                draft,
                after.partition,
                lambda s, r=after, at=at, leader=leader: (  # type: ignore[misc]
                    replace(s, isr=tuple(m for m in s.isr or () if m != leader)) if _same(s, r, at) else s
                ),
            )
            yield state_fault("leader outside of the ISR", "R05 R09", draft, after)


def isr_empty(site: Site) -> Iterator[Fault]:
    """Of a version that leaves the last member in the ISR."""
    if site.minor < (1, 1):
        return
    for _, after in site.successive():
        draft, at = Draft(site), site.written_at(after)
        restated(
            draft,
            after.partition,
            lambda s, r=after, at=at: replace(s, isr=(), leader=-1) if _same(s, r, at) else s,  # type: ignore[misc]
        )
        yield state_fault("ISR empty", "R06", draft, after)


def isr_outside_assignment(site: Site) -> Iterator[Fault]:
    """A live broker that no source ever names as a replica, or one that is in no cluster."""
    for before, after in site.successive():
        at = site.written_at(after)
        assigned = site.ever_assigned(after.partition)
        if site.assignment(after.partition, at) is None:
            continue
        stranger = next((broker for broker in site.brokers if broker not in assigned), STRANGER)
        draft = Draft(site)
        restated(
            draft,
            after.partition,
            lambda s, r=after, at=at, more=stranger: (  # type: ignore[misc]
                replace(s, isr=(*(s.isr or ()), more)) if _same(s, r, at) and s.isr is not None else s
            ),
        )
        # an election's ISR is also judged as its outcome
        rules = "R04 R09" if _is_election(before, after) else "R04"
        fault = state_fault("ISR outside of the assignment", rules, draft, after, _severity_outside(site, after))
        # of an election, whose ISR is part of the one before, no assignment needs to be known
        yield fault if _is_election(before, after) else replace(fault, unprovable=_assignment_unknown(site, after))


def _severity_outside(site: Site, row: StateRow) -> str:
    """An error where a later write of the topic, or a later line that names the replicas, shows that no assignment is
    missing; before that snapshots, which are not atomic, leave a way out, and since 2.4 Kafka does (KAFKA-9672)."""
    told = ("leader_and_isr_sent", "leader_and_isr_received", "update_metadata_sent", "metadata_cached")
    facts = [fact for fact in site.plain.facts[row.partition] if fact.replicas and fact.kind in told]
    is_told = any(
        (fact.leader_epoch or 0) > row.state["leader_epoch"]
        or (fact.partition_epoch is not None and fact.partition_epoch > row.version)
        or _same(_of(fact), row, site.written_at(row))
        for fact in facts
    )
    if is_told or any(at > site.written_at(row) for at, _ in site.assigned_by_version(row.partition[0])):
        return ERROR
    return INFO if site.minor >= (2, 4) else WARNING


def _assignment_unknown(site: Site, row: StateRow) -> str:
    """Why what was assigned at a write is not known."""
    at = site.written_at(row)
    later = [r for r in site.writes[row.partition] if r.version > row.version]
    until = site.written_at(later[0]) if later else at
    versions = site.assigned_by_version(row.partition[0])
    near = [version for when, version in versions if when <= at][-1:]
    near += [version for when, version in versions if at < when <= until]
    near += [version for when, version in versions if when > until][:1]
    if any(b != a + 1 for a, b in itertools.pairwise(near)):
        return "the snapshots lack a version of the topic's znode about then"
    return ""


def isr_change_raises_epoch(site: Site) -> Iterator[Fault]:
    """A leader's expansion of the ISR comes with a new leader epoch; all that follows is one higher."""
    for before, after in site.successive():
        old, new = before.state, after.state
        grown = set(old["isr"]) < set(new["isr"]) and old["leader"] == new["leader"] >= 0
        if grown and old["leader_epoch"] == new["leader_epoch"] and new["controller_epoch"] == old["controller_epoch"]:
            draft, at = Draft(site), site.written_at(after)
            restated(draft, after.partition, lambda s, r=after, at=at: _raised_by_isr(s, r, at))  # type: ignore[misc]
            # Since 3.4 a controller of KRaft may have copied several changes at once (KIP-866), unless a controller of
            # ZooKeeper goes on.
            goes_on = any(
                (number(line, "leader_epoch") or 0) > new["leader_epoch"]
                for line in site.about(after.partition, "partition_state_change", "isr_shrunk_by_controller")
            )
            severity = WARNING if site.minor >= (3, 4) and not goes_on else ERROR
            yield state_fault("ISR change raises the epoch", "R10", draft, after, severity)


def _raised_by_isr(state: State, row: StateRow, at: int) -> State:
    epoch = row.state["leader_epoch"]
    is_later = state.version >= row.version if state.version is not None else state.at >= at
    if state.leader_epoch is None or not (state.leader_epoch > epoch or (state.leader_epoch == epoch and is_later)):
        return state
    return replace(state, leader_epoch=state.leader_epoch + 1)


def partition_epoch_repeats(site: Site) -> Iterator[Fault]:
    """Two different states with one version of the znode."""
    for before, after in site.successive():
        differs = set(before.state["isr"]) != set(after.state["isr"]) or before.state["leader"] != after.state["leader"]
        if differs:
            draft = Draft(site)
            restated(
                draft,
                after.partition,
                lambda s, r=after: (  # type: ignore[misc]
                    replace(s, version=s.version - 1) if (s.version or -1) >= r.version else s  # type: ignore[operator]
                ),
            )
            _put_versions(draft, after)
            yield state_fault("partition epoch repeats", "R03", draft, after)


def _put_versions(draft: Draft, since: StateRow) -> None:
    """In the lines that print the version, too."""
    for line in draft.site.by_name.get(since.partition, ()):
        version = line.fields.get("partition_epoch", "")
        if version.isdigit() and int(version) >= since.version and "topic_partitions" not in line.fields:
            pattern = rf"((?:partitionEpoch=|zkVersion=|ZkVersion:|partition epoch )){version}\b"
            draft.put(line, re.sub(pattern, rf"\g<1>{int(version) - 1}", draft.text(line)))


def stale_controller_writes(site: Site) -> Iterator[Fault]:
    """An election after the first write of a controller, with the epoch of the one before it."""
    for before, after in elections_of(site):
        epoch = before.state["controller_epoch"]
        if epoch >= 2 and after.state["controller_epoch"] == epoch:
            draft = Draft(site)
            for name, row_number in after.rows:
                row = json.loads(site.text.files[name][row_number - 1])
                row["data"] = json.dumps({**after.state, "controller_epoch": epoch - 1}, separators=(",", ":"))
                draft.edits[name, row_number] = (json.dumps(row),)
            severity = WARNING if site.minor < (2, 1) else ERROR  # KAFKA-6082: until then ZooKeeper takes it
            yield state_fault("deposed controller writes", "R12", draft, after, severity)


STATES: tuple[Faults, ...] = (
    leader_epoch_jumps,
    leader_epoch_repeats,
    leader_epoch_falls,
    leader_outside_isr,
    isr_empty,
    isr_outside_assignment,
    isr_change_raises_epoch,
    partition_epoch_repeats,
    stale_controller_writes,
)
