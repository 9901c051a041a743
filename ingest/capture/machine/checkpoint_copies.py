"""Copies the checkpoint files of a log directory, as they change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

OFFSET_CHECKPOINTS: Final = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
_EPOCHS: Final = "leader-epoch-checkpoint"
#: Kafka replaces a checkpoint by renaming another over it: one that is not there is looked for again.
_ATTEMPTS: Final = 3

#: Writes a file of the capture, by its path in it.
Write = Callable[[str, bytes], None]
#: Inode, time of the last change, size: another one is another write of Kafka's, also of the same bytes.
_State = tuple[int, int, int]


class CheckpointCopies:
    """What was copied of the checkpoints in one log directory of a broker, and what is to be. ``label`` is its name in
    the capture, see :func:`labels`."""

    def __init__(self, broker_id: int, log_dir: str, write: Write, label: str = "") -> None:
        self._folder = f"broker-{broker_id}"
        self._log_dir = log_dir
        self._label = label
        self._write = write
        self._copied: dict[str, _State] = {}
        self._confirmed: set[str] = set()

    def copy(self, stamp: Callable[[], int]) -> int:
        """Copy every checkpoint of the directory if any of them changed since the last round; gives the number of
        copies. ``stamp`` gives the instant that all of a round are named by.

        All of them: one that is missing beside copies of the others was not there. A file that stayed as it was is
        due in one more round: the write that the first copy shows then lies between two rounds. Raises ``OSError``
        where the directory or a checkpoint cannot be read.
        """
        os.stat(self._log_dir)  # one that is lost is not one without checkpoints
        if not any(self._is_due(name) for name in OFFSET_CHECKPOINTS):
            return 0
        at_ms = stamp()
        return sum(self._copy_one(name, at_ms) for name in OFFSET_CHECKPOINTS)

    def copy_epochs(self) -> int:
        """Copy the ``leader-epoch-checkpoint`` of each partition that changed; an earlier copy is replaced."""
        copies = 0
        for partition, path in epoch_checkpoints(self._log_dir):
            found = read_whole(path)
            if found is not None and found[0] != self._copied.get(path):
                self._write(f"{self._folder}/{_EPOCHS}/{partition}", found[1])
                self._copied[path] = found[0]
                copies += 1
        return copies

    def _is_due(self, name: str) -> bool:
        path = os.path.join(self._log_dir, name)
        state = _state_at(path)
        return state != self._copied.get(path) or (state is not None and path not in self._confirmed)

    def _copy_one(self, name: str, at_ms: int) -> int:
        path = os.path.join(self._log_dir, name)
        found = read_whole(path)
        if found is None:
            self._copied.pop(path, None)
            return 0
        state, content = found
        self._write(_joined(self._folder, "checkpoints", self._label, name, str(at_ms)), content)
        if state == self._copied.get(path):
            self._confirmed.add(path)
        else:
            self._confirmed.discard(path)
        self._copied[path] = state
        return 1


def labels(log_dirs: tuple[str, ...]) -> dict[str, str]:
    """The log directories by their name in a capture: none where there is one, else the last of its path, made
    unique."""
    if len(log_dirs) == 1:
        return {"": log_dirs[0]}
    named: dict[str, str] = {}
    for log_dir in log_dirs:
        name = base = os.path.basename(log_dir.rstrip("/")) or "log-dir"
        number = 1
        while name in named:
            number += 1
            name = f"{base}-{number}"
        named[name] = log_dir
    return named


def epoch_checkpoints(log_dir: str) -> Iterator[tuple[str, str]]:
    """``TOPIC-PARTITION`` and the path of its checkpoint, for each partition that has one."""
    from ingest.readers.paths import topic_partition  # with what it imports, the most of a capture's start

    with os.scandir(log_dir) as entries:
        for entry in entries:
            if topic_partition(entry.name) is not None and entry.is_dir():
                path = os.path.join(entry.path, _EPOCHS)
                if os.path.exists(path):
                    yield entry.name, path


def read_whole(path: str) -> tuple[_State, bytes] | None:
    """The file's bytes and the state that they belong to; None where there is no such file.

    What is open stays as it is when Kafka renames another over it, so that the bytes are of one write.
    """
    for _ in range(_ATTEMPTS):
        try:
            with open(path, "rb") as file:
                return _state(os.fstat(file.fileno())), file.read()
        except FileNotFoundError:
            continue
    return None


def _state_at(path: str) -> _State | None:
    try:
        return _state(os.stat(path))
    except FileNotFoundError:
        return None


def _state(found: os.stat_result) -> _State:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _joined(*names: str) -> str:
    return "/".join(name for name in names if name)
