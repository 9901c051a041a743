"""State timelines, assignments, roles, availability and verdicts of one partition."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from reconstruct.cluster.settings import SettingChange, SettingsOverTime
from reconstruct.cluster.spans import Registration, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.case import Case
from reconstruct.partitions.timeline import fold_partition
from reconstruct.time.intervals import Interval
from tests.unit.reconstruct.partitions.tables import facts, shown

MIDDLE = VersionRange.exactly(v(1, 1, 1))
NEW = VersionRange.exactly(v(3, 9, 1))


def tenure(
    controller_id: int, epoch: int, start_ms: int, level: str | None = "TRACE", end_ms: int | None = None
) -> Tenure:
    end = None if end_ms is None else end_ms * 1000
    return Tenure(controller_id, epoch, start_ms * 1000, end, (f"t{epoch}",), level)


def alive(*spans: tuple[int, int | None]) -> tuple[Interval[Registration], ...]:
    return tuple(
        Interval(start * 1000, None if end is None else end * 1000, Registration(), ("reg",)) for start, end in spans
    )


ONE_CONTROLLER = ClusterView("c", MIDDLE, (tenure(1, 1, 1),), {1: alive((0, None)), 2: alive((0, None))})


def fold(table: str, cluster: ClusterView = ONE_CONTROLLER) -> Case:
    return fold_partition("t", facts(table), cluster)


def partition_states(history: Case) -> list[tuple[str, int, int | None, str | None]]:
    return [
        (i.value.state, i.start // 1000, None if i.end is None else i.end // 1000, i.inferred_from)
        for i in history.partition_states
    ]


CREATION = """
    at | kind                   | broker | by | cepoch | from                 | to              | leader | epoch | isr | version | replicas | replica
    10 | partition_state_change | 1      | 1  | 1      | NonExistentPartition | NewPartition    |        |       |     |         | 1,2      |
    11 | replica_state_change   | 1      | 1  | 1      | NonExistentReplica   | NewReplica      |        |       |     |         |          | 1
    11 | replica_state_change   | 1      | 1  | 1      | NonExistentReplica   | NewReplica      |        |       |     |         |          | 2
    12 | partition_state_change | 1      | 1  | 1      | NewPartition         | OnlinePartition | 1      | 0     | 1,2 | 0       |          |
    13 | replica_state_change   | 1      | 1  | 1      | NewReplica           | OnlineReplica   |        |       |     |         |          | 1
    13 | replica_state_change   | 1      | 1  | 1      | NewReplica           | OnlineReplica   |        |       |     |         |          | 2
    """  # noqa: E501


def test_a_creation_is_seen_in_every_timeline() -> None:
    history = fold(CREATION)
    assert partition_states(history) == [("NewPartition", 10, 12, None), ("OnlinePartition", 12, None, None)]
    assert [shown(i.value) for i in history.decided] == ["1/0 [1, 2]"]
    assert [i.value.replicas for i in history.assignments] == [(1, 2)]
    assert [i.value.state for i in history.replica_states[2]] == ["NewReplica", "OnlineReplica"]
    assert history.verdicts.findings == []
    assert history.verdicts.counts["R13", "kept"] == 2
    assert history.verdicts.counts["R14", "kept"] == 4


def test_a_new_controller_starts_the_machines_again() -> None:
    cluster = replace(
        ONE_CONTROLLER,
        tenures=(tenure(1, 1, 1, end_ms=50), tenure(2, 2, 50)),
        liveness={1: alive((0, 40)), 2: alive((0, None))},
    )
    table = CREATION + (
        "60 | partition_state_change | 2 | 2 | 2 | OfflinePartition | OnlinePartition | 2 | 1 | 2 | 1 | |"
    )
    assert partition_states(fold(table, cluster))[1:] == [
        ("OnlinePartition", 12, 50, None),
        ("OfflinePartition", 50, 60, "controller_failover"),
        ("OnlinePartition", 60, None, None),
    ]
    states = [(i.value.state, i.inferred_from) for i in fold(table, cluster).replica_states[1]]
    assert states[-1] == ("ReplicaDeletionIneligible", "controller_failover")


def test_a_deposed_controller_that_goes_on_logging_changes_no_state() -> None:
    cluster = replace(ONE_CONTROLLER, tenures=(tenure(1, 1, 1, end_ms=50), tenure(2, 2, 50)))
    table = CREATION + "70 | partition_state_change | 1 | 1 | 1 | OnlinePartition | OfflinePartition | | | | | |"
    assert partition_states(fold(table, cluster))[-1] == ("OnlinePartition", 50, None, "controller_failover")


def test_a_step_that_the_level_hides_is_inferred_not_accused() -> None:
    cluster = ClusterView("c", NEW, (tenure(1, 1, 1, "INFO"),))
    history = fold(
        CREATION
        + "30 | isr_shrunk_by_controller | 1 | 1 | 1 | | | -1 | 1 | 2 | 1 | | 1\n"
        + "60 | partition_state_change | 1 | 1 | 1 | OfflinePartition | OnlinePartition | 2 | 2 | 2 | 2 | |",
        cluster,
    )
    assert partition_states(history)[1:] == [
        ("OnlinePartition", 12, 30, None),
        ("OfflinePartition", 30, 60, "unlogged_transition"),
        ("OnlinePartition", 60, None, None),
    ]
    assert history.verdicts.findings == []


def test_a_step_that_should_have_been_logged_is_a_gap() -> None:
    history = fold(
        CREATION + "60 | partition_state_change | 1 | 1 | 1 | OfflinePartition | OnlinePartition | 2 | 1 | 2 | 1 | |"
    )
    assert partition_states(history)[2] == ("OfflinePartition", 60, 60, "log_gap")
    assert [(f.divergence_type, f.severity) for f in history.verdicts.findings] == [("transition_not_logged", "info")]


def test_a_deletion_ends_every_timeline() -> None:
    history = fold(
        CREATION
        + "40 | partition_state_change | 1 | 1 | 1 | OnlinePartition | OfflinePartition | | | | | |\n"
        + "41 | partition_state_change | 1 | 1 | 1 | OfflinePartition | NonExistentPartition | | | | | |"
    )
    assert partition_states(history)[-1] == ("NonExistentPartition", 41, None, None)
    assert history.decided[-1].end == 41_000
    assert history.assignments[-1].end == 41_000
    assert history.replica_states[1][-1].value.state == "NonExistentReplica"


def test_an_illegal_transition_is_an_error_with_its_line() -> None:
    history = fold(CREATION + "40 | partition_state_change | 1 | 1 | 1 | OnlinePartition | NewPartition | | | | | |")
    (finding,) = history.verdicts.findings
    assert (finding.rule_id, finding.divergence_type, finding.severity) == ("R13", "illegal_transition", "error")
    assert finding.evidence == ("e7",)
    assert "OnlinePartition to NewPartition" in finding.explanation


REFUSED = (
    "java.lang.IllegalStateException: Replica [Topic=t,Partition=0,Replica=2] should be in the ReplicaDeletionStarted"
    " states before moving to ReplicaDeletionIneligible state. Instead it is in OfflineReplica state"
)


@pytest.mark.parametrize(
    ("version", "severity"), [(MIDDLE, "info"), (VersionRange.exactly(v(2, 2, 2)), "info"), (NEW, "warning")]
)
def test_the_refused_step_to_ineligible_is_benign_up_to_2_2(version: VersionRange, severity: str) -> None:
    rows = facts(CREATION + "40 | replica_state_change_failed | 1 | 1 | 1 | | | | | | | | 2")
    rows[-1] = replace(rows[-1], cause=REFUSED)
    history = fold_partition("t", rows, replace(ONE_CONTROLLER, version=version))
    (finding,) = history.verdicts.findings
    assert (finding.rule_id, finding.divergence_type, finding.severity) == ("R14", "refused_transition", severity)
    assert (finding.known_issue is not None) is (severity == "info")


@pytest.mark.parametrize(
    ("asked", "controller", "started", "severity"),
    [(30, 1, 5, "info"), (45, 1, 5, "warning"), (30, 2, 5, "warning"), (30, 1, 35, "warning"), (None, 1, 5, "warning")],
)
def test_a_deletion_takes_a_replica_of_a_broker_that_leaves_for_dead(
    asked: int | None, controller: int, started: int, severity: str
) -> None:
    rows = facts(CREATION + "40 | replica_state_change_failed | 1 | 1 | 1 | | | | | | | | 2")
    rows[-1] = replace(rows[-1], cause=REFUSED.replace("OfflineReplica", "OnlineReplica"))
    cluster = replace(
        ONE_CONTROLLER,
        version=NEW,
        shutdown_requests={} if asked is None else {2: ((asked * 1000, "asked"),)},
        shutdown_controllers={"asked": controller},
        process_starts={2: ((started * 1000, "started"),)},
    )
    (finding,) = fold_partition("t", rows, cluster).verdicts.findings
    assert (finding.rule_id, finding.divergence_type, finding.severity) == ("R14", "refused_transition", severity)
    assert ("asked" in finding.evidence) is (severity == "info")


def test_a_failed_election_is_no_illegal_transition() -> None:
    rows = facts(CREATION + "40 | partition_state_change_failed | 1 | 1 | 1 | | | | | | | |")
    rows[-1] = replace(
        rows[-1], cause="kafka.common.NoReplicaOnlineException: No replica in ISR for partition t-0 is alive"
    )
    assert fold_partition("t", rows, ONE_CONTROLLER).verdicts.findings == []


def znodes(*rows: str) -> str:
    header = "at | kind | leader | epoch | isr | version | stored_cepoch | replicas | source"
    return "\n".join([header, *(f"{row} | znode" for row in rows)])


def test_two_leaders_written_for_one_epoch_are_an_error() -> None:
    history = fold(znodes("10 | znode_state | 1 | 3 | 1,2 | 7 | 1 |", "20 | znode_state | 2 | 3 | 2 | 8 | 1 |"))
    assert [(f.rule_id, f.severity) for f in history.verdicts.findings] == [("R02", "error")]


def test_a_leader_epoch_that_falls_is_an_error() -> None:
    history = fold(znodes("10 | znode_state | 1 | 3 | 1,2 | 7 | 1 |", "20 | znode_state | 1 | 2 | 1 | 8 | 1 |"))
    assert [(f.rule_id, f.evidence) for f in history.verdicts.findings] == [("R01", ("e1", "e2"))]


def test_a_leader_outside_its_isr_is_an_error_but_in_0_8_0() -> None:
    table = znodes("10 | znode_state | 1 | 3 | 2 | 7 | 1 |")
    assert [f.rule_id for f in fold(table).verdicts.findings] == ["R05"]
    oldest = replace(ONE_CONTROLLER, version=VersionRange.exactly(v(0, 8, 0)))
    assert fold(table, oldest).verdicts.counts == {
        ("R05", "cannot_be_judged"): 1,
        ("R02", "kept"): 1,
        ("R04", "cannot_be_judged"): 1,
        ("R06", "kept"): 1,
    }


def test_an_isr_outside_the_assignment_is_judged_by_version() -> None:
    table = znodes(
        "5 | znode_assignment | | | | 0 | | 1,2",
        "10 | znode_state | 1 | 3 | 1,4 | 7 | 1 |",
        "20 | znode_assignment | | | | 1 | | 1,2,3",
    )
    assert [(f.rule_id, f.severity) for f in fold(table).verdicts.findings] == [("R04", "error")]
    newer = replace(ONE_CONTROLLER, version=VersionRange.exactly(v(2, 8, 2)))
    (finding,) = fold(table, newer).verdicts.findings
    assert (finding.severity, finding.known_issue) == ("info", "KAFKA-9672 (since 2.4, fixed in 3.0)")


def test_an_isr_within_the_assignment_before_a_reassignment_is_kept() -> None:
    table = znodes(
        "5 | znode_assignment | | | | | | 1,2,3",
        "10 | znode_state | 1 | 3 | 1,2 | 7 | 1 |",
        "20 | znode_assignment | | | | | | 1,3",
    )
    assert fold(table).verdicts.findings == []


ROLES = """
    at | kind                      | broker | by | cepoch | leader | epoch | isr | corr | version
    10 | leader_and_isr_sent       | 1      | 1  | 1      | 1      | 4     | 1,2 |      | 0
    11 | leader_and_isr_received   | 2      | 1  | 1      | {told} | 4     | 1,2 | 9    | 0
    12 | become_follower_completed | 2      | 1  | 1      |        |       |     | 9    |
    """


def test_a_follower_of_the_decided_leader_keeps_the_rule() -> None:
    history = fold(ROLES.format(told=1))
    assert [(i.value.role, i.value.leader, i.value.leader_epoch) for i in history.roles[2]] == [("follower", 1, 4)]
    assert history.verdicts.counts["R20", "kept"] == 1


def test_a_follower_of_another_leader_is_an_error_with_both_lines() -> None:
    history = fold(ROLES.format(told=3))
    (finding,) = [f for f in history.verdicts.findings if f.rule_id == "R20"]
    assert (finding.severity, finding.broker_id, finding.evidence) == ("error", 2, ("e3", "e2", "e1"))


def test_a_belief_that_nothing_else_shows_cannot_be_judged() -> None:
    history = fold(
        """
        at | kind                    | broker | by | cepoch | leader | epoch | isr | corr
        11 | leader_and_isr_received | 2      | 1  | 1      | 2      | 4     | 1,2 | 9
        12 | become_leader_completed | 2      | 1  | 1      |        |       |     | 9
        """
    )
    assert history.verdicts.counts["R20", "cannot_be_judged"] == 1
    assert history.verdicts.findings == []


def test_a_broker_that_starts_again_forgets_its_role() -> None:
    cluster = replace(ONE_CONTROLLER, process_starts={2: ((30_000, "start"),)})
    history = fold(ROLES.format(told=1), cluster)
    assert [(i.value.role, i.start, i.end) for i in history.roles[2]] == [
        ("follower", 12_000, 30_000),
        ("none", 30_000, None),
    ]


def kinds(history: Case) -> dict[str, list[tuple[int, int | None]]]:
    found: dict[str, list[tuple[int, int | None]]] = {}
    for span in history.availability:
        found.setdefault(span.kind, []).append((span.start // 1000, None if span.end is None else span.end // 1000))
    return found


def test_availability_is_swept_from_the_timelines() -> None:
    cluster = replace(
        ONE_CONTROLLER,
        liveness={1: alive((0, 35), (90, None)), 2: alive((0, None))},
        settings=SettingsOverTime({"t": [SettingChange(0, 2)]}),
    )
    table = znodes(
        "5 | znode_assignment | | | | | | 1,2",
        "6 | znode_state | 1 | 0 | 1,2 | 0 | 1 |",
        "20 | znode_state | 1 | 0 | 1 | 1 | 1 |",
        "40 | znode_state | 2 | 1 | 2 | 2 | 1 |",
        "95 | znode_state | 2 | 1 | 2,1 | 3 | 1 |",
    )
    assert kinds(fold(table, cluster)) == {
        "offline": [(35, 40)],
        "under_replicated": [(20, 95)],
        "at_min_isr": [(6, 20), (95, None)],
        "under_min_isr": [(20, 95)],
        "non_preferred_leader": [(40, None)],
    }


def test_without_its_setting_min_isr_is_not_guessed() -> None:
    table = znodes("5 | znode_assignment | | | | | | 1,2", "6 | znode_state | 1 | 0 | 1 | 0 | 1 |")
    assert set(kinds(fold(table))) == {"under_replicated"}


def test_requests_to_delete_and_to_reassign_open_intervals() -> None:
    table = znodes(
        "5 | znode_assignment | | | | | | 1,2",
        "6 | znode_state | 1 | 0 | 1,2 | 0 | 1 |",
        "20 | znode_reassignment | | | | | |",
        "30 | znode_reassignment_done | | | | | |",
        "50 | znode_deletion_requested | | | | | |",
    )
    assert {k: v for k, v in kinds(fold(table)).items() if k in ("deleting", "reassigning")} == {
        "reassigning": [(20, 30)],
        "deleting": [(50, None)],
    }


@pytest.mark.parametrize(
    ("also", "expected"),
    [
        ("", {"reassigning": [(20, 30)], "deleting": [(50, 70)]}),
        ("55 | topic_deletion_disabled | 1 | | | | | | | | | |", {"reassigning": [(20, 30)]}),
    ],
)
def test_what_a_controller_logs_of_reassignments_and_deletions_opens_intervals(
    also: str, expected: dict[str, list[tuple[int, int | None]]]
) -> None:
    table = (
        CREATION
        + f"""
    20 | reassignment_started     | 1 | | | | | | | | | 2,1 |
    25 | reassignment_started     | 1 | | | | | | | | | 2,1 |
    30 | reassignment_completed   | 1 | | | | | | | | |     |
    50 | topic_deletion_requested | 1 | | | | | | | | |     |
    60 | topic_deletion_queued    | 2 | | | | | | | | |     |
    70 | topic_deletion_completed | 2 | | | | | | | | |     |
    {also}"""
    )
    found = {k: v for k, v in kinds(fold(table)).items() if k in ("deleting", "reassigning")}
    assert found == expected


DELETION = (
    CREATION
    + """
    50 | topic_deletion_requested | 1 |   |   |                   |                           | | | | | |
    51 | partition_state_change   | 1 | 1 | 1 | OnlinePartition   | OfflinePartition          | | | | | |
    51 | partition_state_change   | 1 | 1 | 1 | OfflinePartition  | NonExistentPartition      | | | | | |
    45 | replica_state_change     | 1 | 1 | 1 | OnlineReplica     | OfflineReplica            | | | | | | 2
    53 | replica_state_change     | 1 | 1 | 1 | OfflineReplica    | ReplicaDeletionIneligible | | | | | | 2
    """
)


@pytest.mark.parametrize("completed_at", [90, None])
def test_since_2_1_a_topic_is_deleted_when_its_last_replica_is(completed_at: int | None) -> None:
    """The partition ends first; a dead broker may keep the topic for days."""
    table = DELETION + (f"{completed_at} | topic_deletion_completed | 1 | | | | | | | | | |" if completed_at else "")
    history = fold(table, replace(ONE_CONTROLLER, version=NEW))
    assert kinds(history)["deleting"] == [(50, completed_at)]
    assert history.decided[-1].end == 51_000
    assert [i.end for i in history.assignments] == [completed_at and completed_at * 1000]
    waiting = [i for i in history.replica_states[2] if i.value.state == "ReplicaDeletionIneligible"]
    assert [i.end for i in waiting] == [completed_at and completed_at * 1000]


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_the_evidence_changes_nothing(seed: int) -> None:
    rows = facts(CREATION) + [
        replace(fact, evidence_id=f"r{fact.evidence_id}", offset=100 + fact.offset)
        for fact in facts(ROLES.format(told=1))
    ]
    expected = fold_partition("t", rows, ONE_CONTROLLER)
    random.Random(seed).shuffle(rows)
    assert fold_partition("t", rows, ONE_CONTROLLER) == expected


def test_intervals_of_every_timeline_are_contiguous_and_ordered() -> None:
    history = fold(
        CREATION + "40 | partition_state_change | 1 | 1 | 1 | OnlinePartition | OfflinePartition | | | | | |"
    )
    timelines = [
        history.decided,
        history.partition_states,
        history.assignments,
        *history.replica_states.values(),
    ]
    for timeline in timelines:
        for before, after in itertools.pairwise(timeline):
            assert before.end == after.start
        assert all(i.end is None or i.start <= i.end for i in timeline)
        assert sum(i.end is None for i in timeline) <= 1


def test_the_next_incarnation_ends_the_one_before() -> None:
    history = fold_partition("t", facts(CREATION), ONE_CONTROLLER, ends_at=90_000)
    assert history.decided[-1].end == 90_000
    assert partition_states(history)[-1] == ("NonExistentPartition", 90, None, "unlogged_transition")


def test_a_cluster_created_again_starts_its_controllers_again() -> None:
    first = replace(tenure(1, 1, 1, end_ms=90_000), generation=0)
    second = [replace(tenure(2, 1, 90_000), generation=1), replace(tenure(3, 2, 95_000), generation=1)]
    cluster = replace(ONE_CONTROLLER, tenures=(first, *second))
    assert partition_states(fold(CREATION, cluster))[-1] == ("OnlinePartition", 12, None, None)
    assert [t.controller_id for t in cluster.at_generation_of(96_000_000).tenures] == [2, 3]


def test_an_assignment_that_no_snapshot_shows_is_a_way_out() -> None:
    gap = znodes(
        "5 | znode_assignment | | | | 0 | | 1,2",
        "10 | znode_state | 1 | 3 | 1,4 | 7 | 1 |",
        "20 | znode_assignment | | | | 2 | | 3,4",
    )
    assert fold(gap).verdicts.counts["R04", "cannot_be_judged"] == 1
    closed = gap.replace("| 2 | | 3,4", "| 1 | | 3,4")
    assert [(f.rule_id, f.severity) for f in fold(closed).verdicts.findings] == [("R04", "error")]


def test_a_state_that_a_wrong_clock_begins_late_is_held_against_the_replicas_of_when_it_was_written() -> None:
    table = """
    at | kind                | broker | by | cepoch | leader | epoch | isr | version | replicas
    5  | znode_assignment    |        |    |        |        |       |     | 0       | 1,2,4
    10 | znode_state         |        |    | 1      | 1      | 3     | 1,4 | 7       |
    12 | znode_assignment    |        |    |        |        |       |     | 1       | 1,2
    20 | leader_and_isr_sent | 1      | 1  | 1      | 1      | 2     | 1,4 | 6       |
    30 | znode_assignment    |        |    |        |        |       |     | 2       | 1
    """
    history = fold(table)
    assert [i.start // 1000 for i in history.decided] == [20, 20]
    assert history.verdicts.counts["R04", "kept"] == 1
    assert [f.rule_id for f in history.verdicts.findings if f.rule_id == "R04"] == []


def test_an_isr_known_from_a_log_alone_is_not_held_against_znodes() -> None:
    table = znodes("5 | znode_assignment | | | | 0 | | 1,2", "10 | isr_shrunk_by_controller | 1 | 3 | 1,4 | 7 | 1 |")
    assert fold(table).verdicts.counts["R04", "cannot_be_judged"] == 1


def test_of_several_incarnations_a_wrong_clock_is_a_way_out() -> None:
    rows = facts(ROLES.format(told=3))
    found = fold_partition("t", rows, ONE_CONTROLLER, is_only=False).verdicts.findings
    assert [(f.rule_id, f.severity) for f in found if f.rule_id == "R20"] == [("R20", "warning")]
