"""Faults of a quorum's controller in decoded records, one at a time, and how many are found by the right rule.

A copy of the log is changed alike on every node. Where the order of records is to tell, snapshots are left out.

python -m tests.support.bends.quorum_faults SEEDS [FIRST_SEED [FOLDER_WITH_NODES...]]

makes them at each place of histories that are simulated anew, of every release with and without ELR, and of clusters'
metadata logs below ``FOLDER/broker-N/__cluster_metadata-0``; prints of each kind how many are found.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from reconstruct.findings.verdicts import Finding
from reconstruct.metadata_log.evidence import ClusterLog, LogRow
from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.metadata_log.image import applied
from reconstruct.model.metadata_log.values import Image, PartitionState, State, Subject
from reconstruct.model.versions import v
from tests.support.metadata_log import cluster_log
from tests.support.simulated_quorum import LEVELS, SimulatedQuorum

#: No broker of any cluster here.
STRANGER: Final = 99
Fields = dict[str, Any]
Topics = Mapping[str, Sequence[LogRow]]
#: A record's fields changed to a fault, by the state before and after it, and the brokers that were not active then.
Plant = Callable[[Fields, PartitionState | None, PartitionState, Sequence[int]], Fields | None]


def stranger_joins_the_isr(fields: Fields, *_: object) -> Fields | None:
    if not fields.get("isr") or fields.get("leaderRecoveryState"):
        return None
    return fields | {"isr": [*fields["isr"], STRANGER]}


def stranger_leads(fields: Fields, before: object, after: PartitionState, *_: object) -> Fields | None:
    return None if after.leader_recovery_state else fields | {"leader": STRANGER, "isr": [*after.isr, STRANGER]}


def inactive_broker_leads(fields: Fields, before: Any, after: PartitionState, inactive: Sequence[int]) -> Fields | None:
    chosen = [one for one in inactive if one != (before.leader if before else None)]
    if not chosen or after.leader_recovery_state:
        return None
    return fields | {"leader": chosen[0], "isr": sorted({*after.isr, chosen[0]})}


def inactive_broker_joins(fields: Fields, before: Any, after: PartitionState, inactive: Sequence[int]) -> Fields | None:
    chosen = [one for one in inactive if one not in (before.isr if before else ())]
    return fields | {"isr": [*after.isr, chosen[0]]} if chosen and not after.leader_recovery_state else None


def leader_from_outside(fields: Fields, before: Any, after: PartitionState, inactive: Sequence[int]) -> Fields | None:
    """A replica that is live, but neither in the ISR nor eligible, is elected as if cleanly."""
    if before is None or before.adding_replicas or before.removing_replicas or after.leader_recovery_state:
        return None
    known = {*before.isr, *before.elr, *inactive}
    chosen = [one for one in before.replicas if one not in known]
    return fields | {"leader": chosen[0], "isr": [chosen[0]]} if chosen else None


def later_replica_elected(fields: Fields, before: Any, after: PartitionState, inactive: Sequence[int]) -> Fields | None:
    """Another member of the ISR than the first assigned one."""
    is_elected = before is None or after.leader not in (before.leader, -1)
    known = after.isr if before is None else before.isr
    chosen = [
        one for one in after.replicas if one in after.isr and one in known and one not in (after.leader, *inactive)
    ]
    if not is_elected or not chosen or after.leader_recovery_state or after.leader not in known:
        return None
    return fields | {"leader": chosen[-1]}


def elr_out_of_nothing(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    return fields | {"eligibleLeaderReplicas": [STRANGER]}


def elr_in_the_isr(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    return fields | {"eligibleLeaderReplicas": [after.isr[0]]} if after.isr else None


def eligible_replica_lost(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    """Where others are eligible, or nobody is in sync."""
    if not after.elr or before.assignment != after.assignment or (after.isr and len(after.elr) == 1):
        return None
    return fields | {"eligibleLeaderReplicas": list(after.elr[1:])}


def elr_though_enough_are_in_sync(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    """No topic asks for more than two."""
    left = [] if before is None else [one for one in before.isr if one not in after.isr]
    if not left or len(after.isr) < 2:
        return None
    return fields | {"eligibleLeaderReplicas": left}


def no_elr_though_too_few_are_in_sync(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    if not after.elr or not after.isr or before.assignment != after.assignment:
        return None
    return fields | {"eligibleLeaderReplicas": [], "lastKnownElr": list(after.elr)}


def reassignment_ends_early(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    """Without the replicas that it adds; where it is taken back none of these stays."""
    if before is None or after.is_reassigned or not {*before.adding_replicas} & {*after.replicas}:
        return None
    return fields | {"isr": [one for one in before.isr if one not in before.adding_replicas]}


def led_uncleanly(fields: Fields, before: Any, after: PartitionState, leader: Sequence[int]) -> Fields | None:
    if not leader or before is None or before.leader_recovery_state or before.replicas != after.replicas:
        return None
    return fields | {"leader": leader[0], "isr": [leader[0]], "leaderRecoveryState": 1}


def dead_replica_leads(fields: Fields, before: Any, after: PartitionState, inactive: Sequence[int]) -> Fields | None:
    """Uncleanly."""
    of = () if before is None else before.replicas
    return led_uncleanly(fields, before, after, [one for one in inactive if one in of and one != before.leader])


def stranger_leads_uncleanly(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    return led_uncleanly(fields, before, after, [STRANGER])


def more_than_the_leader_in_sync(fields: Fields, before: Any, after: PartitionState, *_: object) -> Fields | None:
    """After an unclean election."""
    if before is None or before.leader == after.leader or not fields.get("leaderRecoveryState"):
        return None
    return fields | {"isr": list(after.replicas)}


def unclean_for_no_reason(fields: Fields, before: Any, after: PartitionState, inactive: Sequence[int]) -> Fields | None:
    """Though the leader, who stays, was active and in the ISR."""
    if before is None or before.leader != after.leader or before.leader in (-1, *inactive):
        return None
    chosen = [one for one in before.replicas if one not in (before.leader, *inactive)]
    return led_uncleanly(fields, before, after, chosen)


PARTITION_PLANTS: Final[dict[str, tuple[Plant, str]]] = {
    "a stranger joins the ISR": (stranger_joins_the_isr, "R53"),
    "a stranger leads": (stranger_leads, "R53"),
    "a fenced broker leads": (inactive_broker_leads, "R53"),
    "a fenced broker joins the ISR": (inactive_broker_joins, "R53"),
    "a leader from outside of the ISR": (leader_from_outside, "R54"),
    "a later replica leads": (later_replica_elected, "R56"),
    "an ELR out of nothing": (elr_out_of_nothing, "R55"),
    "an ELR inside the ISR": (elr_in_the_isr, "R55"),
    "an eligible replica is lost": (eligible_replica_lost, "R55"),
    "an ELR though enough are in sync": (elr_though_enough_are_in_sync, "R55"),
    "no ELR though too few are in sync": (no_elr_though_too_few_are_in_sync, "R55"),
    "a reassignment ends early": (reassignment_ends_early, "R57"),
    "a dead replica leads uncleanly": (dead_replica_leads, "R58"),
    "a stranger leads uncleanly": (stranger_leads_uncleanly, "R58"),
    "an unclean leader is not alone": (more_than_the_leader_in_sync, "R58"),
    "an unclean election for no reason": (unclean_for_no_reason, "R58"),
}
#: What is wrong only where there may be an ELR: a controller before 4.0 may have one that no record enables.
OF_ELR: Final = ("an ELR though enough are in sync",)


@dataclass(frozen=True)
class Fault:
    """One fault of a kind: ``rows`` are what is replayed with it, of ``log``; the finding must cite ``evidence_id``."""

    kind: str
    rule_id: str
    rows: Sequence[LogRow]
    log: ClusterLog
    evidence_id: str

    def errors(self) -> list[Finding]:
        """What is found, wherever: without the fault nothing is."""
        found = replay_rows(self.rows, self.log).verdicts.findings
        return [one for one in found if one.severity == "error"]

    def found_by(self) -> set[str]:
        """The rules that are broken there."""
        return {one.rule_id for one in self.errors() if self.evidence_id in one.evidence}


def without_snapshots(log: ClusterLog, topics: Topics) -> tuple[ClusterLog, dict[str, list[LogRow]]]:
    bare = replace(log, snapshots=(), rows=tuple(row for row in log.rows if row.snapshot_end is None))
    return bare, {name: [row for row in rows if row.snapshot_end is None] for name, rows in topics.items()}


def faults(log: ClusterLog, topics: Topics) -> Iterator[Fault]:
    """Every fault at every place that it fits."""
    bare, rows_of = without_snapshots(log, topics)
    for rows in rows_of.values():
        yield from _of_choices(bare, rows)
        yield from _of_missing(bare, rows)
        yield from _of_two_writers(bare, rows)
    yield from _of_registrations(bare)
    yield from _of_snapshots(log, topics)


def _of_choices(log: ClusterLog, rows: Sequence[LogRow]) -> Iterator[Fault]:
    for kind, (plant, rule_id) in PARTITION_PLANTS.items():
        for row, wrong in planted(log, rows, plant):
            if kind not in OF_ELR or log.has_elr_at(row.offset):
                yield Fault(kind, rule_id, _with(rows, row, wrong), log.of_quorum, wrong.evidence_id)


def _of_missing(log: ClusterLog, rows: Sequence[LogRow]) -> Iterator[Fault]:
    """The record that made a partition of which there are later ones."""
    changes: dict[tuple[str, int], LogRow] = {}
    for row in sorted(rows, key=lambda row: -row.offset):
        key = (row.record.fields.get("topicId", ""), row.record.fields.get("partitionId", -1))
        if row.record_type == "PartitionChangeRecord":
            changes[key] = row
        elif row.record_type == "PartitionRecord" and key in changes:
            left = [one for one in rows if one is not row]
            yield Fault("a record is missing", "R51", left, log.of_quorum, changes[key].evidence_id)


def _of_two_writers(log: ClusterLog, rows: Sequence[LogRow]) -> Iterator[Fault]:
    """One node's copy has another record at an offset of the same epoch."""
    for row in rows:
        if row.record_type == "PartitionChangeRecord":
            fields = json.dumps(row.record.fields | {"leader": STRANGER})
            other = replace(row, evidence_id=f"other-{row.evidence_id}", fields=fields)
            yield Fault("two write in one epoch", "R50", [*rows, other], log.of_quorum, other.evidence_id)


_REGISTRATIONS: Final[Mapping[str, Callable[[Fields, int, int], Fields]]] = {
    "a registration's epoch is an offset to come": lambda fields, before, offset: {"brokerEpoch": offset + 1},
    "a registration's epoch is another's": lambda fields, before, offset: {"brokerEpoch": before},
    "unfenced too early": lambda fields, before, offset: {"fenced": False},
}


def _of_registrations(log: ClusterLog) -> Iterator[Fault]:
    for row in log.rows:
        if row.record_type == "BrokerRegistrationChangeRecord":
            wrong = changed(row, row.record.fields | {"brokerEpoch": row.record.fields["brokerEpoch"] + 1})
            yield _in_log("a broker epoch of no registration", "R51", log, row, wrong)
    registered = [row for row in log.rows if row.record_type == "RegisterBrokerRecord"]
    for before, row in pairwise(sorted(registered, key=lambda row: row.offset)):
        for kind, fault in _REGISTRATIONS.items():
            wrong = changed(row, row.record.fields | fault(row.record.fields, before.offset, row.offset))
            yield _in_log(kind, "R59", log, row, wrong)


def _of_snapshots(log: ClusterLog, topics: Topics) -> Iterator[Fault]:
    """A node's snapshot has another leader epoch of a partition, or lacks the partition."""
    files = {(one.node_id, one.end): one.evidence_id for one in log.snapshots}
    for rows in topics.values():
        for row in rows:
            place = files.get((row.node_id or -1, row.snapshot_end or -1))
            if place is not None and row.record_type == "PartitionRecord":
                wrong = changed(row, row.record.fields | {"leaderEpoch": row.record.fields["leaderEpoch"] + 1})
                yield Fault("a snapshot differs", "R52", _with(rows, row, wrong), log.of_quorum, place)
                left = [one for one in rows if one is not row]
                yield Fault("a snapshot lacks a partition", "R52", left, log.of_quorum, place)


def _in_log(kind: str, rule_id: str, log: ClusterLog, row: LogRow, wrong: LogRow) -> Fault:
    rows = tuple(_with(log.rows, row, wrong))
    of_all = replace(log, rows=rows)
    return Fault(kind, rule_id, rows, of_all.of_quorum, wrong.evidence_id)


def _with(rows: Iterable[LogRow], row: LogRow, wrong: LogRow) -> list[LogRow]:
    return [wrong if one is row else one for one in rows]


def changed(row: LogRow, fields: Fields) -> LogRow:
    return replace(row, fields=json.dumps(fields))


def planted(log: ClusterLog, rows: Sequence[LogRow], plant: Plant) -> Iterator[tuple[LogRow, LogRow]]:
    """Each record of a partition beside the same with the fault."""
    image: dict[Subject, State] = {}
    brokers = {row.record.fields["brokerId"] for row in log.rows if row.record_type == "RegisterBrokerRecord"}
    for row in sorted(rows, key=lambda row: row.offset):
        made = applied(image, row.record).changes
        for subject, state in made:
            if row.record_type in ("PartitionRecord", "PartitionChangeRecord") and isinstance(state, PartitionState):
                before = image.get(subject)
                inactive = [b for b in sorted(brokers) if log.is_active_before(b, row.offset) is False]
                known = before if isinstance(before, PartitionState) else None
                fields = plant(json.loads(row.fields), known, state, inactive)
                # what was taken from ZooKeeper is compared with its znodes, and was no choice
                if fields is not None and not log.is_taken_from_zookeeper(row.offset):
                    yield row, changed(row, fields)
        apply_to(image, made)


def apply_to(image: dict[Subject, State], made: Any) -> Image:
    for subject, state in made:
        image.pop(subject, None)
        if state is not None:
            image[subject] = state
    return image


def simulated(seeds: Iterable[int]) -> Iterator[tuple[str, ClusterLog, Topics]]:
    """Histories of every release, named by what they are of."""
    for seed in seeds:
        for release in LEVELS:
            for has_elr in (False, True) if release >= v(4, 0) else (False,):
                made = SimulatedQuorum(seed, release, has_elr, is_unclean=seed % 2 == 1, min_isr=1 + seed % 2)
                for _ in range(80):
                    made.step()
                yield f"{release}{' with ELR' if has_elr else ''} {seed}", made.log, {"t": made.topic_rows}


def measured(
    clusters: Iterable[tuple[str, ClusterLog, Topics]], show: Callable[[str], None]
) -> dict[str, Counter[str]]:
    """By kind how many ``places``, how many are ``found`` there by its rule, or ``otherwise``: by another, or later."""
    counts: dict[str, Counter[str]] = {}
    for name, log, topics in clusters:
        for fault in faults(log, topics):
            errors = fault.errors()
            is_told = any(one.rule_id == fault.rule_id and fault.evidence_id in one.evidence for one in errors)
            verdict = "found" if is_told else "otherwise" if errors else "missed"
            counts.setdefault(fault.kind, Counter()).update(("places", verdict))
            if verdict == "missed":
                show(f"missed: {fault.kind} in {name} at {fault.evidence_id}")
    return counts


def main(arguments: Sequence[str]) -> None:
    count, first, *folders = arguments if len(arguments) > 1 else [*arguments, "0"]
    seeds = range(int(first), int(first) + int(count))
    nodes = {folder: sorted(path.parent for path in Path(folder).glob(f"*/{METADATA_DIRECTORY}")) for folder in folders}
    recorded = [(folder, *cluster_log(found)) for folder, found in nodes.items()]
    missed: list[str] = []
    counts = measured([*recorded, *simulated(seeds)], missed.append)
    print("\n".join(missed[:20]))
    every: Counter[str] = Counter()
    for kind, of in counts.items():
        every.update(of)
        print(f"{kind:45} {of['places']:6} places, {of['found']:6} by its rule, {of['otherwise']:4} otherwise")
    found = every["found"] + every["otherwise"]
    print(f"all: {found} of {every['places']} ({found / max(1, every['places']):.2%}), {every['found']} by their rule")


if __name__ == "__main__":
    main(sys.argv[1:])
