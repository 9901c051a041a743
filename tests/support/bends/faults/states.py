"""Faults of what was decided: the leader, the ISR and the epochs of a partition, in every source that shows them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace

from tests.support.bends.editing import StateRow, partition_of
from tests.support.bends.faults.drafts import (
    ERROR,
    INFO,
    WARNING,
    Draft,
    Fault,
    Faults,
    Site,
    State,
    number,
    restated,
)
from tests.support.evidence.lines import Line

#: A broker that is in no cluster of the captures.
STRANGER = 9
_WITHIN_US = 1_000_000


def _fault(kind: str, rules: str, draft: Draft, row: StateRow, severity: str = ERROR) -> Fault:
    return Fault(
        kind, row.partition, frozenset(rules.split()), draft.made(), f"version {row.version}", severity=severity
    )


def _is_election(before: StateRow, after: StateRow) -> bool:
    old, new = before.state, after.state
    return bool(old["leader_epoch"] < new["leader_epoch"] and new["leader"] >= 0 and old["leader"] != new["leader"])


def _elections(site: Site) -> Iterator[tuple[StateRow, StateRow]]:
    return ((before, after) for before, after in site.successive() if _is_election(before, after))


def leader_epoch_jumps(site: Site) -> Iterator[Fault]:
    """From one write to the next the leader epoch rises by four, and never falls back."""
    for before, after in site.successive():
        old, new = before.state["leader_epoch"], after.state["leader_epoch"]
        if new == old + 1:
            draft = Draft(site)
            restated(draft, after.partition, lambda s, new=new: _raised(s, 3, new))  # type: ignore[misc]
            yield _fault("leader epoch jumps", "R10", draft, after)


def _raised(state: State, by: int, since: int) -> State:
    is_later = state.leader_epoch is not None and state.leader_epoch >= since
    return replace(state, leader_epoch=state.leader_epoch + by) if is_later else state  # type: ignore[operator]


def leader_epoch_repeats(site: Site) -> Iterator[Fault]:
    """Another leader is elected at the epoch of the last one; all that follows is one lower."""
    for before, after in _elections(site):
        if before.state["leader"] >= 0 and after.state["leader_epoch"] == before.state["leader_epoch"] + 1:
            draft = Draft(site)
            restated(draft, after.partition, lambda s, e=after.state["leader_epoch"]: _raised(s, -1, e))  # type: ignore[misc]
            yield _fault("leader epoch repeats", "R02 R10", draft, after)


def leader_epoch_falls(site: Site) -> Iterator[Fault]:
    """An election sets the leader epoch back by two."""
    for before, after in _elections(site):
        epoch = after.state["leader_epoch"]
        if epoch >= 3 and epoch == before.state["leader_epoch"] + 1:
            draft = Draft(site)
            restated(draft, after.partition, lambda s, e=epoch: _raised(s, -2, e) if s.leader_epoch == e else s)  # type: ignore[misc]
            yield _fault("leader epoch falls", "R01 R02 R10", draft, after)


def _same(state: State, row: StateRow, after_us: int) -> bool:
    """Whether a sighting shows this write: its version, or where it has none its epoch, leader and ISR."""
    if state.version is not None:
        return state.version == row.version
    shown = (state.leader_epoch, state.leader, set(state.isr or ()))
    written = (row.state["leader_epoch"], row.state["leader"], set(row.state["isr"]))
    return shown == written and state.at >= after_us - _WITHIN_US


def leader_outside_isr(site: Site) -> Iterator[Fault]:
    for _, after in _elections(site):
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
            yield _fault("leader outside of the ISR", "R05 R09", draft, after)


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
        yield _fault("ISR empty", "R06", draft, after)


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
        fault = _fault("ISR outside of the assignment", rules, draft, after, _severity_outside(site, after))
        yield replace(fault, unprovable=_assignment_unknown(site, after))


def _severity_outside(site: Site, row: StateRow) -> str:
    """An error where a later write of the topic, or a later line that names the replicas, shows that no assignment is
    missing; before that snapshots, which are not atomic, leave a way out, and since 2.4 Kafka does (KAFKA-9672)."""
    epoch, isr = row.state["leader_epoch"], set(row.state["isr"])
    is_told = any(
        fact.replicas
        and fact.kind in ("leader_and_isr_sent", "leader_and_isr_received", "update_metadata_sent", "metadata_cached")
        and ((fact.leader_epoch or 0) > epoch or (fact.leader_epoch == epoch and set(fact.isr or ()) == isr))
        for fact in site.plain.facts[row.partition]
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
            yield _fault("ISR change raises the epoch", "R10", draft, after, severity)


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
            yield _fault("partition epoch repeats", "R03", draft, after)


def _put_versions(draft: Draft, since: StateRow) -> None:
    """In the lines that print the version, too."""
    for line in draft.site.by_name.get(since.partition, ()):
        version = line.fields.get("partition_epoch", "")
        if version.isdigit() and int(version) >= since.version and "topic_partitions" not in line.fields:
            pattern = rf"((?:partitionEpoch=|zkVersion=|ZkVersion:|partition epoch )){version}\b"
            draft.put(line, re.sub(pattern, rf"\g<1>{int(version) - 1}", draft.text(line)))


def stale_controller_writes(site: Site) -> Iterator[Fault]:
    """An election after the first write of a controller, with the epoch of the one before it."""
    for before, after in _elections(site):
        epoch = before.state["controller_epoch"]
        if epoch >= 2 and after.state["controller_epoch"] == epoch:
            draft = Draft(site)
            for name, row_number in after.rows:
                row = json.loads(site.text.files[name][row_number - 1])
                row["data"] = json.dumps({**after.state, "controller_epoch": epoch - 1}, separators=(",", ":"))
                draft.edits[name, row_number] = (json.dumps(row),)
            severity = WARNING if site.minor < (2, 1) else ERROR  # KAFKA-6082: until then ZooKeeper takes it
            yield _fault("deposed controller writes", "R12", draft, after, severity)


# --- elections


def _lines_without_epoch(site: Site, row: StateRow) -> list[Line]:
    """The lines of an election that print its leader and no epoch."""
    at = site.written_at(row)
    return [
        line
        for line in site.about(row.partition, "partition_state_change", "leader_elected", "leader_selected")
        if "leader_epoch" not in line.fields
        and line.fields.get("leader") == str(row.state["leader"])
        and abs(line.at - at) < _WITHIN_US
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


def _elected(site: Site, row: StateRow, leader: int, isr: tuple[int, ...] | None = None) -> Draft:
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
    for before, after in _elections(site):
        isr, leader = after.state["isr"], after.state["leader"]
        at = site.written_at(after)
        replicas = site.assignment(after.partition, at)
        others = [m for m in isr if m not in (leader, before.state["leader"])]
        if replicas is None or set(site.ever_assigned(after.partition)) != set(replicas):
            continue
        for other in others[:1]:
            yield _fault("wrong leader elected", "R09", _elected(site, after, other), after)


def dead_leader(site: Site) -> Iterator[Fault]:
    """The broker whose death made the election necessary is elected again."""
    for before, after in _elections(site):
        old, at = before.state["leader"], site.written_at(after)
        if old >= 0 and old not in after.state["isr"] and _is_gone(site, old, at):
            isr = (old, *after.state["isr"])
            # the dead leader is also one that no algorithm gives, and one that the shrink leaves in the ISR
            yield _fault("dead leader elected", "R07 R09 R15", _elected(site, after, old, isr), after)


def _is_gone(site: Site, broker: int, at: int) -> bool:
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
    for before, after in _elections(site):
        at = site.written_at(after)
        replicas = site.assignment(after.partition, at) or ()
        outside = [r for r in replicas if r not in before.state["isr"] and not _is_gone(site, r, at)]
        is_clean = after.state["leader"] in before.state["isr"]
        for replica in outside[:1] if is_clean else ():
            draft = _elected(site, after, replica, (replica,))
            # Since 2.4 an administrator may ask for one (KIP-460).
            yield _fault("unclean election", "R08 R09", draft, after, ERROR if site.minor < (2, 4) else WARNING)


def unclean_election_of_last(site: Site) -> Iterator[Fault]:
    """Where a partition got its only in-sync replica back, another one is elected."""
    for before, after in _elections(site):
        at = site.written_at(after)
        replicas = site.assignment(after.partition, at) or ()
        is_recovery = before.state["leader"] == -1 and set(before.state["isr"]) == {after.state["leader"]}
        outside = [r for r in replicas if r not in before.state["isr"] and not _is_gone(site, r, at)]
        if is_recovery and outside:
            draft = _elected(site, after, outside[0], (outside[0],))
            severity = ERROR if site.minor < (2, 4) else WARNING
            yield _fault("unclean election in place of the last member", "R08 R09", draft, after, severity)


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
    wrong_leader,
    dead_leader,
    unclean_election,
    unclean_election_of_last,
    leaders_of_two_sources,
)
