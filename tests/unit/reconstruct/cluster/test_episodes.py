"""Take-overs and episodes of controllers: by hand, and of the captures."""

from __future__ import annotations

import pytest

from ingest.shapes.event_types import EventType
from reconstruct.cluster.controllers import TenureSpan
from reconstruct.cluster.evidence import TakeOverLine
from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.take_overs import judge_take_overs, line_windows, take_overs
from reconstruct.findings.verdicts import Verdicts
from tests.support.bends.editing import Subject
from tests.support.bends.recall import outcome
from tests.support.bends.take_overs import steps_change_places
from tests.support.captures.packed import Unpacker
from tests.support.captures.text import CaptureText
from tests.support.evidence.partitions import plain_capture

SECOND = 1_000_000


def span(controller_id: int, epoch: int, start: int, end: int | None = None) -> TenureSpan:
    return TenureSpan(Tenure(controller_id, epoch, start * SECOND, end and end * SECOND, ()), None, None)


def line(event: str, at_ms: int, number: int, controller: int = 1, **known: object) -> TakeOverLine:
    return TakeOverLine(controller, event, at_ms * 1000, f"line-{number}", "controller.log", number, **known)  # type: ignore[arg-type]


def test_a_take_over_is_told_from_its_first_line_until_it_is_ready():
    lines = [
        line(EventType.CONTROLLER_ELECTED, 10_000, 1, controller_epoch=4),
        line(EventType.CONTROLLER_FAILOVER_STEP, 10_005, 2, step="register_handlers"),
        line(EventType.BROKERS_ACTIVE, 10_020, 3, found_brokers=(1, 3)),
        line(EventType.PARTITION_STATE_MACHINE_STARTED, 10_090, 4, found_partitions_count=5, found_offline_count=2),
        line(EventType.CONTROLLER_READY, 10_100, 5, controller_epoch=4),
        line(EventType.CONTROLLER_RESIGNING, 60_000, 6),
        line(EventType.CONTROLLER_RESIGNED, 60_030, 7),
    ]
    (found,) = take_overs([span(1, 4, 10, 60)], lines)
    assert (found.took_over_ms, found.resigned_ms) == (100, 30)
    assert (found.found_brokers, found.found_partitions_count, found.found_offline_count) == ((1, 3), 5, 2)
    assert found.steps == (
        "epoch_incremented +0",
        "register_handlers +5",
        "partition_states_initialised +90",
        "ready +100",
    )


def test_lines_belong_to_the_tenure_in_which_their_controller_was_elected_last():
    tenures = [span(1, 1, 10), span(2, 2, 20), span(1, 3, 30)]
    assert [since // SECOND for since, _ in line_windows(tenures)] == [8, 18, 28]
    lines = [
        line(EventType.CONTROLLER_READY, 11_000, 1),
        line(EventType.CONTROLLER_READY, 21_000, 1, controller=2),
        line(EventType.CONTROLLER_READY, 31_000, 2),
    ]
    assert [found.ready_at and found.ready_at // SECOND for found in take_overs(tenures, lines)] == [11, 21, 31]
    assert take_overs([span(3, 1, 10)], lines)[0].took_over_ms is None


def judged(*lines: TakeOverLine) -> Verdicts:
    tenures, verdicts = [span(1, 1, 10)], Verdicts()
    judge_take_overs(tenures, take_overs(tenures, lines), verdicts)
    return verdicts


def test_steps_in_another_order_break_the_rule_and_missing_ones_do_not():
    elected = line(EventType.CONTROLLER_ELECTED, 10_000, 1, controller_epoch=1)
    handlers = line(EventType.CONTROLLER_FAILOVER_STEP, 10_010, 2, step="register_handlers")
    ready = line(EventType.CONTROLLER_READY, 10_020, 3)
    assert judged(elected, handlers, ready).counts == {("R16", "kept"): 1}
    assert judged(elected, ready).counts == {("R16", "kept"): 1}
    early = line(EventType.CONTROLLER_READY, 10_005, 2)
    late = line(EventType.CONTROLLER_FAILOVER_STEP, 10_010, 3, step="register_handlers")
    found = judged(elected, early, late)
    assert [(f.rule_id, f.divergence_type, f.broker_id, f.evidence) for f in found.findings] == [
        ("R16", "step_out_of_order", 1, ("line-2", "line-3"))
    ]


def test_a_take_over_that_begins_anew_and_a_clock_that_was_set_break_no_order():
    ready = line(EventType.CONTROLLER_READY, 10_005, 2)
    again = line(EventType.CONTROLLER_ELECTED, 10_010, 3, controller_epoch=2)
    assert judged(ready, again).findings == []
    set_back = line(EventType.CONTROLLER_FAILOVER_STEP, 9_000, 3, step="register_handlers")
    assert judged(ready, set_back).findings == []


@pytest.mark.parametrize("name", ["failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1"])
def test_every_controller_of_a_failover_is_an_episode(name: str, unpacked: Unpacker):
    cluster = plain_capture(CaptureText.read(unpacked(name))).cluster
    assert [span.tenure.controller_epoch for span in cluster.tenures] == [1, 2, 3]
    assert all(0 < (found.took_over_ms or 0) < 500 for found in cluster.take_overs)
    assert [len(found.found_brokers or ()) for found in cluster.take_overs[1:]] == [2, 2]
    assert [found.found_offline_count for found in cluster.take_overs[1:]] == [0, 0]
    assert all((episode.without_controller_ms or 0) < 1000 for episode in cluster.episodes)
    assert [episode.brokers_went_count for episode in cluster.episodes] == [1, 0, 0]


@pytest.mark.parametrize("name", ["failover-1.1.1", "failover-3.9.1"])
def test_all_steps_that_change_places_are_found(name: str, unpacked: Unpacker):
    subject = Subject.of(name, CaptureText.read(unpacked(name)))
    bends = list(steps_change_places(subject))
    assert len(bends) > 20
    assert [bend.note for bend in bends[::5] if not outcome(subject, bend).is_found] == []
