"""What brokers ignored as stale, recomputed (R21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.cluster.spans import LogSpan
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, is_line, types
from tests.unit.reconstruct.partitions.tables import facts

IGNORED = "leader_and_isr_ignored"
FOUND = {"ignored_without_reason"}


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1"])
def test_a_higher_epoch_called_old(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 0)
    line = subject.lines(is_line(IGNORED))[0]
    epoch = line.leader_epoch
    assert epoch is not None
    found = subject.found(subject.bent(line, known_leader_epoch=epoch - 1))
    assert types(found) == FOUND
    assert f"leader epoch {epoch} is higher than {epoch - 1}" in found[0].explanation
    # equal is not higher, in these versions
    assert subject.found(subject.bent(line, known_leader_epoch=epoch)) == []


def test_a_match_with_an_epoch_that_the_broker_had_left(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("lifecycle-3.9.1"), "orders", 0)
    lines = subject.lines(is_line(IGNORED, shape_id="SC-RM-86"))
    line = next(line for line in lines if (line.leader_epoch or 0) > 1)
    below = subject.found(subject.bent(line, leader_epoch=0))
    assert types(below) == FOUND
    above = subject.found(subject.bent(line, leader_epoch=90))
    assert types(above) == FOUND
    assert "that request told leader epoch" in above[0].explanation


def test_a_broker_that_is_assigned(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("reassign_busy-1.1.1"), *_with_not_assigned(unpacked))
    line = subject.lines(is_line(IGNORED, shape_id="SC-RM-60"))[0]
    assert line.replicas is not None
    assert line.broker_id not in line.replicas
    assert types(subject.found(subject.bent(line, replicas=(*line.replicas, line.broker_id)))) == FOUND
    assert subject.found(subject.bent(line, replicas=tuple(reversed(line.replicas)))) == []


def _with_not_assigned(unpacked: Unpacker) -> tuple[str, int]:
    for number in range(8):
        subject = Subject.of(unpacked("reassign_busy-1.1.1"), "orders", number)
        if any(fact.shape_id == "SC-RM-60" for fact in subject.facts):
            return "orders", number
    raise AssertionError("no such line")


STARTED = {1: ((0, "start"),)}
ACCEPTED = """
    at | kind                      | broker | by | cepoch | corr | leader | epoch | shape_id
    20 | leader_and_isr_received   | 1      | 3  | 1      | 1    | 2      | 4     |
    21 | become_follower_started   | 1      | 3  | 1      | 1    |        |       |
    22 | become_follower_completed | 1      | 3  | 1      | 1    |        |       |
    40 | leader_and_isr_received   | 1      | 3  | 1      | 2    | 2      | 6     |
    """


def found(version: tuple[int, ...], *lines: str, view: ClusterView | None = None) -> set[str]:
    cluster = view or ClusterView("c", VersionRange.exactly(v(*version)), process_starts=STARTED)
    table = ACCEPTED + "\n".join(lines)
    return types(fold_partition("t", facts(table), cluster).verdicts.findings) & FOUND


WHOLE = ClusterView("c", VersionRange.exactly(v(2, 8)), process_starts=STARTED, logs={1: (LogSpan(0, 10**6, "TRACE"),)})
MATCHES_SIX = "41 | leader_and_isr_ignored | 1 | 3 | 1 | 2 | | 6 | SC-RM-86"


def test_a_match_with_an_epoch_that_the_broker_never_accepted() -> None:
    assert found((2, 8), MATCHES_SIX, view=WHOLE) == FOUND


def test_a_log_that_may_lack_lines_refutes_nothing() -> None:
    assert found((2, 8), MATCHES_SIX) == set()
    assert found((2, 8), MATCHES_SIX, view=replace(WHOLE, lossy_logs=frozenset({1}))) == set()
    # another line shows that the epoch was begun: the broker's own may be missing
    begun = "42 | leader_and_isr_received | 2 | 3 | 1 | 9 | 2 | 6 |"
    assert found((2, 8), MATCHES_SIX, begun, view=WHOLE) == set()


def test_a_stop_replica_of_a_deletion_is_not_compared() -> None:
    line = "41 | stop_replica_ignored | 1 | 3 | 1 | 3 | | {} | SC-RM-94"
    assert found((2, 8), line.format(-2)) == FOUND
    assert found((2, 8), line.format(-1)) == FOUND
    assert found((2, 8), line.format(4)) == set()


def test_a_replica_that_the_broker_has_does_exist() -> None:
    missing = "41 | stop_replica_ignored | 1 | | | | | | SC-RM-52"
    assert found((1, 1), missing) == FOUND
    removed = "40 | stop_replica_handled | 1 | | | | | | SC-RM-53"
    assert found((1, 1), removed, missing) == set()


def test_smaller_is_not_equal() -> None:
    row = {"kind": "leader_and_isr_ignored", "shape_id": "SC-RM-85", "leader_epoch": 4}
    facts_ = facts(ACCEPTED)
    for known, expected in ((5, set()), (4, FOUND)):
        line = replace(facts_[-1], at=41_000, offset=9, evidence_id="x", known_leader_epoch=known, **row)  # type: ignore[arg-type]
        cluster = ClusterView("c", VersionRange.exactly(v(2, 8)))
        line = replace(line, correlation_id=77)
        assert types(fold_partition("t", [*facts_, line], cluster).verdicts.findings) & FOUND == expected


def test_an_epoch_that_the_broker_is_below_later_it_did_not_hold() -> None:
    row = {"kind": "leader_and_isr_ignored", "shape_id": "SC-RM-85", "leader_epoch": 4}
    facts_ = facts(ACCEPTED)
    cluster = ClusterView("c", VersionRange.exactly(v(2, 8)))
    line = replace(facts_[-1], at=41_000, offset=9, evidence_id="x", known_leader_epoch=8, correlation_id=77, **row)  # type: ignore[arg-type]
    for epoch, held, expected in ((4, 6, FOUND), (4, 8, set()), (7, 6, FOUND)):
        later = replace(line, at=90_000, offset=10, evidence_id="y", known_leader_epoch=held, leader_epoch=epoch)
        found_ = fold_partition("t", [*facts_, line, later], cluster).verdicts.findings
        # a line that contradicts itself says nothing of others
        assert types(found_) & FOUND == expected
        assert any("held leader epoch 6 later" in each.explanation for each in found_) == ((epoch, held) == (4, 6))
