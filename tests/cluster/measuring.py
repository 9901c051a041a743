"""What a capture of a live cluster gives, against what the cluster's ZooKeeper and its brokers' answers say; no Spark.

The same pure functions that Spark runs are given the same evidence by the plain readers of ``tests/support``. The
measure of states is that of ``tests/support/truth/score.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from jobs.lab.play import Played
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.findings.verdicts import Finding
from reconstruct.offsets.losses import OffsetLoss, find_losses
from reconstruct.offsets.timeline import bound_offsets
from reconstruct.partitions.case import Case
from reconstruct.time.instants import to_datetime
from tests.support.evidence.checkpoints import plain_checkpoints
from tests.support.evidence.offsets import judged
from tests.support.evidence.partitions import Partition, PlainCapture, plain_capture
from tests.support.truth.alignment import Score
from tests.support.truth.decisions import Truth, read_truth
from tests.support.truth.offsets import Measure, bounds_of, measure, read_evidence
from tests.support.truth.score import score_assignments, score_controllers, score_liveness, score_states

STATES: Final = "leader and ISR"
LOGS_ALONE: Final = "leader and ISR, from logs alone"


@dataclass(frozen=True)
class Measured:
    """Of one run of a scenario: scores by subject, the probes against the bounds, every finding with what it is of."""

    played: Played
    truth: Truth
    plain: PlainCapture
    scores: Mapping[str, Score]
    probes: Measure
    findings: tuple[tuple[str, Finding], ...]
    losses: Mapping[Partition, tuple[OffsetLoss, ...]]

    @property
    def states(self) -> Score:
        return self.scores[STATES]

    @property
    def median_time_error_ms(self) -> float:
        """Of the begins of states from logs alone, since znodes carry the very time; 0 where none was matched."""
        errors = [abs(error) for error in self.scores[LOGS_ALONE].start_errors_ms]
        return median(errors) if errors else 0.0

    @property
    def unexplained_errors(self) -> list[str]:
        """Errors of rules that the scenario did not provoke: each would accuse a cluster that did what Kafka does."""
        return [
            f"{finding.rule_id} {finding.divergence_type} {of}: {finding.explanation}"
            for of, finding in self.findings
            if finding.severity == "error" and finding.rule_id not in self.played.scenario.explains
        ]

    @property
    def accusations(self) -> dict[str, int]:
        """How many errors and warnings there are, by rule."""
        counts: dict[str, int] = {}
        for _, finding in self.findings:
            if finding.severity != "info":
                name = f"{finding.rule_id} {finding.severity}"
                counts[name] = counts.get(name, 0) + 1
        return counts


def measure_played(played: Played) -> Measured:
    """Read the capture as the program would, the truth apart from it, and compare."""
    truth = read_truth(played.truth)
    plain = plain_capture(played.capture)
    bounds = bounds_of(read_evidence(played.capture))
    with_probes = read_evidence(played.capture, with_probes=True)
    lost = {
        partition: tuple(find_losses(evidence, bound_offsets(evidence, with_probes.version)))
        for partition, evidence in with_probes.partitions.items()
    }
    logs_alone = plain_capture(played.capture, znodes=False)
    scores = _scores(truth, plain) | {LOGS_ALONE: score_states(truth, _states(logs_alone.fold()))}
    return Measured(
        played,
        truth,
        plain,
        scores,
        measure(played.capture, bounds),
        _findings(played, plain),
        {partition: losses for partition, losses in lost.items() if losses},
    )


def _states(histories: Mapping[Partition, Case]) -> list[dict[str, Any]]:
    return [
        _row(partition, number, interval.start)
        | {
            "leader": interval.value.leader,
            "leader_epoch": interval.value.leader_epoch,
            "isr": list(interval.value.isr),
            "partition_epoch": interval.value.partition_epoch,
            "evidence": list(interval.evidence),
            "inferred_from": interval.inferred_from,
        }
        for partition, history in histories.items()
        for number, interval in enumerate(history.decided)
    ]


def _scores(truth: Truth, plain: PlainCapture) -> dict[str, Score]:
    histories = plain.fold()
    assignments = [
        _row(partition, number, interval.start) | {"replicas": list(interval.value.replicas)}
        for partition, history in histories.items()
        for number, interval in enumerate(history.assignments)
    ]
    return {
        STATES: score_states(truth, _states(histories)),
        "assignment": score_assignments(truth, assignments),
        "controller epochs": score_controllers(truth, plain.cluster.tenure_rows()),
        "broker liveness": score_liveness(truth, plain.cluster.liveness_rows()),
    }


def _row(partition: tuple[str, int], number: int, at: int) -> dict[str, Any]:
    topic, partition_id = partition
    return {
        "topic": topic,
        "partition_id": partition_id,
        "topic_incarnation": "",
        "sequence": number,
        "valid_from": to_datetime(at),
    }


def _findings(played: Played, plain: PlainCapture) -> tuple[tuple[str, Finding], ...]:
    found = [("the cluster", finding) for finding in plain.cluster.verdicts.findings]
    found += [(f"{topic}-{number}", finding) for (topic, number), finding in plain.findings()]
    found += [(f"{topic}-{number}", finding) for (topic, number), finding in judged(played.capture)]
    found += [
        (f"broker {broker.broker_id}", finding)
        for broker in plain_checkpoints(played.capture)
        for finding in judge_checkpoints(broker).verdicts.findings
    ]
    return tuple(found)


def line(measured: Measured) -> str:
    """One line of figures for people."""
    scores, probes = measured.scores, measured.probes
    recall = " ".join(f"{scores[name].recall:>7.1%}" for name in scores)
    extras = max(score.extras for name, score in scores.items() if name != LOGS_ALONE)
    return (
        f"{measured.played.scenario.file_name(measured.played.release):<30}{measured.states.truth_count:>6} {recall}"
        f"{extras:>8.1%}{measured.median_time_error_ms:>8.0f}{probes.inside:>8}{len(probes.outside):>8}"
        f"{probes.median_width:>9g}  {_text(measured.accusations)}"
    )


_SUBJECTS: Final = f"{'recall':>7} {'assign.':>7} {'contr.':>7} {'brokers':>7} {'by logs':>7}"
HEAD: Final = (
    f"{'':<30}{'states':>6} {_SUBJECTS}{'extras':>8}{'ms off':>8}{'inside':>8}{'outside':>8}{'HW width':>9}"
    "  accusations"
)


def _text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {rule}" for rule, count in sorted(counts.items())) or "none"
