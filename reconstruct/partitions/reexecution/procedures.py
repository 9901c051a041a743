"""What the judges of the procedures of one partition share: a step in the wrong place, and the verdict on it (R16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.states import PartitionState
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import MARGIN_US, PARTITION, ControllerLog, logs_every_transition
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.time.instants import utc

MISSING: Final = DivergenceType.STEP_MISSING
EARLY: Final = DivergenceType.STEP_OUT_OF_ORDER


class WrongStep(NamedTuple):
    """A step that the log does not have, or that stands before one that must come first: the order of Kafka, what the
    lines show instead, the lines that show it, and the replica that it is about."""

    kind: DivergenceType
    order: str
    observed: str
    lines: Sequence[Evidence]
    replica_id: int | None = None


def settle(
    coverage: LogCoverage,
    log: ControllerLog,
    procedure: str,
    lines: Sequence[Evidence],
    found: Iterable[WrongStep],
    verdicts: Verdicts,
) -> None:
    """The verdict about one procedure between the first and the last of ``lines``."""
    version, at = coverage.case.cluster.version, [line.at for line in lines]
    is_logged = logs_every_transition(coverage.case.cluster, log.controller_epoch)
    wrong_steps = list(found)
    # Where a new partition's lines stand in the wrong order, they do so however the log goes on.
    is_certain = procedure == "Creation" and bool(wrong_steps) and all(wrong.kind == EARLY for wrong in wrong_steps)
    margin_us = 0 if is_certain else MARGIN_US
    if not is_logged or not coverage.is_whole(log, min(at), max(at), margin_us):
        verdicts.unjudged("R16")
        return
    if not wrong_steps:
        verdicts.kept("R16")
    for wrong in wrong_steps:
        end, severity = wrong.lines[-1].at, coverage.severity("error")
        verdicts.broken(
            Divergence(wrong.kind, severity, end, broker_id=log.controller_id, replica_id=wrong.replica_id).explained(
                wrong.order,
                wrong.observed,
                f"{procedure} by controller {log.controller_id} (epoch {log.controller_epoch}): {wrong.observed}"
                f" ({utc(end)}); Kafka {version} does it in this order: {wrong.order}.",
                tuple(line.evidence_id for line in wrong.lines),
            )
        )


def until_recreated(lines: Sequence[Evidence]) -> Iterator[Evidence]:
    for line in lines:
        if line.kind == PARTITION and line.to_state == PartitionState.NEW:
            return
        yield line
