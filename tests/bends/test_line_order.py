"""Logs whose lines are not in the order of what happened: nothing is concluded from that order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reconstruct.clocks.evidence import LogFact, log_marks
from reconstruct.cluster.spans import LogSpan
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence, came_before
from reconstruct.partitions.reexecution.controller_log import controller_logs, ordered_logs
from reconstruct.partitions.timeline import fold_partition
from reconstruct.requests.evidence import Request
from reconstruct.requests.lossy_logs import missing_lines
from reconstruct.requests.rules.acceptance import judge_acceptance
from reconstruct.requests.rules.propagation import judge_propagation
from reconstruct.time.line_order import FAR_BACK_US, JUMP_BACK_US, is_in_order, jumps_back
from tests.figures import Figure
from tests.support.bends.wrong_clocks import accusations, decided
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.clocks import with_announcements
from tests.support.evidence.corrected import brokers
from tests.support.evidence.lines import matched_lines
from tests.support.evidence.partitions import Partition, plain_capture
from tests.unit.reconstruct.requests.test_propagation import DONE, START, S, types, view

MS, HOUR = 1_000, 3_600 * S


# --- when a file is in order


def verdict(instants: list[int]) -> bool:
    return is_in_order(len(instants), jumps_back(instants), jumps_back(instants, FAR_BACK_US))


def test_threads_that_overtake_each_other_by_milliseconds_leave_a_file_in_order() -> None:
    instants = [START + number * 10 * MS - (number % 3) * 15 * MS for number in range(1000)]
    assert any(later < earlier for earlier, later in itertools.pairwise(instants))
    assert verdict(instants)


@pytest.mark.parametrize("back", [2 * S, 40 * S, HOUR])
@pytest.mark.parametrize("times", [1, 2])
def test_a_clock_set_back_once_or_twice_leaves_a_file_in_order(back: int, times: int) -> None:
    steps = [number >= 300 * (step + 1) for step in range(times) for number in range(1000)]
    set_back = [sum(steps[number::1000]) * back for number in range(1000)]
    assert verdict([START + number * S - set_back[number] for number in range(1000)])


def test_a_disk_that_stalled_now_and_then_leaves_a_long_file_in_order() -> None:
    instants = [START + number * S for number in range(10_000)]
    for stalled in range(500, 10_000, 500):
        instants[stalled], instants[stalled + 3] = instants[stalled + 3], instants[stalled]
    assert jumps_back(instants) == 38
    assert verdict(instants)


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_file_is_not_in_order(seed: int) -> None:
    instants = [START + number * S // 4 for number in range(40)]
    random.Random(seed).shuffle(instants)
    assert not verdict(instants)


@pytest.mark.parametrize("pieces", [4, 10, 50])
def test_pieces_of_a_rolled_log_from_the_newest_on_are_not_in_order(pieces: int) -> None:
    hours = [[START + hour * HOUR + line * S for line in range(3600)] for hour in range(pieces)]
    assert not verdict([instant for hour in reversed(hours) for instant in hour])
    assert verdict([instant for hour in hours for instant in hour])


# --- what is then not concluded


def unordered(cluster: ClusterView, broker_id: int) -> ClusterView:
    spans = tuple(replace(span, is_in_order=False) for span in cluster.logs[broker_id])
    return replace(cluster, logs={**cluster.logs, broker_id: spans})


STALE = replace(
    DONE, controller_epoch=3, accepted_epoch_before=4, accepted_at_before=START + 50 * S, accepted_ref_before="other"
)


def judged(request: Request, cluster: ClusterView) -> dict[tuple[str, str], int]:
    verdicts = Verdicts()
    judge_acceptance(request, cluster, verdicts)
    return dict(verdicts.counts)


def test_a_stale_controller_is_accused_of_only_where_lines_are_in_order() -> None:
    assert ("accepted_stale_controller", "error") in types(STALE, view())
    assert judged(STALE, unordered(view(), 2)) == {("R12", "cannot_be_judged"): 1}
    assert judged(STALE, unordered(view(), 3)) == {("R12", "broken"): 1}


def test_what_stands_before_a_line_and_is_later_by_the_clock_was_not_accepted_before_it() -> None:
    later = replace(STALE, accepted_at_before=(STALE.received_at or 0) + S)
    assert judged(later, view()) == {("R12", "cannot_be_judged"): 1}


def test_a_refusal_is_not_recomputed_where_the_lines_of_its_request_may_be_another_s() -> None:
    refused = replace(DONE, is_refused=True, accepts=False, known_epoch=4)
    assert judged(refused, view()) == {("R21", "broken"): 1}
    assert judged(refused, unordered(view(), 2)) == {("R21", "cannot_be_judged"): 1}


def test_a_request_that_lines_out_of_order_make_was_not_never_sent() -> None:
    unsent = replace(DONE, sent_at=None, sent_ref=None)
    assert ("request_never_sent", "warning") in types(unsent, view())
    assert [proof.broker_id for proof in missing_lines(unsent, view())] == [1]
    verdicts = Verdicts()
    judge_propagation(unsent, unordered(view(), 2), verdicts)
    assert verdicts.counts == {("R23", "cannot_be_judged"): 1}
    assert list(missing_lines(unsent, unordered(view(), 2))) == []


def test_a_log_out_of_order_is_believed_no_silence() -> None:
    assert view().logs_all(2, START, START + S)
    assert not unordered(view(), 2).logs_all(2, START, START + S)


def fact(at: int, offset: int, **values: object) -> Evidence:
    given = {"controller_id": 1, "controller_epoch": 4, "source_kind": "state_change_log", **values}
    return Evidence(f"{at}:{offset}", "leader_and_isr_sent", at, file="a", offset=offset, **given)  # type: ignore[arg-type]


def test_of_two_lines_one_came_first_only_if_clock_and_place_agree() -> None:
    cluster = view()
    assert came_before(fact(1, 1), fact(1, 2), cluster)
    assert came_before(fact(1, 1), fact(2, 2), cluster)
    assert not came_before(fact(1, 2), fact(2, 1), cluster)
    assert not came_before(fact(2, 1), fact(1, 2), cluster)
    assert came_before(fact(1, 2), replace(fact(2, 1), file="b"), cluster)
    assert not came_before(fact(1, 1), fact(2, 2), unordered(cluster, 1))
    assert came_before(fact(1, 1), fact(2, 2), unordered(cluster, 2))


def test_a_controller_s_log_whose_times_jump_back_proves_nothing() -> None:
    in_order, back = [fact(START, 1), fact(START + S, 2)], [fact(START + JUMP_BACK_US + 1, 1), fact(START, 2)]
    assert len(ordered_logs(in_order, view())) == len(controller_logs(back)) == 1
    assert ordered_logs(back, view()) == []
    assert ordered_logs(in_order, unordered(view(), 1)) == []


def registered(announced_at: int) -> list[str]:
    at = START + HOUR
    lines = (
        LogFact("1", "server_log", "broker_server_starting", announced_at, 3, {}),
        LogFact("2", "server_log", "broker_registered", at, 3, {"broker_id": "3", "broker_epoch": "42"}),
    )
    return [mark.rule for fact in with_announcements(lines) for mark in log_marks(fact) if mark.is_earlier]


def test_a_registration_is_announced_by_no_line_that_is_later() -> None:
    assert registered(START) == ["registering_before_registered", "registering_before_broker_epoch_cached"]
    assert registered(START + 2 * HOUR) == []


# --- captures of which one state-change.log was put in another order


def _shuffled(lines: Lines) -> Lines:
    mixed = list(lines)
    random.Random(len(lines)).shuffle(mixed)
    return tuple(mixed)


def _pieces(count: int) -> Callable[[Lines], Lines]:
    def reversed_pieces(lines: Lines) -> Lines:
        length = len(lines) // count + 1
        begins = range(0, len(lines), length)
        return tuple(line for begin in reversed(begins) for line in lines[begin : begin + length])

    return reversed_pieces


def _backwards(lines: Lines) -> Lines:
    return lines[::-1]


ORDERS = (_shuffled, _backwards, _pieces(2), _pieces(5), lambda lines: tuple(sorted(lines)))
NAMES = ("shuffled", "backwards", "second half first", "five pieces, newest first", "sorted")
#: Captures and brokers whose shuffled logs gave errors.
SOME = [("failover-3.9.1", 1), ("failover-3.9.1", 3), ("lifecycle-1.1.1", 1), ("lifecycle-0.8.2.2", 2)]


def folded(text: CaptureText) -> dict[Partition, Case]:
    """The histories, each file of a state-change log judged by its own times."""
    capture = plain_capture(text)
    printed: dict[int, list[int]] = {}
    for line in matched_lines(text):
        if line.source_kind == "state_change_log":
            printed.setdefault(line.broker_id, []).append(line.at)
    logs: dict[int, tuple[LogSpan, ...]] = {
        broker_id: tuple(replace(span, is_in_order=verdict(printed[broker_id])) for span in spans)
        for broker_id, spans in capture.view.logs.items()
    }
    cluster = replace(capture.view, logs=logs)
    return {key: fold_partition(key[0], capture.facts[key], cluster) for key in sorted(capture.facts)}


@pytest.mark.parametrize("name", capture_names())
def test_real_logs_are_in_order(name: str, unpacked: Unpacker) -> None:
    text = CaptureText.read(unpacked(name))
    by_file: dict[str, list[int]] = {}
    for line in matched_lines(text):
        by_file.setdefault(line.file, []).append(line.at)
    assert by_file
    for instants in by_file.values():
        assert jumps_back(instants) == 0


def _wanted() -> list[tuple[str, int]]:
    return [(name, broker) for name in capture_names() for broker in (1, 2, 3)] if IS_HARD else SOME


@pytest.mark.parametrize("order", ORDERS, ids=NAMES)
@pytest.mark.parametrize(("name", "broker"), _wanted())
def test_a_log_in_another_order_accuses_nobody_and_changes_no_state(
    name: str, broker: int, order: Callable[[Lines], Lines], unpacked: Unpacker, record_property: Any
) -> None:
    right = CaptureText.read(unpacked(name))
    log = f"broker-{broker}/logs/state-change.log"
    wrong = CaptureText({**right.files, log: order(right.files[log])})
    assert brokers(wrong) == brokers(right)
    expected, found = folded(right), folded(wrong)
    assert accusations(found) - accusations(expected) == {}
    assert decided(found) == decided(expected)
    record_property(Figure.HARMLESS, 1)
