"""Every example of the catalogue has the shape of its template; no shape takes what is another's."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from ingest.shapes import SHAPES, SOURCE_KINDS, Shape, match
from ingest.shapes.pattern import HOLE, SPEAKER_HOLE, compile_pattern
from tests.unit.ingest.shapes.catalogue import WITHOUT_A_SHAPE, examples, templates

TEMPLATES = templates()
SHAPE_OF = {template: shape for shape in SHAPES for template in shape.templates}


def test_every_template_has_exactly_one_shape() -> None:
    counts = Counter(template for shape in SHAPES for template in shape.templates)
    assert {template["id"] for template in TEMPLATES} - set(counts) == WITHOUT_A_SHAPE
    assert [template for template, count in counts.items() if count > 1] == []


def test_all_state_change_templates_are_there() -> None:
    assert sum(template["log_file"] == "state-change.log" for template in TEMPLATES) == 287


@pytest.mark.parametrize("log_file", ["state-change.log", "controller.log", "server.log"])
def test_every_example_has_the_shape_and_event_of_its_template(log_file: str) -> None:
    wrong: list[tuple[str, str, Any]] = []
    tried = 0
    for template in TEMPLATES:
        if template["log_file"] != log_file or template["id"] in WITHOUT_A_SHAPE:
            continue
        shape = SHAPE_OF[template["id"]]
        for source_kind, logger, message in examples(template):
            tried += 1
            found = match(source_kind, logger, message)
            if found is None or (found.shape_id, found.event_type) != (shape.id, shape.event_type):
                wrong.append((template["id"], message, found))
    assert wrong == []
    assert tried >= 280


def test_a_shape_covers_the_releases_of_its_templates() -> None:
    for template in TEMPLATES:
        if template["id"] in WITHOUT_A_SHAPE:
            continue
        shape = SHAPE_OF[template["id"]]
        assert any(_order(first) <= _order(template["since"]) for first, _ in shape.versions), template["id"]
        assert any(_order(template["until"]) <= _order(last) for _, last in shape.versions), template["id"]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split("."))


def test_no_message_fits_two_shapes_of_one_writer_with_different_events() -> None:
    conflicts: list[tuple[str, str, str]] = []
    by_kind: dict[str, list[Shape]] = defaultdict(list)
    for shape in SHAPES:
        by_kind[shape.source_kind].append(shape)
    for shapes in by_kind.values():
        compiled = [(shape, compile_pattern(shape.pattern)) for shape in shapes]
        for shape in shapes:
            for other, pattern in compiled:
                if other.event_type == shape.event_type or not set(other.loggers) & set(shape.loggers):
                    continue
                conflicts.extend(
                    (shape.id, other.id, text) for text in shape.samples if pattern.fields(text) is not None
                )
    assert conflicts == []


WORD = re.compile(r"[A-Za-z]{3,}", re.ASCII)

#: Texts whose other half is free, so that what is left of one may be another.
MAY_BECOME_ANOTHER = {("SV-0210", "SV-0223")}


@pytest.mark.parametrize("source_kind", SOURCE_KINDS)
def test_a_message_with_a_word_changed_is_no_other_event(source_kind: str) -> None:
    """But for the log identifier, whose words tell who speaks."""
    wrong: list[tuple[str, str, str]] = []
    for shape in SHAPES:
        if shape.source_kind != source_kind:
            continue
        skeleton = compile_pattern(shape.pattern).skeleton
        words = {word for part in re.split(f"[{HOLE}{SPEAKER_HOLE}]", skeleton) for word in WORD.findall(part)}
        for sample in shape.samples[:2]:
            start = sample.find("] ") + 1
            for word in sorted(words):
                if sample.count(word) != 1 or sample.index(word) < start:
                    continue
                for other in (word[:-1] + ("q" if word[-1] != "q" else "z"), ""):
                    found = match(source_kind, shape.loggers[0], sample.replace(word, other))
                    if found is not None and found.event_type != shape.event_type:
                        wrong.append((shape.id, found.shape_id, sample.replace(word, other)))
    assert [entry for entry in wrong if entry[:2] not in MAY_BECOME_ANOTHER] == []


_RELEASES = """
0.8.0 0.8.1 0.8.1.1 0.8.2.0 0.8.2.1 0.8.2.2 0.9.0.0 0.9.0.1 0.10.0.0 0.10.0.1 0.10.1.0 0.10.1.1 0.10.2.0 0.10.2.1
0.10.2.2 0.11.0.0 0.11.0.1 0.11.0.2 0.11.0.3 1.0.0 1.0.1 1.0.2 1.1.0 1.1.1 2.0.0 2.0.1 2.1.0 2.1.1 2.2.0 2.2.1 2.2.2
2.3.0 2.3.1 2.4.0 2.4.1 2.5.0 2.5.1 2.6.0 2.6.1 2.6.2 2.6.3 2.7.0 2.7.1 2.7.2 2.8.0 2.8.1 2.8.2 3.0.0 3.0.1 3.0.2
3.1.0 3.1.1 3.1.2 3.2.0 3.2.1 3.2.2 3.2.3 3.3.0 3.3.1 3.3.2 3.4.0 3.4.1 3.5.0 3.5.1 3.5.2 3.6.0 3.6.1 3.6.2 3.7.0
3.7.1 3.8.0 3.8.1 3.9.0 3.9.1 4.0-dev
"""
#: What the catalogue knows of; shapes know of later ones.
RELEASES = _RELEASES.split()
SINCE = ["4.0.0", "4.0.1", "4.0.2", "4.1.0", "4.1.1", "4.2.0", "4.3.0", "4.3.1"]
PRESENT_IN = re.compile(r"present in: ([^;]*)")

#: Where the catalogue is wrong: Kafka 3.4 to 3.9 go on writing it to state-change.log.
RIGHT_AGAINST_THE_CATALOGUE = {"SC-CCM-13"}


def _covered(ranges: Iterable[tuple[str, str]]) -> set[str]:
    every = [*RELEASES, *SINCE]
    covered = {every[i] for first, last in ranges for i in range(every.index(first), every.index(last) + 1)}
    return covered.intersection(RELEASES)


def _ranges(template: dict[str, Any]) -> list[tuple[str, str]]:
    holes = PRESENT_IN.search(template["notes"])
    texts = holes[1].split(", ") if holes else [f"{template['since']}..{template['until']}"]
    pairs = [text.replace("(trunk@2024-10)", "").strip().partition("..") for text in texts]
    # the catalogue ends with 3.9.0: what that prints, 3.9.1 prints
    return [(first, (last or first).replace("3.9.0", "3.9.1")) for first, _, last in pairs]


def test_a_shape_has_the_holes_of_its_templates() -> None:
    by_id = {template["id"]: template for template in TEMPLATES}
    for shape in SHAPES:
        if shape.source_kind == "exception" or not shape.templates or shape.id in RIGHT_AGAINST_THE_CATALOGUE:
            continue
        stated = [pair for template in shape.templates for pair in _ranges(by_id[template])]
        assert _covered(shape.versions) == _covered(stated), shape.id


AGREED = """
partition_state_change partition_state_change_failed replica_state_change replica_state_change_failed
leader_election_started leader_elected leader_election_failed isr_shrunk_by_controller leader_and_isr_sent
update_metadata_sent stop_replica_sent request_batch_sent reassignment_leader_and_isr_sent
reassignment_leader_and_isr_failed response_received response_error replicas_marked_offline leader_and_isr_received
leader_and_isr_ignored leader_and_isr_failed leader_and_isr_handled become_leader_started become_leader_completed
become_leader_skipped become_leader_failed become_follower_started become_follower_completed become_follower_skipped
become_follower_failed fetchers_stopped log_truncated fetcher_started fetcher_skipped stop_replica_received
stop_replica_handled stop_replica_ignored update_metadata_ignored metadata_cached metadata_deleted metadata_batch
leader_epoch_started topic_id_assigned topic_id_removed partition_created leader_recovery metadata_record migration
logger_registered
"""


def test_event_types_of_the_state_change_log_are_those_agreed_on() -> None:
    agreed = set(AGREED.split())
    used = {shape.event_type for shape in SHAPES if shape.source_kind == "state_change_log"}
    assert used <= agreed
    assert agreed - used == set()


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("Live brokers: ", {"live_broker_ids": ""}),
        ("Live brokers:", {"live_broker_ids": ""}),
        ("Live brokers: 1,2", {"live_broker_ids": "1,2"}),
        ("Partitions undergoing preferred replica election: ", {"topic_partitions": ""}),
        ("List of topics to be deleted: ", {"topics": ""}),
        ("List of topics to be deleted: a,b", {"topics": "a,b"}),
        ("All leaders = ", {"topic_partitions": ""}),
    ],
)
def test_a_list_at_the_end_may_be_empty(message: str, fields: dict[str, str]) -> None:
    found = match("controller_log", "kafka.controller.KafkaController", f"[Controller id=1] {message}")
    assert found is not None
    assert found.fields == {"controller_id": "1"} | fields


@pytest.mark.parametrize("length", [1, 600])
def test_so_may_that_of_a_long_message(length: int) -> None:
    pattern = compile_pattern("Failed: {error:any}, of brokers {broker_ids:ids}")
    error = "x" * length
    assert pattern.fields(f"Failed: {error}, of brokers") == {"error": error, "broker_ids": ""}
    assert pattern.fields(f"Failed: {error}, of brokers 3") == {"error": error, "broker_ids": "3"}
    assert pattern.fields(f"Failed: {error}, of brokers3") is None


def test_a_message_that_ends_before_what_is_no_list_is_of_no_shape() -> None:
    logger = "kafka.controller.KafkaController"
    assert match("controller_log", logger, "[Controller id=1] Updated broker: a") is not None
    assert match("controller_log", logger, "[Controller id=1] Updated broker:") is None
    assert match("controller_log", logger, "[Controller id=1] List of topics to be deleted") is None
