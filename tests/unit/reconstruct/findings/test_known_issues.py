"""Known bugs of Kafka: the findings that show their signature name them, where the version may have them."""

from __future__ import annotations

import pytest

from ingest.lake.tables.bronze import SourceKind
from reconstruct.cluster.bounces import judge_bounces
from reconstruct.cluster.brokers import broker_registrations
from reconstruct.cluster.evidence import BrokerFact
from reconstruct.cluster.settings import SettingChange, SettingsOverTime
from reconstruct.cluster.spans import LiveView, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.known_issues import KNOWN_ISSUES, known_issue
from reconstruct.findings.verdicts import Finding, Verdicts
from reconstruct.model.versions import NEWEST, KafkaVersion, VersionRange, v
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.rules import IsrMove, IsrMoveKind, OffsetCase, judge_offsets
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.timeline import fold_partition
from reconstruct.rule_book import RULES

SECOND = 1_000_000


@pytest.mark.parametrize("name", KNOWN_ISSUES)
def test_an_issue_is_named_only_where_the_version_may_have_it(name: str) -> None:
    issue = KNOWN_ISSUES[name]
    assert set(issue.rules) <= set(RULES)
    assert known_issue(name, VersionRange.exactly(issue.since)).startswith(name)
    if issue.fixed_in is None:
        assert known_issue(name, VersionRange.exactly(NEWEST)).endswith("not fixed)")
        return
    assert known_issue(name, VersionRange.exactly(issue.fixed_in)) is None
    assert f"fixed in {issue.fixed_in}" in known_issue(name, VersionRange(issue.since, issue.fixed_in))


def test_the_bugs_that_postmortems_ask_for_are_known() -> None:
    asked = {"KAFKA-2729", "KAFKA-6082", "KAFKA-7235", "KAFKA-9672", "KAFKA-1647", "KAFKA-6361", "KAFKA-7415"}
    assert asked <= set(KNOWN_ISSUES)


def stuck(seconds: int, version: VersionRange, *heard: Evidence) -> list[Finding]:
    refused = [
        Evidence(
            f"e{n}",
            "isr_update_failed",
            n * seconds * SECOND // 4,
            broker_id=1,
            partition_epoch=7,
            source_kind="server_log",
        )
        for n in range(5)
    ]
    found = fold_partition("t", [*refused, *heard], ClusterView("c", version)).verdicts.findings
    return [finding for finding in found if finding.divergence_type == "leader_stuck_on_stale_version"]


def test_a_leader_that_is_refused_again_and_again_is_stuck() -> None:
    (finding,) = stuck(60, VersionRange.exactly(v(0, 10, 2)))
    assert (finding.rule_id, finding.severity, finding.broker_id) == ("R24", "warning", 1)
    assert finding.known_issue == "KAFKA-2729 (fixed in 1.1)"
    assert "5 times" in finding.explanation
    (later,) = stuck(60, VersionRange.exactly(v(3, 9)))
    assert later.known_issue is None


def test_a_leader_that_hears_of_its_successor_is_not_stuck() -> None:
    assert stuck(20, VersionRange.exactly(v(0, 10, 2))) == []
    heard = Evidence("h", "become_follower_completed", 26 * SECOND, broker_id=1, source_kind="state_change_log")
    assert stuck(50, VersionRange.exactly(v(0, 10, 2)), heard) == []


def bounced(version: VersionRange, *facts: BrokerFact, listed_until: int = 200) -> list[Finding]:
    known = [
        BrokerFact(2, "registered", 0, "z1", 1),
        BrokerFact(2, "unregistered", 100 * SECOND, "z1 gone", 1, 101 * SECOND),
        BrokerFact(2, "registered", 102 * SECOND, "z2", 2),
        *facts,
    ]
    view = ClusterView(
        "c",
        version,
        (Tenure(1, 1, 0, None, ("t",)),),
        live_views=tuple(LiveView(at * SECOND, 1, frozenset({1, 2}), f"list {at}") for at in (1, listed_until)),
    )
    verdicts = Verdicts()
    judge_bounces(broker_registrations(known), known, view, verdicts)
    return verdicts.findings


def test_a_broker_that_was_gone_and_back_unseen_is_a_finding() -> None:
    (finding,) = bounced(VersionRange.exactly(v(1, 1)))
    assert (finding.rule_id, finding.severity, finding.broker_id) == ("R16", "warning", 2)
    assert finding.known_issue == "KAFKA-7235 (fixed in 2.2)"
    (later,) = bounced(VersionRange.exactly(v(2, 8)))
    assert (later.severity, later.known_issue) == ("error", None)


def test_a_bounce_that_a_controller_tells_of_or_may_tell_of_elsewhere_is_none() -> None:
    old = VersionRange.exactly(v(1, 1))
    assert bounced(old, BrokerFact(2, "down", 103 * SECOND, "down")) == []
    assert bounced(old, listed_until=110) == []


def test_a_bounce_of_which_a_list_of_epochs_tells_was_noticed() -> None:
    """Its line of the bounce is missing; before, the broker was listed with another epoch."""
    told = [
        BrokerFact(2, "live", SECOND, "list", controller_id=1),
        *(BrokerFact(2, "epoch_listed", at * SECOND, f"e{at}", czxid=at, controller_id=1) for at in (2, 100)),
    ]
    spans = broker_registrations(told)
    assert [span.interval.end for span in spans[2]] == [100 * SECOND, None]
    views = tuple(LiveView(at * SECOND, 1, frozenset({1, 2}), f"list {at}") for at in (1, 200))
    view = ClusterView("c", VersionRange.exactly(v(2, 8)), (Tenure(1, 1, 0, None, ("t",)),), live_views=views)
    verdicts = Verdicts()
    judge_bounces(spans, told, view, verdicts)
    assert (verdicts.findings, verdicts.counts) == ([], {("R16", "cannot_be_judged"): 1})


def test_a_bounce_that_a_controller_tells_of_an_hour_later_is_none_since_its_clock_may_have_been_set() -> None:
    old = VersionRange.exactly(v(1, 1))
    assert bounced(old, BrokerFact(2, "down", 3_703 * SECOND, "down"), listed_until=4_000) == []
    known_start = BrokerFact(2, "up", SECOND, "up")
    assert len(bounced(old, known_start)) == 1


def offset_findings(evidence: OffsetEvidence, moves: list[IsrMove], version: VersionRange) -> list[Finding]:
    view = ClusterView("c", version, settings=SettingsOverTime({"t": [SettingChange(0, 3)]}))
    verdicts = Verdicts()
    judge_offsets(OffsetCase("t", view, evidence, isr_moves=moves), verdicts)
    return verdicts.findings


def flapping(version: VersionRange, *, isr: tuple[int, ...] = (1, 2)) -> list[Finding]:
    """Replica 2 leaves at 10, 30 and 50 s and joins between; min.insync.replicas is 3, and three replicas once were."""
    states = [DecidedState(0, 1 * SECOND, 1, 0, (1, 2, 3))]
    at = 1 * SECOND
    for n in range(3):
        states += [
            DecidedState(at, (10 + 20 * n) * SECOND, 1, 0, isr),
            DecidedState((10 + 20 * n) * SECOND, (20 + 20 * n) * SECOND, 1, 0, (1,)),
        ]
        at = (20 + 20 * n) * SECOND
    moves = [IsrMove(1, 2, IsrMoveKind.LEFT, (10 + 20 * n) * SECOND, evidence_id=f"left {n}") for n in range(3)]
    found = offset_findings(OffsetEvidence(decided=states), moves, version)
    return [finding for finding in found if finding.divergence_type == "isr_flaps_under_min_isr"]


def test_a_replica_that_flaps_under_min_isr_shows_the_conflict_of_joins_and_departures() -> None:
    (finding,) = flapping(VersionRange.exactly(v(3, 9)))
    assert (finding.rule_id, finding.severity, finding.replica_id) == ("R38", "warning", 2)
    assert finding.known_issue == "KAFKA-19996 (since 3.7, not fixed)"
    assert flapping(VersionRange.exactly(v(3, 6))) == []
    assert flapping(VersionRange.exactly(v(3, 9)), isr=(1, 2, 3)) == []


def begun_twice(version: VersionRange, *between: ReplicaEvent, offset: int = 20, knew: int = 4) -> list[Finding]:
    leads = [
        ReplicaEvent(1, ReplicaEventKind.LEADS, at * SECOND, None, 1, 4, f"leads {at}", previous_epoch=previous)
        for at, previous in ((1, -1), (9, knew))
    ]
    printed = [
        OffsetObservation(1, oe.LOG_END_OFFSET, begins, at * SECOND, leader_epoch=4, evidence_id=f"leads {at}")
        for at, begins in ((1, 10), (9, offset))
    ]
    evidence = OffsetEvidence(printed, [*leads, *between], covered={1: [(0, EVER_AFTER)]})
    found = offset_findings(evidence, [], version)
    return [finding for finding in found if finding.divergence_type == "epoch_began_twice"]


def test_a_leader_that_begins_its_epoch_again_in_one_process_is_a_finding() -> None:
    (finding,) = begun_twice(VersionRange.exactly(v(3, 1)))
    assert (finding.rule_id, finding.severity) == ("R36", "warning")
    assert finding.known_issue == "KAFKA-13790 (since 2.8, fixed in 3.3)"
    assert begun_twice(VersionRange.exactly(v(3, 5)))[0].known_issue is None
    started = ReplicaEvent(1, ReplicaEventKind.STARTED, 5 * SECOND, evidence_id="start")
    assert begun_twice(VersionRange.exactly(v(3, 1)), started) == []
    assert begun_twice(VersionRange.exactly(v(3, 1)), offset=10) == []
    assert begun_twice(VersionRange.exactly(v(3, 1)), knew=-1) == []  # it had just started


def refused_request(shape_id: str) -> Evidence:
    return Evidence(
        "e", "leader_and_isr_failed", SECOND, source_kind="state_change_log", shape_id=shape_id, broker_id=2
    )


def test_a_broker_that_fails_on_a_request_for_another_reason_shows_nothing_of_ids() -> None:
    view = ClusterView("c", VersionRange.exactly(v(2, 8)))
    found = fold_partition("t", [refused_request("SC-RM-76")], view).verdicts.findings
    assert [finding for finding in found if finding.known_issue is not None] == []


def test_a_broker_that_refuses_another_id_of_its_topic_is_a_finding() -> None:
    refused = refused_request("SC-RM-103")
    for version, issues in (
        (v(3, 2), "KAFKA-14190 (since 2.8, not fixed)"),
        (v(2, 8), "KAFKA-12835 (since 2.8, fixed in 2.8.1), KAFKA-14190 (since 2.8, not fixed)"),
    ):
        found = fold_partition("t", [refused], ClusterView("c", VersionRange.exactly(version))).verdicts.findings
        assert [(f.divergence_type, f.severity, f.known_issue) for f in found] == [
            ("topic_id_differs", "warning", issues)
        ]


@pytest.mark.parametrize(("version", "issue"), [(v(1, 1), "KAFKA-7164 (since 0.11, fixed in 2.1)"), (v(2, 1), None)])
def test_a_replica_that_missed_an_epoch_and_kept_its_records_is_a_finding(
    version: KafkaVersion, issue: str | None
) -> None:
    """Epoch 1 has offsets 10 to 19 on replica 1; on replica 2 they are of epoch 0."""
    begins = {1: ((0, 0), (1, 10), (2, 20), (3, 30)), 2: ((0, 0), (2, 20), (3, 30))}
    entries = [
        OffsetObservation(
            replica,
            oe.EPOCH_START,
            offset,
            SECOND,
            leader_epoch=epoch,
            source=SourceKind.LEADER_EPOCH_CHECKPOINT,
            evidence_id=f"{replica}-{epoch}",
        )
        for replica, lineage in begins.items()
        for epoch, offset in lineage
    ]
    (found,) = offset_findings(OffsetEvidence(entries, []), [], VersionRange.exactly(version))
    assert (found.divergence_type, found.known_issue) == ("epoch_lineage_conflict", issue)
