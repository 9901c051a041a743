"""When brokers stopped serving, by what was done to them and by what producers could not write: against what is said.

Each function gives a sentence for everything that is said otherwise than it was; none where all is right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.offsets.evidence import LOG_END_OFFSET
from reconstruct.partitions.availability import Unavailability
from reconstruct.time.instants import utc
from tests.support.evidence.partitions import Partition, PlainCapture
from tests.support.truth.decisions import Truth
from tests.support.truth.offsets import probes

SECOND: Final = 1_000_000
#: ZooKeeper's clock tells milliseconds.
MILLISECOND: Final = 1_000
DEADLY: Final = ("SIGKILL", "SIGSTOP")
#: A signal is noted before it is sent, and an answer when the producer's thread gets to it.
_LATE: Final = SECOND // 2
#: What was decided reaches a leader's own log within this time, also of one that is just starting.
_TAKES_OVER: Final = 5 * SECOND
#: A producer finds the next leader within this time of its election.
_FOUND_WITHIN: Final = 10 * SECOND


def events(folder: Path) -> list[dict[str, Any]]:
    """What a scenario did."""
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def stops(folder: Path, *signals: str) -> Iterator[tuple[int, int, str]]:
    """When the scenario killed, paused or shut down which broker."""
    for event in events(folder):
        if event["what"] == "signal" and event["signal"] in signals and "broker" in event:
            yield int(event["ts"] * SECOND), event["broker"], event["signal"]


def registrations(truth: Truth, plain: PlainCapture) -> Iterator[tuple[int, RegistrationSpan, int]]:
    """Each registration that ended, with when it did by ZooKeeper's transaction log."""
    for broker_id, spans in plain.cluster.registrations.items():
        ends = [r.ended.time_ms * 1000 for r in truth.registrations if r.broker_id == broker_id and r.ended]
        ended = [span for span in spans if span.interval.end is not None]
        assert len(ended) == len(ends), f"broker {broker_id} was unregistered {len(ends)} times, not {len(ended)}"
        yield from zip([broker_id] * len(ends), ended, ends, strict=True)


def registrations_misjudged(truth: Truth, plain: PlainCapture) -> list[str]:
    """Registrations whose end by ZooKeeper's log is outside of the bounds, or that are said to be known exactly."""
    wrong = []
    for broker_id, span, ended in registrations(truth, plain):
        bounds = (span.ended_after or 0, span.ended_before or 0)
        if not bounds[0] < ended + MILLISECOND or not ended <= bounds[1] <= ended + 45 * SECOND:
            wrong.append(f"broker {broker_id} was unregistered at {utc(ended)}, not from {bounds[0]} to {bounds[1]}")
        if span.interval.inferred_from is None:
            wrong.append(f"broker {broker_id}'s end at {utc(ended)} counts as observed: no transaction log was given")
    return wrong


def deaths_misjudged(folder: Path, truth: Truth, plain: PlainCapture) -> list[str]:
    """Partitions whose leader was killed or paused past its session, and that have no interval without a live leader
    that holds the true length: from the signal to the next leader by ZooKeeper's log."""
    wrong = []
    for at, broker_id, signal in stops(folder, *DEADLY):
        for partition, states in truth.states_by_partition().items():
            before = [state for state in states if state.write.time_ms * 1000 <= at]
            later = [state for state in states if state.write.time_ms * 1000 > at]
            if not before or before[-1].leader != broker_id:
                continue
            next_led = [s for s in later if s.leader != -1 and s.leader_epoch > before[-1].leader_epoch]
            if not next_led:
                continue
            led = next_led[0].write.time_ms * 1000
            found = [
                span
                for span in _leaderless(plain, partition)
                if span.valid_from_lower is not None
                and span.valid_from_lower <= at + MILLISECOND
                and span.end is not None
                and at < span.end
            ]
            what = f"{partition} had no live leader from {utc(at)} ({signal} of {broker_id}) to {utc(led)}"
            if len(found) != 1:
                wrong.append(f"{what}: {len(found)} intervals say so")
            elif found[0].end is None or not led <= found[0].end <= led + _TAKES_OVER:
                wrong.append(f"{what}, not to {found[0].end}")
            elif at > found[0].start:
                wrong.append(f"{what}, not since {utc(found[0].start)} already")
    return wrong


@dataclass(frozen=True)
class Written:
    """What one producer knows of a partition: from its first acknowledged record on, the spans in which none was
    acknowledged, from answer to answer, or to None where no more came; µs."""

    since: int
    until: int
    silences: tuple[tuple[int, int | None], ...]


def written(folder: Path) -> Iterator[tuple[Partition, Written]]:
    """By the load generator's own record."""
    for event in events(folder):
        if event["what"] != "load_done":
            continue
        silent: Mapping[str, list[tuple[float, float | None]]] = event["silent"]
        for name, since in event["acked_since"].items():
            topic, _, number = name.rpartition("-")
            spans = tuple((int(a * SECOND), b and int(b * SECOND)) for a, b in silent.get(name, ()))
            yield (topic, int(number)), Written(int(since * SECOND), int(event["ts"] * SECOND), spans)


def silences_misjudged(folder: Path, truth: Truth, plain: PlainCapture) -> list[str]:
    """Intervals without a live leader in which a producer was answered, and spans in which the leader was dead and
    nothing could be written that no such interval explains."""
    wrong = []
    for partition, known in written(folder):
        spans = _leaderless(plain, partition)
        for span in spans:
            start, end = max(span.start, known.since), min(span.end or known.until, known.until)
            is_silent = any(a - _LATE <= start and (b is None or end <= b + _LATE) for a, b in known.silences)
            if end - start > 2 * SECOND and not is_silent:
                wrong.append(
                    f"{partition} was written from {utc(start)} to {utc(end)}, where it is said to have no leader"
                )
        for a, b in known.silences:
            led_by = [s.leader for s in truth.states_by_partition()[partition] if s.write.time_ms * 1000 <= a][-1:]
            deaths = [at for at, id_, _ in stops(folder, *DEADLY) if [id_] == led_by and abs(at - a) <= 2 * _LATE]
            if deaths and not any(_explains(span, a, b) for span in spans):
                said = [(span.valid_from_lower, span.start, span.end) for span in spans]
                until = "the end" if b is None else utc(b)
                wrong.append(f"nothing was written to {partition} from {utc(a)} to {until}; said is {said}")
    return wrong


def growth_misjudged(folder: Path, plain: PlainCapture) -> list[str]:
    """Intervals without a live leader in which the log of a replica grew, by the brokers' answers to probes."""
    wrong = []
    ends = [probe for probe in probes(folder) if probe.quantity == LOG_END_OFFSET]
    for partition in sorted({probe.partition for probe in ends} & plain.facts.keys()):
        for span in _leaderless(plain, partition):
            within: dict[int, set[int]] = {}
            for probe in ends:
                is_within = span.start + _LATE <= probe.sent_at and probe.received_at <= (span.end or 1 << 62)
                if probe.partition == partition and is_within:
                    within.setdefault(probe.replica_id, set()).add(probe.offset)
            for replica, offsets in within.items():
                if len(offsets) > 1:
                    wrong.append(f"replica {replica} of {partition} grew from {min(offsets)} to {max(offsets)}")
    return wrong


def _explains(span: Unavailability, a: int, b: int | None) -> bool:
    """Whether the span begins, at its earliest, when answers ended, and ends when they began again or just before."""
    lower = span.start if span.valid_from_lower is None else span.valid_from_lower
    if lower > a + _LATE or (span.end is not None and span.end < a):
        return False
    return b is None or (span.end is not None and b - _FOUND_WITHIN <= span.end <= b + _LATE)


def _leaderless(plain: PlainCapture, partition: Partition) -> list[Unavailability]:
    return [span for span in plain.fold_one(partition).availability if span.kind == "no_live_leader"]
