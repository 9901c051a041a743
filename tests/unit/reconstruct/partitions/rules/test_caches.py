"""The metadata caches against each other (R22) and against what was decided (R24)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.cluster.view import ClusterView
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, is_line, read, types
from tests.unit.reconstruct.partitions.tables import facts

CACHED = "metadata_cached"
ERAS = ("failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1")


@pytest.mark.parametrize("name", ERAS)
def test_another_leader_at_the_same_epoch(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    line = subject.lines(is_line(CACHED, 3))[1]
    assert line.leader is not None
    found = subject.found(subject.bent(line, leader=line.leader % 3 + 1))
    assert types(found) == {"caches_disagree", "cache_never_decided"}
    assert {(f.broker_id, f.severity) for f in found} == {(3, "error")}
    history = fold_partition(
        "orders", subject.bent(line, leader=line.leader % 3 + 1), subject.view, is_only=False
    ).verdicts.findings
    assert {f.severity for f in history if f.rule_id in ("R22", "R24")} == {"warning"}


@pytest.mark.parametrize("name", ERAS)
def test_another_isr(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    line = subject.lines(is_line(CACHED, 3))[1]
    found = types(subject.found(subject.bent(line, isr=(3,))))
    if name == "failover-0.8.2.2":
        # nothing tells a controller of 0.8 of a leader's ISR change: at one leader epoch caches may hold several
        assert found == set()
    else:
        assert "caches_disagree" in found
    # the order of an ISR is no difference
    assert subject.found(subject.bent(line, isr=tuple(reversed(line.isr or ())))) == []


@pytest.mark.parametrize("name", ["failover-1.1.1", "failover-3.9.1"])
def test_a_partition_epoch_with_another_leader_epoch(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    line = subject.lines(is_line(CACHED, 3, leader_epoch=1))[0]
    assert "caches_disagree" in types(subject.found(subject.bent(line, leader_epoch=0, leader=2)))
    # a controller restates an unchanged state with its own epoch
    assert subject.found(subject.bent(line, state_controller_epoch=90)) == []


@pytest.mark.parametrize("name", ["quiet-0.8.2.2", "quiet-3.9.1"])
def test_an_epoch_that_no_controller_decided(name: str, unpacked: Unpacker) -> None:
    folder = unpacked(name)
    subject = Subject.of(folder, *min(read(folder).facts))
    line = subject.lines(is_line(CACHED, 2))[0]
    bent = subject.bent(line, leader_epoch=7, partition_epoch=None)
    found = subject.found(bent)
    assert types(found) == {"cache_never_decided"}
    assert "no controller decided leader epoch 7" in found[0].explanation
    # where the controllers' logs are not given, or lack lines, one of them may have decided it
    assert subject.found(bent, replace(subject.view, logs={})) == []
    assert subject.found(bent, replace(subject.view, lossy_logs=frozenset({1, 2, 3}))) == []
    # where another broker was told the same, the decision's line may be missing
    told = replace(line, leader_epoch=7, partition_epoch=None, broker_id=9, file="other", evidence_id="other")
    assert subject.found([*bent, told]) == []


def test_a_deletion_is_no_state(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("lifecycle-1.1.1"), "orders", 1)
    line = subject.lines(is_line(CACHED, 3))[1]
    assert subject.found(subject.bent(line, leader=-2, leader_epoch=0, isr=())) == []


def test_epochs_that_may_have_begun_anew() -> None:
    header = "at | kind | broker | by | cepoch | leader | epoch"
    first = "20 | metadata_cached | 1 | 3 | 1 | 1 | 0"
    deleted = "30 | metadata_deleted | 1 | 3 | 1 | |"
    second = "40 | metadata_cached | 2 | 3 | 1 | 2 | 0"
    for lines, expected in (((first, second), {"caches_disagree"}), ((first, deleted, second), set())):
        history = fold_partition("t", facts("\n".join((header, *lines))), ClusterView("c"))
        assert types(history.verdicts.findings) == expected
