"""Kafka's own command-line tools, the Java classes of each release, run against a cluster of the lab."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.lab.admin import Partition
from jobs.lab.machines.processes import JVM_OPTIONS
from jobs.lab.machines.releases import kafka_jars
from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.session.java import find_java

#: Since then TopicCommand asks brokers; before it read ZooKeeper.
_TOPICS_BY_BROKERS: Final = (2, 2)
#: Since then most tools are ``org.apache.kafka.tools`` and take ``--bootstrap-server``.
_TOOLS_MOVED: Final = (3, 6)
_DESCRIBED: Final = re.compile(r"Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\S+)\s+Replicas: ([\d,]*)\s+Isr: ([\d,]*)")
_DEADLINE_S: Final = 180


@dataclass(frozen=True)
class Described:
    """A partition as ``kafka-topics --describe`` prints it; leader -1 is none."""

    leader: int
    replicas: tuple[int, ...]
    isr: frozenset[int]


class KafkaTools:
    """The tools of a cluster's release, from its own jars."""

    def __init__(self, cluster: ZooKeeperCluster) -> None:
        self._cluster = cluster
        self._java = find_java()
        self._jars = kafka_jars(self._java, cluster.release)
        self._number = cluster.release.number
        self._log4j = cluster.folder / "tools-log4j.properties"
        self._log4j.write_text("log4j.rootLogger=OFF\n")

    def topics(self, *options: str) -> dict[Partition, Described]:
        """``kafka-topics --describe``; ``options`` as ``--under-replicated-partitions``."""
        if self._number >= _TOPICS_BY_BROKERS:
            place = ("--bootstrap-server", self._living())
        else:
            place = ("--zookeeper", self._cluster.zookeeper.address)
        name = "org.apache.kafka.tools.TopicCommand" if self._is_moved else "kafka.admin.TopicCommand"
        printed = self._run(name, *place, "--describe", *options)
        return {
            (topic, int(number)): Described(
                int(leader) if re.fullmatch(r"-?\d+", leader) else -1, _ids(replicas), frozenset(_ids(isr))
            )
            for topic, number, leader, replicas, isr in _DESCRIBED.findall(printed)
        }

    def offsets(self, topic: str) -> dict[Partition, int]:
        """``kafka-get-offsets``: the high watermark of each partition that has a leader."""
        option = "--bootstrap-server" if self._is_moved else "--broker-list"
        name = "org.apache.kafka.tools.GetOffsetShell" if self._is_moved else "kafka.tools.GetOffsetShell"
        printed = self._run(name, option, self._living(), "--topic", topic, "--time", "-1")
        return {
            (topic, int(number)): int(offset)
            for number, offset in re.findall(rf"^{re.escape(topic)}:(\d+):(\d+)$", printed, re.MULTILINE)
        }

    def log_end_offset(self, log_dir: Path, partition: Partition) -> int:
        """``kafka-dump-log``: one more than the last offset in the last segment of a replica."""
        segments = sorted((log_dir / f"{partition[0]}-{partition[1]}").glob("*.log"))
        printed = self._run("kafka.tools.DumpLogSegments", "--files", str(segments[-1]))
        last = re.findall(r"lastOffset: (\d+)", printed) or re.findall(r"^offset: (\d+)", printed, re.MULTILINE)
        return int(last[-1]) + 1 if last else int(segments[-1].stem)

    def offset_lags(self) -> dict[tuple[int, Partition], int]:
        """``kafka-log-dirs --describe``: how far each replica's log end lies behind its high watermark."""
        name = "org.apache.kafka.tools.LogDirsCommand" if self._is_moved else "kafka.admin.LogDirsCommand"
        printed = self._run(name, "--bootstrap-server", self._living(), "--describe")
        described: Mapping[str, Any] = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
        lags = {}
        for broker in described["brokers"]:
            for log_dir in broker["logDirs"]:
                for replica in log_dir["partitions"]:
                    topic, number = replica["partition"].rsplit("-", 1)
                    lags[broker["broker"], (topic, int(number))] = int(replica["offsetLag"])
        return lags

    def most_behind(self, topic: str) -> int:
        """``kafka-replica-verification``: the greatest lag of any replica in its first report; then it is ended."""
        name = (
            "org.apache.kafka.tools.ReplicaVerificationTool"
            if self._is_moved
            else "kafka.tools.ReplicaVerificationTool"
        )
        option = "--topics-include" if self._number >= (3,) else "--topic-white-list"
        command = self._command(
            name, "--broker-list", self._living(), option, topic, "--report-interval-ms", "1000", "--time", "-2"
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tool:
            assert tool.stdout is not None
            try:
                for line in tool.stdout:
                    lag = re.search(r"max lag is (-?\d+) for partition", line)
                    if lag:
                        return int(lag[1])
                raise AssertionError(f"{name} ended without a report")
            finally:
                tool.kill()

    @property
    def _is_moved(self) -> bool:
        return self._number >= _TOOLS_MOVED

    def _living(self) -> str:
        live = [broker for broker in self._cluster.brokers.values() if broker.process.is_running]
        return ",".join(broker.address for broker in live)

    def _command(self, name: str, *arguments: str) -> Sequence[str]:
        return [
            self._java,
            "-Xmx128m",
            *JVM_OPTIONS,
            f"-Dlog4j.configuration=file:{self._log4j}",
            "-cp",
            os.pathsep.join(map(str, self._jars)),
            name,
            *arguments,
        ]

    def _run(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            self._command(name, *arguments), capture_output=True, text=True, check=False, timeout=_DEADLINE_S
        )
        assert done.returncode == 0, f"{name} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)
