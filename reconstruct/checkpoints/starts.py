"""What each start of a broker's process shows of its checkpoints: missing, wiped, or ahead of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from reconstruct.checkpoints.evidence import HIGH_WATERMARKS, BrokerLine, LineKind, Replica
from reconstruct.checkpoints.restart_effects import FILE_NAMES, describe_restart, named, restart_with
from reconstruct.checkpoints.verdicts import RULE, CheckpointVerdicts
from reconstruct.checkpoints.view import BrokerView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.model.versions import ENTRIES_LOST_ON_KILLS_UNTIL
from reconstruct.time.instants import utc

KNOWN_ISSUE: Final = "KAFKA-1647"
#: Kafka writes the high watermarks once in this time (replica.high.watermark.checkpoint.interval.ms), µs.
WRITTEN_EVERY_US: Final = 5_000_000
#: A session outlives its broker by less than this, µs.
_SESSION_SLACK_US: Final = 30_000_000
_FILE: Final = FILE_NAMES[HIGH_WATERMARKS]


@dataclass(frozen=True, slots=True)
class StateBeforeStart:
    """What a replica had before a start: its last checkpointed high watermark, or the end of a log that was loaded."""

    offset: int
    observed_at: int
    evidence_id: str
    directory: str | None = None


StatesBefore = Mapping[Replica, StateBeforeStart]


def judge_starts(view: BrokerView, absences: Mapping[int, tuple[int, ...]], out: CheckpointVerdicts) -> None:
    """Each start; ``absences`` are, by start, the rounds just before it whose high watermark file was not there."""
    for start, _ in view.starts:
        previous = states_before_start(view, start)
        if not previous:
            continue
        loaded = view.lines_in(start, view.next_start(start), LineKind.LOADED, LineKind.CREATED)
        if not loaded:
            out.verdicts.unjudged(RULE)
        wiped = _judge_wiped(view, start, previous, out)
        rest = {replica: before for replica, before in previous.items() if replica not in wiped}
        _judge_missing(view, start, rest, absences.get(start, ()), out)
        _judge_beyond_log(view, start, rest, out)


def states_before_start(view: BrokerView, start: int) -> dict[Replica, StateBeforeStart]:
    """Of each replica that the broker had when it started: its last checkpointed high watermark, 0 included; of one
    without, that its log was loaded with records before. What an earlier start lost already is no more."""
    result: dict[Replica, StateBeforeStart] = {}
    emptied: dict[Replica, int] = {}
    for line in view.lines_in(0, start, LineKind.LOADED, LineKind.CREATED):
        if line.replica is None:
            continue
        if line.kind is LineKind.LOADED and line.offset:
            result[line.replica] = StateBeforeStart(line.offset, line.at, line.evidence_id)
        elif line.kind is LineKind.CREATED or line.offset == 0:
            result.pop(line.replica, None)
            emptied[line.replica] = line.at
    for last in view.last_entries(HIGH_WATERMARKS, start):
        if last.taken_at < emptied.get(last.replica, 0):
            continue
        has_left = view.is_copied_whole(last.directory, last.kind, last.taken_at, start)
        known = result.get(last.replica)
        if not has_left and (known is None or known.observed_at <= last.taken_at or known.directory is None):
            result[last.replica] = StateBeforeStart(last.offset, last.taken_at, last.evidence_id, last.directory)
    emptied_at = _directory_made_at(view, start)
    return {
        replica: before
        for replica, before in result.items()
        if before.observed_at >= emptied_at
        and not view.lines_in(before.observed_at, start, LineKind.DELETED, replica=replica)
        and view.is_assigned(replica, before.observed_at, start) is not False
    }


def _directory_made_at(view: BrokerView, before: int) -> int:
    """When the broker last made its log directory, which was not there, before ``before``; 0 where it never did. One
    that loads logs with records as it starts has another directory besides."""
    made = [line.at for line in view.lines_in(0, before, LineKind.DIRECTORY_CREATED)]
    return max(
        (at for at in made if not any(line.offset for line in view.lines_in(at, view.next_start(at), LineKind.LOADED))),
        default=0,
    )


def _judge_wiped(view: BrokerView, start: int, previous: StatesBefore, out: CheckpointVerdicts) -> frozenset[Replica]:
    """Directories all of whose replicas begin again with an empty log though they had records."""
    end = view.next_start(start)
    ends: dict[Replica, int] = {}
    evidence: dict[Replica, str] = {}
    for line in view.lines_in(start, end, LineKind.LOADED, LineKind.CREATED):
        if line.replica is not None and line.replica not in ends:
            ends[line.replica] = 0 if line.kind is LineKind.CREATED else line.offset or 0
            evidence[line.replica] = line.evidence_id
    wiped: set[Replica] = set()
    for directory in sorted({before.directory for before in previous.values()}, key=str):
        replicas = [r for r, before in previous.items() if before.directory == directory and before.offset > 0]
        emptied = [replica for replica in replicas if replica in ends]
        if not emptied or any(ends[replica] > 0 for replica in emptied):
            continue
        offsets = {replica: previous[replica].offset for replica in replicas}
        effects = describe_restart(view, start, offsets)
        signs = view.lines_in(start, end, LineKind.DIRECTORY_CREATED, LineKind.NO_META_PROPERTIES)
        why = ", ".join(dict.fromkeys(line.kind.value for line in signs))
        anew = _quorum_anew(view, start)
        out.report(
            DivergenceType.LOG_DIRECTORY_WIPED,
            "error" if not anew and _surely_stayed(view, start, previous, emptied) else "warning",
            start,
            f"logs that hold what they held: {named(replicas, offsets)}",
            f"{len(emptied)} of {len(replicas)} replicas begin at offset 0, none with a record",
            f"Broker {view.broker_id} had replicas of {named(replicas, offsets)} (their last known offsets) and"
            f" started at {utc(start)} with empty logs{f' ({why})' if why else ''}: its log directory was lost."
            " Kafka never empties a log that it goes on serving. Until it has fetched everything again, no record below"
            " those offsets may be counted as held by this broker: as a leader it would lose them all."
            + (f" What the start did: {effects.text}." if effects.text else "")
            + (
                f" But the epochs of its quorum fell from {anew[0].offset} to {anew[1].offset} ({utc(anew[1].at)}),"
                " which they do in no cluster: it was formatted anew, for another."
                if anew
                else ""
            ),
            [
                *(previous[r].evidence_id for r in replicas[:4]),
                *(evidence[r] for r in emptied[:2]),
                *(line.evidence_id for line in (*signs[:2], *anew)),
                *effects.evidence,
            ],
            replicas,
        )
        out.reported |= {(replica, start) for replica in replicas}
        wiped |= set(replicas)
    return frozenset(wiped)


def _quorum_anew(view: BrokerView, start: int) -> tuple[()] | tuple[BrokerLine, BrokerLine]:
    """The lines of a KRaft node between which the epoch of its quorum's leader fell, at this start; it prints the
    second before it starts its broker."""
    before = max((at for at, _ in view.starts if at < start), default=0)
    told = view.lines_in(0, view.next_start(start), LineKind.QUORUM)
    falls = [(one, other) for one, other in pairwise(told) if (other.offset or 0) < (one.offset or 0)]
    return next((fall for fall in falls if before < fall[1].at), ())


def _surely_stayed(view: BrokerView, start: int, previous: StatesBefore, replicas: Sequence[Replica]) -> bool:
    """Whether these replicas were the broker's until it started: neither deleted nor made anew meanwhile."""
    return all(
        view.is_covered(previous[replica].observed_at, start)
        or view.is_assigned(replica, previous[replica].observed_at, start)
        for replica in replicas
    )


def _judge_missing(
    view: BrokerView,
    start: int,
    previous: StatesBefore,
    absent: tuple[int, ...],
    out: CheckpointVerdicts,
) -> None:
    """Replicas with records for which the broker found no high watermark when it started."""
    end = view.next_start(start)
    created = {line.replica for line in view.lines_in(start, end, LineKind.CREATED)}
    loaded = {
        line.replica for line in view.lines_in(start, end, LineKind.LOADED) if line.offset and line.replica is not None
    }
    without = [
        line
        for line in view.lines_in(start, end, LineKind.NO_ENTRY)
        if line.replica is not None and line.replica not in created
    ]
    rewritten_by = _rewritten_by(view, start)
    out.verdicts.unjudged(RULE, sum(line.at > rewritten_by for line in without))
    without = [line for line in without if line.at <= rewritten_by]
    missed = [
        r for r in dict.fromkeys(line.replica for line in without) if r is not None and (r in previous or r in loaded)
    ]
    with_entry = {r for r, before in previous.items() if before.directory is not None}
    had_entry = [r for r in missed if r in with_entry]
    others = [r for r in missed if r not in with_entry and r in loaded]
    young = {r for r in others if _may_be_unwritten(view, r, start)}
    out.verdicts.unjudged(RULE, len(young))
    others = [r for r in others if r not in young]
    for replicas, is_proven in ((had_entry, True), (others, False)):
        if not replicas:
            continue
        offsets = {r: previous[r].offset for r in replicas if r in previous}
        # a log that moved to another directory just before the start has its entry in the file of the old one
        is_certain = is_proven and (bool(absent) or len(view.directories) == 1)
        is_certain = is_certain and _surely_stayed(view, start, previous, replicas)
        may_be_lost = view.version.may_be_before(ENTRIES_LOST_ON_KILLS_UNTIL) and not absent
        effects = describe_restart(view, start, offsets or dict.fromkeys(replicas, 0))
        gone = f"the file was not there from {utc(absent[0])} on" if absent else "no entry was found"
        whose = f"Broker {view.broker_id}'s {_FILE}"
        why = (
            f"{whose} had entries for {named(replicas, offsets)}; {gone}. Kafka never removes the file, and writes an"
            " entry for every replica."
            if is_proven
            else f"{whose} had no entry for {named(replicas)}, whose logs held records. A broker killed before it first"
            " wrote the file explains that, a lost file too."
        )
        out.report(
            DivergenceType.CHECKPOINT_MISSING,
            "error" if is_certain and not may_be_lost else "warning",
            absent[0] if absent else start,
            f"an entry for each replica: {named(replicas, offsets)}",
            f"no checkpointed high watermark for {named(replicas)} at the start ({utc(start)})",
            f"{why} What the restart did: {effects.text}. By the rules "
            f"{restart_with(HIGH_WATERMARKS, None, view.version)}.",
            [*(previous[r].evidence_id for r in replicas[:4] if r in previous), *effects.evidence],
            replicas,
            known_issue(KNOWN_ISSUE, view.version) if may_be_lost else None,
        )
        out.reported |= {(replica, start) for replica in replicas}
    if not missed:
        made = {line.replica for line in view.lines_in(start, end, LineKind.ROLE, LineKind.INITIAL)}
        out.verdicts.kept(RULE, len(made & set(previous)))


def _rewritten_by(view: BrokerView, start: int) -> int:
    """When the process that started at ``start`` has written the file anew: with the first request about replicas it
    begins to, and writes an entry only for those that it was told to lead or to follow until then
    (``ReplicaManager.checkpointHighWatermarks``). Whoever comes later, to a log that its cluster did not know as one
    whose ZooKeeper was wiped, finds none."""
    told = view.lines_in(start, view.next_start(start), LineKind.ROLE, LineKind.INITIAL, LineKind.NO_ENTRY)
    return min((line.at for line in told), default=start) + WRITTEN_EVERY_US


def _may_be_unwritten(view: BrokerView, replica: Replica, start: int) -> bool:
    """Whether the replica may be younger than the last write of the high watermarks before a start.

    It may where the broker created it and no copy shows that the file was written since; and either copies show that it
    was not, or the broker may have died before it had to write it.
    """
    created = [line.at for line in view.lines_in(0, start, LineKind.CREATED, replica=replica)]
    if not created:
        return False
    born = created[-1]
    is_unchanged = False
    for (_, kind), copies in view.copies.items():
        since = [copy for copy in copies if kind == HIGH_WATERMARKS and born <= copy.at < start]
        if len({copy.content for copy in since}) > 1:
            return False
        is_unchanged |= any(copy.at > born + WRITTEN_EVERY_US for copy in since)
    if is_unchanged:
        return True
    last = view.last_line_before(start)
    alive = [] if last is None else [last.at]
    alive += [min(end, start) - _SESSION_SLACK_US for begin, end in view.evidence.sessions if begin <= born]
    return max(alive) - born < WRITTEN_EVERY_US + view.evidence.clock_slack_us


def _judge_beyond_log(view: BrokerView, start: int, previous: StatesBefore, out: CheckpointVerdicts) -> None:
    """Logs that end below their checkpointed high watermark: committed records that the disk lost."""
    end = view.next_start(start)
    life = max((at for at, _ in view.starts if at < start), default=0)
    for line in view.lines_in(start, end, LineKind.LOADED):
        replica = line.replica
        before = previous.get(replica) if replica is not None else None
        if replica is None or before is None or before.directory is None or line.offset is None:
            continue
        if line.offset >= before.offset:
            continue
        cuts = view.lines_in(life, start, LineKind.TRUNCATED, replica=replica)
        if cuts or view.lines_in(before.observed_at, start, LineKind.ROLE, replica=replica):
            out.verdicts.unjudged(RULE)
            continue
        is_covered = view.is_covered(before.observed_at, start)
        out.report(
            DivergenceType.CHECKPOINT_BEYOND_LOG,
            "warning",
            start,
            f"a log up to {before.offset} at least",
            f"a log up to {line.offset}",
            f"Broker {view.broker_id} had checkpointed high watermark {before.offset} of"
            f" {named([replica])} ({utc(before.observed_at)}) and loaded a log that ends at {line.offset} when it"
            f" started ({utc(start)}): {before.offset - line.offset} committed records are gone from its disk, and it"
            f" began with high watermark {line.offset}. Records that the operating system had not written when the"
            " machine failed explain it"
            + ("." if is_covered else "; so does a truncation of which the logs that were given say nothing."),
            [before.evidence_id, line.evidence_id, *view.start_evidence(start)],
            [replica],
        )
        out.reported.add((replica, start))
