"""The changes of real metadata logs: every one that Kafka's own order of the records makes, and none beside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconstruct.metadata_log.evidence import ClusterLog, LogRow
from reconstruct.metadata_log.timeline import MetadataChange, Replayed, replay_of_none, replay_rows
from reconstruct.model.metadata_log.image import applied, replay
from reconstruct.model.metadata_log.values import Image, Kind, PartitionState, State, Subject
from tests.support.metadata_log import NODES, ONE_VOTER, REASSIGNED, UNCLEAN, cluster_log, log_of

QUORUMS = {"quorum": NODES, "one copy of three": NODES[:1], "one voter": (ONE_VOTER,)}


def replayed(log: ClusterLog, topics: dict[str, list[LogRow]]) -> list[Replayed]:
    return [replay_rows(log.rows, log), *(replay_rows(rows, log.of_quorum) for rows in topics.values())]


def changes_of(nodes: tuple[Path, ...]) -> list[MetadataChange]:
    return [change for one in replayed(*cluster_log(nodes)) for change in one.changes]


@pytest.mark.parametrize("nodes", QUORUMS.values(), ids=QUORUMS)
def test_the_changes_are_those_of_the_whole_log_replayed_at_once(nodes: tuple[Path, ...]) -> None:
    expected: set[tuple[int, Subject, State | None]] = set()
    image: Image = {}
    for record in max((log_of(node) for node in nodes), key=len):
        expected |= {(record.offset, subject, state) for subject, state in applied(image, record).changes}
        image = replay([record], image)
    found = [(change.offset, change.subject, change.state) for change in changes_of(nodes)]
    assert set(found) == expected
    assert len(found) == len(expected) > 30


@pytest.mark.parametrize("nodes", QUORUMS.values(), ids=QUORUMS)
def test_nothing_is_found_against_a_quorum_that_behaved(nodes: tuple[Path, ...]) -> None:
    verdicts = [one.verdicts for one in replayed(*cluster_log(nodes))]
    assert [finding for one in verdicts for finding in one.findings] == []
    kept = {rule_id for one in verdicts for rule_id, verdict in one.counts if verdict == "kept"}
    assert kept >= {"R51", "R52"}


def test_each_subject_has_one_change_at_an_offset_whatever_was_taken_for_one_cluster() -> None:
    nodes = (*NODES, ONE_VOTER, *NODES[:2], REASSIGNED, UNCLEAN)
    made = replayed(*cluster_log(nodes))
    keys = [(change.subject, change.offset) for one in made for change in one.changes]
    assert any(one.verdicts.findings for one in made)
    assert len(keys) == len(set(keys)) > 30


def test_what_no_majority_is_known_to_have_is_a_conclusion() -> None:
    assert {change.inferred_from for change in changes_of(NODES)} == {None}
    behind = {change.offset for change in changes_of(NODES[:1]) if change.inferred_from == "commit_not_proven"}
    assert min(behind) >= 115
    assert {change.offset for change in changes_of(NODES[:1]) if change.inferred_from is None} & behind == set()


def test_where_the_log_begins_later_its_first_snapshot_stands_for_what_came_before() -> None:
    log, topics = cluster_log(NODES)
    cut = replace(log, spans=tuple(replace(s, start=max(s.start, 40)) for s in log.spans if s.end > 40))
    later = {name: [row for row in rows if row.snapshot_end or row.offset >= 40] for name, rows in topics.items()}
    found = [change for rows in later.values() for change in replay_rows(rows, cut.of_quorum).changes]
    shown = [change for change in found if change.inferred_from == "retention_boundary"]
    assert {change.subject.kind for change in shown} >= {Kind.TOPIC, Kind.PARTITION}
    assert {change.record_type for change in shown} == {None}
    every = {(c.offset, c.subject): c.state for c in changes_of(NODES) if c.subject.kind is Kind.PARTITION}
    after = [c for c in found if c.inferred_from is None and c.subject.kind is Kind.PARTITION]
    assert len(after) > 5
    assert all(every[c.offset, c.subject] == c.state for c in after)


def test_a_snapshot_that_says_otherwise_is_a_finding() -> None:
    log, topics = cluster_log(NODES)
    name, rows = next((n, rows) for n, rows in topics.items() if any(r.snapshot_end for r in rows))
    wrong = next(r for r in rows if r.snapshot_end and r.record_type == "PartitionRecord")
    changed = replace(wrong, fields=wrong.fields.replace('"leaderEpoch":', '"leaderEpoch":7'))
    made = replay_rows([changed if row is wrong else row for row in rows], log.of_quorum)
    (finding,) = made.verdicts.findings
    assert (finding.rule_id, finding.broker_id) == ("R52", wrong.node_id)
    assert "leader_epoch" in finding.explanation, name


def test_two_records_of_one_offset_and_epoch_are_a_finding() -> None:
    log, topics = cluster_log(NODES)
    name, rows = next(
        (n, rows) for n, rows in topics.items() if any(r.record_type == "PartitionChangeRecord" for r in rows)
    )
    one = next(r for r in rows if r.record_type == "PartitionChangeRecord")
    other = replace(one, fields=one.fields.replace('"isr":[', '"isr":[9,'), copies=1, evidence_id="other")
    assert other.fields != one.fields
    findings = replay_rows([*rows, other], log.of_quorum).verdicts.findings
    assert [finding.rule_id for finding in findings] == ["R50"], name


def test_two_records_of_one_offset_that_concern_several_topics_are_a_finding() -> None:
    log, topics = cluster_log(NODES)
    one = next(row for rows in topics.values() for row in rows if row.record_type == "PartitionChangeRecord")
    of_none = next(row for row in log.rows if row.record_type == "FenceBrokerRecord" or "Broker" in row.record_type)
    other = replace(of_none, offset=one.offset, epoch=one.epoch, evidence_id="other", copies=1)
    found = replay_of_none(replace(log, disputed=(one, other))).verdicts.findings
    assert [(finding.rule_id, set(finding.evidence)) for finding in found] == [("R50", {one.evidence_id, "other"})]
    assert replay_of_none(log).verdicts.findings == []


def test_behind_a_record_that_could_not_be_read_nothing_is_judged() -> None:
    log, topics = cluster_log(NODES)
    name, rows = next((n, rows) for n, rows in topics.items() if any(r.snapshot_end for r in rows))
    unread = next(r for r in rows if r.record_type == "PartitionRecord" and r.snapshot_end is None)
    others = [row for row in rows if row is not unread]
    assert {f.rule_id for f in replay_rows(others, log.of_quorum).verdicts.findings} >= {"R52"}
    known = replace(log, rows=(*log.rows, replace(unread, fields="")))
    verdicts = replay_rows(others, known.of_quorum).verdicts
    assert verdicts.findings == [], name
    assert verdicts.counts["R52", "cannot_be_judged"] > 0


def test_how_many_are_to_be_in_sync_is_what_the_records_before_ask() -> None:
    """``ledger`` asks for two, all else for one: of ``ledger`` alone who leaves an ISR of two is eligible."""
    log, topics = cluster_log(NODES)
    assert [log.of_quorum.default_min_isr_at(offset) for offset in (6, 7, 150)] == [None, 1, 1]
    changes = {name: replay_rows(rows, log.of_quorum).changes for name, rows in topics.items()}
    states = [(name, change.state) for name, of_topic in changes.items() for change in of_topic]
    assert {name for name, one in states if isinstance(one, PartitionState) and one.isr and one.elr} == {"ledger"}
    bare = [row for row in topics["ledger"] if row.record_type != "ConfigRecord" and row.snapshot_end is None]
    found = [one for one in replay_rows(bare, log.of_quorum).verdicts.findings if one.rule_id == "R55"]
    assert "as many as min.insync.replicas asks, which was 1" in found[0].explanation
