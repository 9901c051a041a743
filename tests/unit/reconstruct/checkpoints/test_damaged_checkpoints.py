"""R37: files that Kafka would not read, entries twice or of a replica that left, and the lines that tell of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from reconstruct.checkpoints.evidence import AssignedSpan, BrokerLine, LineKind, RoleLines, lines_of, role_lines
from reconstruct.checkpoints.rules import judge_checkpoints
from tests.unit.reconstruct.checkpoints.small_histories import (
    HW,
    RECOVERY,
    SECOND,
    START,
    T,
    U,
    broker,
    every_second,
    findings,
    loaded,
    rising,
    told,
    version,
)

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
    lines = [BrokerLine(START, LineKind.UNREADABLE, path=_NAMES, cause="Malformed line in it", evidence_id="bad")] * 3
    (finding,) = findings(broker({}, lines, [START - 1]))
    assert (finding.divergence_type, finding.severity, finding.evidence) == ("checkpoint_malformed", "error", ("bad",))


def test_a_failed_write_is_no_damaged_file() -> None:
    assert told(broker({}, [BrokerLine(START, LineKind.UNREADABLE, path="/kafka/data", cause="No space left")])) == []
    cause = f"KafkaStorageException: Error while writing to checkpoint file {_NAMES}"
    assert told(broker({}, [BrokerLine(START, LineKind.UNREADABLE, path="/kafka/data", cause=cause)])) == []


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.IOException: ",
        "java.io.IOException: No space left on device",
        f"java.io.FileNotFoundException: {_NAMES}.tmp (Permission denied)",
        f"java.nio.file.AccessDeniedException: {_NAMES}.tmp -> {_NAMES}",
        f"java.nio.file.FileSystemException: {_NAMES}: The process cannot access the file because it is being used",
        f"org.apache.kafka.common.errors.KafkaStorageException: Error while reading checkpoint file {_NAMES}",
    ],
)
def test_what_keeps_a_file_from_being_read_or_written_says_nothing_of_its_content(cause: str) -> None:
    line = BrokerLine(START, LineKind.UNREADABLE, path=_NAMES, cause=cause)
    assert told(broker({}, [line], [START - 1])) == []


@pytest.mark.parametrize(
    "cause",
    [
        f"java.io.IOException: Malformed line in offset checkpoint file: {_NAMES}'",
        "java.io.IOException: Expected 7 entries but found only 3",
        f"java.io.IOException: Expected [7] entries in checkpoint file [{_NAMES}], but found only [3]",
        "java.io.IOException: Unrecognized version of the highwatermark checkpoint file: 7",
        f"java.io.IOException: Unrecognised version:7, expected version: 0 in checkpoint file at: {_NAMES}",
        'java.lang.NumberFormatException: For input string: "x"',
    ],
)
def test_what_kafka_says_of_a_files_content_is_believed(cause: str) -> None:
    (finding,) = findings(broker({}, [BrokerLine(START, LineKind.UNREADABLE, path=_NAMES, cause=cause)], [START - 1]))
    assert (finding.divergence_type, finding.severity) == ("checkpoint_malformed", "error")


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


def test_lines_are_told_by_their_event_or_by_their_exception() -> None:
    (line,) = lines_of(7, "e", "log_loaded", {"topic": "t", "partition_id": "3", "log_end_offset": "12"}, "", "", "i1")
    assert (line.kind, line.replica, line.offset) == (LineKind.LOADED, ("t", "i1", 3), 12)
    (line,) = lines_of(7, "e", "", {}, f"java.io.IOException: Malformed line ({_NAMES})", "checkpoint_malformed")
    assert (line.kind, line.replica) == (LineKind.UNREADABLE, None)
    assert [b.replica for b in lines_of(1, "e", "fetcher_added", {"topic_partitions": "t-0,u-0"})] == [T, U]
    assert list(lines_of(1, "e", "unrecognised", {}, "", "log_loaded")) == []


def test_lines_that_are_told_together_are_those_told_one_by_one() -> None:
    """But for their evidence, which no finding quotes."""
    of_t = {"topic": "t", "partition_id": "0", "high_watermark": "5"}
    for event_type, offsets in (("leader_epoch_started", ()), ("high_watermark_initialised", (5, 5))):
        each = [line for at in (1, 2) for line in lines_of(at, "", event_type, of_t)]
        assert len(each) == 2
        assert list(role_lines(RoleLines(event_type, (1, 2), offsets), T)) == each
