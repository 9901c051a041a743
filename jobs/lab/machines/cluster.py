"""A throw-away cluster: brokers, and what decides for them, all on loopback, none of them there afterwards."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from jobs.lab.admin import Admin, Partition, State
from jobs.lab.events import Events
from jobs.lab.machines.guard import Guard
from jobs.lab.machines.processes import JavaProcess
from jobs.lab.machines.releases import Release, kafka_jars
from jobs.lab.machines.servers import Broker, Launcher
from jobs.lab.waiting import PATIENCE_S, NeverHappened, wait_for
from jobs.session.java import find_java


class Cluster(abc.ABC):
    """Use as a context manager: entering starts everything and waits for it, leaving ends everything.

    Everything that is done to a broker is noted in ``events`` and passed to ``say`` as a sentence. Not to be used from
    several threads at once. ``brokers`` are by id; ``nodes`` are these and the controllers that are no brokers.
    """

    admin: Admin
    brokers: Mapping[int, Broker]
    nodes: Mapping[int, Broker]

    def __init__(self, release: Release, folder: Path, say: Callable[[str], None]) -> None:
        self.release = release
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.events = Events(self.folder / "events.jsonl")
        self._say = say
        java = find_java()
        self._guard = Guard()
        self._launcher = Launcher(java, kafka_jars(java, release), self._guard)

    @abc.abstractmethod
    def _begin(self) -> None:
        """Start what the brokers need, and them."""

    @abc.abstractmethod
    def _end(self) -> None:
        """End what the brokers needed, now that they are gone."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(broker.address for broker in self.brokers.values())

    def __enter__(self) -> Self:
        try:
            self._begin()
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
        """End everything: brokers first, all at once. May be called again."""
        try:
            self._end_nodes()
            self._end()
        finally:
            self._guard.close()

    def _end_nodes(self) -> None:
        """Killed: a controlled shutdown of the last broker has nowhere to move its leaders, and waits for that."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(lambda node: node.process.kill(), self.nodes.values()))

    # --- what is done to brokers ------------------------------------------------------------------------------------

    def start(self, *broker_ids: int) -> None:
        """Start these and wait until they serve."""
        self._say("starting broker " + ", ".join(map(str, broker_ids)))
        for broker_id in broker_ids:
            self.events.note("start_broker", broker=broker_id)
            self.nodes[broker_id].launch()
        for broker_id in broker_ids:
            wait_for(f"broker {broker_id} has started", self.nodes[broker_id].is_up)
        self.events.note("up", brokers=sorted(self.admin.live_brokers()))

    def stop(self, broker_id: int) -> None:
        """Controlled shutdown: SIGTERM, and wait for the end."""
        process = self._signalled(broker_id, "SIGTERM", "stopping")
        process.terminate()
        process.wait_until_ended()
        self.events.note("ended", broker=broker_id)

    def kill(self, broker_id: int) -> None:
        """SIGKILL: it is known when the session ends."""
        self._signalled(broker_id, "SIGKILL", "killing").kill()

    def pause(self, broker_id: int) -> None:
        """SIGSTOP, as a long garbage collection or a frozen virtual machine."""
        self._signalled(broker_id, "SIGSTOP", "pausing").pause()

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        self._signalled(broker_id, "SIGCONT", "resuming").resume()

    def lose_data(self, broker_id: int) -> None:
        """The log directory of a broker that is down is empty, as after a new disk."""
        self.brokers[broker_id].lose_data()

    def _signalled(self, broker_id: int, signal: str, doing: str) -> JavaProcess:
        """The process of a broker that is about to get a signal, which is noted first."""
        self._say(f"{doing} broker {broker_id} ({signal})")
        self.events.note("signal", broker=broker_id, signal=signal)
        return self.nodes[broker_id].process

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
        """Until the broker's session has ended."""
        wait_for(f"broker {broker_id} is not registered", lambda: broker_id not in self.admin.live_brokers())

    def wait_until_back(self, broker_id: int) -> None:
        """Until the broker, which was gone, has a session again."""
        wait_for(f"broker {broker_id} has another session", lambda: broker_id in self.admin.live_brokers())

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
