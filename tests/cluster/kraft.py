"""A small cluster of Kafka 4, which has no ZooKeeper: a controller that is a broker too, and brokers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from jobs.lab.machines.guard import Guard
from jobs.lab.machines.ports import LOOPBACK, free_ports
from jobs.lab.machines.processes import JVM_OPTIONS, JavaProcess
from jobs.lab.machines.releases import Release, kafka_jars
from jobs.lab.machines.settings import BROKER_SETTINGS
from jobs.lab.waiting import NeverHappened, wait_for
from jobs.session.java import find_java

RELEASE: Final = Release((4, 1, 0))
CLUSTER_ID: Final = "kraft-of-a-test-0000AA"
_CONTROLLER: Final = 1
_STARTED: Final = re.compile(r"\[KafkaRaftServer nodeId=\d+\] Kafka Server started")
_OF_ZOOKEEPER: Final = ("zookeeper.", "controlled.shutdown.enable")
_LOG4J: Final = """
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = SERVER
appender.server.type = File
appender.server.name = SERVER
appender.server.fileName = {log}
appender.server.layout.type = PatternLayout
appender.server.layout.pattern = [%d] %p %m (%c)%n
"""


class KraftBroker:
    """One node: ``folder`` holds its configuration, ``logs`` and ``data``."""

    def __init__(self, broker_id: int, folder: Path, port: int, controller_port: int, guard: Guard) -> None:
        self.broker_id = broker_id
        self.port = port
        self.data, self.logs = folder / "data", folder / "logs"
        self.logs.mkdir(parents=True)
        self.properties = folder / "server.properties"
        self.properties.write_text(_properties(broker_id, port, controller_port, self.data), encoding="utf-8")
        log4j = folder / "log4j2.properties"
        log4j.write_text(_LOG4J.format(log=self.logs / "server.log"), encoding="utf-8")
        java = find_java()
        self._java = [
            java,
            "-Xmx320m",
            *JVM_OPTIONS,
            f"-Dlog4j2.configurationFile=file:{log4j}",
            "-cp",
            os.pathsep.join(map(str, kafka_jars(java, RELEASE))),
        ]
        self.process = JavaProcess(
            f"broker {broker_id}",
            [*self._java, "kafka.Kafka", str(self.properties)],
            folder,
            folder / "broker.out",
            guard,
            self.logs / "server.log",
        )

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def format(self) -> None:
        """What ``kafka-storage format`` does: a log directory of this cluster's."""
        command = ["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(self.properties)]
        done = subprocess.run([*self._java, *command], capture_output=True, text=True, check=False, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr

    def is_up(self) -> bool:
        if not self.process.is_running:
            raise NeverHappened(f"{self.process.name} ended while it started:\n{self.process.last_words()}")
        log = self.logs / "server.log"
        return log.exists() and _STARTED.search(log.read_text(encoding="utf-8")) is not None


class KraftCluster:
    """Use as a context manager: entering formats, starts and waits, leaving ends everything."""

    def __init__(self, folder: Path, broker_ids: Sequence[int] = (1, 2, 3)) -> None:
        controller_port, *ports = free_ports(1 + len(broker_ids))
        self._guard = Guard()
        self.brokers = {
            broker_id: KraftBroker(broker_id, folder / f"broker-{broker_id}", port, controller_port, self._guard)
            for broker_id, port in zip(broker_ids, ports, strict=True)
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def __enter__(self) -> KraftCluster:
        try:
            for broker in self.brokers.values():
                broker.format()
                broker.process.start()
            for broker in self.brokers.values():
                wait_for(f"broker {broker.broker_id} has started", broker.is_up)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        try:
            for broker in self.brokers.values():
                broker.process.kill()
        finally:
            self._guard.close()


def _properties(broker_id: int, port: int, controller_port: int, data: Path) -> str:
    is_controller = broker_id == _CONTROLLER
    listeners = [f"PLAINTEXT://{LOOPBACK}:{port}", *([f"CONTROLLER://{LOOPBACK}:{controller_port}"] * is_controller)]
    settings = {
        **{name: value for name, value in BROKER_SETTINGS.items() if not name.startswith(_OF_ZOOKEEPER)},
        "node.id": str(broker_id),
        "process.roles": "broker,controller" if is_controller else "broker",
        "listeners": ",".join(listeners),
        "advertised.listeners": listeners[0],
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"{_CONTROLLER}@{LOOPBACK}:{controller_port}",
        "log.dirs": str(data),
        "broker.session.timeout.ms": "4000",
        "share.coordinator.state.topic.replication.factor": "1",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())
