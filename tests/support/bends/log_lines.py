"""Bends of log lines about the ISR, truncations and high watermarks; see :mod:`tests.support.bends.offsets`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from random import Random
from typing import Final

from tests.support.bends.checkpoint_copies import (
    HIGH_WATERMARK_QUESTION,
    LOG_END_QUESTION,
    answer_lowered,
    answers,
    in_sync,
    rising,
)
from tests.support.bends.offsets import Change, Kind, Place
from tests.support.captures.text import printed_at
from tests.support.truth.calm import Calm, CalmCapture, Partition, Written

_TIME: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ")
_STARTS: Final = re.compile(
    r"\b(\S+)-(\d+) (?:with topic id \S+ )?starts at [Ll]eader [Ee]poch (\d+) from offset (\d+)"
)
_SHRINK: Final = re.compile(
    r"Partition (\S+)-(\d+) broker=\d+\] Shrinking ISR .*highWatermark: (\d+), endOffset: (\d+)\).*?"
    r"\(brokerId: \d+, endOffset: (\d+)"
)
_EXPAND: Final = re.compile(r"[Pp]artition \[?([^\s,\]]+?)[-,](\d+)\b.* Expanding ISR .*from ([\d,]+) to ([\d,]+)")
#: ``replica.lag.time.max.ms`` of every capture.
_CAUGHT_UP: Final = re.compile(r"lastCaughtUpTimeMs: ([1-9]\d*)")
_LAG_TIME_MS: Final = 3_000
#: A quarter of a second, by which a clock may be off, and a tenth for lines and answers.
_CLOCK_MS: Final = 350


@dataclass(frozen=True, slots=True)
class EpochLine:
    """A leader's line that its epoch begins at ``offset``; ``span`` is where the line's text has that."""

    path: str
    at: int
    text: str
    at_ms: int
    partition: Partition
    leader_epoch: int
    offset: int
    span: tuple[int, int]


def epoch_lines(capture: CalmCapture, broker: int) -> Iterator[EpochLine]:
    """Of both logs that have such lines, by version."""
    for path in (server_log(broker), f"broker-{broker}/logs/state-change.log"):
        for at, text in enumerate(capture.lines(path)):
            found = _STARTS.search(text) if "starts at" in text and "Follower" not in text else None
            at_ms = _millis(text) if found else None
            if found and at_ms is not None:
                partition = (found[1], int(found[2]))
                yield EpochLine(path, at, text, at_ms, partition, int(found[3]), int(found[4]), found.span(4))


def server_log(broker: int) -> str:
    return f"broker-{broker}/logs/server.log"


def line_changed(capture: CalmCapture, path: str, at: int, text: str, partition: Partition) -> Change:
    """Another text for the line at index ``at``."""
    lines = capture.lines(path)
    bent = "\n".join([*lines[:at], text, *lines[at + 1 :], ""]).encode()
    name = f"{path}:{at + 1}"
    return Change(partition, {path: bent}, frozenset({name}), f"{name}: {text}")


def _line_added(capture: CalmCapture, broker: int, at_ms: int, message: str, partition: Partition) -> Change:
    """A line more in a broker's server.log, where its time belongs."""
    path = server_log(broker)
    lines = capture.lines(path)
    at = next((n for n, line in enumerate(lines) if (_millis(line) or 0) > at_ms), len(lines))
    stamp = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S,") + f"{at_ms % 1000:03d}"
    bent = "\n".join([*lines[:at], f"[{stamp}] INFO {message}", *lines[at:], ""]).encode()
    name = f"{path}:{at + 1}"
    return Change(partition, {path: bent}, frozenset({name}), f"{name}: {message}")


def _millis(line: str) -> int | None:
    time = _TIME.match(line)
    if time is None:
        return None
    return printed_at(time[1]) // 1000


# --- a shrink's own numbers -----------------------------------------------------------------------------------------


def _shrink_lines(capture: CalmCapture) -> Iterator[tuple[str, int, re.Match[str]]]:
    for broker in capture.brokers:
        for at, line in enumerate(capture.lines(server_log(broker))):
            found = _SHRINK.search(line)
            if found:
                yield server_log(broker), at, found


def _with_end_offset(
    capture: CalmCapture, path: str, at: int, found: re.Match[str], ends: range, random: Random
) -> Change:
    line = found.string
    text = f"{line[: found.start(5)]}{random.choice(ends)}{line[found.end(5) :]}"
    return line_changed(capture, path, at, text, (found[1], int(found[2])))


def _shrunk_in_sync(capture: CalmCapture) -> Iterable[Place]:
    """The replica's end offset is the leader's: the line contradicts itself."""
    for path, at, found in _shrink_lines(capture):
        yield partial(_with_end_offset, capture, path, at, found, range(int(found[4]), int(found[4]) + 1))


def _shrunk_below(capture: CalmCapture) -> Iterable[Place]:
    """The replica's end offset is below the high watermark: the line contradicts itself."""
    for path, at, found in _shrink_lines(capture):
        if int(found[3]) > 0:
            yield partial(_with_end_offset, capture, path, at, found, range(int(found[3])))


def _shrunk_though_caught_up(capture: CalmCapture) -> Iterable[Place]:
    """The replica had been caught up within the lag time: the line contradicts the rule (since 3.6)."""
    for path, at, found in _shrink_lines(capture):
        caught_up, at_ms = _CAUGHT_UP.search(found.string), _millis(found.string)
        if caught_up is not None and at_ms is not None:
            yield partial(_with_caught_up, capture, path, at, found, caught_up.span(1), at_ms)


def _with_caught_up(
    capture: CalmCapture, path: str, at: int, found: re.Match[str], span: tuple[int, int], at_ms: int, random: Random
) -> Change:
    line, (start, end) = found.string, span
    text = f"{line[:start]}{at_ms - random.randrange(_LAG_TIME_MS)}{line[end:]}"
    return line_changed(capture, path, at, text, (found[1], int(found[2])))


# --- a shrink and a join at the wrong time --------------------------------------------------------------------------


def _shrunk_early(capture: CalmCapture) -> Iterable[Place]:
    """A line more, within half the lag time from the line of the epoch's begin, of a member that the epoch's state had
    and that no line took in since; a snapshot after it still shows the epoch."""
    for broker in capture.brokers:
        joins = [
            (at_ms, found[1], int(found[2]))
            for line in capture.lines(server_log(broker))
            if "Expanding" in line and (found := _EXPAND.search(line)) and (at_ms := _millis(line)) is not None
        ]
        for line in epoch_lines(capture, broker):
            state = (line.partition, line.leader_epoch, broker)
            writes = [w for w in capture.writes if (w.partition, w.leader_epoch, w.leader) == state]
            joined = any(
                line.at_ms <= at <= line.at_ms + _LAG_TIME_MS and (topic, number) == line.partition
                for at, topic, number in joins
            )
            if writes and not joined and max(write.end for write in writes) >= line.at_ms + _LAG_TIME_MS // 2:
                for member in sorted(set(writes[0].isr) - {broker}):
                    yield partial(_shrink_added, capture, line, writes[0], member)


def _shrink_added(capture: CalmCapture, line: EpochLine, write: Written, member: int, random: Random) -> Change:
    old = ",".join(map(str, write.isr))
    new = ",".join(str(replica) for replica in write.isr if replica != member)
    name = f"{line.partition[0]}-{line.partition[1]}"
    message = f"[Partition {name} broker={write.leader}] Shrinking ISR from {old} to {new}"
    if capture.version >= "3":
        message += (
            f". Leader: (highWatermark: {line.offset}, endOffset: {line.offset + 1}). Out of sync replicas:"
            f" (brokerId: {member}, endOffset: {line.offset}, lastCaughtUpTimeMs: {line.at_ms})."
        )
    at_ms = line.at_ms + random.randrange(200, _LAG_TIME_MS // 2)
    return _line_added(capture, write.leader, at_ms, f"{message} (kafka.cluster.Partition)", line.partition)


def _shrunk_without_lag(capture: CalmCapture) -> Iterable[Place]:
    """Of 0.8: a line more, of a member that had answered with a longer log within the lag time, again and again, while
    its leader was no 4,000 records ahead; neither broker was touched and the state still stood."""
    for calm, member in in_sync(capture) if capture.version.startswith("0.8") else ():
        if member == calm.leader:
            continue
        own = [a for a in answers(capture, member, calm.partition, LOG_END_QUESTION) if calm.start <= a["sent_at"]]
        ends = answers(capture, calm.leader, calm.partition, LOG_END_QUESTION)
        for index, last in enumerate(own):
            at_ms = int(last["received_at"]) + 100
            lately = [a for a in own[:index] if at_ms - 1_300 <= a["sent_at"] and a["offset"] < last["offset"]]
            had = [a for a in own[:index] if a["received_at"] < at_ms - _LAG_TIME_MS - 100]
            most = had[-1]["offset"] + 4_000 if had else -1
            later = [a for a in ends if a["sent_at"] > at_ms + 100 and a["offset"] < most]
            touched = [capture.is_disturbed(broker, at_ms - 5_000, at_ms + 3_000) for broker in (member, calm.leader)]
            if lately and later and at_ms + 1_000 < calm.end and not any(touched):
                yield partial(_shrink_of_08, capture, calm, member, at_ms)


def _shrink_of_08(capture: CalmCapture, calm: Calm, member: int, at_ms: int, random: Random) -> Change:
    del random
    topic, number = calm.partition
    old, new = (",".join(map(str, isr)) for isr in (calm.isr, [r for r in calm.isr if r != member]))
    message = (
        f"Partition [{topic},{number}] on broker {calm.leader}: Shrinking ISR for partition [{topic},{number}] from"
        f" {old} to {new} (kafka.cluster.Partition)"
    )
    return _line_added(capture, calm.leader, at_ms, message, calm.partition)


def _joined_early(capture: CalmCapture) -> Iterable[Place]:
    """The first answer of a replica after it was taken in, below what the leader had answered as its high watermark
    before, by more than a clock may be off: with neither broker touched and the replica's log not cut between."""
    for broker in capture.brokers:
        for line in capture.lines(server_log(broker)):
            found, at = (_EXPAND.search(line), _millis(line)) if "Expanding" in line else (None, None)
            if found is None or at is None:
                continue
            partition = (found[1], int(found[2]))
            told = [
                a
                for a in answers(capture, broker, partition, HIGH_WATERMARK_QUESTION)
                if a["received_at"] < at - _CLOCK_MS
            ]
            for member in sorted(set(found[4].split(",")) - set(found[3].split(","))):
                after = [
                    a
                    for a in answers(capture, int(member), partition, LOG_END_QUESTION)
                    if a["sent_at"] > at + _CLOCK_MS
                ]
                if not told or not after or told[-1]["offset"] == 0:
                    continue
                answered = after[0]["received_at"]
                is_calm = not (
                    capture.is_disturbed(broker, told[-1]["sent_at"], answered)
                    or capture.is_disturbed(int(member), at + 1_000, answered)
                    or _is_cut(capture, int(member), partition, at - 1_100, answered)
                )
                if is_calm:
                    yield partial(answer_lowered, capture, after[0], told[-1]["offset"])


def _joined_early_for_leader(capture: CalmCapture) -> Iterable[Place]:
    """As above, of a join that only the state's writes show: since 2.7 the controller writes it for the leader."""
    by_partition: dict[Partition, list[Written]] = {}
    for write in capture.writes if capture.version >= "2.7" else ():
        by_partition.setdefault(write.partition, []).append(write)
    for partition, writes in by_partition.items():
        for before, after in pairwise(writes):
            if (before.leader, before.leader_epoch) != (after.leader, after.leader_epoch) or after.leader < 0:
                continue
            told = [
                a
                for a in answers(capture, after.leader, partition, HIGH_WATERMARK_QUESTION)
                if before.start <= a["sent_at"] and a["received_at"] < before.end - _CLOCK_MS
            ]
            for member in sorted(set(after.isr) - set(before.isr)):
                later = [a for a in answers(capture, member, partition, LOG_END_QUESTION) if a["sent_at"] > after.start]
                if not told or not later or told[-1]["offset"] == 0:
                    continue
                until = later[0]["received_at"]
                if not (
                    capture.is_disturbed(after.leader, told[-1]["sent_at"], until)
                    or capture.is_disturbed(member, before.end - 1_000, until)
                    or _is_cut(capture, member, partition, before.end - 1_100, until)
                ):
                    yield partial(answer_lowered, capture, later[0], told[-1]["offset"])


def _is_cut(capture: CalmCapture, broker: int, partition: Partition, start: float, end: float) -> bool:
    name = re.compile(rf"{re.escape(partition[0])}[-,]{partition[1]}\b")
    return any(
        start <= (_millis(line) or 0) <= end and "runcat" in line and "no effect" not in line and name.search(line)
        for line in capture.lines(server_log(broker))
    )


# --- truncations ----------------------------------------------------------------------------------------------------


def _cut(capture: CalmCapture) -> Iterable[Place]:
    """A line more in a stretch, below what the follower's checkpoint had two copies before."""
    for calm, broker in in_sync(capture):
        for copies, at in rising(capture, calm, broker) if broker != calm.leader else ():
            if copies[at][0] + 2_000 < calm.end:
                yield partial(_cut_added, capture, broker, calm.partition, copies[at][0] + 1_100, copies[at - 2][1])


def _cut_added(
    capture: CalmCapture, broker: int, partition: Partition, at_ms: int, below: int, random: Random
) -> Change:
    name, offset = f"{partition[0]}-{partition[1]}", random.randrange(below)
    log = "UnifiedLog" if capture.version >= "3" else "Log"
    message = f"[{log} partition={name}, dir=/var/lib/kafka/broker-{broker}/data] Truncating to offset {offset}"
    if capture.version < "1":
        message = f"Truncating log {name} to offset {offset}."
    at_ms += random.randrange(500)
    return _line_added(capture, broker, at_ms, f"{message} (kafka.log.{log})", partition)


# --- high watermarks by their own lines -----------------------------------------------------------------------------


def _high_watermark_line(capture: CalmCapture) -> Iterable[Place]:
    """A leader's own line, in a stretch, above where its log ends by its answers, later ones included."""
    for calm in capture.stretches:
        ends = [
            answer
            for answer in answers(capture, calm.leader, calm.partition, LOG_END_QUESTION)
            if calm.start <= answer["sent_at"] and answer["received_at"] <= calm.end
        ]
        if len(ends) > 3:
            yield partial(_high_watermark_added, capture, calm, int(ends[1]["sent_at"]), ends[-1]["offset"])


def _high_watermark_added(capture: CalmCapture, calm: Calm, at_ms: int, above: int, random: Random) -> Change:
    topic, number = calm.partition
    offset = above + random.randrange(1, 1_000)
    message = f"Partition [{topic},{number}] on broker {calm.leader}: High watermark for partition [{topic},{number}]"
    message += f" updated to {offset} [0 : 1234]"
    if capture.version >= "1":
        message = f"[Partition {topic}-{number} broker={calm.leader}] High watermark updated to {offset} [0 : 1234]"
    if capture.version >= "3":
        message = (
            f"[Partition {topic}-{number} broker={calm.leader}] High watermark updated from (offset={above},"
            f" segment=[0:1000]) to (offset={offset}, segment=[0:1234])"
        )
    return _line_added(capture, calm.leader, at_ms, f"{message} (kafka.cluster.Partition)", calm.partition)


KINDS: Final = (
    Kind(
        "a leader's line of a high watermark above its log",
        ("R31", "high_watermark_above_log_end"),
        _high_watermark_line,
    ),
    Kind("shrink of a replica below the high watermark", ("R34", "leader_high_watermark_above_isr"), _shrunk_below),
    Kind("truncation below the high watermark", ("R35", "committed_records_truncated"), _cut),
    Kind("shrink of a replica with all of the leader's log", ("R38", "isr_shrink_without_reason"), _shrunk_in_sync),
    Kind(
        "shrink of a replica that was caught up lately",
        ("R38", "isr_shrink_without_reason"),
        _shrunk_though_caught_up,
    ),
    Kind("shrink soon after the leader's election", ("R38", "isr_shrink_without_reason"), _shrunk_early),
    Kind("shrink of a replica that does not lag", ("R38", "isr_shrink_without_reason"), _shrunk_without_lag),
    Kind("log end below the high watermark after a join", ("R38", "isr_join_too_early"), _joined_early),
    Kind(
        "log end below the high watermark after a join that the controller wrote",
        ("R38", "isr_join_too_early"),
        _joined_early_for_leader,
    ),
)
