"""What real clusters did right stays right however little of it is given, and whatever their clocks said."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import ANY_VERSION, KafkaVersion, VersionRange
from reconstruct.partitions.evidence import ZNODE_ASSIGNMENT, Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import Partition, plain_evidence

Capture = dict[Partition, list[Evidence]]


def accusations(capture: Capture, version: VersionRange) -> list[str]:
    """Findings that accuse: those of severity info tell of what Kafka does by design."""
    view = ClusterView("c", version)
    return [
        f"{partition}: {finding.rule_id} {finding.explanation}"
        for partition, facts in sorted(capture.items())
        for finding in fold_partition(partition[0], facts, view).verdicts.findings
        if finding.severity != "info"
    ]


def only(capture: Capture, keep: Iterable[bool]) -> Capture:
    """Without the lines, and the states, that are not to be kept; a snapshot shows every topic's znode."""
    wanted = iter(keep)
    return {
        partition: [fact for fact in facts if next(wanted) or fact.kind == ZNODE_ASSIGNMENT]
        for partition, facts in capture.items()
    }


def known(name: str) -> VersionRange:
    version = KafkaVersion.parse(name.removesuffix("-info"))
    assert version is not None
    return VersionRange.exactly(version)


@pytest.fixture(params=capture_names())
def named(request: pytest.FixtureRequest, unpacked: Unpacker) -> tuple[str, Capture]:
    return request.param, plain_evidence(unpacked(request.param))


def test_all_of_it_is_given(named: tuple[str, Capture]) -> None:
    name, capture = named
    found = accusations(capture, known(name))
    assert [text for text in found if " R08 " not in text] == []
    assert bool(found) is name.startswith("unclean"), found


def test_lines_are_missing(named: tuple[str, Capture]) -> None:
    name, capture = named
    for seed, share in enumerate((0.1, 0.5, 0.9)):
        chance = random.Random(seed)
        part = only(capture, iter(lambda chance=chance, share=share: chance.random() > share, None))
        found = accusations(part, known(name))
        assert [text for text in found if " R08 " not in text or not name.startswith("unclean")] == []


def test_a_broker_s_logs_are_missing(named: tuple[str, Capture]) -> None:
    name, capture = named
    for broker in (1, 2, 3):
        part = {p: [fact for fact in facts if fact.broker_id != broker] for p, facts in capture.items()}
        found = accusations(part, known(name))
        assert [text for text in found if " R08 " not in text or not name.startswith("unclean")] == []


@pytest.mark.parametrize("skew_s", [-60, 0.5, 3600])
def test_a_broker_s_clock_is_wrong(named: tuple[str, Capture], skew_s: float) -> None:
    name, capture = named
    for broker in (1, 3):
        part = {
            p: [replace(f, at=f.at + int(skew_s * 1e6)) if f.broker_id == broker else f for f in facts]
            for p, facts in capture.items()
        }
        found = accusations(part, known(name))
        assert [text for text in found if " R08 " not in text or not name.startswith("unclean")] == []


def test_the_version_is_unknown(named: tuple[str, Capture]) -> None:
    name, capture = named
    found = accusations(capture, ANY_VERSION)
    assert [text for text in found if " R08 " not in text or not name.startswith("unclean")] == []
