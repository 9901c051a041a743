"""Partitions of real KRaft clusters: every state that the metadata log decided, none beside, and nobody accused."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from reconstruct.model.metadata_log.image import applied, replay
from reconstruct.model.metadata_log.values import Image, Kind, PartitionState, TopicState
from tests.support.kraft_partitions import history_of
from tests.support.metadata_log import NODES, ONE_VOTER, UNCLEAN, log_of

CLUSTERS = {"quorum": NODES, "one voter": (ONE_VOTER,)}
Key = tuple[str, str, int]


def decided(nodes: tuple[Path, ...]) -> tuple[dict[Key, list[PartitionState]], set[Key]]:
    """The states of each partition by the log replayed at once, and the partitions that were deleted."""
    states: dict[Key, list[PartitionState]] = defaultdict(list)
    deleted: set[Key] = set()
    names: dict[str, str] = {}
    image: Image = {}
    for record in max((log_of(node) for node in nodes), key=len):
        for subject, state in applied(image, record).changes:
            if isinstance(state, TopicState):
                names[state.topic_id] = state.name
            if subject.kind is Kind.PARTITION:
                key = (names[subject.name], subject.name, subject.partition_id)
                if isinstance(state, PartitionState):
                    states[key].append(state)
                else:
                    deleted.add(key)
        image = replay([record], image)
    return states, deleted


@pytest.mark.parametrize("nodes", CLUSTERS.values(), ids=CLUSTERS)
def test_each_partition_has_the_states_of_the_log(nodes: tuple[Path, ...]) -> None:
    states, deleted = decided(nodes)
    _, cases = history_of(nodes)
    assert {
        key: [(i.value.leader, i.value.leader_epoch, i.value.isr, i.value.partition_epoch) for i in case.decided]
        for key, case in cases.items()
    } == {key: [(s.leader, s.leader_epoch, s.isr, s.partition_epoch) for s in of] for key, of in states.items()}
    assert {
        key: [(i.value.elr, i.value.last_known_elr, i.value.directories) for i in case.decided]
        for key, case in cases.items()
    } == {key: [(s.elr, s.last_known_elr, s.directories) for s in of] for key, of in states.items()}
    assert {key for key, case in cases.items() if case.decided[-1].end is not None} == deleted
    assert deleted
    assert {i.inferred_from for case in cases.values() for i in case.decided} == {None}


@pytest.mark.parametrize("nodes", CLUSTERS.values(), ids=CLUSTERS)
def test_nobody_is_accused(nodes: tuple[Path, ...]) -> None:
    cluster, cases = history_of(nodes)
    assert str(cluster.view.version) == "4.1"
    found = [*cluster.verdicts.findings, *(f for case in cases.values() for f in case.verdicts.findings)]
    assert [(finding.rule_id, finding.explanation) for finding in found if finding.severity != "info"] == []


def test_what_one_copy_does_not_prove_committed_is_a_conclusion() -> None:
    _, cases = history_of(NODES[:1])
    decided_by = {interval.inferred_from for case in cases.values() for interval in case.decided}
    assigned_by = {interval.inferred_from for case in cases.values() for interval in case.assignments}
    assert decided_by == {None, "commit_not_proven"}
    assert assigned_by <= decided_by


def test_an_isr_may_run_empty_while_the_log_names_who_may_lead_next_or_led_last() -> None:
    _, cases = history_of([UNCLEAN])
    empty = [i.value for case in cases.values() for i in case.decided if not i.value.isr]
    assert {(state.leader, state.elr, state.last_known_elr) for state in empty} == {(-1, (1,), (1,)), (-1, (), (1,))}
    counts = [(rule, verdict) for case in cases.values() for rule, verdict in case.verdicts.counts if rule == "R06"]
    assert set(counts) == {("R06", "kept")}


def test_of_an_unclean_election_it_is_told_whether_the_setting_counted() -> None:
    """KIP-966: where ISR and ELR ran empty, the last known leader leads again without being asked."""
    _, cases = history_of([UNCLEAN])
    told = {
        key[0]: finding.explanation
        for key, case in cases.items()
        for finding in case.verdicts.findings
        if finding.rule_id == "R08"
    }
    assert "by KIP-966 the last known leader may then lead whatever the configuration says" in told["safe"]
    assert "Whether the configuration allowed it is not in the evidence" in told["ledger"]
