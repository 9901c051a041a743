"""The bounds of every partition's offsets on Spark: evidence in, the rows of the tables about offsets, findings and
verdicts out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.gold import DATA_LOSS_BOUNDS, TRUNCATIONS
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.lake.tables.silver import LOG_SEGMENT_TIMELINE, REPLICA_OFFSET_TIMELINE
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import TABLE, Row, numbered, rows_of_kind, table_row, values_of, verdict_rows
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import judge
from reconstruct.findings.verdicts import Verdicts
from reconstruct.kept.folds import Fold, settled_by
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import (
    LOG_END_OFFSET,
    DecidedState,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.fetch_offsets import with_fetch_offsets
from reconstruct.offsets.losses import UNCLEAN_ELECTION, OffsetLoss, find_losses, weighed_elections
from reconstruct.offsets.rules import IsrMove, OffsetCase, judge_offsets
from reconstruct.offsets.spark.context import OffsetContext
from reconstruct.offsets.truncations import find_truncations
from reconstruct.offsets.widest_bounds import bounds_of_versions
from reconstruct.segments.evidence import LogChange, LogChangeKind, SegmentEvidence, SegmentFiles
from reconstruct.segments.lines import SegmentLine, segment_act
from reconstruct.segments.log_ends import log_ends
from reconstruct.segments.rules import RULES as OF_SEGMENTS
from reconstruct.segments.timeline import segment_timeline
from reconstruct.time.instants import to_datetime

#: The tables that this fold alone makes; findings it adds to gold.divergences, and verdicts.
OFFSET_TABLES: Final = (REPLICA_OFFSET_TIMELINE, LOG_SEGMENT_TIMELINE, DATA_LOSS_BOUNDS, TRUNCATIONS)
INFERRED: Final = "replication_rules"
#: Columns of the evidence that name a broker; so do the members of an ISR.
_BROKERS: Final = ("replica_id", "leader", "member")
#: What may change a log's segments.
_LOG_CHANGES: Final = {
    ReplicaEventKind.STARTED: LogChangeKind.STARTED,
    ReplicaEventKind.LEADS: LogChangeKind.ROLE,
    ReplicaEventKind.FOLLOWS: LogChangeKind.ROLE,
    ReplicaEventKind.TRUNCATED: LogChangeKind.CUT,
    ReplicaEventKind.TRUNCATION_DECIDED: LogChangeKind.ROLE,
    ReplicaEventKind.DELETED: LogChangeKind.DELETED,
}
#: Pseudo table: what the offsets prove of the loss of each unclean election.
UNCLEAN_LOSSES: Final = "unclean_losses"


def with_losses(findings: DataFrame, folded: DataFrame) -> DataFrame:
    """Rows of ``gold.divergences`` in which each unclean election says what it lost, by the offsets: ``folded`` is what
    :data:`OFFSET_FOLD` judged."""
    election = [*PARTITION_KEY, "detected_at", "broker_id"]
    losses = folded.where(F.col(TABLE) == UNCLEAN_LOSSES).select(
        *PARTITION_KEY,
        F.col("event_at").alias("detected_at"),
        F.col("leader").alias("broker_id"),
        F.lit(DivergenceType.UNCLEAN_ELECTION.value).alias("divergence_type"),
        F.col("harm").alias("proven_harm"),
        F.col("explanation").alias("loss"),
    )
    # one of each election, so that no finding becomes two
    key = [*election, "divergence_type"]
    one = losses.groupBy(*key).agg(F.min("proven_harm").alias("proven_harm"), F.min("loss").alias("loss"))
    joined = findings.join(F.broadcast(one), key, "left")
    return joined.select(
        *(
            F.coalesce("proven_harm", "harm").alias("harm")
            if name == "harm"
            else F.concat_ws(" ", "explanation", "loss").alias("explanation")
            if name == "explanation"
            else F.col(name)
            for name in findings.columns
        )
    )


def offset_rows(rows: Sequence[Row], context: OffsetContext) -> Iterator[dict[str, Any]]:
    """The rows of one partition incarnation, without its key; ``rows`` are all its evidence."""
    topic = rows[0]["topic"]
    evidence = _evidence(rows, context)
    # what is shown rests on clocks that nothing speaks against; what anybody is accused of does not
    shown = replace(evidence, clocks=context.clocks.assuming_unbounded_exact())
    bounds = bounds_of_versions(shown, context.view.version)
    losses = find_losses(shown, bounds)
    is_shown = shown.clocks == evidence.clocks
    sure_bounds = bounds if is_shown else bounds_of_versions(evidence, context.view.version)
    proven = weighed_elections(evidence, sure_bounds)
    sure = [loss for loss in proven if loss.may_have_lost]
    verdicts = Verdicts()
    judge_offsets(_case(topic, rows, context, evidence, sure), verdicts)
    segments = _segments(rows, evidence)
    judge(OF_SEGMENTS, segments, verdicts)
    for sequence, span in numbered(segment_timeline(segments), lambda span: (span.replica_id, span.base_offset)):
        yield table_row(LOG_SEGMENT_TIMELINE, span, sequence=sequence)
    for sequence, row in numbered(bounds, lambda row: row.replica_id):
        yield table_row(REPLICA_OFFSET_TIMELINE, row, sequence=sequence, inferred_from=INFERRED)
    for sequence, loss in enumerate(losses):
        yield table_row(
            DATA_LOSS_BOUNDS,
            loss,
            sequence=sequence,
            diverging_replicas=[kept.replica_id for kept in loss.diverging],
            diverging_offsets=[f"{kept.from_offset}-{kept.to_offset - 1}" for kept in loss.diverging],
            evidence=sorted({*loss.evidence, *(name for kept in loss.diverging for name in kept.evidence)}),
            inferred_from=INFERRED,
        )
    cuts = find_truncations(shown, bounds, context.view.version)
    for sequence, cut in numbered(cuts, lambda cut: cut.replica_id):
        until = None if cut.truncated_at_upper >= EVER_AFTER else cut.truncated_at_upper
        yield table_row(TRUNCATIONS, cut, sequence=sequence, truncated_at_upper=until)
    yield from verdict_rows(verdicts)
    for election in proven:
        if election.cause == UNCLEAN_ELECTION:
            yield {
                TABLE: UNCLEAN_LOSSES,
                "event_at": to_datetime(election.event_at),
                "leader": election.leader,
                "harm": election.harm.value,
                "explanation": election.sentence,
            }


def log_changes(events: Iterable[ReplicaEvent]) -> list[LogChange]:
    """What of a replica's events may have changed its segments."""
    return [
        LogChange(event.replica_id, _LOG_CHANGES[event.kind], event.at, event.offset)
        for event in events
        if event.kind in _LOG_CHANGES
    ]


def _segments(rows: Sequence[Row], evidence: OffsetEvidence) -> SegmentEvidence:
    files = values_of(SegmentFiles, rows)
    slack = {file.replica_id: evidence.clocks.slack_us(file.replica_id) for file in files}
    acts = [act for act in map(segment_act, values_of(SegmentLine, rows)) if act is not None]
    return SegmentEvidence(files, acts, log_changes(evidence.events), slack)


def _evidence(rows: Sequence[Row], context: OffsetContext) -> OffsetEvidence:
    # of a broker that nothing names nothing is bounded
    named = {row.get(name) for row in rows for name in _BROKERS} | {one for row in rows for one in row.get("isr") or ()}
    began = [
        ReplicaEvent(broker_id, ReplicaEventKind.STARTED, at, evidence_id=record_id)
        for broker_id in sorted(broker_id for broker_id in named if broker_id is not None)
        for at, record_id in context.view.process_starts.get(broker_id, ())
    ]
    evidence = OffsetEvidence(
        values_of(OffsetObservation, rows) + _listed_ends(rows),
        values_of(ReplicaEvent, rows) + began,
        values_of(DecidedState, rows),
        context.covered,
        context.schedules,
        context.clocks,
    )
    return with_fetch_offsets(evidence, context.view.version, context.view.configurations)


def _listed_ends(rows: Sequence[Row]) -> list[OffsetObservation]:
    return [
        OffsetObservation(
            file.replica_id,
            LOG_END_OFFSET,
            offset,
            file.seen_at,
            file.seen_at_upper,
            source=SourceKind.LOG_SEGMENT,
            is_minimum=True,
            evidence_id=file.files[0],
        )
        for file, offset in log_ends(values_of(SegmentFiles, rows))
        if file.seen_at is not None and file.seen_at_upper is not None
    ]


def _case(
    topic: str, rows: Sequence[Row], context: OffsetContext, evidence: OffsetEvidence, losses: Sequence[OffsetLoss]
) -> OffsetCase:
    decided: dict[tuple[int, int], list[str]] = {}
    for row in rows_of_kind(DecidedState, rows):
        if row["evidence_id"] is not None:
            decided.setdefault((row["valid_from"], row["leader_epoch"]), []).append(row["evidence_id"])
    moves = values_of(IsrMove, rows)
    return OffsetCase(
        topic,
        context.view,
        evidence,
        losses,
        moves,
        decided,
    )


def _unknown(cluster_id: str) -> OffsetContext:
    return OffsetContext(ClusterView(cluster_id))


#: The instants of evidence.
_INSTANTS: Final = ("valid_from", "valid_to", "at", "observed_at", "observed_at_upper", "seen_at_upper")


def over_by(rows: Sequence[Row]) -> int | None:
    """By when a partition was over of which no decided state goes on; None where one does, or none is known."""
    ends = [row["valid_to"] for row in rows_of_kind(DecidedState, rows)]
    if not ends or None in ends:
        return None
    return settled_by(max(row[name] or 0 for row in rows for name in _INSTANTS))


#: The fold of every partition's offsets; its evidence as :func:`offset_evidence` gives it.
OFFSET_FOLD: Final = Fold(
    "offsets", PARTITION_KEY, OFFSET_TABLES, offset_rows, _unknown, beside=(UNCLEAN_LOSSES,), over_by=over_by
)
