"""A throw-away cluster: one ZooKeeper, some brokers, all on loopback, none of them there afterwards."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from jobs.lab.admin import Admin, Partition, State
from jobs.lab.events import Events
from jobs.lab.machines.guard import Guard
from jobs.lab.machines.ports import free_ports
from jobs.lab.machines.processes import JavaProcess
from jobs.lab.machines.releases import Release, kafka_jars
from jobs.lab.machines.servers import Broker, Launcher, ZooKeeper
from jobs.lab.waiting import PATIENCE_S, NeverHappened, wait_for
from jobs.session.java import find_java

#: How long a server is given to shut down at the end, when nobody looks at it any more.
_LAST_CALL_S: Final = 20.0


class Cluster:
    """Use as a context manager: entering starts everything and waits for it, leaving ends everything.

    Everything that is done to a broker is noted in ``events`` and passed to ``say`` as a sentence. Not to be used from
    several threads at once. A subclass adds to the plain cluster that scenarios play on: settings and Java options of
    the servers, and what is done before the first broker starts.
    """

    zookeeper_settings: Mapping[str, str] = {}
    zookeeper_options: Sequence[str] = ()
    broker_options: Sequence[str] = ()

    def __init__(
        self,
        release: Release,
        folder: Path,
        broker_ids: Sequence[int] = (1, 2, 3),
        settings: Mapping[str, str] | None = None,
        state_change_level: str = "TRACE",
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.release = release
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.events = Events(self.folder / "events.jsonl")
        self._say = say
        self._settings = settings or {}
        java = find_java()
        self._guard = Guard()
        launcher = Launcher(java, kafka_jars(java, release), self._guard)
        zookeeper_port, *ports = free_ports(1 + len(broker_ids))
        self.zookeeper = ZooKeeper(
            launcher, self.folder / "zookeeper", zookeeper_port, self.zookeeper_settings, self.zookeeper_options
        )
        self.brokers = {
            broker_id: Broker(
                launcher,
                release,
                broker_id,
                self.folder / f"broker-{broker_id}",
                port,
                zookeeper_port,
                self.broker_settings(broker_id, port),
                self.broker_options,
                state_change_level,
            )
            for broker_id, port in zip(broker_ids, ports, strict=True)
        }
        logging.getLogger("kazoo").setLevel(logging.CRITICAL)
        retry = KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0, deadline=PATIENCE_S)
        self.client = KazooClient(
            hosts=self.zookeeper.address, timeout=9.0, connection_retry=retry, command_retry=retry
        )
        self.admin = Admin(self.client)

    def broker_settings(self, broker_id: int, port: int) -> Mapping[str, str]:
        """The settings of one broker, which win over those of every broker of the lab; ``port`` is its own."""
        return self._settings

    def prepare(self) -> None:
        """Called when ZooKeeper serves, before the first broker starts."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(broker.address for broker in self.brokers.values())

    def __enter__(self) -> Cluster:
        try:
            self.zookeeper.start()
            self.client.start(timeout=PATIENCE_S)
            self.prepare()
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
                self.client.stop()
                self.client.close()
            self.zookeeper.process.end(_LAST_CALL_S)
        finally:
            self._guard.close()

    def _end_brokers(self) -> None:
        """Killed: a controlled shutdown of the last broker has nowhere to move its leaders, and waits for that."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(lambda broker: broker.process.kill(), self.brokers.values()))

    # --- what is done to brokers ------------------------------------------------------------------------------------

    def start(self, *broker_ids: int) -> None:
        """Start these and wait until they serve."""
        self._say("starting broker " + ", ".join(map(str, broker_ids)))
        for broker_id in broker_ids:
            self.events.note("start_broker", broker=broker_id)
            self.brokers[broker_id].launch()
        for broker_id in broker_ids:
            wait_for(f"broker {broker_id} has started", self.brokers[broker_id].is_up)
        self.events.note("up", brokers=sorted(self.admin.live_brokers()))

    def stop(self, broker_id: int) -> None:
        """Controlled shutdown: SIGTERM, and wait for the end."""
        process = self._signalled(broker_id, "SIGTERM", "stopping")
        process.terminate()
        process.wait_until_ended()
        self.events.note("ended", broker=broker_id)

    def kill(self, broker_id: int) -> None:
        """SIGKILL: ZooKeeper learns of it when the session ends."""
        self._signalled(broker_id, "SIGKILL", "killing").kill()

    def pause(self, broker_id: int) -> None:
        """SIGSTOP, as a long garbage collection or a frozen virtual machine."""
        self._signalled(broker_id, "SIGSTOP", "pausing").pause()

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        self._signalled(broker_id, "SIGCONT", "resuming").resume()

    def _signalled(self, broker_id: int, signal: str, doing: str) -> JavaProcess:
        """The process of a broker that is about to get a signal, which is noted first."""
        self._say(f"{doing} broker {broker_id} ({signal})")
        self.events.note("signal", broker=broker_id, signal=signal)
        return self.brokers[broker_id].process

    def kill_zookeeper(self) -> None:
        """SIGKILL: nothing can be decided until it is started again."""
        self._say("killing ZooKeeper (SIGKILL)")
        self.events.note("signal", server="zookeeper", signal="SIGKILL")
        self.zookeeper.process.kill()

    def start_zookeeper(self) -> None:
        """Start it again, with what it had written; sessions go on."""
        self._say("starting ZooKeeper")
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
