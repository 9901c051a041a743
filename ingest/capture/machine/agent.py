"""What is recorded on a broker's machine: checkpoints, the metadata log, logs and configuration."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from ingest.capture.machine.checkpoint_copies import CheckpointCopies, labels
from ingest.capture.machine.log_following import LogFollower
from ingest.capture.machine.metadata_copies import MetadataCopies
from ingest.capture.missed import Missed
from ingest.capture.output import CaptureFolder, cannot_write
from ingest.capture.params import BrokerFiles, CaptureError
from ingest.lake.tables.bronze import SourceKind

#: Leader epoch checkpoints, of which each partition has one, and configurations are looked at every so many rounds, and
#: at the end.
_SELDOM: Final = 30
#: What only writing meets: brokers' files are opened for reading.
_OUR_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
#: A backlog of logs is read for so many rounds more at the end.
_LAST_ROUNDS: Final = 100

_ESCAPED: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_TO_ESCAPE: Final = re.compile(r"[\\\n\r\t\f]")


class Agent:
    """The files of one broker. Raises :class:`CaptureError` where a folder given is not there or may not be read,
    unless it ``waits`` for it."""

    def __init__(self, files: BrokerFiles, folder: CaptureFolder, missed: Missed, *, waits: bool = False) -> None:
        self._files = files
        self._folder = folder
        self._missed = missed
        self._name = f"broker {files.broker_id}"
        self._own = f"broker-{files.broker_id}"
        self._copies = [
            (path, CheckpointCopies(files.broker_id, path, folder.write, label))
            for label, path in _named(files.log_dirs)
        ]
        self._quorum = [
            (path, MetadataCopies(files.broker_id, path, folder.write, folder.path)) for path in files.log_dirs
        ]
        target = folder.path / self._own / "logs"
        self._logs = [
            (path, LogFollower(path, target / label if label else target)) for label, path in _named(files.logs)
        ]
        self._round = 0
        self.copies = 0
        self.log_bytes = 0
        for path in () if waits else (*files.logs, *files.log_dirs):
            _require_folder(path)

    @property
    def has_metadata_log(self) -> bool:
        """Whether one of its folders held one (KRaft)."""
        return any(copies.is_there for _, copies in self._quorum)

    def round(self, stamp: Callable[[], int]) -> None:
        """Copy and follow what changed. ``stamp`` is asked before each copy for the instant that it is named by."""
        for path, copies in self._copies:
            self._try("checkpoints", path, partial(copies.copy, stamp))
        self._copy_quorum()
        if self._round % _SELDOM == 0:
            self._copy_epochs()
            self._copy_configs()
        self._follow()
        self._round += 1

    def close(self) -> None:
        """The capture ends: what changes seldom is copied once more."""
        self._copy_quorum()
        self._copy_epochs()
        for _ in range(_LAST_ROUNDS):
            before = self.log_bytes
            self._follow()
            if self.log_bytes == before:
                break
        else:
            self._missed.once(
                "logs", self._name, "the last of them were not read: they are long; capture again to go on"
            )
        for _, follower in self._logs:
            follower.close()
        self._copy_configs()

    def _follow(self) -> None:
        for path, follower in self._logs:
            self._try("logs", path, partial(self._follow_one, path, follower))

    def _follow_one(self, path: str, follower: LogFollower) -> int:
        followed = follower.follow(time.time_ns())
        self.log_bytes += followed.byte_count
        for name, reason in followed.lost:
            self._missed.once("logs", f"{self._name}: {os.path.join(path, name)}", reason)
        return 0

    def _copy_quorum(self) -> None:
        for path, copies in self._quorum:
            self._try("the metadata log", path, copies.copy)
            while copies.lost:
                name, reason = copies.lost.pop()
                self._missed.once("the metadata log", f"{self._name}: {os.path.join(path, name)}", reason)

    def _copy_epochs(self) -> None:
        for path, copies in self._copies:
            self._try("leader epoch checkpoints", path, copies.copy_epochs)

    def _try(self, source: str, path: str, copy: Callable[[], int]) -> None:
        """Copy from a folder of the broker's. One that is lost costs only what is in it; a full disk of our own ends
        the capture."""
        what = f"{self._name}: {path}"
        try:
            self.copies += copy()
        except OSError as error:
            if error.errno in _OUR_DISK:
                raise cannot_write(str(self._folder.path), error) from error
            self._missed.lost(source, what, error.strerror or type(error).__name__)
        else:
            self._missed.back(source, what)

    def _copy_configs(self) -> None:
        """Passwords stay where they are; with several log directories the first ``meta.properties`` stands for all."""
        metas = [os.path.join(log_dir, "meta.properties") for log_dir in self._files.log_dirs]
        found = [path for path in metas if os.path.isfile(path)]
        for path, name in (
            *((path, "server.properties") for path in self._files.configs[:1]),
            *((path, os.path.basename(path)) for path in self._files.configs[1:]),
            *((path, "meta.properties") for path in found[:1]),
        ):
            try:
                content = Path(path).read_bytes()
            except OSError as error:
                self._missed.once("configuration", self._name, f"{path}: {error.strerror}")
                continue
            self._folder.write(f"{self._own}/{name}", masked(content))


def _named(folders: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(label, path) for label, path in labels(folders).items()] if folders else []


def _require_folder(path: str) -> None:
    if not os.path.isdir(path):
        raise CaptureError(f"there is no folder {path}")
    if not os.access(path, os.R_OK | os.X_OK):
        raise CaptureError(f"no permission to read {path}: run as the user that Kafka runs as")


def masked(content: bytes) -> bytes:
    """``server.properties`` or ``meta.properties`` as it may leave its machine: the properties, one a line, without
    comments, ``[hidden]`` for what is or may be a secret. What is unreadable is left out."""
    from ingest.readers.properties import read  # with what it imports, the most of a capture's start
    from ingest.readers.work import Kept, WorkItem

    item = WorkItem("", None, "", SourceKind.SERVER_PROPERTIES, "", None, "", "", len(content))
    lines = [
        f"{_key(row.values['config_key'])}={_value(row.values['config_value'])}\n"
        for row in read(item, [content])
        if isinstance(row, Kept)
    ]
    return "".join(lines).encode()


def _key(text: str) -> str:
    return re.sub(r"([=: #!])", r"\\\1", _escaped(text))


def _value(text: str) -> str:
    escaped = _escaped(text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: _ESCAPED[found.group()], text)
