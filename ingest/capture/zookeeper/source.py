"""ZooKeeper as a source of rounds: the first contact, then a snapshot each round in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from ingest.capture.brokers.client import quieten
from ingest.capture.missed import Missed
from ingest.capture.output import CaptureFolder
from ingest.capture.params import CaptureError, CaptureParams
from ingest.capture.zookeeper.contact import silence, suspicion
from ingest.capture.zookeeper.poller import SnapshotFailed, ZnodePoller
from ingest.capture.zookeeper.znodes import split_chroot

_SESSION_S: Final = 10.0
#: A tree that could not be read within one round may hold up the rounds so many intervals.
_PATIENCE: Final = 10
_SOURCE: Final = "znodes"
_WHOSE: Final = "ZooKeeper"


class ZnodeSource:
    """One session with ZooKeeper. ``wake`` is called when a znode changed that matters at once.

    Raises :class:`CaptureError` where ZooKeeper cannot be reached, refuses the credentials, or has no Kafka below the
    chroot; with ``waits`` only where the address cannot be one.
    """

    def __init__(
        self,
        params: CaptureParams,
        settings: Mapping[str, Any],
        folder: CaptureFolder,
        missed: Missed,
        wake: Callable[[], None],
    ) -> None:
        quieten()
        self._params = params
        self._settings = settings
        self._folder = folder
        self._missed = missed
        hosts, self._chroot = split_chroot(params.zookeeper or "")
        self._hosts = hosts
        try:
            self._client = KazooClient(
                hosts=hosts,
                timeout=_SESSION_S,
                connection_retry=KazooRetry(max_tries=-1, delay=0.2, max_delay=2.0, max_jitter=0.2),
                **settings,
            )
        except (ValueError, KazooException) as error:
            raise CaptureError(f"{hosts!r} is no HOST:PORT of ZooKeeper") from error
        self._poller = ZnodePoller(
            self._client,
            self._chroot,
            reads_per_second=params.znode_reads_per_second,
            timeout_s=_SESSION_S,
            wake=wake,
            refused=self._refused,
        )
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="znodes")
        self._reading: Future[bytes | None] | None = None
        self._wanted = threading.Event()
        self._was_late = False
        self._round_ms = 0
        self._is_current = False
        self.snapshots = 0
        self._start()

    def begin(self, round_ms: int) -> None:
        """Begin to read the tree of this round, unless an earlier round's reading lasts."""
        self._round_ms = round_ms
        self._is_current = self._reading is None or self._reading.done()
        if self._is_current:
            self._wanted.set()
            self._reading = self._pool.submit(self._poller.snapshot, round_ms, self._wanted.is_set)

    def finish(self, seconds: float) -> None:
        """Write the round's snapshot if it is read within so many seconds; else it is none, for the next round
        begins: what was read of it serves that one."""
        reading = self._reading
        if reading is None:
            return
        try:
            snapshot = self._result(reading, seconds)
        except NotYet:
            self._wanted.clear()
            self._was_late = True
            self._missed.lost(_SOURCE, _WHOSE, "the tree was not read within a round", self._round_ms)
            return
        except SnapshotFailed as error:
            self._missed.lost(_SOURCE, _WHOSE, str(error), self._round_ms)
            return
        except Exception as error:  # whatever a client of another's makes of damaged bytes must not end the capture
            self._missed.lost(_SOURCE, _WHOSE, f"the answer cannot be read ({type(error).__name__})", self._round_ms)
            return
        if snapshot is None or not self._is_current:
            return
        self._was_late = False
        self._folder.write(f"znodes/{self._round_ms}.jsonl", snapshot)
        self.snapshots += 1
        self._missed.back(_SOURCE, _WHOSE)

    def topics(self) -> Collection[str]:
        """The topics that were in the last reading; none before the first."""
        return self._poller.children(f"{self._chroot}/brokers/topics")

    def _result(self, reading: Future[bytes | None], seconds: float) -> bytes | None:
        """Wait for a round's time; longer where the round before was too short and znodes come in all the same."""
        for _ in range(_PATIENCE):
            before = self._poller.reads
            try:
                return reading.result(timeout=seconds)
            except NotYet:
                if not self._was_late or not self._is_current or self._poller.reads == before:
                    raise
        raise NotYet

    def close(self) -> None:
        self._wanted.clear()
        stopping = threading.Thread(target=self._stop, daemon=True)
        stopping.start()
        stopping.join(_SESSION_S)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        seconds = self._params.connect_timeout_s
        problem = silence(self._client.hosts, self._settings)
        connected = self._client.start_async()
        connected.wait(0.5 if self._params.waits or problem else seconds)
        if not self._client.connected:
            if self._client.client_state == KeeperState.AUTH_FAILED:
                problem = self._refusal()
            elif problem is None and not self._params.waits:
                found = suspicion(self._client.hosts, self._settings)
                problem = found or f"no ZooKeeper answers at {self._hosts} within {seconds:.0f} s: see --zookeeper"
            return self._or_wait(problem or f"no ZooKeeper answers at {self._hosts} yet")
        try:
            self._look()
        except CaptureError as error:
            self._or_wait(str(error))
        return None

    def _look(self) -> None:
        """Whether Kafka is below the chroot, and may be read."""
        root = self._chroot or "/"
        retry = KazooRetry(max_tries=5, delay=0.2, deadline=self._params.connect_timeout_s)
        try:
            if retry(self._client.exists, root) is None:
                raise CaptureError(
                    f"ZooKeeper at {self._hosts} has no chroot {root}: see zookeeper.connect of a broker"
                )
            if retry(self._client.exists, f"{self._chroot}/brokers/ids") is None:
                raise CaptureError(
                    f"ZooKeeper at {self._hosts} has no Kafka below {root}: name the chroot, as HOST:PORT/kafka"
                )
            retry(self._client.get_children, f"{self._chroot}/brokers/ids")
        except NoAuthError as error:
            # A wrong digest is no error to ZooKeeper: it is just another user.
            user = (
                "zookeeper.digest.username and zookeeper.digest.password"
                if self._has_digest
                else "zookeeper.sasl.username"
            )
            raise CaptureError(
                f"no permission to read the znodes of Kafka at {self._hosts}{self._chroot}: see {user}"
            ) from error
        except AuthFailedError as error:
            raise CaptureError(self._refusal()) from error
        except (KazooException, KazooTimeoutError) as error:
            raise CaptureError(
                f"ZooKeeper at {self._hosts} broke off the connection ({type(error).__name__})"
            ) from error

    def _refusal(self) -> str:
        return f"ZooKeeper at {self._hosts} refuses the credentials: see zookeeper.sasl.username"

    @property
    def _has_digest(self) -> bool:
        return "auth_data" in self._settings

    def _or_wait(self, problem: str) -> None:
        if not self._params.waits:
            self.close()
            raise CaptureError(problem)
        self._missed.lost(_SOURCE, _WHOSE, problem)

    def _refused(self, path: str) -> None:
        self._missed.once(_SOURCE, path, "no permission to read it")

    def _stop(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception:  # the connection may be in any state; the capture is over
            return
