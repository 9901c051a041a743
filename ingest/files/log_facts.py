"""What the lines of a log say of its cluster, its broker and its time, gathered as it is inspected."""

from __future__ import annotations

import re
from typing import Any, Final

from ingest.files.znode_facts import CLUSTER_LOG

_OVERLAP: Final = 4096
#: The end of a log in which its last time is looked for: a stack trace may stand behind it.
_LAST_BYTES: Final = 64 << 10
#: How a broker of ZooKeeper's states it (KafkaServer), one of KRaft's (BrokerLifecycleManager), and a controller
#: (QuorumController).
_STATING: Final = (b"Cluster ID = ", b" in cluster ", b" with clusterId ")
_CLUSTER_LINE: Final = re.compile(
    rb"(?:Cluster ID = |Incarnation \S{22} of broker \d{1,10} in cluster |QuorumController with clusterId )"
    rb"([A-Za-z0-9_\-]{8,64})"
)
_VERSION_LINE: Final = re.compile(rb"Kafka [vV]ersion ?: ?(\d[\w.\-]*)")
#: What a broker says of itself as it starts and stops.
_SERVERS: Final = (b"KafkaServer id=", b"[Kafka Server ", b"KafkaRaftServer nodeId=")
_SERVER: Final = re.compile(rb"\[(?:KafkaServer id=|Kafka Server |KafkaRaftServer nodeId=)(\d{1,10})\]")
_TIME: Final = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]?\d*")


class LogFacts:
    """When the log begins and ends, the lines that state the cluster's id, the first that names the version; and every
    broker that it is of (``servers``)."""

    def __init__(self) -> None:
        self.servers: set[bytes] = set()
        self._tail = b""
        self._last_block = b""
        self._first_at: str | None = None
        self._version: str | None = None
        self._statements: list[tuple[str, str]] = []

    def take(self, block: bytes) -> None:
        if any(words in block for words in _SERVERS):
            self.servers.update(_SERVER.findall(block))
        text = self._tail + block
        if self._first_at is None and (time := _TIME.search(text)) is not None:
            self._first_at = _printed(time)
        if any(words in text for words in _STATING):
            for found in _CLUSTER_LINE.finditer(text):
                times = list(_TIME.finditer(text, max(0, found.start() - 200), found.start()))
                statement = (_printed(times[-1]) if times else "", found.group(1).decode())
                if statement not in self._statements:  # blocks overlap
                    self._statements.append(statement)
        if self._version is None and (b"Kafka version" in text or b"Kafka Version" in text):
            found_version = _VERSION_LINE.search(text)
            if found_version:
                self._version = found_version.group(1).decode()
        self._tail = text[-_OVERLAP:]
        self._last_block = text

    def result(self) -> dict[str, Any]:
        times = list(_TIME.finditer(self._last_block, max(0, len(self._last_block) - _LAST_BYTES)))
        facts: dict[str, Any] = {
            "first_at": self._first_at,
            "last_at": _printed(times[-1]) if times else None,
            "statements": tuple(self._statements),
            "kafka_version": self._version,
        }
        if self._statements:
            at, cluster_id = self._statements[0]
            facts |= {"cluster_id": cluster_id, "cluster_at": at, "cluster_rank": CLUSTER_LOG}
        return facts


def _printed(time: re.Match[bytes]) -> str:
    """A time as all layouts that print one like Kafka's own can be compared by: ``2026-11-21 04:40:22.700``."""
    return time.group().decode().replace("T", " ").replace(",", ".")
