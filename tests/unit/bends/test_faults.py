"""Faults made in raw text are found with the right rule, subject and severity, and accuse nobody else."""

from __future__ import annotations

import pytest

from tests.support.bends.faults.drafts import Site
from tests.support.bends.faults.measure import KINDS, Outcome, Result, outcomes, table
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText

LOWEST_RECALL = 0.9
#: Captures of each era that have most kinds between them; with HYPOTHESIS_PROFILE=hard all, at many places.
_CAPTURES = ("failover-0.8.2.2", "lifecycle-1.1.1", "failover-3.9.1")


@pytest.fixture(scope="module")
def found(unpacked: Unpacker) -> list[Outcome]:
    names, places = (capture_names(), 12) if IS_HARD else (_CAPTURES, 1)
    sites = [Site.read(name, CaptureText.read(unpacked(name))) for name in names]
    result = [outcome for site in sites for outcome in outcomes(site, places)]
    print(table(result))
    return result


def test_faults_are_found_with_the_right_rule_subject_and_severity(found: list[Outcome]) -> None:
    missed = [
        f"{each.result}: {each.capture}: {each.fault.kind} {each.fault.partition} {each.fault.note}"
        for each in found
        if each.result is not Result.FOUND
    ]
    assert len(found) - len(missed) >= LOWEST_RECALL * len(found), "\n".join([table(found), *missed])


def test_no_other_partition_is_accused(found: list[Outcome]) -> None:
    assert [(each.capture, each.fault.kind, each.fault.note, each.others) for each in found if each.others] == []


def test_kinds_are_many(found: list[Outcome]) -> None:
    assert len(KINDS) >= 40
    assert len({each.fault.kind for each in found}) >= 30
