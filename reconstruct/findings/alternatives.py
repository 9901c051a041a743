"""A second look at what the rules found: explanations that need no broken rule, tried one after the other.

The rules judge a partition, a broker, a request. What speaks against the evidence itself is seen from further away:
that the cluster may have been created again where its logs are silent, that a folder's logs are another cluster's, that
a copy says no time. Where such an explanation is possible a finding is no error: it is a warning that names it. The
rules have tried others already, each where it judges: lines that are missing, clocks, versions, restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, pairwise
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.log_files import LogFile, SharedFolder, shared_folders, twin_folders
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH, TOPICS_PATH
from reconstruct.time.instants import utc

#: Topic, its incarnation, partition.
Partition = tuple[str, str | None, int]
#: Longer than this without a line in any log of a cluster, µs, is a hole in what was given, or a cluster that was down.
SILENCE_US: Final = 24 * 3600 * 1_000_000
#: A process prints its configuration within this time of its start, before or after, µs.
_CONFIGURED_WITHIN_US: Final = 5_000_000
#: What a process states of its cluster it states within this time of its start, µs.
_STATED_WITHIN_US: Final = 60_000_000
#: A write and what it led to lie in this order where clocks differ by no more, µs.
_CLOCKS_US: Final = 60_000_000
#: Findings of a start that found less in its log directories than was in them.
_OF_DIRECTORIES: Final = (DivergenceType.LOG_DIRECTORY_WIPED, DivergenceType.CHECKPOINT_MISSING)
#: Findings that hold what one copy contains against what a line or another copy says, each as of its own time. Others
#: take of a copy only what no later one contradicts: where an epoch began stays where it was.
_OF_COPIES: Final = (DivergenceType.EPOCH_LINEAGE_CONFLICT,)
#: Rules about what logs hold, but for that of checkpoint files, which says of a directory that it was emptied.
_OF_LOGS: Final = ("R30", "R31", "R32", "R33", "R34", "R35", "R36")


@dataclass(frozen=True, slots=True)
class FoundDivergence:
    """A finding above info, by its ``divergence_id``; ``at``: when, microseconds."""

    divergence_id: str
    severity: str
    rule_id: str = ""
    divergence_type: str = ""
    broker_id: int | None = None
    topic: str | None = None
    topic_incarnation: str | None = None
    partition_id: int | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """A record that a finding rests on. ``at``: its time in microseconds, NULL where nothing says."""

    divergence_id: str
    source_kind: str
    broker_id: int | None
    folder: str
    at: int | None


@dataclass(frozen=True, slots=True)
class LoggedHour:
    """An hour in which some log of the cluster has a line: its begin, microseconds."""

    hour: int


@dataclass(frozen=True, slots=True)
class HandWrite:
    """A write of ``path`` that only a controller or a leader makes, by a session that never was a broker's."""

    path: str
    at: int


@dataclass(frozen=True, slots=True)
class LogDirs:
    """``log.dirs`` as a broker printed it when it started; ``is_opened``: the directories that it opened, with their
    whole paths (``LogManager``, 2.6 and later)."""

    broker_id: int
    at: int
    log_dirs: str
    is_opened: bool = False


@dataclass(frozen=True, slots=True)
class StatedCluster:
    """The id of its cluster as a broker stated it when it started."""

    broker_id: int
    at: int
    stated_cluster_id: str


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a replica's log ended when its broker loaded it, 0 where it created one; NULL where the broker truncated or
    deleted it."""

    broker_id: int
    topic: str
    topic_incarnation: str | None
    partition_id: int
    at: int
    log_end_offset: int | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of a cluster's evidence as a whole.

    ``silences``: spans of more than :data:`SILENCE_US` in which no log has a line. ``twins``: for a kind of log and a
    broker the pairs of folders whose logs overlap in time. ``log_dirs``, ``stated``: by broker, in order.
    ``shrunk``: by partition the logs that ended lower when they were loaded than when they were loaded before, and
    nothing says why. ``shared_folders``: those whose logs several processes roll away for each other.
    """

    silences: tuple[tuple[int, int], ...]
    twins: frozenset[tuple[str, int, str, str]]
    hand_writes: tuple[HandWrite, ...] = ()
    log_dirs: Mapping[int, tuple[LogDirs, ...]] = field(default_factory=dict)
    shrunk: Mapping[Partition, tuple[tuple[LogEnd, LogEnd], ...]] = field(default_factory=dict)
    shared_folders: Mapping[str, SharedFolder] = field(default_factory=dict)
    stated: Mapping[int, tuple[StatedCluster, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alternative:
    """An explanation: its name, a function that gives the sentence that says why it is possible, or None, and how
    severe a finding is at most that it explains."""

    name: str
    explains: Callable[[FoundDivergence, Sequence[EvidenceRecord], Surroundings], str | None]
    at_most: str = "warning"


def surroundings(
    hours: Iterable[LoggedHour],
    files: Iterable[LogFile],
    hand_writes: Iterable[HandWrite] = (),
    log_dirs: Iterable[LogDirs] = (),
    log_ends: Iterable[LogEnd] = (),
    stated: Iterable[StatedCluster] = (),
) -> Surroundings:
    """The silences of a cluster's logs, the folders that hold logs of one broker for one time, what was written to
    ZooKeeper by hand, what became of log directories over restarts, and which clusters the processes were of."""
    logged = sorted({hour.hour for hour in hours})
    hour_us = 3600 * 1_000_000
    silences = tuple((one + hour_us, other) for one, other in pairwise(logged) if other - one - hour_us > SILENCE_US)
    logs = list(files)
    directories: dict[int, list[LogDirs]] = {}
    for dirs in sorted(log_dirs, key=lambda d: (d.broker_id, d.at, d.log_dirs)):
        directories.setdefault(dirs.broker_id, []).append(dirs)
    clusters: dict[int, list[StatedCluster]] = {}
    for statement in sorted(stated, key=lambda s: (s.broker_id, s.at, s.stated_cluster_id)):
        clusters.setdefault(statement.broker_id, []).append(statement)
    return Surroundings(
        silences,
        twin_folders(logs),
        tuple(sorted(hand_writes, key=lambda write: (write.at, write.path))),
        {broker_id: tuple(of_broker) for broker_id, of_broker in directories.items()},
        _shrunk(log_ends),
        shared_folders(logs),
        {broker_id: tuple(of_broker) for broker_id, of_broker in clusters.items()},
    )


def _shrunk(log_ends: Iterable[LogEnd]) -> dict[Partition, tuple[tuple[LogEnd, LogEnd], ...]]:
    replicas: dict[tuple[Partition, int], list[LogEnd]] = {}
    for end in log_ends:
        replicas.setdefault(((end.topic, end.topic_incarnation, end.partition_id), end.broker_id), []).append(end)
    found: dict[Partition, list[tuple[LogEnd, LogEnd]]] = {}
    for (partition, _), ends in sorted(replicas.items(), key=str):
        for before, after in pairwise(sorted(ends, key=lambda e: (e.at, e.log_end_offset is not None))):
            now = after.log_end_offset
            if before.log_end_offset is not None and now is not None and now < before.log_end_offset:
                found.setdefault(partition, []).append((before, after))
    return {partition: tuple(pairs) for partition, pairs in found.items()}


def _silence(finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    times = [record.at for record in records if record.at is not None]
    for begins, ends in around.silences:
        if times and min(times) < begins and ends <= max(times):
            return (
                f"no log of the cluster has a line from {utc(begins)} to {utc(ends)}: it may have been created again"
                " meanwhile, or its data restored"
            )
    return None


def _two_folders(finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    for one, other in combinations(sorted(records, key=lambda r: (r.source_kind, r.broker_id or -1, r.folder)), 2):
        place = (one.source_kind, one.broker_id)
        if place == (other.source_kind, other.broker_id) and (*place, one.folder, other.folder) in around.twins:
            return (
                f"the folders {one.folder or '.'} and {other.folder or '.'} both hold logs of broker {one.broker_id}"
                " for one time: they may be of two clusters, or of two machines with one broker id"
            )
    return None


def _rolled_away(finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    if finding.divergence_type in _OF_DIRECTORIES:  # each start states its cluster's id itself
        return None
    for folder, shared in around.shared_folders.items():
        dated = sorted((r.at, r.source_kind) for r in records if r.folder == folder and r.at is not None)
        for (one, kind), (other, other_kind) in pairwise(dated):
            if not shared.kinds.isdisjoint((kind, other_kind)) and not shared.goes_on(one, other):
                return (
                    f"several processes wrote the logs of {folder or '.'} and rolled them away for each other, and none"
                    f" goes on from {utc(one)} to {utc(other)}: another cluster may have run there meanwhile"
                )
    return None


def _undated_copy(finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    places = {(record.source_kind, record.broker_id, record.folder) for record in records}
    is_comparison = finding.divergence_type in _OF_COPIES and len(places) > 1
    if is_comparison and any(record.at is None for record in records):
        return "nothing says when one of the files was copied: it may be older or newer than what it is held against"
    return None


def _hand_on_znodes(finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    since = min((record.at for record in records if record.at is not None), default=finding.at) - _CLOCKS_US
    own = f"{TOPICS_PATH}/{finding.topic}"
    paths = {CONTROLLER_EPOCH_PATH, own, f"{own}/partitions/{finding.partition_id}/state"}
    for write in around.hand_writes:
        if write.path in paths and since <= write.at <= finding.at + _CLOCKS_US:
            return (
                f"{write.path} was written or deleted at {utc(write.at)} by a session that is no broker's: somebody"
                " changed ZooKeeper by hand"
            )
    return None


def _other_log_dirs(finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    if finding.divergence_type not in _OF_DIRECTORIES or finding.broker_id is None:
        return None
    start = finding.at - _CONFIGURED_WITHIN_US
    known = around.log_dirs.get(finding.broker_id, ())
    for is_opened, words in ((False, "log.dirs="), (True, "log directories ")):
        before = [dirs.log_dirs for dirs in known if dirs.is_opened == is_opened and dirs.at < start]
        now = [dirs.log_dirs for dirs in known if dirs.is_opened == is_opened and dirs.at >= start]
        if before and now and before[-1] != now[0]:
            return (
                f"it was started with {words}{now[0]}, and with {words}{before[-1]} before: what it held may lie there"
                " as it was"
            )
    return None


def _start_of_another_cluster(
    finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings
) -> str | None:
    if finding.divergence_type not in _OF_DIRECTORIES or finding.broker_id is None:
        return None
    known = around.stated.get(finding.broker_id, ())
    before = [one.stated_cluster_id for one in known if one.at < finding.at]
    now = [one.stated_cluster_id for one in known if finding.at <= one.at <= finding.at + _STATED_WITHIN_US]
    if not before or not now or before[-1] == now[0]:
        return None
    return (
        f"it stated the cluster id {now[0]} when it started, and {before[-1]} before: it may be a broker of another"
        " cluster, whose lines are in the same log"
    )


def _restored_or_deleted(
    finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings, *, is_gone: bool
) -> str | None:
    if finding.rule_id not in _OF_LOGS or finding.topic is None or finding.partition_id is None:
        return None
    for before, after in around.shrunk.get((finding.topic, finding.topic_incarnation, finding.partition_id), ()):
        if after.at <= finding.at + _CLOCKS_US and is_gone == (after.log_end_offset == 0):
            return (
                f"broker {after.broker_id} loaded the log up to {before.log_end_offset} at {utc(before.at)} and up to"
                f" {after.log_end_offset} at {utc(after.at)}, and logged no truncation: "
                + (
                    "somebody deleted the partition's directory"
                    if is_gone
                    else "its directory was restored from an older copy, or its disk lost what was not written yet"
                )
            )
    return None


#: All that are tried, in this order; docs/findings.md explains each.
ALTERNATIVES: Final = (
    Alternative("created_again_in_a_silence", _silence),
    Alternative("logs_of_another_cluster", _two_folders),
    Alternative("hours_rolled_away", _rolled_away, at_most="info"),
    Alternative("copy_without_a_time", _undated_copy),
    Alternative("znodes_changed_by_hand", _hand_on_znodes),
    Alternative("other_log_dirs", _other_log_dirs),
    Alternative("start_of_another_cluster", _start_of_another_cluster),
    Alternative("partition_directory_deleted", partial(_restored_or_deleted, is_gone=True)),
    Alternative("data_directory_restored", partial(_restored_or_deleted, is_gone=False)),
)


def possible_alternatives(
    finding: FoundDivergence, records: Sequence[EvidenceRecord], around: Surroundings
) -> list[tuple[Alternative, str]]:
    """The alternatives that the evidence of a finding does not rule out, each with its sentence."""
    tried = [(alternative, alternative.explains(finding, records, around)) for alternative in ALTERNATIVES]
    return [(alternative, sentence) for alternative, sentence in tried if sentence is not None]
