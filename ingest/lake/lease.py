"""One writer at a time: a job that writes a lake holds its lease while it does.

A lease is a file with a number, ``LAKE/_writing/NUMBER.json``. The next number is taken by writing its file, which
fails where another has written it: by the same means, and as safely, as Delta commits to that file system
(``LogStore``); but to S3 by a write that S3 itself refuses where the file is there, of which Delta makes no use.

Beside it the holder counts on a file, ``NUMBER.beat``, every 10 s, and writes ``NUMBER.done`` in the end. A lease is
over when it is done, when its process is gone (as far as this machine can see), or when nobody has counted on for
90 s. Whoever finds its lease taken over stops at once.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from ingest.lake.delta import Lake, LakeError
from ingest.lake.file_system import file_system_of

#: No table's place: schemas have other names.
FOLDER: Final = "_writing"
BEAT_S: Final = 10.0
#: A holder that has not counted on for so long is gone. Measured by who waits: no two clocks are compared.
SILENT_S: Final = 90.0
#: Told by the file system's time of the last beat, which another machine's clock gave: only where it is this long ago.
LONG_SILENT_S: Final = 1800.0
_LOOK_S: Final = 1.0
_NAME: Final = re.compile(r"(\d{12})\.(json|beat|done)")
#: What a file system is asked that may refuse a file as it ends (S3A since 3.4.2, HADOOP-19256), and how it is told to.
_CAN_REFUSE: Final = "fs.s3a.create.conditional.enabled"
_REFUSE: Final = "fs.option.create.conditional.overwrite"
#: What is said of a file that another has written: by Delta, by S3A before it writes, and by S3 in the end.
_IS_THERE: Final = frozenset(
    {
        "java.nio.file.FileAlreadyExistsException",
        "org.apache.hadoop.fs.FileAlreadyExistsException",
        "org.apache.hadoop.fs.s3a.RemoteFileChangedException",
    }
)


class LakeBusy(LakeError):
    """Another job writes the lake; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease; ``machine`` and ``process_started`` tell this machine's processes from others of that id."""

    command: str
    host: str
    process_id: int
    machine: str
    process_started: str
    since: str

    @classmethod
    def this_process(cls, command: str) -> Holder:
        process_id, now = os.getpid(), datetime.now(UTC)
        since = now.isoformat(sep=" ", timespec="seconds")
        return cls(command, os.uname().nodename, process_id, _machine(), _started(process_id), since)

    @property
    def is_surely_gone(self) -> bool:
        """Whether it was a process of this machine, and is none now."""
        is_of_here = bool(self.machine) and self.machine == _machine()
        return is_of_here and _started(self.process_id) != self.process_started

    def __str__(self) -> str:
        return f"`{self.command}` (process {self.process_id} on {self.host}, since {self.since})"


class Lease:
    """The leases of one lake: taken by :meth:`take`, given back by :meth:`give_back`."""

    def __init__(self, lake: Lake, command: str) -> None:
        self._lake, self._holder = lake, Holder.this_process(command)
        self._folder = f"{lake.root}/{FOLDER}"
        self._files, _ = file_system_of(lake.spark, self._folder)
        jvm = lake.spark._jvm
        assert jvm is not None
        self._jvm: Any = jvm
        self._store = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(lake.spark._jsparkSession, self._folder).store()
        self._configuration = lake.spark._jsparkSession.sessionState().newHadoopConf()
        self._number = 0
        self._ended = threading.Event()
        self._beats: threading.Thread | None = None
        self.is_lost = False

    def take(self, wait_s: float, progress: Callable[[str], None]) -> None:
        """Hold the lease; wait up to ``wait_s`` seconds for who holds it. Raises :class:`LakeBusy`."""
        give_up_at, is_told = time.monotonic() + wait_s, False
        beat, beat_seen_at = "", time.monotonic()
        while True:
            names = self._names()
            newest = max((number for number, _ in names), default=0)
            if newest == 0 or self._is_over(newest, names):
                if self._write(f"{newest + 1:012}.json", json.dumps(asdict(self._holder)), anew=False):
                    self._begin(newest + 1)
                    return
                continue
            now, newest_beat = time.monotonic(), f"{newest} {self._read(f'{newest:012}.beat')}"
            if newest_beat != beat:
                beat, beat_seen_at = newest_beat, now
            elif now - beat_seen_at > SILENT_S:
                self._write(f"{newest:012}.done", "silent", anew=True)
                continue
            if now >= give_up_at:
                raise LakeBusy(
                    f"the lake {self._lake.root} is being written by {self._holder_of(newest)}: nothing was done; come"
                    f" again when that has ended, or wait for it with --wait SECONDS (one that has died elsewhere is"
                    f" noticed after {SILENT_S:.0f})"
                )
            if not is_told:
                progress(f"waiting for {self._holder_of(newest)}, which writes the lake")
                is_told = True
            time.sleep(_LOOK_S)

    def give_back(self) -> None:
        """Let the next one have it."""
        self._ended.set()
        if self._beats is not None:
            self._beats.join()
        if not self.is_lost:
            self._write(f"{self._number:012}.done", "done", anew=True)

    def _begin(self, number: int) -> None:
        self._number = number
        self._write(f"{number:012}.beat", "0", anew=True)
        for earlier, kind in self._names():
            if earlier < number:
                self._files.delete(self._path(f"{earlier:012}.{kind}"), False)
        self._beats = threading.Thread(target=self._count_on, name="lease of the lake", daemon=True)
        self._beats.start()

    def _count_on(self) -> None:
        count = 0
        while not self._ended.wait(BEAT_S):
            count += 1
            try:
                self.is_lost = self.is_lost or self._is_taken_over()
                if self.is_lost:
                    # again and again: the next of its jobs may not have begun yet
                    self._lake.spark.sparkContext.cancelAllJobs()
                else:
                    self._write(f"{self._number:012}.beat", str(count), anew=True)
            except Exception:  # a beat that fails is one missed: who waits allows for several
                continue

    def _is_taken_over(self) -> bool:
        own = self._number
        return any(number > own or (number, kind) == (own, "done") for number, kind in self._names())

    def _is_over(self, number: int, names: set[tuple[int, str]]) -> bool:
        if (number, "done") in names:
            return True
        holder = self._holder_of(number)
        if holder is not None and holder.is_surely_gone:
            return True
        kind = "beat" if (number, "beat") in names else "json"
        try:
            touched_ms = int(self._files.getFileStatus(self._path(f"{number:012}.{kind}")).getModificationTime())
        except Py4JJavaError:
            return False
        return time.time() - touched_ms / 1000 > LONG_SILENT_S

    def _holder_of(self, number: int) -> Holder | None:
        try:
            return Holder(**json.loads(self._read(f"{number:012}.json")))
        except (ValueError, TypeError):
            return None

    def _names(self) -> set[tuple[int, str]]:
        folder = self._path("")
        if not self._files.exists(folder):
            return set()
        found = (_NAME.fullmatch(status.getPath().getName()) for status in self._files.listStatus(folder))
        return {(int(name[1]), name[2]) for name in found if name}

    def _read(self, name: str) -> str:
        try:
            return str(self._store.read(self._path(name), self._configuration).mkString("\n"))
        except Py4JJavaError:
            return ""

    def _write(self, name: str, text: str, *, anew: bool) -> bool:
        """Whether the file was written: False where it is there already, unless it may be written ``anew``."""
        self._files.mkdirs(self._path(""))
        try:
            if not anew and self._files.hasPathCapability(self._path(name), _CAN_REFUSE):
                made = self._files.createFile(self._path(name)).overwrite(False).opt(_REFUSE, True).build()
                made.write(text.encode())
                made.close()
            else:
                lines = self._jvm.java.util.ArrayList()
                lines.add(text)
                actions = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(lines.iterator())
                self._store.write(self._path(name), actions, anew, self._configuration)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() in _IS_THERE:
                return False
            raise
        return True

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._folder}/{name}" if name else self._folder)


@contextmanager
def only_writer(lake: Lake, command: str, wait_s: float, progress: Callable[[str], None]) -> Iterator[None]:
    """While this lasts no other job writes the lake.

    Raises :class:`LakeBusy` where another does for longer than ``wait_s`` seconds, :class:`LakeError` where this one
    was taken for dead, and the lake taken over: its Spark jobs are cancelled then.
    """
    lease, failure = Lease(lake, command), None
    lease.take(wait_s, progress)
    try:
        yield
    except Exception as error:
        failure = error
    finally:
        lease.give_back()
    if lease.is_lost:
        raise LakeError(
            f"the lake {lake.root} was taken over by another job, since this one gave no sign for {SILENT_S:.0f} s: it"
            " was stopped; run it again"
        ) from failure
    if failure is not None:
        raise failure


def _machine() -> str:
    """This machine as far as process ids mean anything on it; empty where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{os.uname().nodename} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(process_id: int) -> str:
    """When a process of this machine started, in ticks since it booted; empty where none of that id runs."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if status[0] in "ZX" else status[19]
