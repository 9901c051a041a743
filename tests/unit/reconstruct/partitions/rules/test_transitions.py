"""Transitions that must have been logged, and were not given (R13, R14)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker, capture_names
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, is_line, read
from tests.unit.reconstruct.partitions.rules.controllers import findings, named, verdicts
from tests.unit.reconstruct.partitions.tables import facts

ERAS = ("lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1")


@pytest.mark.parametrize("name", capture_names())
def test_real_logs_have_no_hole(name: str, unpacked: Unpacker) -> None:
    transitions = 0
    for history in read(unpacked(name)).fold().values():
        counts = history.verdicts.counts
        transitions += counts["R13", "kept"] + counts["R14", "kept"]
        assert "transition_not_logged" not in {f.divergence_type for f in history.verdicts.findings}
    assert transitions >= 16


@pytest.mark.parametrize("name", ERAS)
def test_a_transition_that_was_taken_out_is_missed(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 0)
    gone = subject.lines(is_line("replica_state_change", from_state="OnlineReplica", to_state="OfflineReplica"))[0]
    later = [
        fact
        for fact in subject.lines(is_line("replica_state_change", replica_id=gone.replica_id))
        if fact.controller_epoch == gone.controller_epoch
    ]
    following = next((fact for fact in later if fact.offset > gone.offset), None)
    before = next((fact for fact in reversed(later) if fact.offset < gone.offset), None)
    found = findings(subject, subject.without(lambda fact: fact is gone))
    if following is None or before is None:
        assert "transition_not_logged" not in {f.divergence_type for f in found}
        return
    (finding,) = [f for f in found if f.divergence_type == "transition_not_logged"]
    assert (finding.rule_id, finding.severity, finding.replica_id) == ("R14", "info", gone.replica_id)
    assert finding.evidence == (before.evidence_id, following.evidence_id)


@pytest.mark.parametrize("name", ERAS)
def test_the_first_step_of_a_creation_is_missed(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    replica = subject.without(is_line("replica_state_change", replica_id=2, from_state="NonExistentReplica"))
    assert ("transition_not_logged", "info") in named(findings(subject, replica))
    partition = subject.without(is_line("partition_state_change", from_state="NonExistentPartition"))
    found = findings(subject, partition)
    assert ("transition_not_logged", "info") in named(found)
    assert {f.rule_id for f in found if f.divergence_type == "transition_not_logged"} == {"R13"}


def test_a_transition_to_the_same_state_leaves_no_hole(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("lifecycle-1.1.1"), "orders", 0)
    bent = subject.without(is_line("partition_state_change", from_state="OnlinePartition", to_state="OnlinePartition"))
    assert "transition_not_logged" not in {f.divergence_type for f in findings(subject, bent)}
    assert verdicts(subject)["R13", "broken"] == 0


SILENT = """
    at | kind                 | broker | by | cepoch | from           | to             | replica
    10 | replica_state_change | 1      | 1  | 1      | OnlineReplica  | OfflineReplica | 2
    20 | replica_state_change | 1      | 1  | 1      | OnlineReplica  | OfflineReplica | 2
    """


@pytest.mark.parametrize(("parts", "is_found"), [((0, 8, 2, 2), False), ((1, 0), False), ((1, 1, 1), True)])
def test_up_to_1_0_a_replica_without_a_leader_goes_online_in_silence(parts: tuple[int, ...], is_found: bool) -> None:
    view = ClusterView("c", VersionRange.exactly(v(*parts)), (Tenure(1, 1, 0, None, (), "TRACE"),))
    found = fold_partition("t", facts(SILENT), view).verdicts.findings
    assert bool(found) is is_found


def test_from_2_6_on_nothing_is_missed_in_a_log_at_info() -> None:
    table = SILENT.replace(
        "20 | replica_state_change | 1      | 1  | 1      | OnlineReplica ",
        "20 | replica_state_change | 1 | 1 | 1 | NewReplica",
    )
    new = VersionRange.exactly(v(3, 9, 1))
    for level, is_found in (("INFO", False), ("TRACE", True)):
        view = ClusterView("c", new, (Tenure(1, 1, 0, None, (), level),))
        assert bool(fold_partition("t", facts(table), view).verdicts.findings) is is_found


def test_another_file_is_another_log() -> None:
    rows = facts(SILENT)
    view = ClusterView("c", VersionRange.exactly(v(1, 1, 1)), (Tenure(1, 1, 0, None, (), "TRACE"),))
    assert fold_partition("t", rows, view).verdicts.findings != []
    rows[1] = replace(rows[1], file="state-change.log.1")
    assert fold_partition("t", rows, view).verdicts.findings == []
