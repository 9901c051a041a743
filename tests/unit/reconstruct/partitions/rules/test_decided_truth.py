"""What was decided, by itself: versions, empty ISRs, the steps of the leader epoch, controllers' writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from reconstruct.cluster.settings import SettingChange, SettingsOverTime
from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import ANY_VERSION, KafkaVersion, VersionRange, v
from reconstruct.partitions.evidence import METADATA_PARTITION, ZNODE_STATE, Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import PlainCapture, plain_capture
from tests.unit.reconstruct.partitions.rules.bent_decisions import DECIDED, Subject
from tests.unit.reconstruct.partitions.tables import facts

Captured = Callable[[str], PlainCapture]


@pytest.fixture
def captured(unpacked: Unpacker) -> Captured:
    return lambda name: plain_capture(unpacked(name))


@pytest.mark.parametrize("name", capture_names())
def test_real_clusters_break_none_of_these_rules(name: str, captured: Captured) -> None:
    kept = dict.fromkeys(DECIDED, 0)
    for partition, history in captured(name).fold().items():
        accused = [f for f in history.verdicts.findings if f.rule_id in DECIDED and f.severity != "info"]
        assert accused == [], partition
        for rule in DECIDED:
            kept[rule] += history.verdicts.counts[rule, "kept"]
    never_changed = name.startswith("quiet")
    assert all(kept[rule] for rule in ("R06", "R07", "R09")), kept
    assert never_changed or all(kept.values()), kept


@pytest.mark.parametrize("name", ["failover-1.1.1", "lifecycle-0.8.2.2", "lifecycle-3.9.1", "unclean-3.9.1-info"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_is_missing_accuses_nobody(name: str, share: float, captured: Captured) -> None:
    capture = captured(name)
    chance = random.Random(f"{name}{share}")
    lists = tuple(view for view in capture.view.live_views if chance.random() > share)
    partial = replace(capture.view, live_views=lists)
    for view in (capture.view, partial, replace(partial, version=ANY_VERSION)):
        for partition, known in sorted(capture.facts.items()):
            left = [fact for fact in known if chance.random() > share]
            found = fold_partition(partition[0], left, view).verdicts.findings
            assert [f for f in found if f.rule_id in DECIDED and f.severity != "info"] == [], partition


@pytest.mark.parametrize("skew_s", [-60, 0.5, 3600])
def test_a_wrong_clock_accuses_nobody(skew_s: float, captured: Captured) -> None:
    capture = captured("lifecycle-1.1.1")
    for broker in (1, 2):
        for partition, known in sorted(capture.facts.items()):
            late = [replace(f, at=f.at + int(skew_s * 1e6)) if f.broker_id == broker else f for f in known]
            found = fold_partition(partition[0], late, capture.view).verdicts.findings
            assert [f for f in found if f.rule_id in DECIDED and f.severity != "info"] == [], partition


# --- R03


def grown(subject: Subject) -> tuple[Evidence, Evidence]:
    """The last neighbouring writes with which a leader took a replica into the ISR."""
    pairs = [
        (before, after)
        for before, after in zip(subject.states, subject.states[1:], strict=False)
        if (before.partition_epoch or 0) + 1 == after.partition_epoch
        and before.leader_epoch == after.leader_epoch
        and set(before.isr or ()) < set(after.isr or ())
    ]
    return pairs[-1]


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1"])
def test_two_states_at_one_version(name: str, captured: Captured) -> None:
    subject = Subject.of(captured(name), ("orders", 0))
    before, after = grown(subject)
    bent = subject.bent(lambda f: f is after, partition_epoch=before.partition_epoch)
    assert ("R03", "partition_epoch_repeated", "error") in bent.types("R03")
    # the same write seen again is no second state
    again = replace(subject, facts=[*subject.facts, replace(before, evidence_id="again")])
    assert again.types("R03") == []


def test_a_version_that_is_missing_is_no_finding(captured: Captured) -> None:
    subject = Subject.of(captured("lifecycle-1.1.1"), ("orders", 0))
    before, _ = grown(subject)
    gap = subject.without(lambda f: f.partition_epoch == before.partition_epoch)
    assert gap.types() == []
    assert gap.counts("R03")["cannot_be_judged"] == subject.counts("R03").get("cannot_be_judged", 0) + 1
    assert gap.counts("R10")["cannot_be_judged"] > 0


def test_a_later_write_has_a_higher_version(captured: Captured) -> None:
    subject = Subject.of(captured("lifecycle-1.1.1"), ("orders", 0))
    before, after = grown(subject)
    swapped = subject.bent(lambda f: f is after, offset=before.offset - 1)
    assert ("R03", "partition_epoch_decreased", "error") in swapped.types("R03")
    several = fold_partition(subject.topic, swapped.facts, subject.view, is_only=False)
    assert {f.severity for f in several.verdicts.findings if f.rule_id == "R03"} == {"error"}  # both from the znode


# --- R06


def emptied(leader: int, version: KafkaVersion, setting: bool | None = None) -> list[tuple[str, str, str]]:
    rows = facts(
        f"""
        at   | kind        | leader   | epoch | isr | version | stored_cepoch | source
        2000 | znode_state | 1        | 0     | 1   | 0       | 1             | znode
        3000 | znode_state | {leader} | 1     | []  | 1       | 1             | znode
        """
    )
    given = SettingsOverTime({} if setting is None else {"t": [SettingChange(0, unclean_election=setting)]})
    view = ClusterView("c", VersionRange.exactly(version), settings=given)
    return Subject("t", rows, view).types("R06")


@pytest.mark.parametrize(
    ("version", "setting", "severity"),
    [
        (v(0, 8, 1), None, "info"),
        (v(0, 8, 2), True, "info"),
        (v(0, 8, 2), False, "error"),
        (v(0, 8, 2), None, None),
        (v(1, 0), True, "info"),
        (v(1, 1), True, "error"),
        (v(3, 9, 1), None, "error"),
    ],
)
def test_an_empty_isr_by_version(version: KafkaVersion, setting: bool | None, severity: str | None) -> None:
    assert emptied(-1, version, setting) == ([] if severity is None else [("R06", "isr_empty", severity)])


def test_an_empty_isr_has_no_leader() -> None:
    assert emptied(1, v(0, 8, 1)) == [("R06", "isr_empty", "error")]


@pytest.mark.parametrize(
    ("leader", "elr", "last_known_elr", "verdict"),
    [
        (-1, (1,), (1,), "kept"),
        (-1, (), (1,), "kept"),
        (-1, (), (), "cannot_be_judged"),
        (1, (1,), (), "broken"),
    ],
)
def test_of_a_quorum_the_log_names_who_may_lead_next_or_led_last(
    leader: int, elr: tuple[int, ...], last_known_elr: tuple[int, ...], verdict: str
) -> None:
    first = Evidence("a", METADATA_PARTITION, 1, leader=1, leader_epoch=0, isr=(1,), partition_epoch=0)
    emptied = replace(first, evidence_id="b", at=2, leader=leader, leader_epoch=1, isr=(), partition_epoch=1)
    rows = [first, replace(emptied, elr=elr, last_known_elr=last_known_elr)]
    counts = Subject("t", rows, ClusterView("c", VersionRange.exactly(v(4, 1)))).counts("R06")
    assert {one: count for one, count in counts.items() if one != "kept" or count > 1} == (
        {"kept": 2} if verdict == "kept" else {verdict: 1}
    )


def test_a_real_isr_that_is_emptied(captured: Captured) -> None:
    subject = Subject.of(captured("lifecycle-3.9.1"), ("orders", 1))
    last = subject.states[-1]
    assert ("R06", "isr_empty", "error") in subject.bent(lambda f: f is last, isr=(), leader=-1).types("R06")
    assert subject.bent(lambda f: f is last, leader=-1).types("R06") == []


# --- R10


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1", "failover-3.9.1"])
def test_a_leader_s_isr_change_keeps_the_epoch(name: str, captured: Captured) -> None:
    subject = Subject.of(captured(name), ("orders", 0))
    before, after = grown(subject)
    assert after.leader_epoch is not None
    raised = subject.bent(lambda f: f is after, leader_epoch=after.leader_epoch + 1)
    only_znodes = replace(raised, facts=[f for f in raised.facts if f.source_kind == "znode"])
    assert ("R10", "leader_epoch_raised_by_isr_change") in [t[:2] for t in only_znodes.types("R10")]
    # no line tells who wrote it
    assert not any("the leader asked for it" in finding.explanation for finding in only_znodes.findings("R10"))
    # with a write hidden between, the controller may have raised it
    assert only_znodes.without(lambda f: f is before).types("R10") == []


@pytest.mark.parametrize(("name", "severity"), [("lifecycle-1.1.1", "error"), ("lifecycle-3.9.1", "warning")])
def test_a_leader_epoch_raised_by_two(name: str, severity: str, captured: Captured) -> None:
    """From 3.4 on a KRaft controller may have copied two changes at once: a way out where no controller says more."""
    subject = Subject.of(captured(name), ("orders", 1))
    znodes = replace(subject, facts=[f for f in subject.facts if f.source_kind == "znode"])
    before, elected = next(
        (a, b)
        for a, b in zip(znodes.states, znodes.states[1:], strict=False)
        if a.leader != b.leader and (a.partition_epoch or 0) + 1 == b.partition_epoch
    )
    assert elected.leader_epoch is not None
    later = [f for f in znodes.states if (f.partition_epoch or 0) > (elected.partition_epoch or 0)]
    alone = znodes.without(lambda f: f in later)
    assert alone.types("R10") == []
    bent = alone.bent(lambda f: f is elected, leader_epoch=elected.leader_epoch + 1)
    assert bent.types("R10") == [("R10", "leader_epoch_raised_by_more", severity)]
    assert bent.without(lambda f: f is before).types("R10") == []


SAME_EPOCH = """
    at   | kind                   | leader | epoch | isr | version | stored_cepoch | cepoch | by | from            | to              | source
    2000 | znode_state            | 1      | 3     | 1,2 | 7       | 1             |        |    |                 |                 | znode
    3000 | partition_state_change | 1      | {}     | 1,2 | 8       |               | 1      | 1  | OnlinePartition | OnlinePartition | state_change_log
"""  # noqa: E501


def test_a_decision_raises_the_epoch_also_where_nothing_else_changes() -> None:
    view = ClusterView("c", VersionRange.exactly(v(1, 1, 1)))
    assert Subject("t", facts(SAME_EPOCH.format(3)), view).types("R10") == [("R10", "leader_epoch_not_raised", "error")]
    assert Subject("t", facts(SAME_EPOCH.format(4)), view).types("R10") == []


def test_a_line_about_an_isr_that_was_left_as_it_was_is_no_decision() -> None:
    told = SAME_EPOCH.replace("partition_state_change", "isr_shrunk_by_controller")
    assert Subject("t", facts(told.format(3)), ClusterView("c")).types("R10") == []


# --- R12


@pytest.mark.parametrize(
    ("name", "severity", "issue"),
    [("lifecycle-1.1.1", "warning", "KAFKA-6082 (fixed in 2.1)"), ("lifecycle-3.9.1", "error", None)],
)
def test_a_deposed_controller_wrote(name: str, severity: str, issue: str | None, captured: Captured) -> None:
    subject = Subject.of(captured(name), ("orders", 1))
    before, elected = next(
        (a, b)
        for a, b in zip(subject.states, subject.states[1:], strict=False)
        if (a.partition_epoch or 0) + 1 == b.partition_epoch
        and (b.leader_epoch or 0) > (a.leader_epoch or 0)
        and (a.state_controller_epoch or 0) >= 2
    )
    lower = (before.state_controller_epoch or 0) - 1
    (finding,) = subject.bent(lambda f: f is elected, state_controller_epoch=lower).findings("R12")
    assert (finding.divergence_type, finding.severity, finding.known_issue) == (
        "stale_controller_wrote",
        severity,
        issue,
    )


def test_an_isr_change_keeps_the_controller_epoch_of_its_election(captured: Captured) -> None:
    subject = Subject.of(captured("lifecycle-1.1.1"), ("orders", 0))
    before, after = grown(subject)
    lower = (before.state_controller_epoch or 0) - 1
    assert lower >= 1
    assert subject.bent(lambda f: f is after, state_controller_epoch=lower).types("R12") == []


def late_write(at: int, version: KafkaVersion) -> list[tuple[str, str, str]]:
    rows = facts(
        f"""
        at   | kind        | leader | epoch | isr | version | stored_cepoch | source
        2000 | znode_state | 1      | 0     | 1,2 | 0       | 1             | znode
        {at} | znode_state | 2      | 1     | 2   | 1       | 1             | znode
        """
    )
    tenures = (Tenure(1, 1, 0, 10_000_000, ("a",)), Tenure(2, 2, 10_000_000, None, ("b",)))
    return Subject("t", rows, ClusterView("c", VersionRange.exactly(version), tenures)).types("R12")


def test_a_write_long_after_the_successor_s_election() -> None:
    assert late_write(15_000, v(1, 1, 1)) == []
    assert late_write(60_000, v(1, 1, 1)) == [("R12", "stale_controller_wrote", "warning")]
    assert late_write(60_000, v(3, 9, 1)) == [("R12", "stale_controller_wrote", "warning")]


def of_quorum_behind_zookeeper(zookeeper_s_end: int | None, epochs: tuple[int, int, int]) -> list[tuple[str, str, str]]:
    """One write by ZooKeeper, two by the quorum that took over at 50 s; of which the last is by a known epoch."""
    rows = facts(
        f"""
        at    | kind               | leader | epoch | isr | version | stored_cepoch | source
        2000  | znode_state        | 1      | 0     | 1,2 | 0       | {epochs[0]}   | znode
        60000 | metadata_partition | 2      | 1     | 2   | 1       | {epochs[1]}   | metadata_log
        90000 | metadata_partition | 1      | 2     | 1   | 2       | {epochs[2]}   | metadata_log
        """
    )
    tenures = (Tenure(1, 3, 0, 10_000_000, ("a",)), Tenure(2, 4, 10_000_000, zookeeper_s_end, ("b",)))
    return Subject("t", rows, ClusterView("c", VersionRange.exactly(v(3, 9, 1)), tenures)).types("R12")


def test_a_quorum_that_took_over_counts_its_own_controller_epochs() -> None:
    """KIP-866: by fewer elections than ZooKeeper saw its epochs are lower."""
    ended = 50_000_000
    assert of_quorum_behind_zookeeper(ended, (3, 3, 3)) == []
    assert of_quorum_behind_zookeeper(ended, (4, 3, 3)) == []
    assert of_quorum_behind_zookeeper(ended, (4, 3, 2)) == [("R12", "stale_controller_wrote", "error")]
    stale = ("R12", "stale_controller_wrote", "warning")
    assert of_quorum_behind_zookeeper(None, (3, 3, 3))[-1:] == [stale], "the tenures are the quorum's own"


def test_a_leader_s_isr_change_long_after_it_is_legal() -> None:
    rows = facts(
        """
        at    | kind        | leader | epoch | isr | version | stored_cepoch | source
        2000  | znode_state | 1      | 0     | 1,2 | 0       | 1             | znode
        60000 | znode_state | 1      | 0     | 1   | 1       | 1             | znode
        """
    )
    tenures = (Tenure(1, 1, 0, 10_000_000, ("a",)), Tenure(2, 2, 10_000_000, None, ("b",)))
    assert Subject("t", rows, ClusterView("c", VersionRange.exactly(v(1, 1, 1)), tenures)).types("R12") == []
    assert {fact.kind for fact in rows} == {ZNODE_STATE}
