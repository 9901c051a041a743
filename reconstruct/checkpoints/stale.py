"""High watermark files that a running broker did not write."""

from __future__ import annotations

from itertools import groupby

from reconstruct.checkpoints.evidence import HIGH_WATERMARKS, LineKind, Replica
from reconstruct.checkpoints.restart_effects import FILE_NAMES, named, restart_with
from reconstruct.checkpoints.verdicts import RULE, CheckpointVerdicts
from reconstruct.checkpoints.view import BrokerView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.time.instants import utc


def judge_stale(view: BrokerView, out: CheckpointVerdicts) -> None:
    """High watermark files that a running broker did not write while a high watermark is proven to have risen."""
    within = view.evidence.written_within
    for (directory, kind), copies in sorted(view.copies.items()):
        if kind != HIGH_WATERMARKS:
            continue
        for _, same in groupby(copies, key=lambda copy: copy.content):
            unchanged = [copy.taken_at for copy in same if copy.taken_at is not None]
            first, last = unchanged[0], unchanged[-1]
            if within is None or last - first < within:
                continue
            if not any(begin <= first and last <= end for begin, end in view.evidence.sessions):
                out.verdicts.unjudged(RULE)
                continue
            _judge_unwritten(view, directory, first, last, last - within, out)


def _judge_unwritten(
    view: BrokerView, directory: str, first: int, last: int, written_by: int, out: CheckpointVerdicts
) -> None:
    stale: dict[Replica, int] = {}
    proven: dict[Replica, int] = {}
    evidence: list[str] = []
    for (place, kind, replica), series in sorted(view.series.items()):
        entries = [entry for entry in series if first <= entry.taken_at <= last]
        if place != directory or kind != HIGH_WATERMARKS or not entries:
            continue
        if any(entry.offset > entries[-1].offset and entry.taken_at < first for entry in series):
            continue  # it fell: that it did is no matter of the file
        if view.lines_in(first, last, LineKind.ROLE, LineKind.TRUNCATED, LineKind.DELETED, replica=replica):
            continue
        higher = [
            row
            for row in view.evidence.proven.get(replica, ())
            if row.offset > entries[-1].offset and first <= row.start <= written_by and (row.end or last) > written_by
        ]
        if higher:
            stale[replica], proven[replica] = entries[-1].offset, higher[0].offset
            evidence += [entries[-1].evidence_id, *higher[0].evidence[:2]]
    if not stale:
        out.verdicts.kept(RULE)
        return
    name = FILE_NAMES[HIGH_WATERMARKS]
    out.report(
        DivergenceType.CHECKPOINT_STALE,
        "warning",
        last,
        f"a {name} that was written after {utc(written_by)}",
        f"the same content from {utc(first)} to {utc(last)}",
        f"Broker {view.broker_id} ran, and its {name} stayed the same from {utc(first)} to {utc(last)}, with"
        f" {named(stale, stale)}, though the high watermarks had reached {named(proven, proven)} by {utc(written_by)}:"
        " it did not write the file. After a restart now a replica would fall back that far:"
        f" {restart_with(HIGH_WATERMARKS, min(stale.values()), view.version)}.",
        evidence,
        stale,
    )
