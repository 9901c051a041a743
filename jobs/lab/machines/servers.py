"""ZooKeeper, a broker and a node of a quorum: their folders, their configuration, and when they are ready."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.lab.machines import settings
from jobs.lab.machines.guard import Guard
from jobs.lab.machines.ports import LOOPBACK
from jobs.lab.machines.processes import JVM_OPTIONS, JavaProcess
from jobs.lab.waiting import NeverHappened, wait_for

_STARTED: Final = re.compile(
    rb"\[Kafka ?Server (?:id=)?\d+\],? started \(kafka\.server\.KafkaServer\)"
    rb"|\[KafkaRaftServer nodeId=\d+\] Kafka Server started"
)
_LOG4J: Final = "log4j.properties"
_FORMAT_S: Final = 180.0


@dataclass(frozen=True)
class Launcher:
    """What servers are started with: the Java program, the jars of a release, and the guard that ends what is left."""

    java: str
    jars: Sequence[Path]
    guard: Guard


class _Server:
    """A Java program below ``folder`` that listens on a port of loopback; ``config`` is its configuration file."""

    def __init__(
        self,
        launcher: Launcher,
        name: str,
        folder: Path,
        port: int,
        config: Path,
        java_arguments: Sequence[str],
        log: Path | None = None,
    ) -> None:
        self.port = port
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        self._java = [
            launcher.java,
            *JVM_OPTIONS,
            f"-Dlog4j.configuration=file:{folder / _LOG4J}",
            f"-Dlog4j2.configurationFile=file:{folder / _LOG4J}",
            "-cp",
            os.pathsep.join(map(str, launcher.jars)),
        ]
        command = [*self._java, *java_arguments, str(config)]
        self.process = JavaProcess(name, command, folder, folder / "server.out", launcher.guard, log)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def _require_running(self) -> None:
        if not self.process.is_running:
            raise NeverHappened(f"{self.process.name} ended while it started:\n{self.process.last_words()}")


class ZooKeeper(_Server):
    """One standalone server; ``own`` are settings of it, ``options`` of its Java process."""

    def __init__(
        self, launcher: Launcher, folder: Path, port: int, own: Mapping[str, str], options: Sequence[str]
    ) -> None:
        config = folder / "zoo.cfg"
        arguments = (
            "-Xmx160m",
            "-Dzookeeper.preAllocSize=64",
            "-Dzookeeper.forceSync=no",
            "-Dzookeeper.admin.enableServer=false",
            *options,
            "org.apache.zookeeper.server.ZooKeeperServerMain",
        )
        super().__init__(launcher, "ZooKeeper", folder, port, config, arguments)
        config.write_text(settings.zookeeper_properties(port, self.data, own), encoding="utf-8")
        (folder / _LOG4J).write_text(settings.zookeeper_log4j(), encoding="utf-8")

    @property
    def transactions(self) -> Path:
        """The folder of its transaction logs and snapshots."""
        return self.data / "version-2"

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.process.start()
        wait_for("ZooKeeper serves", self._is_ready)

    def _is_ready(self) -> bool:
        self._require_running()
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=5) as connection:
                connection.sendall(b"srvr")
                answer = b""
                while part := connection.recv(4096):
                    answer += part
        except OSError:
            return False
        return b"Mode: standalone" in answer  # before that it takes connections, and drops them


class Broker(_Server):
    """One broker: ``folder`` holds its configuration, ``logs`` and ``data``. ``properties`` gives the text of its
    configuration for the folders of its data, which are ``directories``, ``log4j`` that of its logs' for theirs;
    ``options`` are of its Java process."""

    def __init__(
        self,
        launcher: Launcher,
        broker_id: int,
        folder: Path,
        port: int,
        properties: Callable[..., str],
        log4j: Callable[[Path], str],
        options: Sequence[str] = (),
        directories: int = 1,
    ) -> None:
        self.broker_id = broker_id
        self.logs = folder / "logs"
        self.properties = folder / "server.properties"
        self.server_log = self.logs / "server.log"
        arguments = ("-Xmx320m", *options, "kafka.Kafka")
        super().__init__(launcher, f"broker {broker_id}", folder, port, self.properties, arguments, self.server_log)
        self.logs.mkdir()
        self.directories = (self.data, *(folder / f"data-{number}" for number in range(2, directories + 1)))
        for directory in self.directories[1:]:
            directory.mkdir()
        self.configure(properties(*self.directories))
        (folder / _LOG4J).write_text(log4j(self.logs), encoding="utf-8")
        self._log_begins = 0

    def launch(self) -> None:
        """Start the process; :meth:`is_up` says when it serves."""
        self._log_begins = self.server_log.stat().st_size if self.server_log.exists() else 0
        self.process.start()

    def is_up(self) -> bool:
        """Whether it has logged, since it was launched, that it has started.

        :raises NeverHappened: where it has ended instead.
        """
        self._require_running()
        try:
            with self.server_log.open("rb") as log:
                log.seek(self._log_begins)
                return _STARTED.search(log.read()) is not None
        except FileNotFoundError:
            return False

    def configure(self, properties: str) -> None:
        """What it reads when it starts the next time."""
        self.properties.write_text(properties, encoding="utf-8")

    def format(self, cluster_id: str, *options: str) -> None:
        """What ``kafka-storage format`` does: a log directory of this cluster's, for a node of a quorum.

        :raises NeverHappened: where it cannot be done, with what it said.
        """
        tool = [
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={cluster_id}",  # one may begin with a dash
            "--config",
            str(self.properties),
            *options,
        ]
        done = subprocess.run(
            [*self._java, *tool], capture_output=True, text=True, check=False, timeout=_FORMAT_S, cwd=self.logs.parent
        )
        if done.returncode:
            raise NeverHappened(f"{self.process.name} has no log directory:\n{done.stdout}{done.stderr}")

    def directory_id(self) -> str:
        """Of its first log directory, by which the quorum knows it (KIP-853)."""
        text = (self.data / "meta.properties").read_text(encoding="utf-8")
        return next(line for line in text.splitlines() if line.startswith("directory.id=")).partition("=")[2]

    def fail_directory(self, number: int) -> None:
        """A log directory is gone while the broker runs, as a disk that died: what it has open it may write on."""
        directory = self.directories[number]
        directory.rename(directory.with_name(f"{directory.name}.failed"))
        directory.touch()

    # --- what can happen to its disk, while it is down --------------------------------------------------------------

    def lose_checkpoint(self, name: str) -> None:
        """The file is gone, as after a disk that was not flushed; it need not have been there."""
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

    def repair_directory(self, number: int) -> None:
        """The directory that had failed is there again, as it was."""
        self._require_down()
        directory = self.directories[number]
        directory.unlink()
        directory.with_name(f"{directory.name}.failed").rename(directory)

    def _require_down(self) -> None:
        if self.process.is_running:
            raise ValueError(f"{self.process.name} runs: what happens to its disk now is not what is meant")
