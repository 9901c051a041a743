"""What Kafka's own cases of a quorum's control records expect (KafkaRaftClientReconfigTest, KafkaRaftClientTest,
LeaderStateTest, RaftEventSimulationTest; 3.9 to 4.3): who voted, who leads, and what no quorum writes. Each test has
the name of Kafka's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from reconstruct.cluster.controllers import controller_tenures, judge_controller_epochs
from reconstruct.cluster.metadata_log import elected_controllers
from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.evidence import ClusterLog, CopySpan, LogRow, SnapshotFile
from reconstruct.metadata_log.timeline import replay_of_none
from reconstruct.quorum.timeline import quorum_timeline
from tests.support.quorum_records import SECOND, leader_change, log_of, record, voters

Told = list[tuple[int, int | None, str, tuple[int, ...] | None, int | None]]


def told(log: ClusterLog) -> Told:
    values = [span.interval.value for span in quorum_timeline([], log)]
    return [(one.epoch, one.leader_id, one.began_by, one.voters, one.kraft_version) for one in values]


def bootstrapped(*ids: int) -> list[LogRow]:
    """What the first leader of a quorum with dynamic voters appends at once."""
    return [
        leader_change(0, 1, 10, 1, ids),
        record(1, 1, "KRaftVersionRecord", 10, 0, kRaftVersion=1),
        voters_at(2, 10, voters(*ids), batch=0),
    ]


def voters_at(offset: int, at: int, listed: Sequence[Any], batch: int | None = None, epoch: int = 1) -> LogRow:
    return record(offset, epoch, "VotersRecord", at, offset if batch is None else batch, voters=listed)


def test_leader_writes_bootstrap_records() -> None:
    assert told(log_of(*bootstrapped(1, 2, 3))) == [(1, 1, "leader_elected", (1, 2, 3), 1)]


def test_leader_does_not_bootstrap_records_with_kraft_version0() -> None:
    (span,) = quorum_timeline([], log_of(leader_change(0, 1, 10, 1, (1, 2, 3))))
    value = span.interval.value
    assert (value.voters, value.voter_directory_ids, value.kraft_version) == ((1, 2, 3), None, 0)


def test_follower_reads_kraft_bootstrap_records() -> None:
    """They are in its first snapshot, which ends before every record."""
    shown = [
        LogRow("v", 0, 0, "KRaftVersionRecord", json.dumps({"kRaftVersion": 1}), 0, None, 1, 1, 0),
        LogRow("w", 1, 0, "VotersRecord", json.dumps({"voters": voters(1, 2, 3)}), 0, None, 1, 1, 0),
    ]
    log = log_of(*shown, *bootstrapped(1, 2, 3), snapshots=[SnapshotFile(1, 0, 0, 5 * SECOND, "s")])
    assert told(log) == [(1, 1, "leader_elected", (1, 2, 3), 1)]


def test_initialize_as_candidate_and_become_leader_quorum_of_three() -> None:
    (span,) = quorum_timeline([], log_of(leader_change(0, 1, 10, 1, (1, 2, 3))))
    assert (span.interval.value.leader_id, span.interval.value.granted_by) == (1, (1, 2))


def test_add_voter() -> None:
    log = log_of(*bootstrapped(1, 2), voters_at(20, 20, voters(1, 2, 3)))
    assert told(log)[1:] == [(1, 1, "voters_changed", (1, 2, 3), 1)]


def test_remove_voter() -> None:
    log = log_of(*bootstrapped(1, 2, 3), voters_at(20, 20, voters(1, 2)))
    assert told(log)[1:] == [(1, 1, "voters_changed", (1, 2), 1)]


def test_remove_voter_is_leader() -> None:
    """It leads on, without a vote, until its removal is committed."""
    log = log_of(*bootstrapped(1, 2, 3), voters_at(20, 20, voters(2, 3)), leader_change(30, 2, 30, 2, (2, 3)))
    spans = quorum_timeline([], log)
    assert told(log)[1:] == [(1, 1, "voters_changed", (2, 3), 1), (2, 2, "leader_elected", (2, 3), 1)]
    assert [span.leadership_end.end_reason for span in spans] == [None, "removed", None]


@pytest.mark.parametrize("where", ["endpoints", "kRaftVersionFeature"])
def test_update_voter(where: str) -> None:
    """Of a voter that is reached elsewhere, or supports other versions, nothing that is told here changes."""
    listed = voters(1, 2)
    listed[1] = {**listed[1], where: [{"name": "ANOTHER", "host": "localhost", "port": 8990}]}
    assert len(told(log_of(*bootstrapped(1, 2), voters_at(20, 20, listed)))) == 1


def test_update_voters_from_no_directory_id_to_directory_id() -> None:
    log = log_of(*bootstrapped(1, 2), voters_at(20, 20, [*voters(1), {"voterId": 2, "voterDirectoryId": "dir-new"}]))
    spans = quorum_timeline([], log)
    assert [span.interval.value.voter_directory_ids for span in spans] == [("dir-1", "dir-2"), ("dir-1", "dir-new")]


def test_kraft_upgrade_version() -> None:
    log = log_of(
        leader_change(0, 1, 10, 1, (1, 2, 3)),
        record(20, 1, "KRaftVersionRecord", 20, 20, kRaftVersion=1),
        voters_at(21, 20, voters(1, 2, 3), batch=20),
    )
    spans = quorum_timeline([], log)
    assert [(s.interval.value.kraft_version, s.interval.value.voter_directory_ids) for s in spans] == [
        (0, None),
        (1, ("dir-1", "dir-2", "dir-3")),
    ]


@pytest.mark.parametrize("name", ["test_add_voter_timeout", "test_remove_voter_timed_out"])
def test_a_change_of_voters_that_only_its_leader_has_is_inferred(name: str) -> None:
    after = voters(1, 2, 3) if "add" in name else voters(1)
    rows = (*bootstrapped(1, 2), voters_at(20, 20, after))
    log = ClusterLog("c", (CopySpan(1, 1, 0, 21), CopySpan(2, 1, 0, 20)), (), rows)
    inferred = [span.interval.inferred_from for span in quorum_timeline([], log)]
    # alone it is the only voter, and a majority, of the set that it is about to have
    assert inferred == [None, "commit_not_proven" if "add" in name else None]


@pytest.mark.parametrize("name", ["test_add_voter_fails_when_losing_leadership", "test_remove_voter_fails_when_losing"])
def test_a_change_of_voters_that_was_cut_off_never_was(name: str) -> None:
    after = voters(1, 2, 3, 4) if "add" in name else voters(1, 2)
    rows = (*bootstrapped(1, 2, 3), voters_at(20, 20, after), leader_change(20, 2, 30, 2, (1, 2, 3)))
    spans = (CopySpan(1, 1, 0, 21), CopySpan(2, 1, 0, 20), CopySpan(2, 2, 20, 40), CopySpan(3, 1, 0, 20))
    log = ClusterLog("c", (*spans, CopySpan(3, 2, 20, 40)), (), rows)
    assert told(log)[1:] == [(2, 2, "leader_elected", (1, 2, 3), 1)]


def test_two_leaders_of_one_epoch_are_a_fault() -> None:
    """RaftEventSimulationTest: whatever fails, an epoch has one leader (its invariant SingleLeader)."""
    rows = (
        leader_change(0, 1, 10, 1, (1, 2, 3)),
        leader_change(50, 2, 20, 2, (1, 2, 3)),
        leader_change(48, 2, 21, 3, (1, 2, 3)),
    )
    facts = list(elected_controllers(rows))
    verdicts = Verdicts()
    judge_controller_epochs(facts, controller_tenures(facts), verdicts)
    assert verdicts.counts[("R11", "kept")] == 1
    (finding,) = verdicts.findings
    assert (finding.divergence_type, finding.severity, finding.evidence) == (
        "two_controllers_for_one_epoch",
        "error",
        ("50@2", "48@2"),
    )


def test_committed_records_that_differ_are_a_fault() -> None:
    """RaftEventSimulationTest: what is committed is the same at each node (its invariant ConsistentCommittedData)."""
    topic = {"topicId": "T", "name": "t"}
    rows = (
        leader_change(0, 1, 10, 1, (1, 2, 3)),
        record(1, 1, "TopicRecord", 11, 1, **topic),
        LogRow("other", 1, 1, "TopicRecord", json.dumps(topic | {"name": "u"}), 11 * SECOND, 1),
    )
    findings = replay_of_none(log_of(*rows)).verdicts.findings
    assert [(one.rule_id, one.severity) for one in findings] == [("R50", "error")]


@pytest.mark.parametrize(
    "name", ["can_recover_after_all_nodes_killed", "can_elect_new_leader_after_old_leader_failure"]
)
def test_an_epoch_may_pass_without_a_leader(name: str) -> None:
    """RaftEventSimulationTest: epochs rise by one an election, and of some elections nobody wins."""
    rows = (leader_change(0, 1, 10, 1, (1, 2, 3)), leader_change(30, 4, 40, 2 if "new" in name else 1, (1, 2, 3)))
    facts = list(elected_controllers(rows))
    verdicts = Verdicts()
    judge_controller_epochs(facts, controller_tenures(facts), verdicts)
    assert verdicts.findings == []
    assert [(epoch, began_by) for epoch, _, began_by, _, _ in told(log_of(*rows))] == [
        (1, "leader_elected"),
        (4, "leader_elected"),
    ]
