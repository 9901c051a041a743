"""A throw-away cluster: one ZooKeeper, some brokers, all on loopback, none of them there afterwards."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from jobs.lab.admin import Admin, Partition, State
from jobs.lab.events import Events
from jobs.lab.machines.guard import Guard
from jobs.lab.machines.jars import kafka_jars
from jobs.lab.machines.ports import LOOPBACK, free_ports
from jobs.lab.machines.releases import Release
from jobs.lab.machines.servers import NO_EXTRAS, Broker, ZooKeeper
from jobs.lab.machines.settings import Extras
from jobs.lab.waiting import PATIENCE_S, NeverHappened, wait_for
from jobs.session.java import find_java

#: How long a server is given to shut down at the end, when nobody looks at it any more.
_LAST_CALL_S: Final = 20.0


class Cluster:
    """Use as a context manager: entering starts everything and waits for it, leaving ends everything.

    Everything that is done to a broker is noted in ``events``. Not to be used from several threads at once.
    """

    def __init__(
        self,
        release: Release,
        folder: Path,
        broker_ids: Sequence[int] = (1, 2, 3),
        settings: Mapping[str, str] | None = None,
        state_change_level: str = "TRACE",
        extras: Extras = NO_EXTRAS,
    ) -> None:
        self.release = release
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.events = Events(self.folder / "events.jsonl")
        java = find_java()
        jars = kafka_jars(java, release)
        each = 1 + len(extras.listeners)
        zookeeper_port, secure_port, *ports = free_ports(2 + len(broker_ids) * each)
        self._guard = Guard()
        self._extras = extras
        self.zookeeper = ZooKeeper(
            java, jars, self.folder / "zookeeper", zookeeper_port, self._guard, extras, secure_port
        )
        self.brokers = {
            broker_id: Broker(
                java,
                jars,
                release,
                broker_id,
                self.folder / f"broker-{broker_id}",
                ports[first],
                zookeeper_port,
                self._guard,
                settings or {},
                state_change_level,
                extras,
                ports[first + 1 : first + each],
            )
            for broker_id, first in zip(broker_ids, range(0, len(ports), each), strict=True)
        }
        logging.getLogger("kazoo").setLevel(logging.CRITICAL)
        retry = KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0, deadline=PATIENCE_S)
        self._client = KazooClient(
            hosts=self.zookeeper.address, timeout=9.0, connection_retry=retry, command_retry=retry
        )
        self.admin = Admin(self._client)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(broker.address for broker in self.brokers.values())

    def bootstrap_of(self, listener: str) -> str:
        """The addresses of all brokers' further listeners of that name."""
        return ",".join(f"{LOOPBACK}:{broker.ports[listener]}" for broker in self.brokers.values())

    @property
    def pids(self) -> list[int]:
        """Of what runs now."""
        processes = [self.zookeeper.process, *(broker.process for broker in self.brokers.values())]
        return [process.pid for process in processes if process.pid is not None]

    def __enter__(self) -> Cluster:
        try:
            self.zookeeper.start()
            self._client.start(timeout=PATIENCE_S)
            for path, data in self._extras.znodes.items():
                self._client.create(path, data.encode(), makepath=True)
            self.start(*self.brokers)
            self.wait_for_controller()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything: brokers first, all at once, then ZooKeeper. May be called again."""
        try:
            self._end_brokers()
            with contextlib.suppress(Exception):
                self._client.stop()
                self._client.close()
            self.zookeeper.process.end(_LAST_CALL_S)
        finally:
            self._guard.close()

    def _end_brokers(self) -> None:
        """Killed: a controlled shutdown of the last broker has nowhere to move its leaders, and waits for that."""
        enders = [threading.Thread(target=broker.process.kill) for broker in self.brokers.values()]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()

    # --- what is done to brokers ------------------------------------------------------------------------------------

    def start(self, *broker_ids: int) -> None:
        """Start these and wait until they serve."""
        for broker_id in broker_ids:
            self.events.note("start_broker", broker=broker_id)
            self.brokers[broker_id].launch()
        for broker_id in broker_ids:
            wait_for(f"broker {broker_id} has started", self.brokers[broker_id].is_up)
        self.events.note("up", brokers=sorted(self.admin.live_brokers()))

    def stop(self, broker_id: int) -> None:
        """Controlled shutdown: SIGTERM, and wait for the end."""
        self.events.note("signal", broker=broker_id, signal="SIGTERM")
        self.brokers[broker_id].process.terminate()
        self.brokers[broker_id].process.wait_until_ended()
        self.events.note("ended", broker=broker_id)

    def kill(self, broker_id: int) -> None:
        """SIGKILL: ZooKeeper learns of it when the session ends."""
        self.events.note("signal", broker=broker_id, signal="SIGKILL")
        self.brokers[broker_id].process.kill()

    def pause(self, broker_id: int) -> None:
        """SIGSTOP, as a long garbage collection or a frozen virtual machine."""
        self.events.note("signal", broker=broker_id, signal="SIGSTOP")
        self.brokers[broker_id].process.pause()

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        self.events.note("signal", broker=broker_id, signal="SIGCONT")
        self.brokers[broker_id].process.resume()

    def kill_zookeeper(self) -> None:
        """SIGKILL: nothing can be decided until it is started again."""
        self.events.note("signal", server="zookeeper", signal="SIGKILL")
        self.zookeeper.process.kill()

    def pause_zookeeper(self) -> None:
        """SIGSTOP: sessions do not end while it does not count."""
        self.events.note("signal", server="zookeeper", signal="SIGSTOP")
        self.zookeeper.process.pause()

    def resume_zookeeper(self) -> None:
        """SIGCONT."""
        self.events.note("signal", server="zookeeper", signal="SIGCONT")
        self.zookeeper.process.resume()

    def start_zookeeper(self) -> None:
        """Start it again, with what it had written; sessions go on."""
        self.events.note("start_zookeeper")
        self.zookeeper.start()

    # --- what is waited for -----------------------------------------------------------------------------------------

    def wait_for_controller(self, other_than: int | None = None) -> int:
        """The controller, once there is one that is not ``other_than``."""

        def look() -> int | None:
            found = self.admin.controller()
            return None if found == other_than else found

        found = wait_for("there is a controller" if other_than is None else f"{other_than} is not controller", look)
        assert found is not None
        return found

    def wait_until_gone(self, broker_id: int) -> None:
        """Until ZooKeeper has ended the broker's session."""
        wait_for(f"broker {broker_id} is not registered", lambda: broker_id not in self.admin.live_brokers())

    def wait_until_registered(self, broker_id: int) -> None:
        wait_for(f"broker {broker_id} is registered", lambda: broker_id in self.admin.live_brokers())

    def wait_for_state(self, partition: Partition, what: str, holds: Callable[[State], bool]) -> State:
        """The partition's state once ``holds`` is true of it; ``what`` says what that means."""
        latest: list[State | None] = [None]

        def look() -> State | None:
            latest[0] = self.admin.state(partition)
            return latest[0] if latest[0] is not None and holds(latest[0]) else None

        try:
            found = wait_for(f"{partition[0]}-{partition[1]} {what}", look)
        except NeverHappened as error:
            raise NeverHappened(f"{error}; its state is {latest[0]}") from None
        assert found is not None
        return found

    def wait_for_full_isr(self, within_s: float = PATIENCE_S) -> None:
        """Until every partition that is to stay has a leader and all its replicas in the ISR."""

        def look() -> bool:
            for topic, partitions in self.admin.topics().items():
                for number, replicas in partitions.items():
                    state = self.admin.state((topic, number))
                    if state is None or state.leader < 0 or set(state.isr) != set(replicas):
                        return False
            return True

        wait_for("every replica is in its ISR", look, within_s)
