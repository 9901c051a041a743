"""What each start of a broker's process shows of its checkpoints: missing, wiped, or ahead of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.checkpoints.evidence import HIGH_WATERMARKS, LineKind, Replica
from reconstruct.checkpoints.restart_effects import FILE_NAMES, describe_restart, named, restart_with
from reconstruct.checkpoints.verdicts import RULE, CheckpointVerdicts
from reconstruct.checkpoints.view import BrokerView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.model.versions import ENTRIES_LOST_ON_KILLS_UNTIL
from reconstruct.time.instants import utc

KNOWN_ISSUE: Final = "KAFKA-1647"
_FILE: Final = FILE_NAMES[HIGH_WATERMARKS]


@dataclass(frozen=True, slots=True)
class Before:
    """What a replica had before a start: its last checkpointed high watermark, or the end of a log that was loaded."""

    offset: int
    seen_at: int
    evidence_id: str
    directory: str | None = None


def judge_starts(view: BrokerView, absences: Mapping[int, tuple[int, ...]], out: CheckpointVerdicts) -> None:
    """Each start; ``absences`` are, by start, the rounds just before it whose high watermark file was not there."""
    for start, _ in view.starts:
        had = states_before_start(view, start)
        if not had:
            continue
        loaded = view.lines_in(start, view.next_start(start), LineKind.LOADED, LineKind.CREATED)
        if not loaded:
            out.verdicts.unjudged(RULE)
        wiped = _judge_wiped(view, start, had, out)
        rest = {replica: before for replica, before in had.items() if replica not in wiped}
        _judge_missing(view, start, rest, absences.get(start, ()), out)
        _judge_beyond_log(view, start, rest, out)


def states_before_start(view: BrokerView, start: int) -> dict[Replica, Before]:
    """Of each replica that the broker had when it started: its last checkpointed high watermark, 0 included; of one
    without, that its log was loaded with records before."""
    result: dict[Replica, Before] = {}
    for line in view.lines_in(0, start, LineKind.LOADED):
        if line.replica is not None and line.offset:
            result[line.replica] = Before(line.offset, line.at, line.evidence_id)
    for (directory, kind, replica), series in view.series.items():
        earlier = [entry for entry in series if entry.taken_at < start]
        if kind != HIGH_WATERMARKS or not earlier:
            continue
        last = earlier[-1]
        has_left = view.is_copied_whole(directory, kind, last.taken_at, start)
        known = result.get(replica)
        if not has_left and (known is None or known.seen_at <= last.taken_at or known.directory is None):
            result[replica] = Before(last.offset, last.taken_at, last.evidence_id, directory)
    return {
        replica: before
        for replica, before in result.items()
        if not view.lines_in(before.seen_at, start, LineKind.DELETED, replica=replica)
        and view.is_assigned(replica, before.seen_at, start) is not False
    }


def _judge_wiped(
    view: BrokerView, start: int, had: Mapping[Replica, Before], out: CheckpointVerdicts
) -> frozenset[Replica]:
    """Directories all of whose replicas begin again with an empty log though they held records."""
    end = view.next_start(start)
    ends: dict[Replica, int] = {}
    evidence: dict[Replica, str] = {}
    for line in view.lines_in(start, end, LineKind.LOADED, LineKind.CREATED):
        if line.replica is not None and line.replica not in ends:
            ends[line.replica] = 0 if line.kind is LineKind.CREATED else line.offset or 0
            evidence[line.replica] = line.evidence_id
    wiped: set[Replica] = set()
    for directory in sorted({before.directory for before in had.values()}, key=str):
        replicas = [r for r, before in had.items() if before.directory == directory and before.offset > 0]
        seen = [replica for replica in replicas if replica in ends]
        if not seen or any(ends[replica] > 0 for replica in seen):
            continue
        held = {replica: had[replica].offset for replica in replicas}
        tale = describe_restart(view, start, held)
        signs = view.lines_in(start, end, LineKind.DIRECTORY_CREATED, LineKind.NO_META_PROPERTIES)
        said = ", ".join(dict.fromkeys(line.kind.value for line in signs))
        out.found(
            DivergenceType.LOG_DIRECTORY_WIPED,
            "error" if _surely_stayed(view, start, had, seen) else "warning",
            start,
            f"logs that hold what they held: {named(replicas, held)}",
            f"{len(seen)} of {len(replicas)} replicas begin at offset 0, none with a record",
            f"Broker {view.seen.broker_id} had replicas of {named(replicas, held)} (their last known offsets) and"
            f" started at {utc(start)} with empty logs{f' ({said})' if said else ''}: its log directory was lost."
            " Kafka never empties a log that it goes on serving. Until it has fetched everything again, no record below"
            " those offsets may be counted as held by this broker: as a leader it would lose them all."
            + (f" What the start did: {tale.text}." if tale.text else ""),
            [
                *(had[r].evidence_id for r in replicas[:4]),
                *(evidence[r] for r in seen[:2]),
                *(line.evidence_id for line in signs[:2]),
                *tale.evidence,
            ],
            replicas,
        )
        out.told |= {(replica, start) for replica in replicas}
        wiped |= set(replicas)
    return frozenset(wiped)


def _surely_stayed(view: BrokerView, start: int, had: Mapping[Replica, Before], replicas: Sequence[Replica]) -> bool:
    """Whether these replicas were the broker's until it started: neither deleted nor made anew meanwhile."""
    return all(
        view.is_covered(had[replica].seen_at, start) or view.is_assigned(replica, had[replica].seen_at, start)
        for replica in replicas
    )


def _judge_missing(
    view: BrokerView, start: int, had: Mapping[Replica, Before], absent: tuple[int, ...], out: CheckpointVerdicts
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
    missed = [r for r in dict.fromkeys(line.replica for line in without) if r is not None and (r in had or r in loaded)]
    had_entry = [r for r in missed if r in had and had[r].directory is not None]
    others = [r for r in missed if r not in had_entry and r in loaded]
    for replicas, is_proven in ((had_entry, True), (others, False)):
        if not replicas:
            continue
        held = {r: had[r].offset for r in replicas if r in had}
        # a log that moved to another directory just before the start has its entry in the file of the old one
        is_certain = is_proven and (bool(absent) or len(view.directories) == 1)
        is_certain = is_certain and _surely_stayed(view, start, had, replicas)
        may_be_lost = view.seen.version.may_be_before(ENTRIES_LOST_ON_KILLS_UNTIL) and not absent
        tale = describe_restart(view, start, held or dict.fromkeys(replicas, 0))
        gone = f"the file was not there from {utc(absent[0])} on" if absent else "no entry was found"
        whose = f"Broker {view.seen.broker_id}'s {_FILE}"
        why = (
            f"{whose} had entries for {named(replicas, held)}; {gone}. Kafka never removes the file, and writes an"
            " entry for every replica."
            if is_proven
            else f"{whose} had no entry for {named(replicas)}, whose logs held records. A broker killed before it first"
            " wrote the file explains that, a lost file too."
        )
        out.found(
            DivergenceType.CHECKPOINT_MISSING,
            "error" if is_certain and not may_be_lost else "warning",
            absent[0] if absent else start,
            f"an entry for each replica: {named(replicas, held)}",
            f"no checkpointed high watermark for {named(replicas)} at the start ({utc(start)})",
            f"{why} What the restart did: {tale.text}. By the rules "
            f"{restart_with(HIGH_WATERMARKS, None, view.seen.version)}.",
            [*(had[r].evidence_id for r in replicas[:4] if r in had), *tale.evidence],
            replicas,
            known_issue(KNOWN_ISSUE, view.seen.version) if may_be_lost else None,
        )
        out.told |= {(replica, start) for replica in replicas}
    if not missed:
        made = {line.replica for line in view.lines_in(start, end, LineKind.ROLE, LineKind.INITIAL)}
        out.verdicts.kept(RULE, len(made & set(had)))


def _judge_beyond_log(view: BrokerView, start: int, had: Mapping[Replica, Before], out: CheckpointVerdicts) -> None:
    """Logs that end below their checkpointed high watermark: committed records that the disk lost."""
    end = view.next_start(start)
    life = max((at for at, _ in view.starts if at < start), default=0)
    for line in view.lines_in(start, end, LineKind.LOADED):
        replica = line.replica
        before = had.get(replica) if replica is not None else None
        if replica is None or before is None or before.directory is None or line.offset is None:
            continue
        if line.offset >= before.offset:
            continue
        cuts = view.lines_in(life, start, LineKind.TRUNCATED, replica=replica)
        if cuts or view.lines_in(before.seen_at, start, LineKind.ROLE, replica=replica):
            out.verdicts.unjudged(RULE)
            continue
        is_covered = view.is_covered(before.seen_at, start)
        out.found(
            DivergenceType.CHECKPOINT_BEYOND_LOG,
            "warning",
            start,
            f"a log up to {before.offset} at least",
            f"a log up to {line.offset}",
            f"Broker {view.seen.broker_id} had checkpointed high watermark {before.offset} of"
            f" {named([replica])} ({utc(before.seen_at)}) and loaded a log that ends at {line.offset} when it started"
            f" ({utc(start)}): {before.offset - line.offset} committed records are gone from its disk, and it began"
            f" with high watermark {line.offset}. Records that the operating system had not written when the"
            " machine failed explain it"
            + ("." if is_covered else "; so does a truncation of which the logs that were given say nothing."),
            [before.evidence_id, line.evidence_id, *view.start_evidence(start)],
            [replica],
        )
        out.told.add((replica, start))
