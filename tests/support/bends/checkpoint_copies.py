"""Bends of copies of checkpoint files and of probes' answers; see :mod:`tests.support.bends.offsets`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, Final

from tests.support.bends.offsets import Change, Kind, Place
from tests.support.truth.calm import HIGH_WATERMARKS, Calm, CalmCapture, Partition

_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_LOG_STARTS: Final = "log-start-offset-checkpoint"
#: The replica id with which a probe asks any replica for its log end; -1 asks the leader for its high watermark.
LOG_END_QUESTION: Final = -2
HIGH_WATERMARK_QUESTION: Final = -1


def rising(capture: CalmCapture, calm: Calm, broker: int) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """(copies of one stretch, index) of each copy of a high watermark with four before it, of which two rose.

    The two show that a follower fetches; the last but one of the four was surely written before this one was.
    """
    copies = capture.copies_in(calm, broker)
    for at in range(4, len(copies) - 1):
        values = [value for _, value in copies[: at - 1]]
        if sum(after > before for before, after in pairwise(values)) >= 2:
            yield copies, at


def in_sync(capture: CalmCapture) -> Iterator[tuple[Calm, int]]:
    """Every stretch with each member of its ISR."""
    for calm in capture.stretches:
        if calm.leader in calm.isr:
            yield from ((calm, broker) for broker in calm.isr)


def answers(capture: CalmCapture, broker: int, partition: Partition, question: int) -> list[dict[str, Any]]:
    """A broker's answers to one question about one partition."""
    return [
        answer
        for answer in capture.probes(broker)
        if (answer["topic"], answer["partition"]) == partition and answer["replica_id"] == question
    ]


def answer_lowered(capture: CalmCapture, answer: dict[str, Any], below: int, random: Random) -> Change:
    """One answer below ``below``."""
    path, offset = f"probes-{answer['broker']}.jsonl", random.randrange(below)
    lines = (capture.folder / path).read_text().splitlines()
    at = answer["number"] - 1
    lines[at] = re.sub(r'"offset":-?\d+', f'"offset":{offset}', lines[at])
    name = f"{path}:{at + 1}"
    partition = (answer["topic"], answer["partition"])
    return Change(partition, {path: "\n".join([*lines, ""]).encode()}, frozenset({name}), f"{name}: {offset}")


def _copy_name(broker: int, file: str, at_ms: int) -> str:
    return f"broker-{broker}/checkpoints/{file}/{at_ms}"


def _with_entry(content: bytes, partition: Partition, offset: int) -> bytes:
    """A checkpoint file's bytes with another offset for ``partition``, or with an entry more."""
    topic, number = partition
    lines = content.decode().splitlines() or ["0", "0"]
    entries = [line for line in lines[2:] if line.split()[:2] != [topic, str(number)]]
    entries.append(f"{topic} {number} {offset}")
    return "\n".join([lines[0], str(len(entries)), *entries, ""]).encode()


def _copy_bent(capture: CalmCapture, calm: Calm, place: tuple[int, str, int], offsets: range, random: Random) -> Change:
    """The copy (broker, file, its round) with one of ``offsets``."""
    broker, file, at_ms = place
    path, offset = _copy_name(broker, file, at_ms), random.choice(offsets)
    bent = _with_entry((capture.folder / path).read_bytes(), calm.partition, offset)
    return Change(calm.partition, {path: bent}, frozenset({path}), f"{path}: {offset}")


def _falls(capture: CalmCapture) -> Iterable[Place]:
    """Below what the copy two before had, which was over before this one can have been written."""
    for calm, broker in in_sync(capture):
        for copies, at in rising(capture, calm, broker):
            place = (broker, HIGH_WATERMARKS, copies[at][0])
            yield partial(_copy_bent, capture, calm, place, range(copies[at - 2][1]))


def _above_log_end(file: str, capture: CalmCapture) -> Iterable[Place]:
    """Above the log end that the same replica answers later in the same stretch."""
    for calm, broker in in_sync(capture):
        asked = answers(capture, broker, calm.partition, LOG_END_QUESTION)
        for copies, at in rising(capture, calm, broker):
            when, until = copies[at][0], copies[at + 1][0]
            ends = [answer["offset"] for answer in asked if until < answer["sent_at"] <= calm.end]
            if ends and (capture.folder / _copy_name(broker, file, when)).exists():
                yield partial(_copy_bent, capture, calm, (broker, file, when), range(min(ends) + 1, min(ends) + 1000))


def _log_start_above(capture: CalmCapture) -> Iterable[Place]:
    """Above what the replica's high watermark is in the copy two later."""
    for calm, broker in in_sync(capture):
        for copies, at in rising(capture, calm, broker):
            when = copies[at][0]
            if at + 2 < len(copies) and (capture.folder / _copy_name(broker, _LOG_STARTS, when)).exists():
                high = copies[at + 2][1]
                yield partial(_copy_bent, capture, calm, (broker, _LOG_STARTS, when), range(high + 1, high + 1000))


def _above_leader(capture: CalmCapture) -> Iterable[Place]:
    """Above what the leader's own checkpoint has in the second copy after this one is over."""
    for calm, broker in in_sync(capture):
        if broker == calm.leader:
            continue
        leaders = capture.copies_in(calm, calm.leader)
        for copies, at in rising(capture, calm, broker):
            later = [value for instant, value in leaders if instant > copies[at + 1][0]]
            if len(later) > 1:
                place = (broker, HIGH_WATERMARKS, copies[at][0])
                yield partial(_copy_bent, capture, calm, place, range(later[1] + 1, later[1] + 50))


def _log_end_lowered(of_leader: bool, capture: CalmCapture) -> Iterable[Place]:
    """Below what the leader's checkpoint had, risen in this stretch, before the question was asked."""
    for calm, broker in in_sync(capture):
        if (broker == calm.leader) is not of_leader:
            continue
        leaders = capture.copies_in(calm, calm.leader)
        for answer in answers(capture, broker, calm.partition, LOG_END_QUESTION):
            if not calm.start <= answer["sent_at"] <= answer["received_at"] <= calm.end:
                continue
            over = [value for (_, value), (until, _) in pairwise(leaders[1:]) if until <= answer["sent_at"]]
            risen = [value for value in over if value > leaders[0][1]]
            if risen:
                yield partial(answer_lowered, capture, answer, risen[-1])


KINDS: Final = (
    Kind("high watermark falls in one copy", ("R30", "high_watermark_decreased"), _falls),
    Kind(
        "high watermark above the log end",
        ("R31", "high_watermark_above_log_end"),
        partial(_above_log_end, HIGH_WATERMARKS),
    ),
    Kind(
        "recovery point above the log end",
        ("R31", "recovery_point_above_log_end"),
        partial(_above_log_end, _RECOVERY_POINTS),
    ),
    Kind(
        "leader's log end below its high watermark",
        ("R31", "high_watermark_above_log_end"),
        partial(_log_end_lowered, True),
    ),
    Kind("log start above the high watermark", ("R31", "log_start_above_high_watermark"), _log_start_above),
    Kind(
        "follower's high watermark above its leader's", ("R32", "follower_high_watermark_above_leader"), _above_leader
    ),
    Kind(
        "log end of a member of the ISR below the high watermark",
        ("R33", "isr_member_behind_high_watermark"),
        partial(_log_end_lowered, False),
    ),
)
