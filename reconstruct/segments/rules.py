"""R40 and R41: segments follow each other, and their indexes point at what they hold.

Files of one copy are not read at one instant. What a cut, a deletion, a start or a new role of the replica may have
changed meanwhile is not judged; of the last segment, which is written to, only entries that point into its copy are.
Lines are compared within one file, by their place there, and only where their times agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ingest.lake.tables.silver import LOG_SEGMENT_TIMELINE
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.segments.evidence import (
    LINE_US,
    LogChangeKind,
    SegmentAct,
    SegmentActKind,
    SegmentEvidence,
    SegmentFiles,
)
from reconstruct.time.instants import utc

#: By how much lines of one log may be off the order in which things were done.
_CLOSE_US: Final = 100_000


def judge_segments(evidence: SegmentEvidence, verdicts: Verdicts) -> None:
    """R40: no segment begins below the end of the one before it, in a copy or by the order of the rolls."""
    for replica in evidence.replicas:
        for copy in evidence.copies_of(replica):
            is_still = _is_still(evidence, copy[0])
            for one, following in pairwise(copy):
                if one.next_offset is None or not is_still:
                    verdicts.unjudged("R40")
                elif one.next_offset <= following.base_offset:
                    verdicts.kept("R40")
                else:
                    _overlap(one, following, verdicts)
        rolls = [act for act in evidence.acts_of(replica) if act.act is SegmentActKind.ROLLED and act.base_offsets]
        for earlier, later in pairwise(sorted(rolls, key=lambda act: (act.log_place, act.line))):
            if earlier.log_place == later.log_place:
                _judge_rolls(evidence, earlier, later, verdicts)


def _judge_rolls(evidence: SegmentEvidence, earlier: SegmentAct, later: SegmentAct, verdicts: Verdicts) -> None:
    first, second = earlier.base_offsets[0], later.base_offsets[0]
    if first <= second:
        verdicts.kept("R40")
    elif later.at < earlier.at or any(
        earlier.at - _CLOSE_US <= change.at <= later.at + _CLOSE_US for change in evidence.changes_of(later.replica_id)
    ):
        verdicts.unjudged("R40")
    else:
        verdicts.broken(
            Divergence.of_replica(DivergenceType.SEGMENT_ROLLED_BELOW, "error", later.at, later.replica_id).explained(
                f"a new segment at offset {first} or above",
                f"a new segment at offset {second}",
                f"Broker {later.replica_id} began a segment at offset {first} ({utc(earlier.at)}) and the next one at"
                f" {second} ({utc(later.at)}); no line between tells of a cut, a start or a new role.",
                (earlier.evidence_id, later.evidence_id),
            )
        )


def _overlap(one: SegmentFiles, following: SegmentFiles, verdicts: Verdicts) -> None:
    verdicts.broken(
        Divergence.of_replica(
            DivergenceType.SEGMENTS_OVERLAP,
            "warning" if one.seen_at is None else "error",
            one.seen_at or 0,
            one.replica_id,
        ).explained(
            f"a segment that begins at offset {one.next_offset} or above",
            f"the next segment begins at offset {following.base_offset}",
            f"In one copy of replica {one.replica_id}'s directory the segment {one.base_offset} holds records up to"
            f" offset {(one.next_offset or 0) - 1}, and the next one begins at {following.base_offset}: both hold what"
            " lies between.",
            tuple(dict.fromkeys((*one.files, *following.files))),
        )
    )


def judge_indexes(evidence: SegmentEvidence, verdicts: Verdicts) -> None:
    """R41: a closed segment is whole and indexed within itself, and so are the entries that point into an open one."""
    for replica in evidence.replicas:
        for copy in evidence.copies_of(replica):
            is_still = _is_still(evidence, copy[0])
            for files in copy:
                if files.valid_bytes is None or not is_still or (files.is_last and not files.entries_count):
                    verdicts.unjudged("R41")
                    continue
                found = list(_contradictions(files))
                if not found:
                    verdicts.kept("R41")
                for kind, what in found[:1]:
                    verdicts.broken(
                        Divergence.of_replica(kind, "warning", files.seen_at or 0, files.replica_id).explained(
                            "a segment that is whole, and indexes that rise and point at its batches",
                            what,
                            f"Of replica {files.replica_id}'s segment {files.base_offset}: {what}. Kafka makes an index"
                            " again at a start after a crash only.",
                            files.files,
                        )
                    )


def _contradictions(files: SegmentFiles) -> Iterator[tuple[DivergenceType, str]]:
    differs = DivergenceType.INDEX_DIFFERS_FROM_SEGMENT
    if files.segment_problem is not None and not files.is_last:
        yield DivergenceType.SEGMENT_DAMAGED, files.segment_problem
    if files.entry_problem is not None:
        of = "" if files.entries_one_in == 1 else f" (one in {files.entries_one_in} was looked at)"
        yield differs, files.entry_problem + of
    if files.is_last:
        return
    if files.index_problem is not None:
        yield differs, files.index_problem
    position, end = files.last_indexed_position, files.valid_bytes or 0
    if position is not None and position >= end:
        yield differs, f"the last index entry points at byte {position}, and the segment has {end}"
    if files.next_offset is None:
        return
    for name, offset in (("index", files.last_indexed_offset), ("time index", files.last_timed_offset)):
        if offset is not None and files.base_offset <= offset and offset >= files.next_offset:
            yield (
                differs,
                f"the {name}'s last entry is of offset {offset}, and the segment ends before {files.next_offset}",
            )


def _is_still(evidence: SegmentEvidence, file: SegmentFiles) -> bool:
    """Whether nothing is known that may have changed the log while the copy was made."""
    changes = evidence.changes_of(file.replica_id, _SHORTENING)
    if file.seen_at is None:
        return True
    slack = LINE_US + evidence.slack_us.get(file.replica_id, 0)
    upper = file.seen_at if file.seen_at_upper is None else file.seen_at_upper
    return not any(file.seen_at - slack <= change.at <= upper + slack for change in changes)


_SHORTENING: Final = (LogChangeKind.CUT, LogChangeKind.DELETED, LogChangeKind.STARTED)

#: Their judges take (SegmentEvidence, Verdicts).
RULES: Final = (
    Rule(
        "R40",
        "the segments of a log follow each other: none begins below the end of the one before it",
        "kafka.log.Log.roll since 0.8.0",
        LOG_SEGMENT_TIMELINE.full_name,
        needs=(EvidenceKind.SERVER_LOG,),
        judges=(judge_segments,),
    ),
    Rule(
        "R41",
        "a closed segment is whole, and its indexes rise; each entry of an index points at a batch",
        "kafka.log.LogSegment.append, recover, OffsetIndex.sanityCheck, TimeIndex.sanityCheck since 0.8.0",
        LOG_SEGMENT_TIMELINE.full_name,
        needs=(EvidenceKind.LOG_END,),
        judges=(judge_indexes,),
    ),
)
