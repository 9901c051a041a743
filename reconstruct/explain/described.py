"""What brokers described of a partition to a client that asked them, as a chapter: each broker's own view, where it
changed, and what the client could not record. Times are those of the client's clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconstruct.explain.story import Chapter, clock, ids, section
from reconstruct.time.instants import utc

#: What follows a decision is listed so long after the span that was asked for, µs.
AFTER_US: Final = 30_000_000
#: So many answers are read at most: of more, only the first.
MOST_ANSWERS: Final = 500
_MOST_ANSWERS: Final = 30
_MOST_MISSED: Final = 10


@dataclass(frozen=True, slots=True)
class Described:
    """One answer that differs from the broker's answer before: ``at`` µs, when it was asked for.

    ``kind`` is ``description_type`` of ``bronze.cluster_descriptions``. What it says of the partition: ``partition`` of
    the broker's metadata, ``replicas`` in ``log_dir`` (current and future), ``reassignment``; None and empty where it
    says that there is none.
    """

    at: int
    broker_id: int
    kind: str
    partition: Mapping[str, Any] | None = None
    log_dir: str | None = None
    replicas: Sequence[Mapping[str, Any]] = ()
    reassignment: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """What a capture did not record: [``start``, ``end``) in µs, ``end`` None where nothing says when it was over, and
    ``start`` where it is not recorded at all."""

    source: str
    whose: str
    start: int
    end: int | None
    reason: str


def described(start: int, end: int, answers: Sequence[Described], missed: Sequence[Missed]) -> Chapter | None:
    """The chapter for the span [``start``, ``end``), µs; None where nothing was described or missed."""
    is_all = len(answers) < MOST_ANSWERS
    in_order = sorted(answers, key=lambda answer: (answer.at, answer.kind, answer.broker_id, answer.log_dir or ""))
    before = [answer for answer in in_order if answer.at < start]
    then = [answer for answer in in_order if start <= answer.at <= end + AFTER_US]
    gaps = [
        f"{_missed(gap)}: {gap.reason}" for gap in sorted(missed, key=lambda gap: (gap.start, gap.source, gap.whose))
    ]
    if not (before or then or gaps):
        return None
    return Chapter(
        start,
        "what brokers described (to the capture, by its clock)",
        (
            section("Last before", _first([f"{utc(answer.at)}  {_text(answer)}" for answer in before], _MOST_ANSWERS)),
            section(f"Changes until {utc(end + AFTER_US)}", _changes(then, is_all)),
            section("Not recorded", _first(gaps, _MOST_MISSED)),
        ),
    )


def _changes(then: Sequence[Described], is_all: bool) -> Iterator[str]:
    if not then:
        yield "none"
    yield from _first([f"{clock(answer.at)}  {_text(answer)}" for answer in then], _MOST_ANSWERS, is_all)


def _first(lines: Sequence[str], most: int, is_all: bool = True) -> Iterator[str]:
    yield from lines[:most]
    if len(lines) > most:
        yield f"and {'' if is_all else 'at least '}{len(lines) - most} more"


def _text(answer: Described) -> str:
    whose = f"broker {answer.broker_id}"
    if answer.kind == "reassignments":
        return f"{whose}: {_reassignment(answer.reassignment)}"
    if answer.kind == "log_dir_topic":
        replicas = [_replica(replica) for replica in answer.replicas] or ["no replica"]
        return f"{whose}: {' and '.join(replicas)} in {answer.log_dir}"
    if answer.partition is None:
        return f"{whose}: {'the topic' if answer.kind == 'topic_gone' else 'the partition'} is no longer described"
    return f"{whose}: {_partition(answer.partition)}"


def _partition(partition: Mapping[str, Any]) -> str:
    epoch = "" if partition["leader_epoch"] is None else f", leader epoch {partition['leader_epoch']}"
    offline = f", offline {ids(partition['offline_replicas'])}" if partition["offline_replicas"] else ""
    error = f", error code {partition['error_code']}" if partition["error_code"] else ""
    return (
        f"leader {partition['leader']}{epoch}, ISR {ids(partition['isr'])}, replicas {ids(partition['replicas'])}"
        f"{offline}{error}"
    )


def _replica(replica: Mapping[str, Any]) -> str:
    is_future, lag = replica["is_future"], replica["offset_lag"]
    behind = "the current one" if is_future else "the high watermark"
    how_far = f"{lag} behind {behind}" if lag >= 0 else "lag not known"
    return f"{'future replica' if is_future else 'replica'}, {how_far},"


def _reassignment(moved: Mapping[str, Any] | None) -> str:
    if moved is None:
        return "not being reassigned any more"
    return (
        f"being reassigned, replicas {ids(moved['replicas'])}, adding {ids(moved['adding_replicas'])}, removing"
        f" {ids(moved['removing_replicas'])}"
    )


def _missed(gap: Missed) -> str:
    what = f"{gap.source} of {gap.whose}" if gap.whose else gap.source
    if gap.end is None:
        return f"the capture missed {what} from {utc(gap.start)} on; its end is not told"
    if gap.end == gap.start:
        return f"the capture does not record {what}"
    return f"the capture missed {what} from {utc(gap.start)} to {utc(gap.end)}"
