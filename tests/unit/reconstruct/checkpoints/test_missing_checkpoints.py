"""R37: a file or an entry that is missing, and none where nothing is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconstruct.checkpoints.evidence import AssignedSpan, BrokerLine, LineKind, Replica
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.model.versions import ANY_VERSION
from tests.unit.reconstruct.checkpoints.small_histories import (
    HW,
    R37,
    RECOVERY,
    SECOND,
    START,
    UNJUDGED,
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
    version,
)


def test_a_file_that_rises_is_kept() -> None:
    out = judge_checkpoints(broker(every_second(rising(9))))
    assert out.verdicts.findings == []
    assert out.verdicts.counts["R37", "kept"] > 9


def test_a_start_without_the_file_tells_from_what_to_what_the_high_watermarks_fell_and_until_when() -> None:
    values = [*rising(4), None, None, {"t": 0, "u": 0}, {"t": 20, "u": 21}, {"t": 90, "u": 91}]
    lines = [line for r in (T, U) for line in (loaded(START, 60, r), no_entry(START + 1, r))]
    (finding,) = findings(broker(every_second(values), lines, [START]))
    assert (finding.divergence_type, finding.severity, finding.at) == ("checkpoint_missing", "error", 4 * SECOND)
    assert "t-0 (40), u-0 (41)" in finding.expected
    assert "with a log up to 60" in finding.explanation
    assert "t-0 fell from 40 to 0 (1970-01-01 00:00:06.000 UTC) until 90 was copied" in finding.explanation
    assert "no record is cut where leader epochs are known (KIP-101)" in finding.explanation
    assert {"nonet", "loadedt", f"start{START}"} <= set(finding.evidence)


def test_up_to_0_10_the_follower_cuts_its_log_to_the_high_watermark_it_no_longer_has() -> None:
    lines = [loaded(START, 60), no_entry(START + 1), BrokerLine(START + 2, LineKind.TRUNCATED, T, 0)]
    values = [*rising(4), None, {"t": 0, "u": 51}, {"t": 0, "u": 61}]
    (finding,) = findings(broker(every_second(values), lines, [START], version("0.10.2.1")))
    assert "cut were t-0 to 0" in finding.explanation
    assert "cuts its log down to that and fetches again" in finding.explanation
    assert "no record is cut" not in finding.explanation


def test_of_an_unknown_version_both_consequences_are_said() -> None:
    (finding,) = findings(broker(every_second([*rising(4), None, *rising(2, 60)]), kafka=ANY_VERSION))
    assert "before 0.11: as a follower it cuts" in finding.explanation
    assert "since 0.11: no record is cut" in finding.explanation
    assert "its log start offset" in finding.explanation


def test_a_file_that_is_gone_for_a_while_without_a_start_is_a_warning() -> None:
    assert told(broker(every_second([*rising(4), None, None, *rising(2, 60)]))) == [
        ("checkpoint_missing", "warning", 4)
    ]


def test_an_emptied_file_is_missing_too() -> None:
    seen = broker(every_second([*rising(4), b"", *rising(2, 60)]))
    (finding,) = findings(seen)
    assert finding.divergence_type == "checkpoint_missing"
    assert "held nothing" in finding.observed


def started_without_an_entry_of(replica: Replica, born: int, alive: int) -> list[BrokerLine]:
    """The broker creates a replica, is last heard of later, and starts at 60 s without an entry of it."""
    return [
        loaded(0, 30),
        BrokerLine(born, LineKind.CREATED, replica, evidence_id="created"),
        BrokerLine(alive, LineKind.ROLE, T, evidence_id="alive"),
        loaded(60 * SECOND, 7, replica),
        no_entry(60 * SECOND + 1, replica),
    ]


NEW: Replica = ("new", "", 0)


def test_a_replica_that_was_created_just_before_its_broker_died_has_no_entry_yet() -> None:
    for alive, expected in ((24 * SECOND, []), (26 * SECOND, [("checkpoint_missing", "warning", 60)])):
        seen = broker({}, started_without_an_entry_of(NEW, 20 * SECOND, alive), [60 * SECOND])
        assert told(seen) == expected
    dead = judge_checkpoints(broker({}, started_without_an_entry_of(NEW, 20 * SECOND, 20 * SECOND), [60 * SECOND]))
    assert dead.verdicts.counts[R37, UNJUDGED] == 1


def test_a_session_that_lasts_on_shows_that_the_broker_lived_to_write_the_entry() -> None:
    seen = broker({}, started_without_an_entry_of(NEW, 10 * SECOND, 10 * SECOND), [60 * SECOND])
    assert told(replace(seen, sessions=[(0, 30 * SECOND)])) == []
    assert told(replace(seen, sessions=[(0, 50 * SECOND)])) == [("checkpoint_missing", "warning", 60)]


def test_a_replica_younger_than_the_last_write_of_the_file_has_no_entry_yet() -> None:
    unchanged = every_second([{"t": 10, "u": 11}] * 50)
    lines = started_without_an_entry_of(NEW, 20 * SECOND, 40 * SECOND)
    assert ("checkpoint_missing", "warning", 60) not in told(broker(unchanged, lines, [60 * SECOND]))
    written = every_second(rising(50))
    assert ("checkpoint_missing", "warning", 60) in told(broker(written, lines, [60 * SECOND]))


def test_a_round_in_which_nothing_of_the_directory_was_copied_proves_nothing() -> None:
    files = every_second([*rising(4), None, None, *rising(2, 60)])
    for at in (4000, 5000):
        del files["data", RECOVERY, at]
    assert told(broker(files)) == []


def test_a_file_that_is_copied_less_often_than_its_neighbours_is_not_missing() -> None:
    seen = broker(every_second([value if n % 3 == 0 else None for n, value in enumerate(rising(16))]))
    assert told(seen) == []
    assert judge_checkpoints(seen).verdicts.counts["R37", "cannot_be_judged"] > 2


def test_two_empty_copies_of_one_round_are_known_once() -> None:
    """Ingest knows a copy by its content: an empty one of another directory may stand for both."""
    files = every_second([*rising(4), None, *rising(2, 60)])
    assert told(broker({**files, ("data2", HW, 4000): content({"t": 5})})) == [("checkpoint_missing", "warning", 4)]
    assert told(broker({**files, ("data2", HW, 4000): b"0\n0\n"})) == []


def test_a_file_that_was_never_there_is_not_missing() -> None:
    assert told(broker(every_second([None, None, {"t": 1, "u": 1}]))) == []


def test_lines_alone_tell_of_a_missing_checkpoint_but_a_kill_before_its_first_write_explains_them() -> None:
    lines = [loaded(START, 60), no_entry(START + 1), loaded(1 * SECOND, 30)]
    (finding,) = findings(broker({}, lines, [0, START]))
    assert (finding.divergence_type, finding.severity) == ("checkpoint_missing", "warning")


def test_a_topic_made_anew_over_a_log_that_its_cluster_forgot_has_no_entry_any_more() -> None:
    """ZooKeeper was wiped: the file was written anew, with what the broker was told of until then, before the topic was
    created again and found its old log."""
    served = BrokerLine(START + 1, LineKind.ROLE, U, evidence_id="leads u")
    for after, found in ((4 * SECOND, ["checkpoint_missing"]), (6 * SECOND, [])):
        lines = [loaded(SECOND, 60), loaded(START, 60), served, no_entry(START + after)]
        out = judge_checkpoints(broker({}, lines, [START]))
        assert [finding.divergence_type for finding in out.verdicts.findings] == found
        assert out.verdicts.counts[R37, UNJUDGED] == (not found)


def test_a_replica_that_is_new_has_no_checkpoint() -> None:
    lines = [loaded(START, 0), BrokerLine(START, LineKind.CREATED, T), no_entry(START + 1)]
    assert told(broker(every_second([{}, {}, {}]), lines, [0, START])) == []
    # of the same name as one that left: its log is made anew
    zero = [{"t": 0, "u": 0}] * 5
    assert told(broker(every_second(zero), lines, [START])) == []


def test_until_0_8_2_a_kill_after_a_start_may_lose_entries() -> None:
    lines = [loaded(START, 60), no_entry(START + 1)]
    (finding,) = findings(broker(every_second(rising(5)), lines, [START], version("0.8.1.1")))
    assert (finding.severity, finding.known_issue) == ("warning", "KAFKA-1647 (fixed in 0.8.2)")
    (later,) = findings(broker(every_second(rising(5)), lines, [START], version("0.8.2.2")))
    assert later.known_issue is None
    assert findings(broker(every_second(rising(5)), [loaded(START, 60)], [START], version("0.8.1.1"))) == []


def test_a_log_may_have_moved_to_another_directory_just_before_the_start() -> None:
    other = {("data2", file, 1000 * n): content({}) for file in (HW, RECOVERY) for n in range(5)}
    lines = [loaded(START, 60), no_entry(START + 1)]
    assert told(broker({**every_second(rising(5)), **other}, lines, [START])) == [("checkpoint_missing", "warning", 5)]
    assert told(broker(every_second(rising(5)), lines, [START])) == [("checkpoint_missing", "error", 5)]


def test_an_entry_that_one_copy_lacks_is_missing() -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"u": 51}, *rising(3, 60)]
    out = judge_checkpoints(broker(every_second(values)))
    (finding,) = out.verdicts.findings
    assert (finding.divergence_type, finding.severity, finding.at) == ("checkpoint_missing", "warning", 4 * SECOND)
    assert out.replicas == [T]
    assert "no entry for t-0" in finding.observed


@pytest.mark.parametrize("why", ["deleted", "left", "moved", "unknown", "damaged"])
def test_an_entry_that_goes_for_a_reason_is_not_missing(why: str) -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"u": 51}, {"u": 61}]
    files = every_second(values)
    seen = broker(files)
    if why == "deleted":
        seen = replace(seen, lines=[BrokerLine(4 * SECOND, LineKind.DELETED, T)])
    elif why == "left":
        seen = replace(seen, assigned={T: [AssignedSpan(0, 9 * SECOND, True), AssignedSpan(9 * SECOND, None, False)]})
    elif why == "moved":
        seen = broker({**files, ("data2", HW, 4000): content({"t": 50}), ("data2", HW, 5000): content({"t": 60})})
    elif why == "unknown":
        seen = replace(seen, assigned={})
    else:
        files["data", HW, 4000] = files["data", HW, 5000] = b"0\n2\nt 0 5x\nu 0 51\n"
        seen = broker(files)
    assert "checkpoint_missing" not in [f.divergence_type for f in findings(seen)]
