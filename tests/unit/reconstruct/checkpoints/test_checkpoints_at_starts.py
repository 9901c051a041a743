"""R37: what a start shows of its log directory: wiped, or ahead of its logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconstruct.checkpoints.evidence import BrokerLine, LineKind, lines_of
from tests.unit.reconstruct.checkpoints.small_histories import (
    EVER,
    HW,
    SECOND,
    START,
    T,
    U,
    broker,
    content,
    every_second,
    findings,
    loaded,
    no_entry,
    rising,
    told,
)


def wiped(end_of_u: int = 0) -> list[BrokerLine]:
    return [
        BrokerLine(START, LineKind.DIRECTORY_CREATED, path="/kafka/data", evidence_id="made"),
        loaded(START + 1, 0),
        no_entry(START + 2),
        loaded(START + 1, end_of_u, U),
    ]


def test_a_directory_whose_replicas_all_begin_again_was_wiped() -> None:
    files = {place: value for place, value in every_second(rising(9)).items() if not 3000 < place[2] < 6000}
    files["data", HW, 6000] = content({"t": 0, "u": 0})
    (finding,) = findings(broker(files, wiped(), [START]))
    assert (finding.divergence_type, finding.severity, finding.at) == ("log_directory_wiped", "error", START)
    assert "t-0 (40), u-0 (41)" in finding.expected
    assert "log directory created" in finding.explanation
    assert "t-0 fell from 40 to 0" in finding.explanation
    assert "made" in finding.evidence


def test_what_one_start_lost_is_not_lost_again_at_the_next() -> None:
    again = START + 2 * SECOND
    lines = [*wiped(), loaded(again + 1, 0), loaded(again + 1, 0, U)]
    found = findings(broker(every_second(rising(5)), lines, [START, again]))
    assert [(f.divergence_type, f.at) for f in found] == [("log_directory_wiped", START)]


def test_a_log_that_may_have_been_deleted_and_made_anew_is_a_warning() -> None:
    seen = replace(broker(every_second(rising(5)), wiped(), [START]), covered=[])
    assert told(seen) == [("log_directory_wiped", "error", 5)]  # assigned all the time
    assert told(replace(seen, assigned={})) == [("log_directory_wiped", "warning", 5)]


@pytest.mark.parametrize(("epochs", "severity"), [((3, 1), "warning"), ((3, 4), "error"), ((3,), "error")])
def test_a_node_whose_quorum_begins_again_was_formatted_for_another_cluster(
    epochs: Sequence[int], severity: str
) -> None:
    led = [
        line
        for at, epoch in zip((1, START - 1), epochs, strict=False)
        for line in lines_of(
            at,
            f"quorum{epoch}",
            "quorum_state_changed",
            {"quorum_state": "Leader", "quorum_epoch": str(epoch), "quorum_leader": "1", "step": "completed"},
        )
    ]
    (finding,) = findings(broker(every_second(rising(5)), [*wiped(), *led], [START]))
    assert (finding.divergence_type, finding.severity) == ("log_directory_wiped", severity)
    assert ({"quorum3", "quorum1"} <= set(finding.evidence)) == (severity == "warning")
    assert ("fell from 3 to 1" in finding.explanation) == (severity == "warning")


def test_a_clock_that_was_set_back_orders_no_lines() -> None:
    unreadable = BrokerLine(3, LineKind.UNREADABLE, None, None, "/data/replication-offset-checkpoint", "", "bad")
    seen = replace(broker({}, [loaded(1, 9), *wiped(), unreadable], [START]), clock_slack_us=EVER)
    kinds = [f.divergence_type for f in findings(seen)]
    assert sorted(kinds) == ["checkpoint_malformed", "log_directory_wiped"]
    assert [f.divergence_type for f in findings(replace(seen, is_set_back=True))] == ["checkpoint_malformed"]


def test_a_directory_with_one_log_left_was_not_wiped_but_a_log_lacks_what_was_committed() -> None:
    found = findings(broker(every_second(rising(5)), wiped(end_of_u=60)[1:], [START]))
    assert "log_directory_wiped" not in [f.divergence_type for f in found]
    (beyond,) = [f for f in found if f.divergence_type == "checkpoint_beyond_log"]
    assert "a log up to 0" in beyond.observed


def test_a_log_that_ends_below_its_high_watermark_lost_committed_records() -> None:
    seen = broker(every_second(rising(5)), [loaded(START, 44), loaded(START, 51, U)], [START])
    (finding,) = findings(seen)
    assert (finding.divergence_type, finding.severity) == ("checkpoint_beyond_log", "warning")
    assert "6 committed records are gone from its disk" in finding.explanation
    cut = [*seen.lines, BrokerLine(2 * SECOND, LineKind.TRUNCATED, T, 44)]
    assert told(replace(seen, lines=cut)) == []


def test_what_a_directory_held_that_was_made_anew_is_lost_once() -> None:
    made = BrokerLine(3 * SECOND, LineKind.DIRECTORY_CREATED, path="/kafka/data", evidence_id="made")
    lines = [loaded(SECOND, 40), made, loaded(START + 1, 0)]
    assert told(broker({}, [lines[0], lines[2]], [0, 2 * SECOND, START])) != []
    assert told(broker({}, lines, [0, 2 * SECOND, START])) == []
    # a second directory, while the first one holds what it held
    assert told(broker({}, [*lines, loaded(3 * SECOND + 1, 7, U)], [0, 2 * SECOND, START])) != []


def test_logs_that_were_deleted_before_the_start_were_not_wiped() -> None:
    lines = [*wiped(), *(BrokerLine(4 * SECOND + 1, LineKind.DELETED, r) for r in (T, U))]
    assert told(broker(every_second(rising(5)), lines, [START])) == []
