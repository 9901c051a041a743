"""The data files: every sample is matched by its own shape, and a bad declaration is refused with its name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.shapes import SHAPES, SOURCE_KINDS, Shape, ShapeError, match, versions_of
from ingest.shapes.catalogue import read_shapes
from ingest.shapes.kinds import KINDS
from ingest.shapes.pattern import PatternError, compile_pattern
from ingest.shapes.quirks import QUIRKS
from tests import ROOT
from tests.support.loops import for_each
from tests.unit.ingest.shapes.catalogue import DATA

HEADER = re.compile(r"\[[^\]]+\] [A-Z]+ (?P<message>.*) \((?P<logger>[\w.$]+)\)", re.DOTALL)
REAL_LINES = [
    line
    for line in (DATA / "state-change-samples.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


@for_each(shape=SHAPES)
def test_samples_have_their_shape(shape: Shape) -> None:
    assert shape.samples
    for sample in shape.samples:
        found = match(shape.source_kind, shape.loggers[0], sample)
        assert found is not None, sample
        assert (found.shape_id, found.event_type) == (shape.id, shape.event_type)
        assert all(isinstance(value, str) for value in found.fields.values())


def test_there_are_real_lines_of_three_eras() -> None:
    assert len(REAL_LINES) >= 90


@for_each(line=REAL_LINES)
def test_real_state_change_lines_match(line: str) -> None:
    header = HEADER.fullmatch(line)
    assert header is not None
    found = match("state_change_log", header["logger"], header["message"])
    assert found is not None
    assert found.event_type != "other"
    assert "broker_id" in found.fields or "controller_id" in found.fields


@given(st.text())
def test_random_text_matches_nothing(text: str) -> None:
    for source_kind in SOURCE_KINDS:
        assert match(source_kind, None, text) is None


@given(st.sampled_from(SHAPES), st.data())
def test_no_damaged_message_raises(shape: Shape, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(shape.samples))
    start = data.draw(st.integers(0, len(sample)))
    end = data.draw(st.integers(start, len(sample)))
    match(shape.source_kind, shape.loggers[0], sample[:start] + data.draw(st.text(max_size=5)) + sample[end:])


def test_a_speaker_with_anything_after_it_matches_nothing() -> None:
    for speaker in ("[Controller id=1 epoch=2] ", "[Broker id=3] ", "Broker 3 ", "Controller 1 epoch 2 "):
        assert match("state_change_log", "state.change.logger", speaker + "did what nobody knows") is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("filling", ["a", "1,2", "[t,0]", "a-", "(", ". "])
def test_a_message_of_a_megabyte_takes_no_longer_than_its_length(filling: str) -> None:
    long = filling * (1_000_000 // len(filling))
    match("controller_log", None, "[Controller id=1] Partitions undergoing preferred replica election: " + long)
    match("server_log", None, "[ReplicaFetcherManager on broker 3] Added fetcher for partitions " + long)
    match("state_change_log", None, "[Controller id=1 epoch=12] Received response " + long + " for request X")
    match("state_change_log", None, "Broker 3 received LeaderAndIsr request " + long)


def test_trailing_blanks_do_not_matter() -> None:
    text = "[Controller id=1] Resigned"
    logger = "kafka.controller.KafkaController"
    assert match("controller_log", logger, text) == match("controller_log", logger, text + "  ")


def test_another_source_kind_is_an_error() -> None:
    with pytest.raises(KeyError):
        match("gc_log", None, "anything")


def test_state_change_lines_are_recognised_in_a_common_log() -> None:
    message = "[Controller id=1 epoch=12] Elected leader 2 for Offline partition orders-4"
    assert match("server_log", "state.change.logger", message) == match(
        "state_change_log", "state.change.logger", message
    )


def test_a_short_text_needs_its_writer() -> None:
    assert match("server_log", "kafka.server.KafkaServer", "starting") is not None
    assert match("server_log", "kafka.server.SomeOtherServer", "starting") is None
    assert match("server_log", None, "starting") is None
    shrinking = "[Partition orders-4 broker=3] Shrinking ISR from 1,2,3 to 1,3"
    for logger in ("kafka.cluster.Partition", "Partition", None):
        found = match("server_log", logger, shrinking)
        assert found is not None
        assert found.event_type == "isr_shrink_proposed"


def test_versions_of_a_shape() -> None:
    assert versions_of("SC-PSM-01") == ("0.8.0", "0.8.0")
    assert versions_of("SC-RM-78")[0] == "2.0.0"
    with pytest.raises(KeyError):
        versions_of("no such shape")


def test_ranges_of_releases_are_in_order() -> None:
    for shape in SHAPES:
        bounds = [_order(version) for bounds in shape.versions for version in bounds]
        assert bounds == sorted(bounds), shape.id


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split("."))


def test_every_kind_and_quirk_is_used() -> None:
    used = {kind for shape in SHAPES for kind in re.findall(r"\{(?:\w*:)?(\w+)\}", shape.pattern)}
    assert set(KINDS) == used
    assert {shape.quirk for shape in SHAPES if shape.quirk} == set(QUIRKS)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("Broker {broker_id:integer} did", "integer"),
        ("from {isr:int} to {isr:int}", "twice"),
        ("Broker {int} did", "without the name"),
    ],
)
def test_a_bad_pattern_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"source_kind": "gc_log", "shapes": [{"id": "A"}]}', "gc_log"),
        ('{"source_kind": "server_log", "shapes": [{"id": "A", "pattern": "x"}]}', "A lacks 'event_type'"),
        ('{"source_kind": "server_log", "shapes": [', "not JSON"),
    ],
)
def test_a_bad_data_file_is_refused_with_its_name(text: str, reason: str) -> None:
    with pytest.raises(ShapeError, match=reason) as refusal:
        read_shapes("extra.json", text)
    assert "extra.json" in str(refusal.value)


def test_literal_braces_are_doubled() -> None:
    assert compile_pattern("New: {{epoch:{leader_epoch:int}}}").fields("New: {epoch:5}") == {"leader_epoch": "5"}


def test_no_path_of_a_build_machine_is_in_the_data() -> None:
    folder = ROOT / "ingest" / "shapes" / "data"
    for file in folder.glob("*.json"):
        assert "/home/" not in file.read_text(encoding="utf-8")
