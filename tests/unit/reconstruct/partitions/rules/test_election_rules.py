"""Elections: of which kind, among whom, and whether the right one was chosen (R07, R09)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconstruct.cluster.spans import LiveView, Registration, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.elections.controller_view import BrokerStatus, StateDecision, possible_statuses
from reconstruct.partitions.elections.judging import JudgedElection
from reconstruct.time.intervals import Interval
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import PlainCapture, plain_capture
from tests.unit.reconstruct.partitions.rules.bent_decisions import Subject
from tests.unit.reconstruct.partitions.tables import facts

Captured = Callable[[str], PlainCapture]


@pytest.fixture
def captured(unpacked: Unpacker) -> Captured:
    return lambda name: plain_capture(unpacked(name))


def elections_of(capture: PlainCapture) -> list[JudgedElection]:
    return [election for case in capture.fold().values() for election in case.all_elections]


def said(folder: Path, pattern: str) -> int:
    """How many of the controllers' lines match."""
    logs = (path.read_text() for path in folder.glob("broker-*/logs/controller.log"))
    return sum(len(re.findall(pattern, text)) for text in logs)


@pytest.mark.parametrize("znodes", [True, False])
@pytest.mark.parametrize("name", capture_names())
def test_every_election_has_a_kind_and_chose_the_one_allowed(name: str, znodes: bool, unpacked: Unpacker) -> None:
    found = elections_of(plain_capture(unpacked(name), znodes=znodes))
    assert found
    assert [e for e in found if e.kind == "unknown"] == []
    assert [e for e in found if e.allowed != (e.observed_leader,)] == []
    assert [e for e in found if e.inputs is None or e.outcome not in e.inputs.outcomes()] == []
    kinds = Counter(election.kind for election in found)
    # the controllers' own words; a leader that was in the target already was not elected again
    assert kinds["reassigned_partition"] == said(unpacked(name), "Re-electing leader")
    if name.startswith(("lifecycle-1", "lifecycle-3", "reassign")):
        assert kinds["preferred_replica"] == moved_by_preferred_elections(unpacked(name))


def moved_by_preferred_elections(folder: Path) -> int:
    """Elections asked for that found another leader than the preferred: in the znodes' own order."""
    capture = plain_capture(folder)
    done = 0
    for (topic, number), history in capture.fold().items():
        line = (
            rf"Partition {re.escape(topic)}-{number} completed preferred replica leader election. New leader is (\d+)"
        )
        leaders = [
            found
            for path in folder.glob("broker-*/logs/controller.log")
            for found in re.findall(line, path.read_text())
        ]
        changes = [e.observed_leader for e in history.elections if e.kind == "preferred_replica"]
        assert Counter(changes) <= Counter(map(int, leaders))
        done += len(changes)
    return done


# --- R07 and R09 on real captures, bent


#: capture, partition, the leader epoch of an election after the death of the leader before it, who is named
DEATHS = (
    ("failover-0.8.2.2", ("metrics", 0), 1, 1),
    ("failover-1.1.1", ("orders", 0), 2, 1),
    ("lifecycle-3.9.1", ("orders", 2), 5, 3),
)


@pytest.mark.parametrize(("name", "partition", "leader_epoch", "dead"), DEATHS)
def test_a_dead_leader_is_elected(
    name: str, partition: tuple[str, int], leader_epoch: int, dead: int, captured: Captured
) -> None:
    subject = Subject.of(captured(name), partition)
    election = next(e for e in subject.history.elections if e.leader_epoch == leader_epoch)
    assert (election.kind, election.previous_leader) == ("offline_partition", dead)
    bent = subject.elected_as(leader_epoch, dead, (dead, *election.isr))
    if name.endswith("0.8.2.2"):
        at = election.decision.at
        bent = bent.bent(lambda f: f.kind == "partition_state_change" and f.at == at, leader=dead)
    assert ("R07", "dead_leader_elected", "error") in bent.types("R07")
    (wrong,) = [f for f in bent.findings("R09") if f.divergence_type == "wrong_leader_elected"]
    assert wrong.explanation.endswith(f"It would be right if broker {dead} had been live.")
    # had the controller listed it as live, all would be right
    alive = bent.seen_live(frozenset({1, 2, 3}), election.decision.at)
    assert alive.types("R07", "R09") == []


def another_member(subject: Subject) -> tuple[JudgedElection, int]:
    """The first election whose new ISR holds another broker than the leader and its predecessor."""
    for election in subject.history.elections:
        others = set(election.isr) - {election.observed_leader, election.previous_leader}
        if election.previous_leader is not None and others and election.is_exact:
            return election, min(others)
    raise AssertionError("no such election")


@pytest.mark.parametrize(
    ("name", "partition"),
    [("lifecycle-1.1.1", ("orders", 1)), ("lifecycle-3.9.1", ("orders", 3)), ("reassign_busy-1.1.1", ("orders", 5))],
)
def test_another_member_of_the_isr_is_elected(name: str, partition: tuple[str, int], captured: Captured) -> None:
    subject = Subject.of(captured(name), partition)
    election, other = another_member(subject)
    bent = subject.elected_as(election.leader_epoch, other, election.isr)
    wrong = next(f for f in bent.findings("R09") if f.at == election.at)
    assert (wrong.divergence_type, wrong.severity, wrong.broker_id) == ("wrong_leader_elected", "error", other)
    # it would be the first of another assignment
    assert election.inputs is not None
    order = (other, *(r for r in election.inputs.assignments[0] if r != other))
    legal = bent.bent(lambda f: f.replicas == election.inputs.assignments[0], replicas=order)  # type: ignore[union-attr]
    assert [f for f in legal.findings("R09") if f.at == election.at] == []


def test_a_live_member_is_left_out_of_the_isr(captured: Captured) -> None:
    subject = Subject.of(captured("lifecycle-1.1.1"), ("orders", 2))
    election = next(e for e in subject.history.elections if e.leader_epoch == 5)
    assert (election.kind, election.isr) == ("offline_partition", (1, 2))
    bent = subject.elected_as(5, 1, (1,))
    (wrong,) = [f for f in bent.findings("R09") if f.at == election.at]
    assert (wrong.divergence_type, wrong.severity) == ("wrong_isr_after_election", "error")
    assert wrong.explanation.endswith("It would be right if broker 2 had not been live.")
    without = bent.seen_live(frozenset({1}), election.decision.at)
    assert [f for f in without.findings("R09") if f.at == election.at] == []


def test_a_log_directory_may_have_failed_where_the_log_does_not_say(captured: Captured) -> None:
    subject = Subject.of(captured("lifecycle-1.1.1"), ("orders", 2)).elected_as(5, 1, (1,))
    at_info = replace(subject, view=replace(subject.view, logs={}))
    assert ("R09", "wrong_isr_after_election", "warning") in at_info.types("R09")


def test_an_election_after_a_write_that_is_missing_is_not_judged(captured: Captured) -> None:
    subject = Subject.of(captured("lifecycle-1.1.1"), ("orders", 1))
    election, other = another_member(subject)
    bent = subject.elected_as(election.leader_epoch, other, election.isr)
    version = next(s.partition_epoch for s in bent.states if s.leader_epoch == election.leader_epoch)
    gap = bent.without(lambda f: f.partition_epoch == (version or 0) - 1 and f.replicas is None)
    assert [f for f in gap.findings("R09") if f.at == election.at] == []


def test_a_broker_that_lives_cannot_have_been_dead(captured: Captured) -> None:
    """The leader elected logs its own work: then it is the controller's list that is missing, not the rule broken."""
    subject = Subject.of(captured("lifecycle-1.1.1"), ("orders", 2))
    election = next(e for e in subject.history.elections if e.kind == "preferred_replica")
    lists = tuple(replace(view, live=view.live - {3}) for view in subject.view.live_views)
    gone = replace(subject, view=replace(subject.view, live_views=lists, liveness={}))
    assert [f for f in gone.findings("R07") if f.at == election.at] == []


# --- what a controller saw


def seen(
    at: float,
    *lists: tuple[float, int, set[int]],
    asked: int | None = None,
    own: bool = True,
    version: tuple[int, ...] = (1, 1, 1),
    registered: tuple[int, int] | None = None,
    ended_after: int | None = None,
) -> frozenset[BrokerStatus]:
    """Broker 2 as controller 1 saw it; lists of (seconds, controller, live brokers), and when it was registered;
    the end is known, or with ``ended_after`` the latest possible."""
    begin, end = registered or (0, 0)
    value = Registration(None, None if ended_after is None else ended_after * 1_000_000)
    inferred = None if ended_after is None else "znode_snapshot"
    spans = (Interval(begin * 1_000_000, end * 1_000_000, value, ("z",), inferred),) if registered else ()
    view = ClusterView(
        "c",
        VersionRange.exactly(v(*version)),
        liveness={2: spans} if spans else {},
        tenures=(Tenure(1, 1, 0, None, ("e",)),),
        live_views=tuple(
            LiveView(round(s * 1_000_000), by, frozenset(live), "l", frozenset(live - before))
            for (s, by, live), (_, _, before) in zip(lists, ((0, 0, set()), *lists), strict=False)
        ),
        shutdown_requests={} if asked is None else {2: ((asked * 1_000_000, "r"),)},
    )
    return possible_statuses(2, StateDecision(round(at * 1_000_000), 1, 1, None, own), view)


def test_the_last_list_before_the_decision_is_what_the_controller_saw() -> None:
    assert seen(20, (10, 1, {1, 2}), (30, 1, {1})) == {BrokerStatus.LIVE}
    assert seen(40, (10, 1, {1, 2}), (30, 1, {1})) == {BrokerStatus.GONE}


def test_a_list_within_the_slack_may_be_later() -> None:
    assert seen(30, (10, 1, {1, 2}), (30, 1, {1})) == {BrokerStatus.LIVE, BrokerStatus.GONE}
    assert seen(31, (10, 1, {1, 2}), (30, 1, {1})) == {BrokerStatus.GONE}
    assert seen(31, (10, 1, {1, 2}), (30, 1, {1}), own=False) == {BrokerStatus.LIVE, BrokerStatus.GONE}


def test_another_controller_s_list_says_nothing() -> None:
    assert seen(40, (10, 1, {1, 2}), (30, 3, {1, 3})) == {BrokerStatus.LIVE}


def test_a_broker_that_asked_to_leave_is_leaving_until_it_is_gone() -> None:
    lists = ((10, 1, {1, 2}), (30, 1, {1}), (50, 1, {1, 2}))
    assert seen(25, *lists, asked=20) == {BrokerStatus.LEAVING}
    assert seen(40, *lists, asked=20) == {BrokerStatus.GONE}
    assert seen(60, *lists, asked=20) == {BrokerStatus.LIVE}
    assert seen(15, *lists, asked=20) == {BrokerStatus.LIVE}


def test_a_broker_that_is_listed_while_it_leaves_may_have_bounced() -> None:
    assert seen(40, (10, 1, {1, 2}), (30, 1, {1, 2, 3}), asked=20) == {BrokerStatus.LEAVING, BrokerStatus.LIVE}


def test_a_broker_whose_registration_ends_soon_may_be_leaving_though_no_line_says_that_it_asked() -> None:
    """Its request, and what the controller says of it, may be lost; up to 1.0 the lists leave it out from then on."""
    both = ((10, 1, {1, 2}), (30, 1, {1}))
    assert seen(20, (10, 1, {1, 2}), registered=(5, 21)) == set(BrokerStatus)
    assert seen(20, (10, 1, {1, 2}), registered=(5, 29)) == {BrokerStatus.LIVE}
    assert seen(31, *both, version=(0, 8, 2), registered=(5, 39)) == set(BrokerStatus)
    assert seen(31, *both, version=(0, 8, 2), registered=(5, 29)) == {BrokerStatus.GONE}
    assert seen(31, *both, registered=(5, 39)) == {BrokerStatus.LIVE, BrokerStatus.GONE}


def test_what_the_next_list_adds_was_not_live_when_the_controller_decided() -> None:
    lists = ((10, 1, {1, 2}), (30, 1, {1}), (32, 1, {1, 2}))
    assert seen(31, *lists, registered=(32, 99)) == {BrokerStatus.GONE}
    assert seen(31, *lists[:2], registered=(32, 99)) == {BrokerStatus.LIVE, BrokerStatus.GONE}
    assert seen(31, *lists, own=False, registered=(32, 99)) == {BrokerStatus.LIVE, BrokerStatus.GONE}


def test_of_a_line_of_a_whole_second_and_one_in_that_second_either_may_have_come_first() -> None:
    """Its milliseconds may be lost."""
    before = ((10, 1, {1, 2}), (30, 1, {1}))
    assert seen(31, *before, (31.7, 1, {1, 2})) == {BrokerStatus.LIVE, BrokerStatus.GONE}
    assert seen(31.1, *before, (31.7, 1, {1, 2})) == {BrokerStatus.GONE}
    assert seen(31.7, *before, (31, 1, {1, 2})) == {BrokerStatus.LIVE, BrokerStatus.GONE}


def test_what_came_and_went_between_two_lists_may_have_been_live() -> None:
    lists = ((10, 1, {1, 2}), (30, 1, {1}), (40, 1, {1, 2}))
    assert seen(36, *lists, registered=(32, 38)) == {BrokerStatus.LIVE, BrokerStatus.GONE}
    assert seen(36, *lists, registered=(37, 99)) == {BrokerStatus.GONE}


def test_where_nothing_tells_when_a_registration_ended_the_broker_may_have_been_gone_before() -> None:
    assert seen(20, registered=(5, 29)) == {BrokerStatus.LIVE, BrokerStatus.LEAVING}
    assert seen(20, registered=(5, 29), ended_after=15) == set(BrokerStatus)
    assert seen(20, registered=(5, 29), ended_after=22) == {BrokerStatus.LIVE, BrokerStatus.LEAVING}
    assert seen(20, (10, 1, {1, 2}), registered=(5, 29), ended_after=15) == set(BrokerStatus)


def test_where_the_time_is_not_the_tenure_s_nothing_is_known() -> None:
    late = ClusterView("c", tenures=(Tenure(1, 1, 100_000_000, None, ("e",)),), live_views=())
    assert possible_statuses(2, StateDecision(5_000_000, 1, 1, None, True), late) == set(BrokerStatus)


# --- kinds


def kind_of(from_state: str, assigned: str, old: str, new: str) -> str:
    rows = facts(
        f"""
        at   | kind                   | leader | epoch | isr | version | cepoch | by | from         | to              | replicas | source
        1000 | znode_assignment       |        |       |     | 0       |        |    |              |                 | {assigned} | znode
        2000 | znode_state            | {old} | 3 | 1,2,3 | 7 |        |    |              |                 |          | znode
        9000 | partition_state_change | {new} | 8 | 1     | 1 | {from_state} | OnlinePartition | | state_change_log
        """.replace("| {new}", f"| {new}")  # noqa: E501
    )
    view = ClusterView("c", VersionRange.exactly(v(1, 1, 1)))
    return Subject("t", rows, view).history.elections[-1].kind


@pytest.mark.parametrize(
    ("from_state", "assigned", "new", "kind"),
    [
        ("OfflinePartition", "1,2,3", "2 | 4 | 2,3", "offline_partition"),
        ("OnlinePartition", "1,2,3", "2 | 4 | 2,3", "controlled_shutdown"),
        ("OnlinePartition", "2,1,3", "2 | 4 | 1,2,3", "preferred_replica"),
        ("", "1,2,3", "2 | 4 | 2,3", "unknown"),
        ("", "2,1,3", "2 | 4 | 1,2,3", "preferred_replica"),
    ],
)
def test_what_tells_the_kind(from_state: str, assigned: str, new: str, kind: str) -> None:
    assert kind_of(from_state, assigned, "1", new) == kind


def test_a_reassignment_whose_target_lacks_the_leader() -> None:
    rows = facts(
        """
        at   | kind                   | leader | epoch | isr     | version | cepoch | by | from            | to              | replicas
        1000 | partition_state_change |        |       |         |         | 1      | 1  | NonExistentPartition | NewPartition | 1,2
        2000 | partition_state_change | 1      | 0     | 1,2     | 0       | 1      | 1  | NewPartition    | OnlinePartition |
        3000 | reassignment_started   |        |       |         |         |        | 1  |                 |                 | 3,2
        4000 | partition_state_change | 3      | 2     | 1,2,3   | 4       | 1      | 1  | OnlinePartition | OnlinePartition |
        5000 | reassignment_completed |        |       |         |         |        | 1  |                 |                 |
        """  # noqa: E501
    )
    view = ClusterView("c", VersionRange.exactly(v(1, 1, 1)))
    election = Subject("t", rows, view).history.elections[-1]
    assert (election.kind, election.observed_leader in election.allowed) == ("reassigned_partition", True)
