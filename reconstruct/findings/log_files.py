"""What the files of a cluster's logs say of each other: which folders hold one broker's logs of one time, and in which
several processes roll the logs away for each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reconstruct.time.log_names import log_name, period_span

#: Logs of two folders overlap where they do for longer than the clocks of two writers differ and a file is moved, µs.
_OVERLAP_US: Final = 60_000_000
#: A line's time is taken before the appender looks at its clock: so late, µs, it may be in its file.
_LATE_US: Final = 1_000_000
#: In less time no cluster is stopped, created again and through several elections, µs.
RECREATION_US: Final = 30_000_000


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log: whose, in which folder, and the times of its first and its last line, microseconds; ``time_zone``: that
    its local times were read in."""

    log_kind: str
    log_broker_id: int | None
    log_folder: str
    first_at: int
    last_at: int
    source_file: str = ""
    time_zone: str | None = None


def twin_folders(files: Iterable[LogFile]) -> frozenset[tuple[str, int, str, str]]:
    """By kind of log and broker the pairs of folders whose logs overlap in time."""
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
    return frozenset(twins)


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """A folder in which several processes roll the logs of ``kinds`` away for each other; ``files``: all its logs."""

    kinds: frozenset[str]
    files: tuple[LogFile, ...]

    def goes_on(self, since: int, until: int) -> bool:
        """Whether a file holds lines from before and from after: whoever wrote it lost none between, and no cluster is
        created again in a few seconds."""
        return until - since <= RECREATION_US or any(
            file.first_at <= since and until <= file.last_at for file in self.files
        )


def shared_folders(files: Iterable[LogFile]) -> dict[str, SharedFolder]:
    """The folders whose logs several processes roll away for each other.

    Log4j's hourly appender looks at its clock before it writes (:mod:`reconstruct.time.log_names`): a process alone
    never writes a line into a file that is named after an earlier hour. Another process renamed that file, which the
    first went on to write; where both rename an hour, the later rename deletes what the earlier one left. So hours of
    such a log may be gone, whosesoever they were and whatever else ran in the folder.
    """
    folders: dict[str, list[LogFile]] = {}
    for file in files:
        folders.setdefault(file.log_folder, []).append(file)
    shared = {}
    for folder, own in folders.items():
        kinds = frozenset(file.log_kind for file in own if _is_written_on(file))
        if kinds:
            shared[folder] = SharedFolder(kinds, tuple(sorted(own, key=lambda file: (file.first_at, file.source_file))))
    return shared


def _is_written_on(file: LogFile) -> bool:
    """Whether a file that was rolled by time has a line that is later than its name."""
    name = log_name(file.source_file)
    if name.period is None or file.time_zone is None:
        return False
    span = period_span(name.period, name.length, file.time_zone)
    return span is not None and span[0] <= file.first_at + _LATE_US and file.last_at > span[1] + _LATE_US
