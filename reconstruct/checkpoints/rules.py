"""R37: a checkpoint holds each assigned replica once, with an offset between its neighbours'.

The findings, each with what a restart then did, or would do by the version's rules:

* ``checkpoint_missing``: the file, or the entry of an assigned replica that had one, is not there;
* ``checkpoint_zero``: an entry that was higher is 0;
* ``checkpoint_out_of_bounds``: one value lies outside of its neighbours';
* ``checkpoint_stale``: a running broker did not write its file;
* ``checkpoint_malformed``, ``checkpoint_duplicate_entry``: Kafka would refuse the file, or a line counts twice;
* ``checkpoint_unassigned_entry``: an entry of a partition that the broker is not assigned;
* ``checkpoint_beyond_log``: a log was loaded that ends below its checkpointed high watermark;
* ``log_directory_wiped``: all replicas of a directory begin again with empty logs.

Missing evidence accuses nobody: a file is absent only in a round in which others of its directory were copied; an entry
is missing only from a copy that is whole; copies made while the broker was down are old, not stale; lines of a clock
that may be wrong are compared with no copy (:func:`comparable_parts`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ingest.lake.tables.events import OFFSET_OBSERVATIONS
from reconstruct.checkpoints.entries import judge_entries
from reconstruct.checkpoints.evidence import HIGH_WATERMARKS, BrokerCheckpoints, LineKind
from reconstruct.checkpoints.files import absences_of, judge_absences, judge_damage
from reconstruct.checkpoints.stale import judge_stale
from reconstruct.checkpoints.starts import judge_starts
from reconstruct.checkpoints.unreadable import judge_unreadable
from reconstruct.checkpoints.verdicts import CheckpointVerdicts
from reconstruct.checkpoints.view import BrokerView
from reconstruct.findings.rule import EvidenceKind, Rule, judge
from reconstruct.offsets.clocks import UNBOUNDED_US


def _judge_broker(evidence: BrokerCheckpoints, out: CheckpointVerdicts) -> None:
    for part in comparable_parts(evidence):
        _judge(BrokerView(part), out)


def comparable_parts(evidence: BrokerCheckpoints) -> list[BrokerCheckpoints]:
    """The evidence in parts, within each of which instants may be compared: all of it where the clocks agree.

    A line is of its broker's clock, a copy of the capturer's, an assignment and a proven high watermark of whichever
    shows it first (:mod:`reconstruct.offsets.clocks`). Where the broker's clock may be off, no order of lines and
    copies is proven: each kind is then judged by itself, as if the other had not been given. Where it was set back
    besides, no order of lines is proven either: of them those count that say by themselves what is wrong.
    """
    if evidence.decided_slack_us >= UNBOUNDED_US:
        evidence = replace(evidence, assigned={}, proven={}, decided_slack_us=0)
    if not evidence.clock_slack_us:
        return [evidence]
    # a file is stale only where no line tells of a new leader or a truncation: without lines none is
    copies = replace(evidence, lines=(), starts=(), covered=(), sessions=())
    lines = replace(evidence, copies=(), entries=(), assigned={}, proven={}, sessions=())
    if evidence.is_set_back:
        alone = [line for line in evidence.lines if line.kind in (LineKind.UNREADABLE, LineKind.DIRECTORY_FAILED)]
        lines = replace(lines, lines=alone, starts=(), covered=())
    return [copies, lines]


def _judge(view: BrokerView, out: CheckpointVerdicts) -> None:
    absences = absences_of(view, out)
    before_start: dict[int, tuple[int, ...]] = {}
    for absence in absences:
        start = absence.start_within(view)
        if absence.kind == HIGH_WATERMARKS and start is not None:
            before_start[start] = absence.rounds
    judge_starts(view, before_start, out)
    judge_absences(view, absences, out)
    judge_unreadable(view, judge_damage(view, out), out)
    judge_stale(view, out)
    judge_entries(view, out)


RULES: Final = (
    Rule(
        "R37",
        "a checkpoint holds each assigned replica once, with an offset between its neighbours'",
        "kafka.server.ReplicaManager.checkpointHighWatermarks, OffsetCheckpoint since 0.8.0",
        OFFSET_OBSERVATIONS.full_name,
        needs=(EvidenceKind.HIGH_WATERMARK_CHECKPOINT,),
        judges=(_judge_broker,),
    ),
)


def judge_checkpoints(evidence: BrokerCheckpoints) -> CheckpointVerdicts:
    """All findings of R37 about one broker, in a fixed order, and how often the rule was kept or not judged."""
    out = CheckpointVerdicts(evidence.broker_id)
    judge(RULES, evidence, out)
    return out
