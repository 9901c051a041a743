"""Elections that the timelines show, and which of them were unclean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.cluster.settings import SettingChange, SettingsOverTime
from reconstruct.cluster.spans import Registration
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.judging import JudgedElection, elections
from reconstruct.partitions.elections.occasions import Occasions
from reconstruct.partitions.evidence import METADATA_PARTITION, Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.partitions.timeline import fold_partition
from reconstruct.time.intervals import Interval
from tests.unit.reconstruct.partitions.tables import facts

S = 1000  # the tables below count in seconds


def alive(*spans: tuple[int, int | None, str | None]) -> tuple[Interval[Registration], ...]:
    return tuple(
        Interval(a * S * 1000, None if b is None else b * S * 1000, Registration(why), ("reg",)) for a, b, why in spans
    )


UP = alive((0, None, None))
CLUSTER = ClusterView("c", VersionRange.exactly(v(1, 1, 1)), (), {1: UP, 2: UP, 3: UP})


def history(*rows: str, cluster: ClusterView = CLUSTER) -> Case:
    header = "at | kind | leader | epoch | isr | version | stored_cepoch | replicas | source"
    return fold_partition("t", facts("\n".join([header, *(f"{row} | znode" for row in rows)])), cluster)


def held(*rows: str, cluster: ClusterView = CLUSTER) -> list[JudgedElection]:
    return list(history(*rows, cluster=cluster).elections)


ASSIGNED = "1000 | znode_assignment | | | | | | 1,2,3"
FIRST = "2000 | znode_state | 1 | 0 | 1,2,3 | 0 | 1 |"


def test_the_first_leader_is_the_first_live_replica() -> None:
    (election,) = held(ASSIGNED, FIRST)
    assert (election.kind, election.previous_leader, election.allowed, election.is_unclean) == (
        "new_partition",
        None,
        (1,),
        False,
    )


def test_the_successor_of_a_dead_leader_is_the_first_live_member_of_the_isr() -> None:
    dead = replace(CLUSTER, liveness={1: alive((0, 50, "registration_lost")), 2: UP, 3: UP})
    election = held(ASSIGNED, FIRST, "60000 | znode_state | 2 | 1 | 2,3 | 1 | 1 |", cluster=dead)[-1]
    assert (election.kind, election.previous_leader, election.observed_leader) == ("offline_partition", 1, 2)
    assert election.allowed == (2,)
    assert election.is_unclean is False


def test_a_broker_whose_registration_just_changed_may_have_been_either_and_the_isr_written_tells_which() -> None:
    dead = replace(CLUSTER, liveness={1: alive((0, 50, None)), 2: alive((0, 59, None)), 3: UP})
    election = held(ASSIGNED, FIRST, "60000 | znode_state | 3 | 1 | 3 | 1 | 1 |", cluster=dead)[-1]
    assert election.inputs is not None
    assert {leader for leader, _ in election.inputs.outcomes()} == {2, 3}
    assert election.allowed == (3,)


def test_a_leader_that_shuts_down_hands_over() -> None:
    leaving = replace(CLUSTER, liveness={1: alive((0, 70, "controlled_shutdown")), 2: UP, 3: UP})
    election = held(ASSIGNED, FIRST, "60000 | znode_state | 2 | 1 | 2,3 | 1 | 1 |", cluster=leaving)[-1]
    assert (election.kind, election.allowed) == ("controlled_shutdown", (2,))


def test_a_preferred_leader_takes_over_with_the_same_isr() -> None:
    election = held(
        ASSIGNED, "2000 | znode_state | 2 | 4 | 2,1,3 | 9 | 1 |", "60000 | znode_state | 1 | 5 | 2,1,3 | 10 | 1 |"
    )[-1]
    assert (election.kind, election.allowed, election.observed_leader) == ("preferred_replica", (1,), 1)


OFFLINE = ("10000 | znode_state | 1 | 0 | 1 | 1 | 1 |", "50000 | znode_state | -1 | 1 | 1 | 2 | 1 |")
UNCLEAN = "60000 | znode_state | 2 | 2 | 2 | 3 | 1 |"


@pytest.mark.parametrize(
    ("setting", "severity", "words"),
    [(True, "warning", "allows it"), (False, "error", "does not allow it"), (None, "warning", "not in the evidence")],
)
def test_an_unclean_election_is_judged_by_the_configuration(setting: bool | None, severity: str, words: str) -> None:
    given = SettingsOverTime({} if setting is None else {"t": [SettingChange(0, unclean_election=setting)]})
    found = history(ASSIGNED, FIRST, *OFFLINE, UNCLEAN, cluster=replace(CLUSTER, settings=given))
    (finding,) = found.verdicts.findings
    assert (finding.rule_id, finding.divergence_type, finding.severity) == ("R08", "unclean_election", severity)
    assert words in finding.explanation
    assert "committed records that only 1 held, if any, are lost" in finding.explanation
    assert found.elections[-1].is_unclean is True


def test_before_0_8_2_an_unclean_election_was_always_allowed() -> None:
    given = SettingsOverTime({"t": [SettingChange(0, unclean_election=False)]})
    oldest = replace(CLUSTER, version=VersionRange.exactly(v(0, 8, 1)), settings=given)
    assert [f.severity for f in history(ASSIGNED, FIRST, *OFFLINE, UNCLEAN, cluster=oldest).verdicts.findings] == [
        "warning"
    ]


def test_where_a_write_is_missing_before_it_an_election_is_not_called_unclean() -> None:
    found = history(ASSIGNED, FIRST, "60000 | znode_state | 2 | 2 | 2 | 7 | 1 |".replace("2 | 2 | 2", "4 | 2 | 4"))
    assert found.elections[-1].is_unclean is None
    assert found.verdicts.counts["R08", "cannot_be_judged"] == 1
    assert [f for f in found.verdicts.findings if f.rule_id == "R08"] == []


def test_the_last_member_back_from_an_empty_isr_loses_nothing() -> None:
    found = history(
        ASSIGNED,
        FIRST,
        "10000 | znode_state | 1 | 0 | 1 | 1 | 1 |",
        "50000 | znode_state | -1 | 1 | [] | 2 | 1 |",
        "60000 | znode_state | 1 | 2 | 1 | 3 | 1 |",
    )
    (finding,) = [f for f in found.verdicts.findings if f.rule_id == "R08"]
    assert (finding.rule_id, finding.severity) == ("R08", "info")
    assert "nothing committed is lost" in finding.explanation


def test_a_recovering_partition_was_elected_unclean_whatever_is_missing() -> None:
    rows = facts(
        """
        at    | kind        | leader | epoch | isr | version | stored_cepoch | leader_recovery_state | source
        2000  | znode_state | 1      | 0     | 1,2 | 0       | 1             |                       | znode
        60000 | znode_state | 3      | 4     | 3   | 9       | 1             | 1                     | znode
        """
    )
    found = fold_partition("t", rows, replace(CLUSTER, version=VersionRange.exactly(v(3, 9, 1))))
    assert found.elections[-1].is_unclean is True


def test_an_election_is_called_clean_only_where_the_isr_before_it_is_known() -> None:
    # between versions 0 and 7 the ISR may have shrunk to another: a lone leader proves nothing
    found = history(ASSIGNED, FIRST, "60000 | znode_state | 2 | 2 | 2 | 7 | 1 |")
    assert found.elections[-1].is_unclean is None
    # an unclean leader is alone in its ISR
    found = history(ASSIGNED, FIRST, "60000 | znode_state | 2 | 2 | 2,3 | 7 | 1 |")
    assert found.elections[-1].is_unclean is False


def test_a_quorums_election_knows_the_replicas_of_its_record_where_nothing_else_tells_of_them() -> None:
    created, elected = (
        Evidence(
            f"r{epoch}",
            METADATA_PARTITION,
            at=(epoch + 1) * S * 1000,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            partition_epoch=epoch,
            replicas=(1, 2, 3),
        )
        for epoch, leader, isr in ((0, 1, (1, 2)), (1, 2, (2,)))
    )
    states = [
        Interval(1 * S * 1000, 2 * S * 1000, LeaderAndIsrState(1, 0, (1, 2), partition_epoch=0), ("r0",)),
        Interval(2 * S * 1000, None, LeaderAndIsrState(2, 1, (2,), partition_epoch=1), ("r1",)),
    ]
    found = elections(states, Occasions([created, elected], [], [], CLUSTER), None)
    assert [election.seen and election.seen.replicas for election in found] == [(1, 2, 3), (1, 2, 3)]
