"""What each controller logged of its take-over and of its resignation: the steps, what it found, how long it took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.controllers import TenureSpan
from reconstruct.cluster.evidence import TakeOverLine
from reconstruct.cluster.spans import Tenure
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.take_over import READY, TAKE_OVER_ORDER
from reconstruct.time.instants import utc
from reconstruct.time.spans import within

#: A controller's first line may be so much earlier than its tenure, which another clock may tell: µs.
BEFORE_US: Final = 2_000_000
#: Event types that are a step by themselves; of others the field ``step`` names it.
_STEPS: Final[Mapping[str, str]] = {
    EventType.CONTROLLER_FAILOVER_STARTED: "begin",
    EventType.CONTROLLER_EPOCH_INCREMENTED: "epoch_incremented",
    EventType.CONTROLLER_ELECTED: "epoch_incremented",
    EventType.REPLICA_STATE_MACHINE_STARTED: "replica_states_initialised",
    EventType.PARTITION_STATE_MACHINE_STARTED: "partition_states_initialised",
    EventType.CONTROLLER_READY: READY,
}
_RESIGNATION: Final = (EventType.CONTROLLER_RESIGNING, EventType.CONTROLLER_RESIGNED)
#: The lines of controller.log that this reads.
TAKE_OVER_EVENTS: Final = (
    *_STEPS,
    *_RESIGNATION,
    EventType.CONTROLLER_FAILOVER_STEP,
    EventType.BROKERS_ACTIVE,
)


@dataclass(frozen=True, slots=True)
class TakeOver:
    """One tenure's: instants in µs, None where no line tells.

    ``began_at`` is its first line, ``ready_at`` when it was ready; ``steps`` are ``name +ms`` since the first line, in
    the order logged. ``without_controller_ms`` is how long nobody was registered as controller before.
    """

    began_at: int | None = None
    ready_at: int | None = None
    steps: tuple[str, ...] = ()
    found_brokers: tuple[int, ...] | None = None
    found_partitions_count: int | None = None
    found_offline_count: int | None = None
    resigning_at: int | None = None
    resigned_at: int | None = None
    lines: tuple[TakeOverLine, ...] = ()

    @property
    def took_over_ms(self) -> int | None:
        return _ms(self.began_at, self.ready_at)

    @property
    def resigned_ms(self) -> int | None:
        return _ms(self.resigning_at, self.resigned_at)

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.evidence_id for line in self.lines))


def step_of(line: TakeOverLine) -> str | None:
    """The step of a take-over that a line tells of; None for one that tells of none."""
    if line.controller_event == EventType.CONTROLLER_ELECTED and line.controller_epoch is None:
        return "begin"  # 0.11 to 2.0 say first that they were elected
    return _STEPS.get(line.controller_event) or line.step


def take_overs(tenures: Sequence[TenureSpan], lines: Iterable[TakeOverLine]) -> list[TakeOver]:
    """One for each tenure, in their order."""
    by_controller: dict[int, list[TakeOverLine]] = {}
    for line in sorted(lines, key=lambda line: (line.at, line.log_place, line.line)):
        by_controller.setdefault(line.controller_id, []).append(line)
    windows = line_windows(tenures)
    return [
        _take_over(within(by_controller.get(span.tenure.controller_id, []), since, until - 1))
        for span, (since, until) in zip(tenures, windows, strict=True)
    ]


def line_windows(tenures: Sequence[TenureSpan]) -> list[tuple[int, int]]:
    """Of each tenure, the half-open span of instants, µs, in which its controller's lines are of it: until the same
    broker is elected again."""
    starts: dict[int, list[int]] = {}
    for start, controller_id in sorted((span.tenure.start, span.tenure.controller_id) for span in tenures):
        starts.setdefault(controller_id, []).append(start)

    def next_start(tenure: Tenure) -> int:
        own = starts[tenure.controller_id]
        place = bisect_right(own, tenure.start)
        return own[place] if place < len(own) else 2**62

    return [(span.tenure.start - BEFORE_US, next_start(span.tenure) - BEFORE_US) for span in tenures]


def _take_over(lines: Sequence[TakeOverLine]) -> TakeOver:
    resigned_at = next((line.at for line in lines if line.controller_event == EventType.CONTROLLER_RESIGNED), None)
    own = [line for line in lines if resigned_at is None or line.at <= resigned_at]
    steps = [line for line in own if step_of(line) is not None]
    began = steps[0].at if steps else None
    listed = next((line for line in own if line.found_partitions_count is not None), None)
    return TakeOver(
        began_at=began,
        ready_at=next((line.at for line in steps if step_of(line) == READY), None),
        steps=tuple(f"{step_of(line)} +{(line.at - steps[0].at) // 1000}" for line in steps),
        found_brokers=next((line.found_brokers for line in own if line.found_brokers is not None), None),
        found_partitions_count=None if listed is None else listed.found_partitions_count,
        found_offline_count=None if listed is None else listed.found_offline_count,
        resigning_at=next((line.at for line in own if line.controller_event == EventType.CONTROLLER_RESIGNING), None),
        resigned_at=resigned_at,
        lines=tuple(own),
    )


def _ms(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None or end < start else (end - start) // 1000


def judge_take_overs(tenures: Sequence[TenureSpan], found: Sequence[TakeOver], verdicts: Verdicts) -> None:
    """R16: the steps of one file in the order of the lines. A line that is missing breaks no order."""
    for span, take_over in zip(tenures, found, strict=True):
        pairs = list(_neighbours(take_over))
        wrong = [(earlier, later) for earlier, later in pairs if _order(earlier) > _order(later)]
        if pairs and not wrong:
            verdicts.kept("R16")
        for earlier, later in wrong[:1]:
            verdicts.broken(
                Divergence(
                    DivergenceType.STEP_OUT_OF_ORDER, "error", later.at, broker_id=span.tenure.controller_id
                ).explained(
                    f"{step_of(later)} before {step_of(earlier)}",
                    f"{step_of(earlier)} before {step_of(later)}",
                    f"Take-over by controller {span.tenure.controller_id} (epoch {span.tenure.controller_epoch}):"
                    f" {step_of(earlier)} stands before {step_of(later)} ({utc(later.at)}) in its log; every"
                    " Kafka does it the other way round.",
                    (earlier.evidence_id, later.evidence_id),
                )
            )


def _order(line: TakeOverLine) -> int:
    return TAKE_OVER_ORDER[step_of(line) or ""]


def _neighbours(take_over: TakeOver) -> Iterator[tuple[TakeOverLine, TakeOverLine]]:
    """Steps of known place that follow each other in one file, of one election: what begins anew is another one."""
    steps = [line for line in take_over.lines if step_of(line) in TAKE_OVER_ORDER]
    for earlier, later in pairwise(sorted(steps, key=lambda line: (line.log_place, line.line))):
        is_anew = TAKE_OVER_ORDER[step_of(later) or ""] <= TAKE_OVER_ORDER["epoch_incremented"]
        if earlier.log_place == later.log_place and earlier.at <= later.at and not is_anew:
            yield earlier, later
