"""Real histories bent in their raw text are found and named rightly; unbent ones stay free of those findings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.figures import Figure
from tests.support.bends.editing import Subject
from tests.support.bends.recall import KINDS, Outcome, outcomes, recall_table
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText

LOWEST_RECALL = 0.98
#: Places of each kind and capture; with HYPOTHESIS_PROFILE=hard many more.
PLACES, MANY_PLACES = 1, 6


@pytest.fixture(scope="module")
def subjects(unpacked: Unpacker) -> list[Subject]:
    return [Subject.of(name, CaptureText.read(unpacked(name))) for name in capture_names()]


@pytest.fixture(scope="module")
def bent(subjects: list[Subject]) -> list[Outcome]:
    found = outcomes(subjects, MANY_PLACES if IS_HARD else PLACES)
    print(recall_table(found))
    return found


def test_bends_are_found_and_named_rightly(bent: list[Outcome], record_property: Any) -> None:
    missed = [
        f"{each.capture}: {each.bend.kind} {each.bend.partition} {each.bend.note}" for each in bent if not each.is_found
    ]
    assert len(bent) - len(missed) >= LOWEST_RECALL * len(bent), "\n".join([recall_table(bent), *missed])
    record_property(Figure.PLANTED, len(bent))
    record_property(Figure.FOUND, len(bent) - len(missed))


def test_every_kind_is_tried_in_every_era_that_can_have_it(bent: list[Outcome]) -> None:
    kinds = {each.bend.kind for each in bent}
    assert len(kinds) == len(KINDS) >= 20
    eras = {each.capture.split("-")[1] for each in bent}
    assert eras == {"0.8.2.2", "1.1.1", "3.9.1"}
    of_all_eras = [kind for kind in kinds if len({e.capture.split("-")[1] for e in bent if e.bend.kind == kind}) == 3]
    assert len(of_all_eras) >= 20


def test_each_kind_is_found_more_often_than_not_in_each_era(bent: list[Outcome]) -> None:
    for kind in {each.bend.kind for each in bent}:
        for era in ("0.8.2.2", "1.1.1", "3.9.1"):
            of_era = [each for each in bent if each.bend.kind == kind and each.capture.split("-")[1] == era]
            assert sum(each.is_found for each in of_era) * 2 >= len(of_era), (kind, era)


def test_unbent_captures_are_free_of_what_bends_are_found_by(subjects: list[Subject], bent: list[Outcome]) -> None:
    named = {expected for each in bent for expected in each.bend.expected}
    for subject in subjects:
        findings = [*((None, f) for f in subject.plain.cluster.verdicts.findings), *subject.plain.findings()]
        accused = [
            (partition, finding.rule_id, finding.divergence_type, finding.explanation)
            for partition, finding in findings
            if (finding.rule_id, finding.divergence_type) in named
            and (finding.severity != "info" or finding.divergence_type == "transition_not_logged")
        ]
        assert accused == [], subject.name
