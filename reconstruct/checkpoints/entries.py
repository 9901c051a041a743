"""What copies show of single entries: missing, zero, between their neighbours or not, of a replica or of none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from reconstruct.checkpoints.evidence import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    CheckpointCopy,
    CheckpointEntry,
    LineKind,
)
from reconstruct.checkpoints.restart_effects import FILE_NAMES, describe_restart, named, restart_with
from reconstruct.checkpoints.starts import KNOWN_ISSUE
from reconstruct.checkpoints.verdicts import RULE, CheckpointVerdicts
from reconstruct.checkpoints.view import BrokerView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.model.versions import ENTRIES_LOST_ON_KILLS_UNTIL
from reconstruct.offsets.evidence import LINE_TO_ACT_US
from reconstruct.time.instants import utc

#: A replica leaves the broker, and its assignment follows, within this.
LEAVES_WITHIN_US: Final = 10_000_000
#: An entry that is there so long after its replica left the broker is not just on its way out: recovery points are
#: written every minute (log.flush.offset.checkpoint.interval.ms), high watermarks more often.
UNASSIGNED_FOR_US: Final = 90_000_000
#: Files that have an entry for every replica; the others have one only where there is something to say.
_OF_EVERY_REPLICA: Final = (HIGH_WATERMARKS, RECOVERY_POINTS)
_ACTS: Final = (LineKind.ROLE, LineKind.TRUNCATED, LineKind.DELETED, LineKind.CREATED)


@dataclass(frozen=True, slots=True)
class _OddEntry:
    """One odd entry: what it is called, how bad, when, the value before and the entry (None: it is missing)."""

    divergence_type: DivergenceType
    severity: str
    at: int
    start: int | None
    why: str
    before: CheckpointEntry
    found: CheckpointEntry | None = None
    after: CheckpointEntry | None = None

    @property
    def subject(self) -> tuple[int, str, str, str, str, str, int]:
        """What the odd entries of one finding have in common."""
        file = (self.before.directory, self.before.kind)
        return (self.at, *file, self.divergence_type, self.severity, self.why, self.start or 0)


def judge_entries(view: BrokerView, out: CheckpointVerdicts) -> None:
    """Every series of entries; what several replicas of a file show at the same copy is one finding."""
    odd: list[_OddEntry] = []
    for (_, kind, _), series in sorted(view.series.items()):
        if kind not in _OF_EVERY_REPLICA:
            continue
        for before, entry in pairwise(series):
            if entry.begins_run:
                odd += _missing(view, before, out)
            elif entry.offset == 0 and before.offset > 0:
                odd += _zero(view, before, entry, out)
        odd += _missing(view, series[-1], out)
        for before, entry, after in zip(series, series[1:], series[2:], strict=False):
            if not (entry.begins_run or after.begins_run):
                odd += _between(view, before, entry, after, out)
    odd.sort(key=lambda one: one.subject)
    for _, together in groupby(odd, key=lambda one: one.subject):
        _report(view, list(together), out)
    _judge_assigned(view, out)


def _zero(
    view: BrokerView, before: CheckpointEntry, entry: CheckpointEntry, out: CheckpointVerdicts
) -> list[_OddEntry]:
    until = view.round_after(entry.directory, entry.taken_at)
    start = view.start_between(before.taken_at, until)
    if start is not None and (entry.replica, start) in out.reported:
        return []
    acts = view.lines_in(before.taken_at - LINE_TO_ACT_US, until, *_ACTS, replica=entry.replica)
    is_covered = view.is_covered(before.taken_at - LINE_TO_ACT_US, until)
    if start is not None:
        severity, why = "info", f"the broker started in between ({utc(start)})"
    elif acts:
        severity, why = "info", "a new leader's own high watermark, or a truncation, explains it"
    elif not is_covered:
        severity, why = "info", "a start or a new leader, of which the logs that were given say nothing, explain it"
    else:
        severity, why = "warning", "no start, new leader or truncation explains it"
    return [_OddEntry(DivergenceType.CHECKPOINT_ZERO, severity, entry.taken_at, start, why, before, entry)]


def _between(
    view: BrokerView, before: CheckpointEntry, entry: CheckpointEntry, after: CheckpointEntry, out: CheckpointVerdicts
) -> list[_OddEntry]:
    """One value out of line, of a series that else only rises; what stays fallen is no matter of the checkpoint."""
    is_between = before.offset <= entry.offset <= after.offset
    if is_between or before.offset > after.offset or entry.offset == 0:
        return []
    begin, until = before.taken_at - LINE_TO_ACT_US, view.round_after(after.directory, after.taken_at)
    if view.start_between(before.taken_at, until) or view.lines_in(begin, until, *_ACTS, replica=entry.replica):
        return []
    if not view.is_covered(begin, until):
        out.verdicts.unjudged(RULE)
        return []
    why = "no start, new leader or truncation explains it"
    kind = DivergenceType.CHECKPOINT_OUT_OF_BOUNDS
    return [_OddEntry(kind, "warning", entry.taken_at, None, why, before, entry, after)]


def _missing(view: BrokerView, last: CheckpointEntry, out: CheckpointVerdicts) -> list[_OddEntry]:
    """After ``last``, the next copy of the file is whole and has no entry for the replica that it should have."""
    directory, kind, replica = last.directory, last.kind, last.replica
    copy = view.next_copy(directory, kind, last.taken_at)
    if copy is None or copy.taken_at is None or copy.bad or not copy.entry_count:
        return []
    until = view.round_after(directory, copy.taken_at)
    elsewhere = any(
        entry.taken_at >= last.taken_at
        for place in view.directories
        if place != directory
        for entry in view.series.get((place, kind, replica), ())
    )
    leaves = view.lines_in(last.taken_at - LINE_TO_ACT_US, until + LEAVES_WITHIN_US, LineKind.DELETED, replica=replica)
    start = view.start_between(last.taken_at, until)
    if elsewhere or leaves or (start is not None and (replica, start) in out.reported):
        return []
    failed = view.lines_in(last.taken_at, until, LineKind.DIRECTORY_FAILED)
    if failed or not view.is_assigned(replica, last.taken_at, until + LEAVES_WITHIN_US):
        out.verdicts.unjudged(RULE)
        return []
    if start is not None:
        severity, why = "info", f"the broker started in between ({utc(start)}) and may not have made all replicas yet"
    elif not view.is_covered(last.taken_at, until):
        severity, why = "info", "a start or a deletion, of which the logs that were given say nothing, explain it"
    else:
        severity, why = "warning", "the broker neither started nor deleted the log in between"
    return [_OddEntry(DivergenceType.CHECKPOINT_MISSING, severity, copy.taken_at, start, why, last)]


def _report(view: BrokerView, together: list[_OddEntry], out: CheckpointVerdicts) -> None:
    first = together[0]
    replicas = [one.before.replica for one in together]
    had = {one.before.replica: one.before.offset for one in together}
    name = FILE_NAMES[first.before.kind]
    found = {one.before.replica: one.found.offset for one in together if one.found is not None}
    later = {one.before.replica: one.after.offset for one in together if one.after is not None}
    evidence = [e.evidence_id for one in together[:4] for e in (one.before, one.found, one.after) if e is not None]
    shows = f"{named(found, found)}" if found else f"no entry for {named(replicas)}"
    restart_text = ""
    if first.start is not None:
        effects = describe_restart(view, first.start, had)
        restart_text = f" What the start did: {effects.text}." if effects.text else ""
        evidence += effects.evidence
    lowest = min(found.values(), default=None)
    expected = f"{named(had, had)} or more" + (f", at most {named(later, later)}" if later else "")
    is_lost = first.start is not None and view.version.may_be_before(ENTRIES_LOST_ON_KILLS_UNTIL)
    out.report(
        first.divergence_type,
        first.severity,
        first.at,
        expected,
        shows,
        f"Broker {view.broker_id}'s {name} had {named(had, had)} ({utc(first.before.taken_at)}) and then, copied"
        f" at {utc(first.at)}, {shows}{f', and later {named(later, later)} again' if later else ''}: {first.why}. A"
        f" hard restart with it: {restart_with(first.before.kind, lowest, view.version)}.{restart_text}",
        evidence,
        replicas,
        known_issue(KNOWN_ISSUE, view.version) if is_lost and not found else None,
    )


def _judge_assigned(view: BrokerView, out: CheckpointVerdicts) -> None:
    """Entries of replicas that the broker was not assigned."""
    strays: dict[tuple[str, str, bool], list[CheckpointEntry]] = {}
    for (directory, kind, replica), series in sorted(view.series.items()):
        last = series[-1]
        if kind not in _OF_EVERY_REPLICA:
            continue
        is_assigned = view.is_assigned(replica, last.taken_at - UNASSIGNED_FOR_US, last.taken_at)
        if is_assigned is None:
            out.verdicts.unjudged(RULE)
        elif is_assigned:
            out.verdicts.kept(RULE)
        else:
            by = view.left_at(replica, last.taken_at) + UNASSIGNED_FOR_US
            written = _was_written(view.copies.get((directory, kind), ()), by, last.taken_at)
            strays.setdefault((directory, kind, written), []).append(last)
    for (_, kind, written), entries in strays.items():
        replicas = [entry.replica for entry in entries]
        values = {entry.replica: entry.offset for entry in entries}
        does = "ignores it" if kind == HIGH_WATERMARKS else "loads its log, which takes space and is led by nobody"
        out.report(
            DivergenceType.CHECKPOINT_UNASSIGNED_ENTRY,
            "warning" if written else "info",
            entries[-1].taken_at,
            "entries of assigned replicas only",
            f"entries of {named(replicas, values)}",
            f"Broker {view.broker_id}'s {FILE_NAMES[kind]} has entries of {named(replicas, values)}, which it is"
            f" not assigned (copied at {utc(entries[-1].taken_at)}). "
            + (
                "It was written since they left: the broker still has them."
                if written
                else "It was not written since they left."
            )
            + f" A restart {does}.",
            [entry.evidence_id for entry in entries[:8]],
            replicas,
        )


def _was_written(copies: Iterable[CheckpointCopy], after: int, until: int) -> bool:
    """Whether the file changed between the last copy up to ``after`` and the last one up to ``until``."""
    dated = [copy for copy in copies if copy.taken_at is not None and copy.taken_at <= until]
    earlier = [copy for copy in dated if copy.taken_at is not None and copy.taken_at <= after]
    return bool(earlier) and len(earlier) < len(dated) and earlier[-1].content != dated[-1].content
