"""Bends of what was decided: states in znodes, and what controllers log of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from reconstruct.model.states import (
    PartitionState,
    ReplicaState,
    is_legal_partition_transition,
    is_legal_replica_transition,
)
from reconstruct.partitions.evidence import ZNODE_ASSIGNMENT
from tests.support.bends.editing import (
    Bend,
    Edits,
    Places,
    StateRow,
    Subject,
    partition_of,
    put,
    put_isr,
    rewrite_state,
    state_rows,
)
from tests.support.evidence.lines import Line, Partition

#: No broker of any capture.
STRANGER: Final = 9


def _one(rule: str, divergence_type: str) -> frozenset[tuple[str, str]]:
    return frozenset({(rule, divergence_type)})


def _followed(subject: Subject) -> Iterator[tuple[StateRow, StateRow, bool]]:
    """Neighbouring writes of one partition with no write hidden between, and whether the later one is the last."""
    by_partition: dict[Partition, list[StateRow]] = {}
    for written in state_rows(subject.text):
        by_partition.setdefault(written.partition, []).append(written)
    for rows in by_partition.values():
        for before, after in pairwise(rows):
            if after.version == before.version + 1:
                yield before, after, after is rows[-1]


def _is_election(before: StateRow, after: StateRow) -> bool:
    led = {before.state["leader"], after.state["leader"]}
    return after.state["leader_epoch"] == before.state["leader_epoch"] + 1 and -1 not in led and len(led) == 2


def leader_outside_isr(subject: Subject) -> Iterator[Bend]:
    for written in state_rows(subject.text):
        outside = sorted(set(subject.brokers) - set(written.state["isr"]))
        if outside and written.state["isr"] and written.state["leader"] >= 0:
            yield Bend(
                "leader outside the ISR",
                written.partition,
                rewrite_state(subject.text, written, leader=outside[0]),
                _one("R05", "leader_outside_isr"),
                f"version {written.version}",
            )


def leader_epoch_fell(subject: Subject) -> Iterator[Bend]:
    for before, after, _ in _followed(subject):
        if before.state["leader_epoch"] >= 1:
            lower = before.state["leader_epoch"] - 1
            yield Bend(
                "leader epoch fell",
                after.partition,
                rewrite_state(subject.text, after, leader_epoch=lower),
                _one("R01", "leader_epoch_decreased"),
                f"version {after.version}",
            )


def leader_epoch_repeated(subject: Subject) -> Iterator[Bend]:
    for before, after, _ in _followed(subject):
        if _is_election(before, after):
            same = before.state["leader_epoch"]
            yield Bend(
                "leader epoch repeated",
                after.partition,
                rewrite_state(subject.text, after, leader_epoch=same),
                _one("R02", "two_leaders_for_one_epoch"),
                f"version {after.version}",
            )


def leader_epoch_skipped(subject: Subject) -> Iterator[Bend]:
    for before, after, is_last in _followed(subject):
        if is_last and after.state["leader_epoch"] == before.state["leader_epoch"] + 1:
            more = after.state["leader_epoch"] + 1
            yield Bend(
                "leader epoch raised by two",
                after.partition,
                rewrite_state(subject.text, after, leader_epoch=more),
                frozenset({("R10", "leader_epoch_raised_by_more"), ("R03", "partition_epoch_repeated")}),
                f"version {after.version}",
            )


def leader_epoch_raised_by_isr_change(subject: Subject) -> Iterator[Bend]:
    """Only a leader puts a replica back into the ISR, and that keeps the leader epoch."""
    for before, after, is_last in _followed(subject):
        old, new = before.state, after.state
        grown = set(old["isr"]) < set(new["isr"]) and old["leader"] == new["leader"] >= 0
        if is_last and grown and old["leader_epoch"] == new["leader_epoch"]:
            yield Bend(
                "ISR change raised the epoch",
                after.partition,
                rewrite_state(subject.text, after, leader_epoch=new["leader_epoch"] + 1),
                frozenset({("R10", "leader_epoch_raised_by_isr_change"), ("R03", "partition_epoch_repeated")}),
                f"version {after.version}",
            )


def isr_emptied(subject: Subject) -> Iterator[Bend]:
    if subject.minor < (1, 1):
        return
    for written in state_rows(subject.text):
        yield Bend(
            "ISR emptied",
            written.partition,
            rewrite_state(subject.text, written, isr=[], leader=-1),
            _one("R06", "isr_empty"),
            f"version {written.version}",
        )


def isr_outside_assignment(subject: Subject) -> Iterator[Bend]:
    for written in state_rows(subject.text):
        if not _is_assignment_known(subject, written):
            continue
        yield Bend(
            "ISR member not assigned",
            written.partition,
            rewrite_state(subject.text, written, isr=[*written.state["isr"], STRANGER]),
            _one("R04", "isr_outside_assignment"),
            f"version {written.version}",
        )


def _is_assignment_known(subject: Subject, written: StateRow) -> bool:
    """Whether no version of the topic's znode is missing: in one that is, the stranger may have been assigned."""
    facts = subject.plain.facts[written.partition]
    versions = sorted({fact.partition_epoch for fact in facts if fact.kind == ZNODE_ASSIGNMENT} - {None})
    return bool(versions) and versions == list(range(versions[0], versions[-1] + 1))


def partition_epoch_repeated(subject: Subject) -> Iterator[Bend]:
    for before, after, _ in _followed(subject):
        differs = before.state["isr"] != after.state["isr"] or before.state["leader"] != after.state["leader"]
        if differs and before.state["leader_epoch"] == after.state["leader_epoch"]:
            yield Bend(
                "partition epoch repeated",
                after.partition,
                rewrite_state(subject.text, after, version=before.version),
                _one("R03", "partition_epoch_repeated"),
                f"version {after.version}",
            )


def stale_controller_wrote(subject: Subject) -> Iterator[Bend]:
    for before, after, _ in _followed(subject):
        epoch = before.state["controller_epoch"]
        if epoch >= 2 and after.state["controller_epoch"] == epoch and _is_election(before, after):
            yield Bend(
                "stale controller's write",
                after.partition,
                rewrite_state(subject.text, after, controller_epoch=epoch - 1),
                _one("R12", "stale_controller_wrote"),
                f"version {after.version}",
            )


def wrong_leader(subject: Subject) -> Iterator[Bend]:
    """Everywhere the same: the election chose another member of the new ISR than its rule gives."""
    for before, after, _ in _followed(subject):
        if _is_election(before, after):
            others = sorted(set(after.state["isr"]) - {after.state["leader"], before.state["leader"]})
            for other in others[:1]:
                yield Bend(
                    "wrong leader elected",
                    after.partition,
                    _elect(subject, after, other, None),
                    _one("R09", "wrong_leader_elected"),
                    f"version {after.version}",
                )


def dead_leader(subject: Subject) -> Iterator[Bend]:
    """Everywhere the same: the broker whose death caused the election was elected again."""
    for before, after, _ in _followed(subject):
        old = before.state["leader"]
        views = [view for view in subject.plain.view.live_views if view.at <= _written_at(subject, after)]
        is_dead = bool(views) and old not in max(views, key=lambda view: view.at).live
        if _is_election(before, after) and is_dead and old not in after.state["isr"]:
            isr = [old, *after.state["isr"]]
            yield Bend(
                "dead leader elected",
                after.partition,
                _elect(subject, after, old, isr),
                frozenset({("R07", "dead_leader_elected"), ("R09", "wrong_leader_elected")}),
                f"version {after.version}",
            )


def _written_at(subject: Subject, written: StateRow) -> int:
    return next(
        fact.at
        for fact in subject.plain.facts[written.partition]
        if fact.kind == "znode_state" and fact.offset == written.mzxid
    )


def _elect(subject: Subject, elected: StateRow, leader: int, isr: list[int] | None) -> Edits:
    """The leader of one leader epoch in every line and znode that shows it."""
    epoch, old = elected.state["leader_epoch"], elected.state["leader"]
    edits: dict[tuple[str, int], str | None] = {}
    for written in state_rows(subject.text):
        if written.partition == elected.partition and written.state["leader_epoch"] == epoch:
            values = {"leader": leader} | ({} if isr is None else {"isr": isr})
            edits |= rewrite_state(subject.text, written, **values)
    for line in subject.lines:
        shows = (line.fields.get("leader"), line.fields.get("leader_epoch")) == (str(old), str(epoch))
        if shows and partition_of(line) == elected.partition:
            bent = put(subject.raw(line), "leader", leader)
            edits[line.file, line.number] = bent if isr is None else put_isr(bent, isr)
    if subject.minor < (1, 0):
        edits |= _elect_in_words(subject, elected, leader)
    return edits


def _elect_in_words(subject: Subject, elected: StateRow, leader: int) -> Edits:
    """The last OnlinePartition line before the write, which up to 0.11 names the leader and no epoch."""
    at = _written_at(subject, elected)
    near = [
        line
        for line in subject.events("partition_state_change")
        if partition_of(line) == elected.partition
        and abs(line.at - at) < 1_000_000
        and line.fields.get("leader") == str(elected.state["leader"])
    ]
    return {
        (line.file, line.number): re.sub(r"(with leader )\d+", rf"\g<1>{leader}", subject.raw(line)) for line in near
    }


_PARTITION_MOVE: Final = re.compile(r"from (\w+Partition) to (\w+Partition)")
_REPLICA_MOVE: Final = re.compile(r"from (\w*Replica\w*) to (\w*Replica\w*)")


def illegal_partition_transition(subject: Subject) -> Iterator[Bend]:
    version = subject.plain.view.version
    for line in subject.events("partition_state_change"):
        to = line.fields["to_state"]
        for wrong in PartitionState:
            if not is_legal_partition_transition(wrong.value, to, version):
                text = _PARTITION_MOVE.sub(f"from {wrong.value} to {to}", subject.raw(line))
                yield Bend(
                    "illegal partition transition",
                    partition_of(line),
                    {(line.file, line.number): text},
                    _one("R13", "illegal_transition"),
                    f"{wrong.value} to {to}",
                )


def illegal_replica_transition(subject: Subject) -> Iterator[Bend]:
    version = subject.plain.view.version
    for line in subject.events("replica_state_change"):
        to = line.fields["to_state"]
        for wrong in ReplicaState:
            if not is_legal_replica_transition(wrong.value, to, version):
                text = _REPLICA_MOVE.sub(f"from {wrong.value} to {to}", subject.raw(line))
                yield Bend(
                    "illegal replica transition",
                    partition_of(line),
                    {(line.file, line.number): text},
                    _one("R14", "illegal_transition"),
                    f"{wrong.value} to {to}",
                )


def _moves(subject: Subject, event_type: str) -> Iterator[tuple[Line, Line]]:
    """Neighbouring transitions of one machine's member by one controller in one file."""
    last: dict[tuple[object, ...], Line] = {}
    for line in subject.events(event_type):
        key = (line.file, line.fields["controller_epoch"], partition_of(line), line.fields.get("replica_id"))
        if key in last:
            yield last[key], line
        last[key] = line


def dropped_partition_transition(subject: Subject) -> Iterator[Bend]:
    """Not at INFO since 2.6, which hides transitions to Offline (PartitionStateMachine.doHandleStateChanges): a log has
    such holes of its own."""
    if subject.minor >= (2, 6) and not subject.is_trace:
        return
    for line, following in _moves(subject, "partition_state_change"):
        if line.fields["from_state"] != following.fields["from_state"]:
            yield Bend(
                "partition transition dropped",
                partition_of(line),
                {(line.file, line.number): None},
                _one("R13", "transition_not_logged"),
                f"{line.fields['from_state']} to {line.fields['to_state']}",
                inferred=True,
            )


def dropped_replica_transition(subject: Subject) -> Iterator[Bend]:
    for line, following in _moves(subject, "replica_state_change"):
        if line.fields["from_state"] != following.fields["from_state"]:
            yield Bend(
                "replica transition dropped",
                partition_of(line),
                {(line.file, line.number): None},
                _one("R14", "transition_not_logged"),
                f"{line.fields['from_state']} to {line.fields['to_state']}",
                inferred=True,
            )


_RAISED: Final = re.compile(r"((?:[Ee]poch|[Ii]ncremented)(?: epoch)? to )(\d+)")


def controller_epoch_twice(subject: Subject) -> Iterator[Bend]:
    """Not of epoch 2: one that begins at 1 again may be that of a cluster that was created again."""
    held = {
        int(line.fields["controller_epoch"]): line.broker_id
        for line in subject.events("controller_epoch_incremented", "controller_elected", source_kind="controller_log")
        if "controller_epoch" in line.fields
    }
    for line in subject.events("controller_epoch_incremented", "controller_elected", source_kind="controller_log"):
        epoch = int(line.fields.get("controller_epoch", 0))
        text = _RAISED.sub(rf"\g<1>{epoch - 1}", subject.raw(line))
        if epoch > 2 and text != subject.raw(line) and held.get(epoch - 1, line.broker_id) != line.broker_id:
            yield Bend(
                "controller epoch held by two",
                None,
                {(line.file, line.number): text},
                _one("R11", "two_controllers_for_one_epoch"),
                f"epoch {epoch}",
            )


DECIDED: Final[tuple[Places, ...]] = (
    leader_outside_isr,
    leader_epoch_fell,
    leader_epoch_repeated,
    leader_epoch_skipped,
    leader_epoch_raised_by_isr_change,
    isr_emptied,
    isr_outside_assignment,
    partition_epoch_repeated,
    stale_controller_wrote,
    wrong_leader,
    dead_leader,
    illegal_partition_transition,
    illegal_replica_transition,
    dropped_partition_transition,
    dropped_replica_transition,
    controller_epoch_twice,
)
