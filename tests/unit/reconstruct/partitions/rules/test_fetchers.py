"""R26 and the timeline that it judges: whom followers fetch from, by which thread, and what their fetchers gave up."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from ingest.shapes.broker_settings import BrokerSetting
from ingest.shapes.event_types import EventType
from reconstruct.cluster.settings import Configuration
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import BROKEN, CANNOT_BE_JUDGED, KEPT
from reconstruct.model.fetchers import fetcher_id, java_hash
from reconstruct.model.versions import KafkaVersion, VersionRange
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import ZNODE_ASSIGNMENT, ZNODE_STATE, Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import plain_capture

SECOND = 1_000_000
VERSION = VersionRange.exactly(KafkaVersion((3, 9, 1)))


@pytest.mark.parametrize(
    ("text", "value"), [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -2147483648)]
)
def test_a_topic_is_hashed_as_java_does(text: str, value: int) -> None:
    assert java_hash(text) == value


@pytest.mark.parametrize(
    ("version", "partition_id", "thread"),
    [
        ((3, 9), 0, -2147483648 % 3),  # 31 * Integer.MIN_VALUE overflows to itself, whose absolute value is 0
        ((0, 8, 2), 1, 2147483647 % 3),
        ((0, 8, 1), 1, 1),
        ((0, 8, 0), 0, -2),
    ],
)
def test_the_thread_is_that_of_the_version_s_own_arithmetic(
    version: tuple[int, ...], partition_id: int, thread: int
) -> None:
    expected = 0 if (version, partition_id) == ((3, 9), 0) else thread
    assert fetcher_id("polygenelubricants", partition_id, 3, KafkaVersion(version)) == expected


def line(kind: str, at: float, **values: object) -> Evidence:
    """A line of broker 2's logs."""
    id_ = f"{kind}-{at:g}"
    of = {"file": "f", "source_kind": "server_log", "broker_id": 2, "offset": round(at * 10)} | values
    return Evidence(id_, kind, round(at * SECOND), **of)  # type: ignore[arg-type]


def state(at: float, leader: int, epoch: int, isr: tuple[int, ...], version: int) -> Evidence:
    return Evidence(
        f"z{version}",
        ZNODE_STATE,
        round(at * SECOND),
        leader=leader,
        leader_epoch=epoch,
        isr=isr,
        partition_epoch=version,
        state_controller_epoch=1,
    )


def follows(at: float, leader: int, epoch: int) -> Evidence:
    return line("leader_epoch_started", at, role="follower", leader=leader, leader_epoch=epoch)


ASSIGNED = Evidence("a", ZNODE_ASSIGNMENT, 0, replicas=(1, 2, 3))
#: 1 leads at epoch 0, 3 from second 10 on at epoch 1, 1 again from second 100 on.
DECIDED = (
    state(0, 1, 0, (1, 2, 3), 0),
    state(10, 3, 1, (2, 3), 1),
    state(100, 1, 2, (1, 2, 3), 2),
)
TOLD = (follows(1, 1, 0), follows(10.1, 3, 1), follows(100.1, 1, 2))
ADDED = (
    line("fetcher_added", 1.1, leader=1, fetch_offset=0),
    line("fetcher_removed", 10.1),
    line("fetcher_added", 10.2, leader=3, fetch_offset=7),
    line("fetcher_removed", 100.1),
    line("fetcher_added", 100.2, leader=1, fetch_offset=9),
)


def judged(*facts: Evidence, view: ClusterView | None = None) -> Case:
    return fold_partition("t", [ASSIGNED, *DECIDED, *facts], view or ClusterView("c", VERSION), partition_id=4)


def r26(case: Case) -> dict[str, int]:
    return {verdict: times for (rule, verdict), times in case.verdicts.counts.items() if rule == "R26"}


def types(case: Case) -> list[tuple[str, str]]:
    return [(f.divergence_type, f.severity) for f in case.verdicts.findings if f.rule_id == "R26"]


def test_a_follower_that_fetches_from_each_leader_in_turn_keeps_the_rule() -> None:
    case = judged(
        *TOLD,
        *ADDED,
        view=ClusterView("c", VERSION, configurations={2: Configuration({BrokerSetting.FETCHERS: ["5"]})}),
    )
    spans = [(s.leader, s.fetch_offset, s.ended_by, s.fetcher_id) for s in case.fetchers[2]]
    assert spans == [(1, 0, "removed", 0), (3, 7, "removed", 0), (1, 9, None, 0)]
    assert r26(case) == {KEPT: 2, CANNOT_BE_JUDGED: 1}


def test_a_fetcher_for_a_broker_that_led_at_no_epoch_around_is_an_error() -> None:
    wrong = [replace(fact, leader=1) if fact.at == round(10.2 * SECOND) else fact for fact in ADDED]
    # epochs 0 to 2 were told around it, of which 1 led two: it may be either
    assert types(judged(*TOLD, *wrong)) == []
    wrong = [replace(fact, leader=4) if fact.at == round(10.2 * SECOND) else fact for fact in ADDED]
    assert types(judged(*TOLD, *wrong)) == [("fetched_from_wrong_leader", "error")]


def test_a_broker_that_acts_on_a_lower_leader_epoch_may_fetch_from_its_leader() -> None:
    """That it took that epoch is told by others."""
    lower = (follows(50, 4, 0), line("fetcher_added", 50.1, leader=4, fetch_offset=8))
    case = judged(*TOLD, *ADDED[:3], *lower)
    assert types(case) == []
    assert [f.rule_id for f in case.verdicts.findings if f.severity == "error"] == ["R20"]


def test_an_epoch_of_damaged_text_is_not_counted_up_to() -> None:
    """Between what the broker was told of before and after lie two thousand million epochs, of which none is known."""
    case = judged(*TOLD[:2], *ADDED[:2], line("fetcher_added", 50, leader=2), follows(100, 1, 2**31 - 1))
    assert (types(case), r26(case)) == ([], {"kept": 1, "cannot_be_judged": 1})


def test_the_logs_of_a_broker_whose_clock_was_set_back_have_no_order() -> None:
    # its server.log is an hour early: by its times it fetches from the leader of epoch 1 before it is told of any
    early = [replace(fact, at=fact.at - 3600 * SECOND) for fact in ADDED[2:]]
    assert types(judged(*TOLD, *early)) == [("fetched_from_wrong_leader", "error")]
    case = judged(*TOLD, *early, view=ClusterView("c", VERSION, set_back={2: 3_600_000_000}))
    assert r26(case) == {CANNOT_BE_JUDGED: 1}


def test_of_an_epoch_of_which_nothing_is_known_it_may_have_been_the_leader() -> None:
    unknown = (TOLD[0], follows(100.1, 1, 4))
    wrong = [replace(fact, leader=4) if fact.at == round(10.2 * SECOND) else fact for fact in ADDED]
    assert types(judged(*unknown, *wrong)) == []


def test_the_last_fetcher_is_judged_where_a_znode_shows_its_epoch_later() -> None:
    last = [*ADDED[:4], replace(ADDED[4], leader=4)]
    assert types(judged(*TOLD, *last)) == []
    assert types(judged(*TOLD, *last, state(300, 1, 2, (1, 2, 3), 3))) == [("fetched_from_wrong_leader", "error")]


def test_a_fetcher_is_judged_by_the_leader_epoch_that_its_line_prints() -> None:
    """Nothing else tells of the epochs of the last one."""
    last = [*ADDED[:4], replace(ADDED[4], leader=3, leader_epoch=2)]
    case = judged(*TOLD, *last)
    assert types(case) == [("fetched_from_wrong_leader", "error")]
    (finding,) = [found for found in case.verdicts.findings if found.rule_id == "R26"]
    assert "at none of the leader epochs that the line prints (leader epoch: leader: 2: 1)" in finding.explanation
    assert types(judged(*TOLD, *ADDED[:4], replace(last[4], leader=1))) == []
    assert types(judged(*TOLD, *ADDED[:4], replace(last[4], leader_epoch=3))) == [], "of epoch 3 nothing is known"
    again = fold_partition("t", [ASSIGNED, *DECIDED, *TOLD, *last], ClusterView("c", VERSION), is_only=False)
    assert types(again) == [], "another incarnation may have had that epoch, too"


def test_a_thread_that_is_told_to_stop_may_still_write_of_the_partition() -> None:
    late = line("fetch_failed", 12, leader=1, fetcher_id=0)
    assert types(judged(*TOLD, *ADDED, late)) == []
    other = line("fetch_failed", 50, leader=4, fetcher_id=0)
    assert types(judged(*TOLD, *ADDED, other)) == [("fetched_from_wrong_leader", "error")]


GIVEN_UP = line("fetcher_failed", 20, leader=3, fetcher_id=1)


def test_trouble_is_counted_and_a_partition_that_was_given_up_is_failed_until_it_is_added_again() -> None:
    trouble = (line("fetch_failed", 15, leader=3, fetcher_id=1), line("fetcher_waiting", 16, leader=3, fetcher_id=1))
    case = judged(*TOLD, *ADDED, *trouble, GIVEN_UP)
    spans = [(s.state, s.leader, s.ended_by, s.failure_count, s.last_failure) for s in case.fetchers[2]]
    assert spans == [
        ("fetching", 1, "removed", 0, None),
        ("fetching", 3, "failed", 2, "fetcher_waiting"),
        ("failed", 3, "removed", 0, None),
        ("fetching", 1, None, 0, None),
    ]
    assert types(case) == []


def test_a_partition_that_was_given_up_for_good_is_told_unless_its_replica_is_in_the_isr() -> None:
    left = (*ADDED[:3], GIVEN_UP)
    out = state(50, 3, 1, (3,), 9)
    without = [ASSIGNED, DECIDED[0], DECIDED[1], out, *TOLD[:2], *left, line("isr_update_failed", 200, broker_id=3)]
    assert types(fold_partition("t", without, ClusterView("c", VERSION))) == [("fetcher_left_failed", "warning")]
    assert types(judged(*TOLD[:2], *left)) == []


def test_a_new_process_has_no_fetchers() -> None:
    view = ClusterView("c", VERSION, process_starts={2: ((60 * SECOND, "start"),)})
    spans = judged(*TOLD, *ADDED[:3], view=view).fetchers[2]
    assert [(s.end, s.ended_by) for s in spans] == [(round(10.1 * SECOND), "removed"), (60 * SECOND, "process_started")]


def test_fetchers_of_captures_are_right_and_found_where_their_leader_is_another(unpacked: Unpacker) -> None:
    """Ten of each capture; what its own log does not settle stays unjudged."""
    bent = found = 0
    for name in capture_names():
        capture = plain_capture(unpacked(name))
        cases = capture.fold()
        assert [key for key, case in cases.items() if types(case)] == []
        added = [(key, f) for key, case in cases.items() for f in case.facts if f.kind == EventType.FETCHER_ADDED]
        for key, fact in Random(name).sample(added, min(10, len(added))):
            facts = [replace(one, leader=99) if one is fact else one for one in capture.facts[key]]
            other = fold_partition(key[0], facts, capture.view, partition_id=key[1])
            if r26(other).get(KEPT, 0) < r26(cases[key]).get(KEPT, 0):
                bent += 1
                found += r26(other).get(BROKEN, 0) > 0
    assert bent > 40
    assert found == bent
