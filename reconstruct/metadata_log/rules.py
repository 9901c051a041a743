"""The rules that the metadata log itself is judged by: copies that agree, records that fit, snapshots that are what the
records before them made, and epochs of brokers that are places in the log (R50, R51, R52, R59).
"""

from __future__ import annotations

import json
from typing import Any, Final

from ingest.lake.tables.events import METADATA_CHANGES
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.metadata_log.evidence import OF_QUORUM, ClusterLog, LogRow, SnapshotFile
from reconstruct.model.metadata_log.comparison import Difference, differences
from reconstruct.model.metadata_log.values import BrokerState, Image


def judge_unequal_copies(one: LogRow, other: LogRow, verdicts: Verdicts) -> None:
    """R50: two records of one offset and epoch. A leader writes each offset of its epoch once, and copies of it are
    copied byte by byte."""
    verdicts.broken(
        Divergence(DivergenceType.METADATA_COPIES_DIFFER, "error", other.at).explained(
            f"one record at offset {one.offset} of epoch {one.epoch}",
            f"{one.record_type} {one.fields[:120]} and {other.record_type} {other.fields[:120]}",
            f"At offset {one.offset} of epoch {one.epoch} copies of the metadata log hold a {one.record_type} and a"
            f" {other.record_type} of other content: one epoch has one active controller, which writes each offset"
            " once.",
            (one.evidence_id, other.evidence_id),
        )
    )


def judge_record(row: LogRow, problem: str | None, verdicts: Verdicts) -> None:
    """R51: what Kafka's own image throws at, and every node of the quorum would stop at."""
    if row.copies > 1:
        verdicts.kept("R50")
    if problem is None:
        verdicts.kept("R51")
        return
    verdicts.broken(
        Divergence(DivergenceType.METADATA_RECORD_UNFIT, "error", row.at).explained(
            "a record that can be applied to what the records before it made",
            f"{row.record_type} at offset {row.offset}",
            f"The {row.record_type} at offset {row.offset} (epoch {row.epoch}) cannot be applied: {problem}.",
            (row.evidence_id,),
        )
    )


def judge_snapshot(image: Image, snapshot: SnapshotFile, given: Image, verdicts: Verdicts) -> None:
    """R52: what one node's snapshot says of these subjects, against the records before its end."""
    if not snapshot.is_whole:
        verdicts.unjudged("R52")
        return
    differing = differences(image, given)
    if not differing:
        verdicts.kept("R52")
    for difference in differing:
        subject, how = difference.subject, _shown(difference)
        of = f"{subject.kind} {subject.name}" + ("" if subject.partition_id < 0 else f"-{subject.partition_id}")
        verdicts.broken(
            Divergence(
                DivergenceType.METADATA_SNAPSHOT_DIFFERS, "error", snapshot.at, broker_id=snapshot.node_id
            ).explained(
                f"what the records before offset {snapshot.end} made of {of}",
                how,
                f"The snapshot of node {snapshot.node_id} that ends at offset {snapshot.end} has another {of} than the"
                f" records before that offset give: {how}. The image of the node was wrong.",
                (snapshot.evidence_id,),
            )
        )


def judge_registration(
    before: BrokerState | None, after: BrokerState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R59: a process that registers gets as its epoch the offset that the log had reached, and begins fenced.

    Before its record are those that take its last process away, and what a new leader of the quorum appends first. The
    same process that registers again keeps its state, since 3.9 its epoch too.
    """
    is_amended = before is not None and before.incarnation_id == after.incarnation_id
    if not log.is_read_before(row.offset + 1):
        verdicts.unjudged("R59")
        return
    if not after.is_fenced and (before is None or before.is_fenced or not is_amended):
        problem = "it begins unfenced, before it can have caught up with that record"
    elif is_amended and before is not None and after.broker_epoch == before.broker_epoch:
        problem = None
    else:
        problem = _problem_of_epoch(before, after, row, log)
    if problem is None:
        verdicts.kept("R59")
        return
    broker_id = int(row.record.fields["brokerId"])
    verdicts.broken(
        Divergence(DivergenceType.BROKER_EPOCH_OUT_OF_PLACE, "error", row.at, broker_id=broker_id).explained(
            f"a fenced broker with epoch {row.offset}, or that of the first record written with it",
            f"epoch {after.broker_epoch}, {'fenced' if after.is_fenced else 'not fenced'}",
            f"The {row.record_type} at offset {row.offset} (epoch {row.epoch}) registers broker {broker_id} with broker"
            f" epoch {after.broker_epoch}: {problem}.",
            (row.evidence_id,),
        )
    )


def _problem_of_epoch(before: BrokerState | None, after: BrokerState, row: LogRow, log: ClusterLog) -> str | None:
    if after.broker_epoch > row.offset:
        return "the log had not reached that offset"
    if before is not None and after.broker_epoch <= before.broker_epoch:
        return f"it was registered with epoch {before.broker_epoch} before"
    for one in log.logged(after.broker_epoch, row.offset):
        if one.record_type not in OF_QUORUM and log.has_effect(one):
            return f"at offset {one.offset} is a {one.record_type}, which has nothing to do with it"
    return None


def _shown(difference: Difference) -> str:
    """In words what is another."""
    if difference.field is None:
        return "it lacks it" if difference.shown is None else "it has it, though no record made it or one took it away"
    return f"{difference.field} {_json(difference.shown)} instead of {_json(difference.replayed)}"


def _json(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


_NEEDS: Final = (EvidenceKind.METADATA_LOG,)
#: Their judges are called where the log is replayed.
RULES: Final = (
    Rule(
        "R50",
        "every copy of the metadata log holds the same record at each offset of an epoch",
        "org.apache.kafka.raft.KafkaRaftClient since 3.3; KIP-595",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_unequal_copies,),
    ),
    Rule(
        "R51",
        "each metadata record fits what the records before it made",
        "org.apache.kafka.image.MetadataDelta since 3.3",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_record,),
    ),
    Rule(
        "R52",
        "a node's snapshot holds what the records before its end made",
        "org.apache.kafka.image.MetadataImage, SnapshotGenerator since 3.3; KIP-630",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_snapshot,),
    ),
    Rule(
        "R59",
        "a broker that registers gets the offset of its registration as its epoch, and begins fenced",
        "org.apache.kafka.controller.ClusterControlManager since 3.3; KIP-631",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_registration,),
    ),
)
