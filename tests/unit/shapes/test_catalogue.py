"""Every example of the catalogue has the shape of its template; no shape takes what is another's."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from ingest.shapes import SHAPES, Shape, match
from ingest.shapes.pattern import compile_pattern
from tests.unit.shapes.catalogue import WITHOUT_A_SHAPE, examples, templates

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
        compiled = [(shape, compile_pattern(shape.pattern).regex) for shape in shapes]
        for shape in shapes:
            for other, regex in compiled:
                if other.event_type == shape.event_type or not set(other.loggers) & set(shape.loggers):
                    continue
                conflicts.extend((shape.id, other.id, text) for text in shape.samples if regex.fullmatch(text))
    assert conflicts == []


AGREED = """
partition_state_change partition_state_change_failed replica_state_change replica_state_change_failed
leader_election_started leader_elected leader_election_failed isr_shrunk_by_controller leader_and_isr_sent
update_metadata_sent stop_replica_sent request_batch_sent reassignment_leader_and_isr_sent
reassignment_leader_and_isr_failed response_received response_error replicas_marked_offline leader_and_isr_received
leader_and_isr_ignored leader_and_isr_failed leader_and_isr_handled become_leader_started become_leader_completed
become_leader_skipped become_leader_failed become_follower_started become_follower_completed become_follower_skipped
become_follower_failed fetchers_stopped log_truncated fetcher_started fetcher_skipped stop_replica_received
stop_replica_handled stop_replica_ignored update_metadata_ignored metadata_cached metadata_deleted metadata_batch
leader_epoch_started topic_id_assigned partition_created leader_recovery metadata_record migration other
"""


def test_event_types_of_the_state_change_log_are_those_agreed_on() -> None:
    agreed = set(AGREED.split())
    used = {shape.event_type for shape in SHAPES if shape.source_kind == "state_change_log"}
    assert used <= agreed
    assert agreed - used == set()
