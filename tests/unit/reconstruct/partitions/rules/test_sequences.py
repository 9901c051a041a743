"""The steps of creation, deletion, broker changes and reassignment, in their order (R16)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from reconstruct.cluster.spans import LiveView, LogSpan, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding
from reconstruct.model.versions import KafkaVersion, VersionRange, v
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker, capture_names
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, is_line, read
from tests.unit.reconstruct.partitions.rules.controllers import findings
from tests.unit.reconstruct.partitions.tables import facts

ERAS = ("lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1")
OLD, NEW = v(1, 1, 1), v(3, 9, 1)


def steps(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.rule_id == "R16"]


@pytest.mark.parametrize("name", capture_names())
def test_real_controllers_kept_the_order(name: str, unpacked: Unpacker) -> None:
    kept = 0
    for history in read(unpacked(name)).fold().values():
        kept += history.verdicts.counts["R16", "kept"]
        assert steps(history.verdicts.findings) == []
    assert kept >= (0 if name.endswith("-info") or name.startswith("quiet") else 12)


# --- on real logs -----------------------------------------------------------------------------------------------------


def moved_behind(subject: Subject, line: Evidence, other: Evidence) -> list[Evidence]:
    """The evidence with one line of a file behind another."""
    behind = [replace(fact, offset=fact.offset * 10) if fact.file == line.file else fact for fact in subject.facts]
    number = subject.facts.index(line)
    behind[number] = replace(line, offset=other.offset * 10 + 1, at=max(line.at, other.at))
    return behind


@pytest.mark.parametrize("name", ERAS)
def test_a_replica_created_after_its_partition_went_online(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    new = subject.lines(is_line("replica_state_change", replica_id=2, to_state="NewReplica"))[0]
    online = subject.lines(is_line("partition_state_change", from_state="NewPartition"))[0]
    (finding,) = steps(findings(subject, moved_behind(subject, new, online)))
    assert (finding.divergence_type, finding.severity, finding.replica_id) == ("step_out_of_order", "error", 2)
    assert "Creation" in finding.explanation
    others = subject.lines(is_line("replica_state_change", to_state="NewReplica"))
    assert steps(findings(subject, moved_behind(subject, new, others[-1]))) == []


@pytest.mark.parametrize("name", ERAS)
def test_a_replica_that_was_never_created(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "scratch", 1)
    first = subject.lines(is_line("partition_state_change", to_state="NewPartition"))[0]

    def is_of_3(fact: Evidence) -> bool:
        is_told = fact.to_broker_ids == (3,) and fact.kind == "leader_and_isr_sent"
        return fact.replica_id == 3 or fact.broker_id == 3 or is_told

    known = [fact for fact in subject.without(is_of_3) if fact.controller_epoch in (None, first.controller_epoch)]
    found = [f for f in steps(findings(subject, known)) if f.divergence_type == "step_missing"]
    assert [(f.replica_id, f.severity) for f in found] == [(3, "error")]
    told = subject.without(lambda fact: fact.replica_id == 3)
    assert [f for f in steps(findings(subject, told)) if f.severity != "info"] == []


def list_without_2(subject: Subject) -> LiveView:
    """The first list of live brokers that lost broker 2."""
    return next(
        after
        for before, after in pairwise(subject.view.live_views)
        if before.controller_id == after.controller_id and 2 in before.live - after.live
    )


@pytest.mark.parametrize("name", ["failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1"])
def test_a_broker_failure_of_which_the_controller_does_nothing(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 0)
    view = list_without_2(subject)
    tenure = next(t for t in subject.view.tenures if t.controller_id == view.controller_id and t.start <= view.at)

    def is_later(fact: Evidence) -> bool:
        return fact.at >= view.at - 5_000 and fact.controller_epoch in (None, tenure.controller_epoch)

    assert tenure.end is None or tenure.end > view.at + 11_000_000
    bent = subject.without(is_later)
    (finding,) = [f for f in steps(findings(subject, bent)) if "Broker failure" in f.explanation]
    # Lines that were lost would look the same.
    assert (finding.divergence_type, finding.severity, finding.replica_id) == ("step_missing", "warning", 2)
    assert finding.evidence[0] == view.evidence_id
    lossy = replace(subject.view, lossy_logs=frozenset({view.controller_id or 0}))
    assert steps(findings(subject, bent, lossy)) == []
    if name == "failover-0.8.2.2":  # whose return comes so soon that brokers receive after it what was sent before
        return
    # Unless the replica then comes back from the state that it never left.
    back = next(v.at for v in subject.view.live_views if v.at > view.at and 2 in v.live)
    returned = [
        replace(fact, from_state="OnlineReplica")
        if (fact.replica_id, fact.from_state) == (2, "OfflineReplica")
        else fact
        for fact in subject.without(lambda fact: is_later(fact) and (fact.at < back - 5_000 or fact.broker_id == 2))
    ]
    (finding,) = [f for f in steps(findings(subject, returned)) if "Broker failure" in f.explanation]
    assert (finding.divergence_type, finding.severity, finding.replica_id) == ("step_missing", "error", 2)


@pytest.mark.parametrize("name", ["failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1"])
def test_a_broker_failure_whose_lines_stand_in_the_next_file_of_a_log(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 0)
    view = list_without_2(subject)
    rolled_at, controller_id = view.at - 1_000_000, view.controller_id or 0
    (whole,) = subject.view.logs[controller_id]
    spans = replace(whole, end=rolled_at, file="rolled"), replace(whole, start=rolled_at, file="after")
    # of receipts nothing is known, as where the logs of the controller's broker alone are given
    acts = ("replica_state_change", "partition_state_change", "leader_and_isr_sent", "update_metadata_sent")
    facts = [
        replace(fact, file="rolled" if fact.at < rolled_at else "after") if fact.kind in acts else fact
        for fact in subject.facts
        if fact.kind in acts or fact.source_kind != "state_change_log"
    ]
    assert {fact.file for fact in facts if fact.kind in acts} == {"rolled", "after"}
    rolled = replace(subject.view, logs={**subject.view.logs, controller_id: spans})
    assert steps(findings(subject, facts, rolled)) == []


# --- as tables --------------------------------------------------------------------------------------------------------

HEADER = (
    "at | kind | broker | by | cepoch | from | to | replica | leader | epoch | isr | version | replicas | to_broker_ids"
)


def moves(*rows: str) -> list[Evidence]:
    """``replica: from > to``, with ``p`` for the partition, every 10 ms."""
    lines = [HEADER]
    for number, row in enumerate(rows, 1):
        subject, states = row.split(":")
        came, to = states.replace(" ", "").split(">")
        kind, replica = ("partition", "") if subject == "p" else ("replica", subject)
        lines.append(f"{number * 10} | {kind}_state_change | 1 | 1 | 1 | {came} | {to} | {replica} | | | | | |")
    return facts("\n".join(lines))


def judged(version: KafkaVersion | VersionRange, rows: list[Evidence], **values: object) -> list[Finding]:
    known = version if isinstance(version, VersionRange) else VersionRange.exactly(version)
    view = ClusterView(
        "c",
        known,
        (Tenure(1, 1, 0, None, (), "TRACE"),),
        logs={1: (LogSpan(0, 60_000_000, "TRACE"),)},
    )
    return steps(fold_partition("t", rows, replace(view, **values)).verdicts.findings)  # type: ignore[arg-type]


GOING = [
    f"{replica}: {step}"
    for step in (
        "OnlineReplica > OfflineReplica",
        "OfflineReplica > ReplicaDeletionStarted",
        "ReplicaDeletionStarted > ReplicaDeletionSuccessful",
        "ReplicaDeletionSuccessful > NonExistentReplica",
    )
    for replica in (1, 2)
]
ENDS = ["p: OnlinePartition > OfflinePartition", "p: OfflinePartition > NonExistentPartition"]


def test_a_deletion_in_the_order_of_its_version() -> None:
    assert judged(OLD, moves(*GOING, *ENDS)) == []
    assert judged(NEW, moves(*ENDS, *GOING)) == []


def test_since_2_1_the_partition_ends_before_its_replicas_are_deleted() -> None:
    found = judged(NEW, moves(*GOING[:4], *ENDS, *GOING[4:]))
    assert {f.divergence_type for f in found} == {"step_out_of_order"}
    assert {f.replica_id for f in found} == {1, 2}


def test_up_to_2_0_a_deletion_is_complete_only_when_every_replica_is_gone() -> None:
    found = judged(OLD, moves(*GOING[:7], *ENDS))
    assert [(f.divergence_type, f.severity, f.replica_id) for f in found] == [("step_out_of_order", "error", 2)]
    assert "while replica 2 was ReplicaDeletionSuccessful" in found[0].explanation
    unknown = VersionRange(v(2, 0), v(2, 2))
    assert judged(unknown, moves(*GOING[:7], *ENDS)) == []


def test_up_to_2_0_what_all_replicas_did_last_may_be_lost_with_one_stretch_of_lines() -> None:
    assert judged(OLD, moves(*GOING[:4], *ENDS)) == []
    early = judged(OLD, moves(*GOING[:4], *ENDS, *GOING[4:]))
    assert {(f.divergence_type, f.replica_id) for f in early} == {("step_out_of_order", 1), ("step_out_of_order", 2)}


def test_since_2_1_no_replica_is_forgotten_before_all_are_deleted() -> None:
    early = [*GOING[:5], GOING[6], GOING[5], GOING[7]]
    (finding,) = judged(NEW, moves(*ENDS, *early))
    assert (finding.divergence_type, finding.replica_id) == ("step_out_of_order", 2)


def test_a_partition_whose_replicas_are_all_forgotten_and_that_never_ends() -> None:
    rows = moves(*GOING, "p: OnlinePartition > OnlinePartition")
    (finding,) = judged(OLD, rows)
    assert (finding.divergence_type, finding.severity) == ("step_missing", "error")
    assert judged(OLD, moves(*GOING[:7], "p: OnlinePartition > OnlinePartition")) == []


def reassigned(*, is_caught_up: bool) -> list[Evidence]:
    """3 comes and 2 goes; whether 3 had become Online, and was in the ISR, before."""
    rows = moves(
        "1: OnlineReplica > OnlineReplica",
        "2: OnlineReplica > OnlineReplica",
        "3: NonExistentReplica > NewReplica",
        *(["3: NewReplica > OnlineReplica"] if is_caught_up else []),
        "2: OnlineReplica > OfflineReplica",
        "2: OfflineReplica > ReplicaDeletionStarted",
        "2: ReplicaDeletionStarted > ReplicaDeletionSuccessful",
        "2: ReplicaDeletionSuccessful > NonExistentReplica",
    )
    isr = (1, 3) if is_caught_up else (1,)
    said = Evidence(
        "said",
        "leader_and_isr_sent",
        45_000,
        offset=45,
        source_kind="state_change_log",
        broker_id=1,
        controller_id=1,
        controller_epoch=1,
        leader=1,
        leader_epoch=4,
        isr=isr,
        to_broker_ids=(1,),
    )
    number = 4 if is_caught_up else 3
    placed = [replace(row, offset=row.offset * 10) for row in rows]
    moving = Evidence(
        "moving", "reassignment_started", 25_000, source_kind="controller_log", broker_id=1, replicas=(1, 3)
    )
    return [*placed, replace(said, offset=number * 10 + 15), moving]


def test_a_replica_is_removed_only_when_those_that_come_are_in_the_isr() -> None:
    (finding,) = judged(OLD, reassigned(is_caught_up=False))
    assert (finding.divergence_type, finding.severity, finding.replica_id) == ("step_out_of_order", "error", 2)
    assert "Reassignment" in finding.explanation
    assert judged(OLD, reassigned(is_caught_up=True)) == []


def test_since_2_4_another_reassignment_may_remove_what_the_last_one_added() -> None:
    rows = [replace(row, replica_id=3) if row.replica_id == 2 else row for row in reassigned(is_caught_up=False)]
    assert judged(NEW, rows) == []


def test_a_log_that_ends_there_proves_nothing() -> None:
    rows = reassigned(is_caught_up=False)
    assert judged(OLD, rows, logs={1: (LogSpan(0, 60_000, "TRACE"),)}) == []
    assert judged(OLD, rows, logs={1: (LogSpan(0, 60_000_000, "INFO"),)}) == []
