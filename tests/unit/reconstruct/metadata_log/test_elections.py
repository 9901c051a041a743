"""R54 to R56, R58: whom a quorum's controller elects of ISR and ELR, whom where nobody is left, and who is eligible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.choices import judge_chosen_brokers, judge_eligible_replicas
from reconstruct.metadata_log.elections import judge_clean_leader, judge_first_replica, judge_unclean_leader
from reconstruct.metadata_log.evidence import ClusterLog, CopySpan, LogRow
from reconstruct.model.metadata_log.values import PartitionState

#: metadata.version of 4.0 and of 4.1.
OF_4_0, OF_4_1 = 25, 27
#: Where the election is, and of what batch.
AT = 50
ROW = LogRow("r", AT, 1, "PartitionChangeRecord", "{}", 0, AT)


def of_broker(kind: str, offset: int, **fields: Any) -> LogRow:
    return LogRow(f"b{offset}", offset, 1, kind, json.dumps(fields), 0, offset)


def quorum(
    active: Sequence[int], removed: int | None = None, level: int = OF_4_1, by: str = "BrokerRegistrationChangeRecord"
) -> ClusterLog:
    """Brokers 0 to 3, some of which are active; another is taken away in the batch of the election."""
    features = [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": level}]
    rows = [
        of_broker("FeatureLevelRecord", 0, name="eligible.leader.replicas.version", featureLevel=1),
        of_broker("RegisterControllerRecord", 1, controllerId=9, incarnationId="c", features=features),
    ]
    for one in range(4):
        given = {"brokerId": one, "incarnationId": "i", "brokerEpoch": 2 + one, "features": features}
        rows.append(of_broker("RegisterBrokerRecord", 2 + one, fenced=one not in active, **given))
    if removed is not None:
        fields = {"brokerId": removed, "brokerEpoch": 2 + removed, "fenced": 1, "features": features}
        rows.append(replace(of_broker(by, AT + 1, **fields), batch_offset=AT))
    return ClusterLog("c", (CopySpan(9, 1, 0, 100),), (), tuple(rows))


def leveled(log: ClusterLog, level: int) -> ClusterLog:
    record = of_broker("FeatureLevelRecord", 0, name="metadata.version", featureLevel=level)
    return replace(log, rows=(record, *log.rows))


def judged(before: PartitionState, after: PartitionState, log: ClusterLog) -> Verdicts:
    verdicts = Verdicts()
    for judge in (judge_clean_leader, judge_first_replica, judge_unclean_leader):
        judge(before, after, ROW, log, verdicts)
    return verdicts


def verdicts_of(before: PartitionState, after: PartitionState, log: ClusterLog) -> dict[str, str]:
    return dict(list(judged(before, after, log).counts))


def state(
    leader: int, isr: Sequence[int], elr: Sequence[int] = (), recovering: int = 0, **given: Any
) -> PartitionState:
    return PartitionState((1, 2, 3), tuple(isr), leader, 0, 0, (), (), recovering, tuple(elr), **given)


class TestFromTheElr:
    """testEligibleLeaderReplicas_ElrCanBeElected: the last of the ISR goes, and one of the ELR is there."""

    def test_the_first_that_is_active_is_elected(self) -> None:
        before = state(3, [3], [1, 2])
        assert verdicts_of(before, state(1, [1], [2, 3]), quorum([1, 2, 3], 3)) == {"R54": "kept", "R56": "kept"}
        assert verdicts_of(before, state(2, [2], [1, 3]), quorum([2, 3], 3)) == {"R54": "kept", "R56": "kept"}

    def test_a_later_one_is_found(self) -> None:
        found = judged(state(3, [3], [1, 2]), state(2, [2], [1, 3]), quorum([1, 2, 3], 3))
        assert found.counts == {("R54", "kept"): 1, ("R56", "broken"): 1}
        assert "replica 1 comes before it" in found.findings[0].explanation

    def test_one_that_went_uncleanly_is_eligible_no_longer(self) -> None:
        before, after = state(-1, [], [1, 2]), state(2, [2])
        assert verdicts_of(before, after, quorum([1, 2], 1)) == {"R54": "kept", "R56": "kept"}

    def test_it_waits_for_the_isr_to_run_empty(self) -> None:
        found = judged(state(2, [2, 3], [1]), state(1, [1], [3]), quorum([1, 2, 3], 3))
        assert [(one.rule_id, one.broker_id) for one in found.findings] == [("R54", 1)]
        assert "of which [2] were active" in found.findings[0].explanation

    def test_who_is_taken_away_is_unknown_where_the_batch_is(self) -> None:
        verdicts = Verdicts()
        before, after = state(3, [3], [1, 2]), state(2, [2], [1, 3])
        judge_first_replica(before, after, replace(ROW, batch_offset=None), quorum([1, 2, 3]), verdicts)
        assert verdicts.counts == {("R56", "cannot_be_judged"): 1}


class TestWhoIsEligible:
    """testEligibleLeaderReplicas_IsrShrinkBelowMinISR, _RemoveUncleanShutdownReplicasFromElr, _IsrCanShrinkToZero."""

    BEFORE = state(1, [1, 2], [3])

    def found(
        self, after: PartitionState, log: ClusterLog, min_isr: int | None = None, before: PartitionState = BEFORE
    ) -> list[tuple[str, int | None]]:
        verdicts = Verdicts()
        judge_eligible_replicas(before, after, ROW, log, verdicts, min_isr)
        return [(one.divergence_type, one.broker_id) for one in verdicts.findings]

    def test_who_leaves_the_isr_is_eligible_beside_those_who_are(self) -> None:
        assert self.found(state(1, [1], [2, 3]), quorum([1, 2], 2)) == []
        assert self.found(state(1, [1], [3]), quorum([1, 2], 2)) == [("eligible_replica_lost", 2)]

    def test_one_whose_new_process_registers_is_not(self) -> None:
        assert self.found(state(1, [1], [3]), quorum([1, 2], 2, by="RegisterBrokerRecord")) == []

    def test_without_an_elr_the_isr_may_be_large_enough_unless_it_is_empty(self) -> None:
        assert self.found(state(1, [1]), quorum([1, 2], 2)) == []
        assert self.found(state(-1, []), quorum([1, 2], 2)) == [("eligible_replica_lost", 1)]

    def test_where_the_isr_is_smaller_than_asked_who_leaves_is_eligible(self) -> None:
        assert self.found(state(1, [1]), quorum([1, 2], 2), 2) == [("eligible_replica_lost", 2)]
        assert self.found(state(1, [1]), quorum([1, 2], 2), 1) == []

    def test_where_the_isr_is_large_enough_nobody_is(self) -> None:
        after = state(1, [1], [2, 3])
        assert self.found(after, quorum([1, 2], 2), 2) == []
        assert self.found(after, quorum([1, 2], 2), 1) == [("elr_out_of_nothing", 2)]

    def test_who_is_elected_from_the_elr_joins_the_isr_after_its_size_was_asked(self) -> None:
        assert self.found(state(1, [1], [2, 3]), quorum([1, 2, 3], 3), 1, state(3, [3], [1, 2])) == []


class TestUncleanly:
    """testUncleanLeaderElection: nobody of the ISR is left; the first assigned replica that is active leads alone."""

    def test_the_first_that_is_active_is_elected(self) -> None:
        assert verdicts_of(state(1, [1]), state(2, [2], recovering=1), quorum([1, 2, 3], 1)) == {"R58": "kept"}
        assert verdicts_of(state(-1, [1]), state(3, [3], recovering=1), quorum([3])) == {"R58": "kept"}

    @pytest.mark.parametrize(
        ("before", "after", "log", "why"),
        [
            (state(1, [1]), state(3, [3], recovering=1), quorum([2, 3], 1), "replica 2 is assigned before it"),
            (state(-1, [1]), state(3, [3], recovering=1), quorum([2]), "leave it fenced"),
            (state(1, [1]), state(0, [0], recovering=1), quorum([0, 1, 2], 1), "none of the replicas"),
            (state(1, [1]), state(2, [2, 3], recovering=1), quorum([1, 2, 3], 1), "not it alone"),
            (state(1, [1]), state(2, [2], recovering=1), quorum([1, 2]), "replica 1 of the ISR [1] was active"),
            (state(-1, [], [3]), state(2, [2], recovering=1), quorum([2, 3]), "replica 3 of the ELR [3] was active"),
        ],
        ids=["a later one", "fenced", "a stranger", "two in sync", "though one was in sync", "though one was eligible"],
    )
    def test_another_is_found(self, before: PartitionState, after: PartitionState, log: ClusterLog, why: str) -> None:
        (found,) = judged(before, after, log).findings
        assert (found.rule_id, found.severity, found.broker_id) == ("R58", "error", after.leader)
        assert why in found.explanation

    def test_a_leader_that_recovers_still_may_hand_over_cleanly(self) -> None:
        before = state(1, [1, 2], recovering=1)
        found = verdicts_of(before, state(2, [2], recovering=1), quorum([1, 2, 3], 1))
        assert found == {"R54": "kept", "R56": "kept"}

    def test_while_a_leader_recovers_the_order_of_who_follows_is_judged(self) -> None:
        before = state(1, [1, 2, 3], recovering=1)
        found = verdicts_of(before, state(3, [2, 3], recovering=1), quorum([1, 2, 3], 1))
        assert found == {"R54": "kept", "R56": "broken"}

    def test_where_the_record_changes_the_assignment_others_may_count(self) -> None:
        before = replace(state(1, [1]), adding_replicas=(3,))
        after = state(3, [3], recovering=1)
        assert verdicts_of(before, after, quorum([1, 2, 3], 1)) == {"R58": "cannot_be_judged"}
        assert verdicts_of(before, replace(after, adding_replicas=(3,)), quorum([1, 2, 3], 1)) == {"R58": "broken"}


class TestTheLastKnownLeader:
    """testEligibleLeaderReplicas_ElectLastKnownLeader: ISR and ELR ran empty, and who led last is back."""

    BEFORE = state(-1, [], last_known_elr=(3,))
    LED = state(3, [3], recovering=1)

    def test_it_goes_before_those_that_are_assigned_before_it(self) -> None:
        assert verdicts_of(self.BEFORE, self.LED, quorum([1, 2, 3])) == {"R58": "kept"}

    @pytest.mark.parametrize(("level", "verdict"), [(OF_4_0, "kept"), (OF_4_1, "broken")])
    def test_up_to_4_0_it_is_elected_though_it_is_dead(self, level: int, verdict: str) -> None:
        assert verdicts_of(self.BEFORE, self.LED, quorum([1], level=level)) == {"R58": verdict}

    def test_none_is_the_last_known_of_several(self) -> None:
        """testEligibleLeaderReplicas_ElectLastKnownLeaderShouldFail."""
        before = replace(self.BEFORE, last_known_elr=(2, 3))
        assert verdicts_of(before, self.LED, quorum([1, 3])) == {"R58": "broken"}

    def test_it_may_be_dead_while_it_recovers_but_nobody_who_joins_it(self) -> None:
        """R53: of whom it takes into its ISR it is asked whether they are there."""
        before = state(-1, [], [3], recovering=1, last_known_elr=(3,))
        log = leveled(quorum([1], 3, OF_4_0, "RegisterBrokerRecord"), OF_4_0)
        for isr, counts in (([3], {}), ([3, 1], {("R53", "kept"): 1}), ([3, 2], {("R53", "broken"): 1})):
            verdicts = Verdicts()
            judge_chosen_brokers(before, state(3, isr, recovering=1), ROW, log, verdicts)
            assert dict(verdicts.counts) == counts

    @pytest.mark.parametrize(("level", "removed"), [(OF_4_1, 3), (OF_4_0, None)])
    def test_it_may_not_be_dead_since_4_1_nor_while_it_is_eligible(self, level: int, removed: int | None) -> None:
        """R53: who is in the ELR, and was not taken away by this very event, has to be there to lead."""
        before, verdicts = state(-1, [], [3], recovering=1, last_known_elr=(3,)), Verdicts()
        log = leveled(quorum([1], removed, level, "RegisterBrokerRecord"), level)
        judge_chosen_brokers(before, state(3, [3], recovering=1), ROW, log, verdicts)
        assert dict(verdicts.counts) == {("R53", "broken"): 1}
