"""R37 on small histories: one broker, copies each second, one thing wrong; and none where nothing is proven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest

from reconstruct.checkpoints.evidence import (
    AssignedSpan,
    BrokerCheckpoints,
    BrokerLine,
    LineKind,
    ProvenHighWatermark,
    Replica,
    lines_of,
)
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.findings.verdicts import Finding
from reconstruct.model.versions import ANY_VERSION, KafkaVersion, VersionRange
from tests.support.evidence.checkpoints import Files, read_checkpoints

HW, RECOVERY = "replication-offset-checkpoint", "recovery-point-offset-checkpoint"
SECOND = 1_000_000
R37, UNJUDGED = "R37", "cannot_be_judged"
T: Replica = ("t", "", 0)
U: Replica = ("u", "", 0)
EVER = 1 << 60
START, BEGIN = 5 * SECOND, 0


def version(text: str) -> VersionRange:
    parsed = KafkaVersion.parse(text)
    assert parsed is not None
    return VersionRange.exactly(parsed)


def content(entries: Mapping[str, int]) -> bytes:
    lines = [f"{name} 0 {offset}" for name, offset in entries.items()]
    return "".join(f"{line}\n" for line in ["0", str(len(lines)), *lines]).encode()


def every_second(values: Sequence[Mapping[str, int] | bytes | None], directory: str = "data") -> Files:
    """A copy of the high watermarks each second; the recovery points are copied beside it, always."""
    files: Files = {(directory, RECOVERY, 1000 * n): content({"t": 0, "u": 0}) for n in range(len(values))}
    for n, value in enumerate(values):
        files[directory, HW, 1000 * n] = value if value is None or isinstance(value, bytes) else content(value)
    return files


def broker(
    files: Files, lines: Iterable[BrokerLine] = (), starts: Iterable[int] = (), kafka: VersionRange | None = None
) -> BrokerCheckpoints:
    copies, entries = read_checkpoints(files)
    assigned = {replica: [AssignedSpan(-(10**9), None, True)] for replica in (T, U)}
    return BrokerCheckpoints(
        1,
        kafka or version("1.1.1"),
        copies,
        entries,
        list(lines),
        [(at, f"start{at}") for at in starts],
        assigned,
        covered=[(-EVER, EVER)],
    )


def rising(count: int, start: int = 10) -> list[dict[str, int]]:
    return [{"t": start + 10 * n, "u": start + 10 * n + 1} for n in range(count)]


def findings(seen: BrokerCheckpoints) -> list[Finding]:
    out = judge_checkpoints(seen)
    assert len(out.replicas) == len(out.verdicts.findings)
    return out.verdicts.findings


def told(seen: BrokerCheckpoints) -> list[tuple[str, str, int]]:
    return [(f.divergence_type, f.severity, f.at // SECOND) for f in findings(seen)]


def no_entry(at: int, replica: Replica = T) -> BrokerLine:
    return BrokerLine(at, LineKind.NO_ENTRY, replica, evidence_id=f"none{replica[0]}")


def loaded(at: int, end: int, replica: Replica = T) -> BrokerLine:
    return BrokerLine(at, LineKind.LOADED, replica, end, evidence_id=f"loaded{replica[0]}")


def test_a_file_that_rises_is_kept() -> None:
    out = judge_checkpoints(broker(every_second(rising(9))))
    assert out.verdicts.findings == []
    assert out.verdicts.counts["R37", "kept"] > 9


# --- missing ---------------------------------------------------------------------------------------------------------


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


# --- zero, out of bounds, stale --------------------------------------------------------------------------------------


def test_an_entry_that_is_zero_for_one_copy_says_what_a_restart_would_do_with_it() -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"t": 0, "u": 51}, *rising(3, 60)]
    (finding,) = findings(broker(every_second(values)))
    assert (finding.divergence_type, finding.severity) == ("checkpoint_zero", "warning")
    assert "it begins with high watermark 0" in finding.explanation


def test_a_zero_that_a_new_leader_or_a_start_explains_is_by_design() -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"t": 0, "u": 51}, {"t": 0, "u": 61}]
    role = [BrokerLine(4 * SECOND, LineKind.ROLE, T)]
    assert told(broker(every_second(values), role)) == [("checkpoint_zero", "info", 4)]
    assert told(broker(every_second(values), [], [3 * SECOND + 1])) == [("checkpoint_zero", "info", 4)]
    assert told(replace(broker(every_second(values)), covered=[])) == [("checkpoint_zero", "info", 4)]


@pytest.mark.parametrize(("value", "expected"), [(7, 1), (77777, 1), (40, 0), (60, 0), (50, 0)])
def test_a_value_out_of_line_with_its_neighbours(value: int, expected: int) -> None:
    values: list[Mapping[str, int]] = [*rising(4), {"t": value, "u": 51}, *rising(3, 60)]
    seen = broker(every_second(values))
    assert [f.divergence_type for f in findings(seen)] == ["checkpoint_out_of_bounds"] * expected
    assert told(replace(seen, lines=[BrokerLine(4 * SECOND, LineKind.TRUNCATED, T, 7)])) == []
    assert told(replace(seen, covered=[])) == []


def test_a_value_that_stays_fallen_is_no_matter_of_the_checkpoint() -> None:
    assert told(broker(every_second([*rising(4), *rising(4, 5)]))) == []


def stale(**changed: object) -> BrokerCheckpoints:
    proven = {T: [ProvenHighWatermark(2 * SECOND, None, 99, ("proof",))]}
    seen = broker(every_second([{"t": 10, "u": 11}] * 12))
    seen = replace(seen, proven=proven, sessions=[(0, 20 * SECOND)], written_within=8 * SECOND)
    return replace(seen, **changed)  # type: ignore[arg-type]


def test_a_file_that_a_running_broker_did_not_write_is_stale() -> None:
    (finding,) = findings(stale())
    assert (finding.divergence_type, finding.severity, finding.at) == ("checkpoint_stale", "warning", 11 * SECOND)
    assert "reached t-0 (99) by 1970-01-01 00:00:03" in finding.explanation
    assert "proof" in finding.evidence


def test_a_file_that_may_be_old_is_not_stale() -> None:
    assert told(stale(sessions=[])) == []  # the broker may have been down
    assert told(stale(written_within=None)) == []  # its settings are not known
    assert told(stale(proven={})) == []  # nothing was written to the partition
    assert told(stale(proven={T: [ProvenHighWatermark(5 * SECOND, None, 99)]})) == []  # not for long enough
    assert judge_checkpoints(stale(written_within=30 * SECOND, sessions=[])).verdicts.counts[R37, UNJUDGED] == 0
    assert told(stale(lines=[BrokerLine(5 * SECOND, LineKind.ROLE, T)])) == []  # it may have fallen meanwhile


# --- malformed, twice, unassigned ------------------------------------------------------------------------------------

BAD = b"0\n2\nt 0 x50\nu 0 51\n"
_NAMES = f"/kafka/data/{HW}"


def test_a_damaged_file_says_what_the_start_did_with_it() -> None:
    lines = [
        BrokerLine(START, LineKind.UNREADABLE, path=_NAMES, cause="Malformed line", evidence_id="bad"),
        BrokerLine(START + 1, LineKind.DIRECTORY_FAILED, path="/kafka/data", evidence_id="failed"),
    ]
    lines += [replace(lines[0], at=START + 2, evidence_id="again")]
    (finding,) = findings(broker(every_second([*rising(4), BAD, BAD, BAD]), lines, [START]))
    assert (finding.divergence_type, finding.severity, finding.at) == ("checkpoint_malformed", "error", 4 * SECOND)
    assert "log directory /kafka/data failed" in finding.explanation
    assert "a broker without another directory stops" in finding.explanation
    assert {"bad", "failed"} <= set(finding.evidence)


@pytest.mark.parametrize(
    ("kafka", "file", "does"),
    [
        ("0.8.2.2", HW, "no replica in the directory becomes leader or follower"),
        ("0.8.2.2", RECOVERY, "the broker does not start"),
        ("0.10.2.1", RECOVERY, "every log is recovered from its first segment on"),
        ("3.9.1", RECOVERY, "the log directory goes offline"),
    ],
)
def test_a_damaged_copy_alone_says_what_a_restart_would_do(kafka: str, file: str, does: str) -> None:
    files = every_second(rising(6))
    files["data", file, 3000] = BAD if file == HW else b"0\n2\nt 0 x0\nu 0 0\n"
    (finding,) = findings(broker(files, kafka=version(kafka)))
    assert (finding.divergence_type, finding.severity) == ("checkpoint_malformed", "warning")
    assert does in finding.explanation
    assert "whole again at 1970-01-01 00:00:04" in finding.explanation


def test_the_log_alone_tells_of_a_file_that_could_not_be_read() -> None:
    lines = [BrokerLine(START, LineKind.UNREADABLE, path=_NAMES, cause="Malformed line", evidence_id="bad")] * 3
    (finding,) = findings(broker({}, lines, [START - 1]))
    assert (finding.divergence_type, finding.severity, finding.evidence) == ("checkpoint_malformed", "error", ("bad",))


def test_a_failed_write_is_no_damaged_file() -> None:
    assert told(broker({}, [BrokerLine(START, LineKind.UNREADABLE, path="/kafka/data", cause="No space left")])) == []
    cause = f"KafkaStorageException: Error while writing to checkpoint file {_NAMES}"
    assert told(broker({}, [BrokerLine(START, LineKind.UNREADABLE, path="/kafka/data", cause=cause)])) == []


@pytest.mark.parametrize(
    "cause",
    [
        f"java.io.FileNotFoundException: {_NAMES}.tmp (No such file or directory)",
        f"java.io.FileNotFoundException: {_NAMES} (The system cannot find the path specified)",
        f"java.nio.file.NoSuchFileException: {_NAMES}",
    ],
)
def test_a_file_that_was_removed_while_the_broker_ran_is_missing_and_not_damaged(cause: str) -> None:
    gone = BrokerLine(START, LineKind.UNREADABLE, path=_NAMES, cause=cause, evidence_id="gone")
    later = BrokerLine(START + 1, LineKind.UNREADABLE, path=_NAMES, cause="KafkaStorageException", evidence_id="later")
    (finding,) = findings(broker({}, [gone, later], [START - 1]))
    assert (finding.divergence_type, finding.severity) == ("checkpoint_missing", "warning")
    assert (finding.evidence, finding.observed) == (("gone",), cause)
    assert "something else did" in finding.explanation


def test_all_files_of_a_directory_that_were_removed_together_are_one_finding() -> None:
    files = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint")
    gone = [
        BrokerLine(
            START + number,
            LineKind.UNREADABLE,
            cause=f"java.nio.file.NoSuchFileException: {directory}/{file}.tmp -> {directory}/{file}",
            evidence_id=f"{directory}/{file}",
        )
        for number, (directory, file) in enumerate(product(("/one", "/other"), files))
    ]
    one, other = findings(broker({}, gone, [START - 1]))
    assert one.evidence == tuple(f"/one/{file}" for file in files)
    assert f"did not find its {' and '.join(files)} (" in one.explanation
    assert one.explanation.count("the log directory goes offline") == 1
    assert other.evidence == tuple(f"/other/{file}" for file in files)
    assert len(findings(broker({}, [gone[0], replace(gone[1], at=START + 9 * SECOND)], [START + SECOND]))) == 2


def test_an_undated_copy_is_judged_as_of_the_end() -> None:
    seen = broker(every_second([BAD]))
    copies = [replace(copy, taken_at=None) for copy in seen.copies]
    seen = replace(seen, copies=copies, entries=[], lines=[loaded(9 * SECOND, 5)])
    assert told(seen) == [("checkpoint_malformed", "warning", 9)]


@pytest.mark.parametrize(
    ("kafka", "does"), [("0.10.2.1", "refuses the file: no replica"), ("0.11.0.2", "takes the later entry, silently")]
)
def test_an_entry_given_twice(kafka: str, does: str) -> None:
    files = every_second(rising(6))
    files["data", HW, 3000] = b"0\n3\nt 0 40\nu 0 41\nt 0 39\n"
    found = findings(broker(files, kafka=version(kafka)))
    assert "checkpoint_duplicate_entry" in [f.divergence_type for f in found]
    (finding,) = [f for f in found if f.divergence_type == "checkpoint_duplicate_entry"]
    assert does in finding.explanation


def test_an_entry_of_a_replica_that_left_long_ago() -> None:
    values = [{"t": 10, "u": 11 + n // 100} for n in range(120)]
    left = {T: [AssignedSpan(-1, SECOND, True), AssignedSpan(SECOND, None, False)], U: [AssignedSpan(-1, None, True)]}
    out = judge_checkpoints(replace(broker(every_second(values)), assigned=left))
    found = [(f.divergence_type, f.severity, r) for f, r in zip(out.verdicts.findings, out.replicas, strict=True)]
    # the recovery points, not written since, are old; the high watermarks were written: the broker still has it
    assert sorted(found) == [
        ("checkpoint_unassigned_entry", "info", T),
        ("checkpoint_unassigned_entry", "warning", T),
    ]
    assert told(replace(broker(every_second(values[:60])), assigned=left)) == []
    assert told(replace(broker(every_second(values)), assigned={})) == []


# --- the log directory -----------------------------------------------------------------------------------------------


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
    unreadable = BrokerLine(3, LineKind.UNREADABLE, None, None, "/data/replication-offset-checkpoint", "x", "bad")
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


# --- what a line says ------------------------------------------------------------------------------------------------


def test_lines_are_told_by_their_event_or_by_their_exception() -> None:
    (line,) = lines_of(7, "e", "log_loaded", {"topic": "t", "partition_id": "3", "log_end_offset": "12"}, "", "", "i1")
    assert (line.kind, line.replica, line.offset) == (LineKind.LOADED, ("t", "i1", 3), 12)
    (line,) = lines_of(7, "e", "", {}, f"java.io.IOException: Malformed line ({_NAMES})", "checkpoint_malformed")
    assert (line.kind, line.replica) == (LineKind.UNREADABLE, None)
    assert [b.replica for b in lines_of(1, "e", "fetcher_added", {"topic_partitions": "t-0,u-0"})] == [T, U]
    assert list(lines_of(1, "e", "unrecognised", {}, "", "log_loaded")) == []
