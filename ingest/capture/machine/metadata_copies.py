"""Copies the metadata log of a KRaft node as it grows: whole batches of its segments, its snapshots, its vote."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

from ingest.capture.machine.checkpoint_copies import Write, read_whole
from ingest.capture.output import append_whole
from ingest.readers.log_dirs.names import METADATA_DIRECTORY

_QUORUM_STATE: Final = "quorum-state"
_BOOTSTRAP: Final = "bootstrap.checkpoint"
#: Base offset and length, with which a batch begins; the length counts what follows it.
_START: Final = struct.Struct(">qi")
#: A batch and a snapshot's are at most 8 MiB (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``): a longer one is damage, which
#: is copied as it is.
_LONGEST: Final = 16 << 20
_BLOCK: Final = 4 << 20
_MOST_PER_ROUND: Final = 64 << 20
#: So much of the end of a copy is held against the log, which a follower of the quorum may have cut.
_PRINT: Final = 4096


class MetadataCopies:
    """What was copied of ``__cluster_metadata-0`` in one log directory, and what is to be; nothing where there is none.
    ``write`` writes files below ``capture``, the folder of the capture; ``is_there`` says whether there was one."""

    def __init__(self, broker_id: int, log_dir: str, write: Write, capture: Path) -> None:
        self._folder = f"broker-{broker_id}"
        self._log_dir = log_dir
        self._source = os.path.join(log_dir, METADATA_DIRECTORY)
        self._target = capture / self._folder / METADATA_DIRECTORY
        self._write = write
        self._quorum_state: object = None
        self.is_there = False
        #: What was copied before and is in the log no more: a name and what happened to it.
        self.lost: list[tuple[str, str]] = []

    def copy(self) -> int:
        """Copy what is new; gives the number of files that something was copied of. Raises ``OSError`` where the
        directory cannot be read."""
        try:
            names = sorted(os.listdir(self._source))
        except FileNotFoundError:
            return 0
        self.is_there = True
        copied = sum(self._follow(name) for name in names if name.endswith(".log"))
        for name in names:
            if name.endswith(".checkpoint"):
                copied += self._take(os.path.join(self._source, name), f"{METADATA_DIRECTORY}/{name}")
        copied += self._take(os.path.join(self._log_dir, _BOOTSTRAP), _BOOTSTRAP)
        return copied + self._take_quorum_state()

    def _take(self, path: str, name: str) -> int:
        """A file that never changes once it has its name, unless it is there already."""
        if (self._target.parent / name).exists():
            return 0
        found = read_whole(path)
        if found is None:
            return 0
        self._write(f"{self._folder}/{name}", found[1])
        return 1

    def _take_quorum_state(self) -> int:
        found = read_whole(os.path.join(self._source, _QUORUM_STATE))
        if found is None or found[0] == self._quorum_state:
            return 0
        self._write(f"{self._folder}/{METADATA_DIRECTORY}/{_QUORUM_STATE}", found[1])
        self._quorum_state = found[0]
        return 1

    def _follow(self, name: str) -> int:
        """Append the batches of a segment that are new."""
        try:
            source = os.open(os.path.join(self._source, name), os.O_RDONLY)
        except FileNotFoundError:  # a snapshot has taken its place just now
            return 0
        try:
            if os.fstat(source).st_size == 0:
                return 0
            self._target.mkdir(parents=True, exist_ok=True)
            target = os.open(self._target / name, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                begin = self._goes_on_at(name, source, target)
                return _append(source, target, begin)
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _goes_on_at(self, name: str, source: int, target: int) -> int:
        """Where the copy ends; 0, and nothing is left of it, where the log is not what it was."""
        end = os.fstat(target).st_size
        last = max(0, end - _PRINT)
        if os.pread(source, end - last, last) == os.pread(target, end - last, last):
            os.lseek(target, end, os.SEEK_SET)
            return end
        self.lost.append((name, "the node cut its log back: what was copied of it is replaced by what it has now"))
        os.ftruncate(target, 0)
        os.lseek(target, 0, os.SEEK_SET)
        return 0


def _append(source: int, target: int, begin: int) -> int:
    """Append whole batches from ``begin`` on; gives whether there was one."""
    at, stop = begin, begin + _MOST_PER_ROUND
    while at < stop:
        block = os.pread(source, _BLOCK, at)
        size = whole_batches(block)
        if size == 0 and len(block) == _BLOCK:
            block = os.pread(source, _LONGEST, at)
            size = whole_batches(block)
        if size == 0:
            break
        append_whole(target, block[:size])
        at += size
    return int(at > begin)


def whole_batches(block: bytes) -> int:
    """The length of the batches that a block begins with and holds whole; zeros are none, and what can be no batch is
    copied as it is."""
    at = 0
    while at + _START.size <= len(block):
        _, length = _START.unpack_from(block, at)
        if not 0 <= length <= _LONGEST - _START.size:
            return len(block)
        if length == 0 and not block[at:].strip(b"\0"):
            break
        end = at + _START.size + length
        if end > len(block):
            break
        at = end
    return at
