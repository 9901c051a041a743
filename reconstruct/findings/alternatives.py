"""A second look at what the rules found: explanations that need no broken rule, tried one after the other.

The rules judge a partition, a broker, a request. What speaks against the evidence itself is seen from further away:
that the cluster may have been created again where its logs are silent, that a folder's logs are another cluster's, that
a copy says no time. Where such an explanation is possible a finding is no error: it is a warning that names it. The
rules have tried others already, each where it judges: lines that are missing, clocks, versions, restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from reconstruct.time.instants import utc

#: Longer than this without a line in any log of a cluster, µs, is a hole in what was given, or a cluster that was down.
SILENCE_US: Final = 24 * 3600 * 1_000_000
#: Logs of two folders overlap where they do for longer than the clocks of two writers differ and a file is moved, µs.
_OVERLAP_US: Final = 60_000_000


@dataclass(frozen=True, slots=True)
class FoundDivergence:
    """A finding above info, by its ``divergence_id``."""

    divergence_id: str
    severity: str


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
class LogFile:
    """A log: whose, in which folder, and the times of its first and its last line, microseconds."""

    log_kind: str
    log_broker_id: int | None
    log_folder: str
    first_at: int
    last_at: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of a cluster's evidence as a whole.

    ``silences``: spans of more than :data:`SILENCE_US` in which no log has a line. ``twins``: for a kind of log and a
    broker the pairs of folders whose logs overlap in time.
    """

    silences: tuple[tuple[int, int], ...]
    twins: frozenset[tuple[str, int, str, str]]


@dataclass(frozen=True, slots=True)
class Alternative:
    """An explanation: its name, and a function that gives the sentence that says why it is possible, or None."""

    name: str
    explains: Callable[[Sequence[EvidenceRecord], Surroundings], str | None]


def surroundings(hours: Iterable[LoggedHour], files: Iterable[LogFile]) -> Surroundings:
    """The silences of a cluster's logs, and the folders that hold logs of one broker for one time."""
    logged = sorted({hour.hour for hour in hours})
    hour_us = 3600 * 1_000_000
    silences = tuple((one + hour_us, other) for one, other in pairwise(logged) if other - one - hour_us > SILENCE_US)
    twins = set()
    reached: dict[tuple[str, int], dict[str, int]] = {}  # by kind and broker: until when each folder's logs have come
    for file in sorted(files, key=lambda file: (file.first_at, file.last_at, file.log_folder)):
        if file.log_broker_id is None:  # of several brokers, perhaps
            continue
        until = reached.setdefault((file.log_kind, file.log_broker_id), {})
        for folder, last_at in until.items():
            if folder != file.log_folder and min(last_at, file.last_at) - file.first_at > _OVERLAP_US:
                one, other = sorted((folder, file.log_folder))
                twins.add((file.log_kind, file.log_broker_id, one, other))
        until[file.log_folder] = max(file.last_at, until.get(file.log_folder, file.last_at))
    return Surroundings(silences, frozenset(twins))


def _silence(records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    times = [record.at for record in records if record.at is not None]
    for begins, ends in around.silences:
        if times and min(times) < begins and ends <= max(times):
            return (
                f"no log of the cluster has a line from {utc(begins)} to {utc(ends)}: it may have been created again"
                " meanwhile, or its data restored"
            )
    return None


def _two_folders(records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    for one, other in combinations(sorted(records, key=lambda r: (r.source_kind, r.broker_id or -1, r.folder)), 2):
        place = (one.source_kind, one.broker_id)
        if place == (other.source_kind, other.broker_id) and (*place, one.folder, other.folder) in around.twins:
            return (
                f"the folders {one.folder or '.'} and {other.folder or '.'} both hold logs of broker {one.broker_id}"
                " for one time: they may be of two clusters, or of two machines with one broker id"
            )
    return None


def _undated_copy(records: Sequence[EvidenceRecord], around: Surroundings) -> str | None:
    if any(record.at is None for record in records):
        return "nothing says when one of the files was copied: it may be older or newer than what it is held against"
    return None


#: All that are tried, in this order; docs/findings.md explains each.
ALTERNATIVES: Final = (
    Alternative("created_again_in_a_silence", _silence),
    Alternative("logs_of_another_cluster", _two_folders),
    Alternative("copy_without_a_time", _undated_copy),
)


def possible_alternatives(records: Sequence[EvidenceRecord], around: Surroundings) -> list[tuple[Alternative, str]]:
    """The alternatives that the evidence of a finding does not rule out, each with its sentence."""
    tried = [(alternative, alternative.explains(records, around)) for alternative in ALTERNATIVES]
    return [(alternative, sentence) for alternative, sentence in tried if sentence is not None]
