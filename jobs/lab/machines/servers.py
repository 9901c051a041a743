"""ZooKeeper and a broker: their folders, their configuration, and when they are ready."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from jobs.lab.machines import settings
from jobs.lab.machines.guard import Guard
from jobs.lab.machines.ports import LOOPBACK
from jobs.lab.machines.processes import JVM_OPTIONS, JavaProcess
from jobs.lab.machines.releases import Release
from jobs.lab.machines.settings import Extras
from jobs.lab.waiting import NeverHappened, wait_for

NO_EXTRAS: Final = Extras()
_STARTED: Final = re.compile(rb"\[Kafka ?Server (?:id=)?\d+\],? started \(kafka\.server\.KafkaServer\)")


def _class_path(jars: Sequence[Path]) -> str:
    return os.pathsep.join(map(str, jars))


class ZooKeeper:
    """One standalone server below ``folder``. ``secure_port`` is for TLS, where ``extras`` ask for it."""

    def __init__(
        self,
        java: str,
        jars: Sequence[Path],
        folder: Path,
        port: int,
        guard: Guard,
        extras: Extras = NO_EXTRAS,
        secure_port: int = 0,
    ) -> None:
        self.port = port
        self.secure_port = secure_port
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        config, log4j = folder / "zoo.cfg", folder / "log4j.properties"
        own = {"secureClientPort": str(secure_port), **extras.zookeeper} if extras.has_secure_port else extras.zookeeper
        config.write_text(settings.zookeeper_properties(port, self.data, own), encoding="utf-8")
        log4j.write_text(settings.zookeeper_log4j(), encoding="utf-8")
        command = [
            java,
            "-Xmx160m",
            *JVM_OPTIONS,
            f"-Dlog4j.configuration=file:{log4j}",
            "-Dzookeeper.preAllocSize=64",
            "-Dzookeeper.forceSync=no",
            "-Dzookeeper.admin.enableServer=false",
            *extras.zookeeper_options,
            "-cp",
            _class_path(jars),
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(config),
        ]
        self.process = JavaProcess("ZooKeeper", command, folder, folder / "zookeeper.out", guard)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def transactions(self) -> Path:
        """The folder of its transaction logs and snapshots."""
        return self.data / "version-2"

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.process.start()
        wait_for("ZooKeeper serves", self._is_ready)

    def _is_ready(self) -> bool:
        _require_running(self.process)
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=5) as connection:
                connection.sendall(b"srvr")
                answer = b""
                while part := connection.recv(4096):
                    answer += part
        except OSError:
            return False
        return b"Mode: standalone" in answer  # before that it takes connections, and drops them


class Broker:
    """One broker: ``folder`` holds its configuration, ``logs`` and ``data``. ``ports`` are those of further listeners,
    by name."""

    def __init__(
        self,
        java: str,
        jars: Sequence[Path],
        release: Release,
        broker_id: int,
        folder: Path,
        port: int,
        zookeeper_port: int,
        guard: Guard,
        own: Mapping[str, str],
        state_change_level: str,
        extras: Extras = NO_EXTRAS,
        further_ports: Sequence[int] = (),
    ) -> None:
        self.broker_id = broker_id
        self.port = port
        self.ports = dict(zip(extras.listeners, further_ports, strict=True))
        self.folder = folder
        self.data, self.logs = folder / "data", folder / "logs"
        self.data.mkdir(parents=True)
        self.logs.mkdir()
        self.properties = folder / "server.properties"
        log4j = folder / "log4j.properties"
        listeners = {name: (protocol, self.ports[name]) for name, protocol in extras.listeners.items()}
        self.properties.write_text(
            settings.broker_properties(release, broker_id, port, zookeeper_port, self.data, own, listeners),
            encoding="utf-8",
        )
        log4j.write_text(settings.broker_log4j(release, self.logs, state_change_level), encoding="utf-8")
        command = [
            java,
            "-Xmx320m",
            *JVM_OPTIONS,
            f"-Dlog4j.configuration=file:{log4j}",
            *extras.broker_options,
            "-cp",
            _class_path(jars),
            "kafka.Kafka",
            str(self.properties),
        ]
        self.process = JavaProcess(
            f"broker {broker_id}", command, folder, folder / "broker.out", guard, self.logs / "server.log"
        )
        self._log_begins = 0

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def server_log(self) -> Path:
        return self.logs / "server.log"

    def launch(self) -> None:
        """Start the process; :meth:`is_up` says when it serves."""
        self._log_begins = self.server_log.stat().st_size if self.server_log.exists() else 0
        self.process.start()

    def is_up(self) -> bool:
        """Whether it has logged, since it was launched, that it has started.

        :raises NeverHappened: where it has ended instead.
        """
        _require_running(self.process)
        try:
            with self.server_log.open("rb") as log:
                log.seek(self._log_begins)
                return _STARTED.search(log.read()) is not None
        except FileNotFoundError:
            return False

    # --- what can happen to its disk, while it is down --------------------------------------------------------------

    def lose_checkpoint(self, name: str) -> None:
        """The file is gone, as after a disk that was not flushed."""
        self._require_down()
        (self.data / name).unlink()

    def remove_checkpoint(self, name: str) -> None:
        """As :meth:`lose_checkpoint`, but it need not be there."""
        self._require_down()
        (self.data / name).unlink(missing_ok=True)

    def corrupt_checkpoint(self, name: str) -> None:
        """The last entry becomes a line that is none."""
        self._require_down()
        path = self.data / name
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) < 3:
            raise ValueError(f"{path} holds no entry to corrupt")
        path.write_text("\n".join([*lines[:-1], "\x00\x00 not an entry"]) + "\n", encoding="utf-8")

    def lose_data(self) -> None:
        """The whole log directory is empty, as after a new disk."""
        self._require_down()
        shutil.rmtree(self.data)
        self.data.mkdir()

    def _require_down(self) -> None:
        if self.process.is_running:
            raise ValueError(f"{self.process.name} runs: what happens to its disk now is not what is meant")


def _require_running(process: JavaProcess) -> None:
    if not process.is_running:
        raise NeverHappened(f"{process.name} ended while it started:\n{process.last_words()}")
