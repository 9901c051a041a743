"""The fold of the metadata log: the rows of one topic, or of all that belongs to none, to what changed when.

Records are applied in the order of their offsets, from the beginning of the log or from the first snapshot that one of
its runs reaches. What only a snapshot shows began before it: those rows are inferred. Each snapshot of each node is
compared with what the records before it made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.choices import CHOOSING, judge_choices
from reconstruct.metadata_log.evidence import MIN_ISR, ClusterLog, LogRow, SnapshotFile, in_log_order, number_of
from reconstruct.metadata_log.rules import judge_record, judge_registration, judge_snapshot, judge_unequal_copies
from reconstruct.model.metadata_log.commitment import Commitment
from reconstruct.model.metadata_log.image import applied, replay
from reconstruct.model.metadata_log.values import (
    BrokerState,
    ConfigResource,
    ConfigState,
    Kind,
    PartitionState,
    State,
    Subject,
    TopicState,
)

#: A row behind the last offset that is known to be committed is a conclusion.
_NOT_PROVEN: Final = "commit_not_proven"
_SHOWN: Final = "retention_boundary"


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """What one record made of one subject: its state from ``at`` on (µs), None where it is gone.

    Of what only a snapshot shows, ``offset`` is the last that it holds, and ``record_type`` None.
    """

    subject: Subject
    state: State | None
    offset: int
    epoch: int
    at: int
    evidence: tuple[str, ...]
    record_type: str | None = None
    commitment: Commitment = Commitment.COMMITTED
    inferred_from: str | None = None


@dataclass
class Replayed:
    """The changes of a group of subjects in the order of offsets, and what was judged of them."""

    changes: list[MetadataChange] = field(default_factory=list)
    verdicts: Verdicts = field(default_factory=Verdicts)


def replay_of_none(log: ClusterLog) -> Replayed:
    """What belongs to no topic; and copies that differ in what they concern."""
    made = replay_rows(log.rows, log)
    found = in_log_order(filter(log.is_followed, log.disputed))
    for one, other in pairwise(found):
        if (one.offset, one.epoch) == (other.offset, other.epoch):
            judge_unequal_copies(one, other, made.verdicts)
    return made


def replay_rows(rows: Iterable[LogRow], log: ClusterLog) -> Replayed:
    """All rows of one topic's name, or of what belongs to no topic; in any order."""
    known = list(rows)
    made = Replayed()
    records = _one_per_offset([row for row in known if row.snapshot_end is None], log, made.verdicts)
    shown: dict[tuple[int, int], list[LogRow]] = {}
    for row in known:
        if row.snapshot_end is not None and row.node_id is not None:
            shown.setdefault((row.node_id, row.snapshot_end), []).append(row)
    image: dict[Subject, State] = {}
    for base, end in log.bases:
        source = log.base_snapshot(base)
        if base > 0 and source is not None:
            image = _rebased(image, source, shown.get((source.node_id, source.end), []), made)
        of_run = [row for row in records if base <= row.offset < end]
        snapshots = sorted((s for s in log.snapshots if base <= s.end <= end), key=lambda s: (s.end, s.node_id))
        place = 0
        for snapshot in snapshots:
            while place < len(of_run) and of_run[place].offset < snapshot.end:
                _apply(image, of_run[place], log, made)
                place += 1
            if not log.is_read_before(snapshot.end):
                made.verdicts.unjudged("R52")
            elif snapshot is not source:
                given = shown.get((snapshot.node_id, snapshot.end), [])
                judge_snapshot(image, snapshot, _image_of(given), made.verdicts)
        for row in of_run[place:]:
            _apply(image, row, log, made)
    return made


def _one_per_offset(rows: Sequence[LogRow], log: ClusterLog, verdicts: Verdicts) -> list[LogRow]:
    """The records that count, in order; copies of one that differ are judged."""
    found: list[LogRow] = []
    for row in in_log_order(filter(log.is_followed, rows)):
        if found and found[-1].offset == row.offset:
            judge_unequal_copies(found[-1], row, verdicts)
        else:
            found.append(row)
    return [row for row in found if log.has_effect(row)]


def _image_of(rows: Sequence[LogRow]) -> dict[Subject, State]:
    return replay(row.record for row in sorted(rows, key=lambda row: row.offset))


def _rebased(
    image: dict[Subject, State], source: SnapshotFile, rows: Sequence[LogRow], made: Replayed
) -> dict[Subject, State]:
    """The image of a snapshot, and what it shows that is another than before."""
    shown = _image_of(rows)
    evidence = {subject: row.evidence_id for row in rows for subject in replay([row.record])}
    for subject in sorted({*image, *shown}):
        before, state = image.get(subject), shown.get(subject)
        if before != state:
            made.changes.append(
                MetadataChange(
                    subject,
                    state,
                    source.end - 1,
                    source.epoch,
                    source.at,
                    (evidence.get(subject, source.evidence_id),),
                    inferred_from=_SHOWN,
                )
            )
    return shown


def _min_isr(image: Mapping[Subject, State], partition: Subject, row: LogRow, log: ClusterLog) -> int | None:
    """What the controller asks of the partition's ISR by the records before: no more than replicas of partition 0
    (``ReplicationControlManager.getTopicEffectiveMinIsr``, 4.0); None where they do not tell."""
    topic, first = image.get(Subject(Kind.TOPIC, partition.name)), image.get(partition._replace(partition_id=0))
    if not isinstance(topic, TopicState) or not isinstance(first, PartitionState):
        return None
    of_topic = image.get(Subject(Kind.CONFIG, f"{ConfigResource.TOPIC}:{topic.name}"))
    own = of_topic.value(MIN_ISR) if isinstance(of_topic, ConfigState) else None
    asked = log.default_min_isr_at(row.offset) if own is None else number_of(own)
    return None if asked is None else min(asked, len(first.replicas))


def _apply(image: dict[Subject, State], row: LogRow, log: ClusterLog, made: Replayed) -> None:
    record = row.record
    found = applied(image, record)
    if log.is_read_before(row.offset + 1):
        judge_record(row, found.problem, made.verdicts)
    else:
        made.verdicts.unjudged("R51")
    commitment = log.lineage.of(row.offset, row.epoch)
    for subject, state in found.changes:
        before = image.get(subject)
        if row.record_type == "RegisterBrokerRecord" and isinstance(state, BrokerState):
            judge_registration(before if isinstance(before, BrokerState) else None, state, row, log, made.verdicts)
        if row.record_type in CHOOSING and isinstance(state, PartitionState):
            known = before if isinstance(before, PartitionState) else None
            judge_choices(known, state, row, log, made.verdicts, _min_isr(image, subject, row, log))
        made.changes.append(
            MetadataChange(
                subject,
                state,
                row.offset,
                row.epoch,
                row.at,
                (row.evidence_id,),
                row.record_type,
                commitment,
                None if commitment is Commitment.COMMITTED else _NOT_PROVEN,
            )
        )
        if state is None:
            image.pop(subject, None)
        else:
            image[subject] = state
