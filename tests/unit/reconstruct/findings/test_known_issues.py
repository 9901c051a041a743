"""Known bugs of Kafka: the findings that show their signature name them, where the version may have them."""

from __future__ import annotations

import pytest

from reconstruct.cluster.bounces import judge_bounces
from reconstruct.cluster.brokers import broker_registrations
from reconstruct.cluster.evidence import BrokerFact
from reconstruct.cluster.view import ClusterView, LiveView, Tenure
from reconstruct.findings.known_issues import KNOWN_ISSUES, known_issue
from reconstruct.findings.verdicts import Finding, Verdicts
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.timeline import fold_partition
from reconstruct.rule_book import RULES

SECOND = 1_000_000


@pytest.mark.parametrize("name", KNOWN_ISSUES)
def test_an_issue_is_named_only_where_the_version_may_have_it(name: str) -> None:
    issue = KNOWN_ISSUES[name]
    assert set(issue.rules) <= set(RULES)
    assert known_issue(name, VersionRange.exactly(issue.since)).startswith(name)
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
