"""Faults planted in the decoded records of real quorums, one at a time: how many are found, and by which rule.

A copy of the log is changed alike on every node, and snapshots are left out: only the order of the records tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from reconstruct.findings.verdicts import Finding
from reconstruct.metadata_log.evidence import ClusterLog, LogRow
from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.metadata_log.image import applied
from reconstruct.model.metadata_log.values import Image, PartitionState, State, Subject
from tests.support.metadata_log import MIGRATED, NODES, ONE_VOTER, REASSIGNED, UNCLEAN, VOTERS_CHANGED, cluster_log

QUORUMS: Final = {
    "quorum": NODES,
    "one voter": (ONE_VOTER,),
    "reassigned": (REASSIGNED,),
    "unclean": (UNCLEAN,),
    "migrated": (MIGRATED / "broker-101",),
    "voters": (VOTERS_CHANGED,),
}
#: No broker of any of these clusters.
STRANGER: Final = 9
Fields = dict[str, Any]
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
    """Without the replicas that it adds."""
    if before is None or not before.is_reassigned or after.is_reassigned:
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


def quorum(nodes: Sequence[Path]) -> tuple[ClusterLog, dict[str, list[LogRow]]]:
    log, topics = cluster_log(nodes)
    bare = replace(log, snapshots=(), rows=tuple(row for row in log.rows if row.snapshot_end is None))
    return bare, {name: [row for row in rows if row.snapshot_end is None] for name, rows in topics.items()}


def changed(row: LogRow, fields: Fields) -> LogRow:
    return replace(row, fields=json.dumps(fields))


def planted(log: ClusterLog, rows: Sequence[LogRow], plant: Plant) -> Iterator[tuple[LogRow, LogRow]]:
    """Each record of a partition beside the same with the fault."""
    image: dict[Subject, State] = {}
    brokers = {broker for span in log.spans for broker in (span.node_id, 1, 2, 3)}
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


def found_in(rows: Sequence[LogRow], log: ClusterLog, at: LogRow) -> set[str]:
    """The rules that are broken, as errors, at the record of that offset."""
    findings: list[Finding] = replay_rows(rows, log.of_quorum).verdicts.findings
    return {one.rule_id for one in findings if one.severity == "error" and at.evidence_id in one.evidence}


@pytest.mark.parametrize("name", PARTITION_PLANTS)
def test_every_planted_choice_is_found(name: str) -> None:
    plant, rule_id = PARTITION_PLANTS[name]
    count, missed = 0, []
    for nodes in QUORUMS.values():
        log, topics = quorum(nodes)
        for rows in topics.values():
            for row, wrong in planted(log, rows, plant):
                if name in OF_ELR and not log.has_elr_at(row.offset):
                    continue
                count += 1
                if rule_id not in found_in([wrong if one is row else one for one in rows], log, wrong):
                    missed.append((row.offset, wrong.fields))
    assert count >= 3
    assert missed == []


def test_before_a_metadata_version_a_fenced_replica_may_join_an_isr() -> None:
    """KIP-841 and KIP-778 came with 3.3: a log without a metadata.version may be of a controller that did not ask."""
    count = 0
    for nodes in QUORUMS.values():
        log, topics = quorum(nodes)
        older = replace(log, rows=tuple(row for row in log.rows if row.record_type != "FeatureLevelRecord"))
        for rows in topics.values():
            for row, wrong in planted(older, rows, inactive_broker_joins):
                if json.loads(row.fields).get("leader") is None:
                    count += 1
                    assert "R53" not in found_in([wrong if one is row else one for one in rows], older, wrong)
            for row, wrong in planted(older, rows, inactive_broker_leads):
                assert "R53" in found_in([wrong if one is row else one for one in rows], older, wrong)
    assert count >= 3


@pytest.mark.parametrize("nodes", QUORUMS.values(), ids=QUORUMS)
def test_a_broker_epoch_of_another_registration_is_found(nodes: Sequence[Path]) -> None:
    log, _ = quorum(nodes)
    of_brokers = [row for row in log.rows if row.record_type == "BrokerRegistrationChangeRecord"]
    for row in of_brokers:
        fields = json.loads(row.fields)
        wrong = changed(row, fields | {"brokerEpoch": fields["brokerEpoch"] + 1})
        rows = tuple(wrong if one is row else one for one in log.rows)
        assert "R51" in found_in(rows, replace(log, rows=rows), wrong)
    assert len(of_brokers) >= 3


@pytest.mark.parametrize(
    "changed_fields",
    [
        lambda fields, before, offset: {"brokerEpoch": offset + 1},
        lambda fields, before, offset: {"brokerEpoch": before},
        lambda fields, before, offset: {"fenced": False},
    ],
    ids=["an offset that is not there yet", "that of another registration", "unfenced too early"],
)
def test_a_registration_that_is_no_place_in_the_log_is_found(
    changed_fields: Callable[[Fields, int, int], Fields],
) -> None:
    count = 0
    for nodes in QUORUMS.values():
        log, _ = quorum(nodes)
        registered = [row for row in log.rows if row.record_type == "RegisterBrokerRecord"]
        for before, row in pairwise(sorted(registered, key=lambda row: row.offset)):
            fields = json.loads(row.fields)
            wrong = changed(row, fields | changed_fields(fields, before.offset, row.offset))
            rows = tuple(wrong if one is row else one for one in log.rows)
            assert "R59" in found_in(rows, replace(log, rows=rows), wrong)
            count += 1
    assert count >= 8


@pytest.mark.parametrize("nodes", QUORUMS.values(), ids=QUORUMS)
def test_a_record_that_is_missing_is_found_where_others_build_on_it(nodes: Sequence[Path]) -> None:
    log, topics = quorum(nodes)
    count = 0
    for rows in topics.values():
        for row in rows:
            of = json.loads(row.fields)
            later = [
                r
                for r in rows
                if r.offset > row.offset
                and r.record_type == "PartitionChangeRecord"
                and (json.loads(r.fields)["topicId"], json.loads(r.fields)["partitionId"])
                == (of.get("topicId"), of.get("partitionId"))
            ]
            if row.record_type == "PartitionRecord" and later:
                count += 1
                assert "R51" in found_in([one for one in rows if one is not row], log, later[0])
    assert count


def test_nothing_is_found_where_nothing_was_planted() -> None:
    for nodes in QUORUMS.values():
        log, topics = quorum(nodes)
        verdicts = [replay_rows(rows, log.of_quorum).verdicts for rows in topics.values()]
        assert [finding for one in verdicts for finding in one.findings] == []
        assert sum(one.counts["R53", "kept"] for one in verdicts) >= 9
