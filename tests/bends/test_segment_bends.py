"""Segments of real brokers (the lab's small-segments on 1.1.1 and 3.9.1): nothing is found, unless they are bent."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from reconstruct.segments.timeline import segment_timeline
from tests import ROOT
from tests.support.bends.segments import chosen, is_found
from tests.support.captures.packed import Unpacker, capture_names, extract
from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.segments import judged_segments, segment_evidence

VERSIONS = ("1.1.1", "3.9.1")
HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("segments")
    extract(ROOT / "tests/data/small-segments.tar.xz", into)
    return into


def counts(capture: Path, text: CaptureText | None = None) -> Counter[tuple[str, str]]:
    return sum((one.counts for one in judged_segments(segment_evidence(capture, text=text)).values()), Counter())


@pytest.mark.parametrize("version", VERSIONS)
def test_segments_of_real_brokers_keep_the_rules(folder, version):
    found = counts(folder / f"small_segments-{version}")
    assert {key for key in found if key[1] == "broken"} == set()
    assert found["R40", "kept"] > 150
    assert found["R41", "kept"] > 25


def test_the_timeline_ends_with_the_segments_that_the_directory_has(folder):
    capture = folder / "small_segments-3.9.1"
    for (topic, number), evidence in segment_evidence(capture).items():
        for replica in evidence.replicas:
            there = {s.base_offset for s in segment_timeline(evidence) if s.replica_id == replica and not s.valid_to}
            directory = capture / f"broker-{replica}/data/{topic}-{number}"
            assert there == {int(path.stem) for path in directory.glob("*.log")}, (number, replica)


@pytest.mark.parametrize("version", VERSIONS)
def test_bends_of_segments_indexes_and_rolls_are_found(folder, version):
    capture = folder / f"small_segments-{version}"
    results = [(bend.kind, *is_found(capture, bend)) for bend in chosen(capture, 3)]
    assert [kind for kind, hit, _ in results if not hit] == []
    assert [kind for kind, _, others in results if others] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_lines_that_are_missing_accuse_nobody(folder, version):
    capture = folder / f"small_segments-{version}"
    text = CaptureText.read(capture)
    for seed in range(8):
        chance = random.Random(seed)
        share = chance.choice((0.02, 0.1, 0.3, 0.6))
        files = {name: Lines(x for x in lines if chance.random() > share) for name, lines in text.files.items()}
        assert ("R40", "broken") not in counts(capture, CaptureText(files)), seed


@pytest.mark.parametrize("name", capture_names())
def test_captures_without_segments_accuse_nobody(name, unpacked: Unpacker):
    found = judged_segments(segment_evidence(unpacked(name)))
    assert [finding for one in found.values() for finding in one.findings] == []
