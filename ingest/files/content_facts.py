"""What the content of ZooKeeper's files, of znode snapshots, probes and descriptions says of its cluster or broker,
gathered as they are inspected."""

from __future__ import annotations

import json
import re
from typing import Any, Final, Protocol

from ingest.lake.tables.bronze import SourceKind
from ingest.readers.capture_lines.offset_probes import ProbeFacts
from ingest.readers.identity import digest
from ingest.readers.zookeeper.facts import SnapshotFacts, TransactionLogFacts

#: Cluster evidence by rank: what states the id, best first. The option --cluster stands before all.
CLUSTER_ZNODE, CLUSTER_LOG, CLUSTER_METADATA, CLUSTER_META, CLUSTER_BIRTH = 1, 2, 3, 4, 5

#: Kafka's cluster ids are 22 characters of base 64; people give their own.
_CLUSTER_ID: Final = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")
#: In a description of the cluster; within a text of JSON the quotes would be escaped.
_DESCRIBED_CLUSTER: Final = re.compile(rb'"cluster_id"\s{0,8}:\s{0,8}"([A-Za-z0-9_.\-]{1,64})"')
_SENT_AT: Final = re.compile(rb'"sent_at"\s{0,8}:\s{0,8}(\d{12,14})(?=[.,}\s])')
#: More bytes than either takes: what may be cut by the end of a block.
_OVERLAP: Final = 128


class ContentFacts(Protocol):
    """Takes a file's blocks in order; ``result`` gives fields of :class:`ingest.files.inspected.Inspected`, NULL for
    what the content does not say."""

    def take(self, block: bytes) -> None: ...

    def result(self) -> dict[str, Any]: ...


def content_facts(kind: str, name: str, *, is_final: bool) -> ContentFacts | None:
    """What gathers the facts of a file of that kind and name; NULL for kinds that say nothing of whose they are so."""
    if kind == SourceKind.ZNODE_SNAPSHOT:
        return JsonSnapshotFacts()
    if kind == SourceKind.ZNODE_SNAPSHOT_BINARY:
        return BinarySnapshotFacts(name)
    if kind == SourceKind.ZNODE_TRANSACTION_LOG:
        return TransactionFacts(is_final=is_final)
    if kind == SourceKind.OFFSET_PROBE:
        return ProbeFacts(name)
    if kind == SourceKind.CLUSTER_DESCRIPTION:
        return DescriptionFacts()
    return None


def _of_cluster(chroot: str, birth: tuple[int, int] | None, stated: str | None) -> dict[str, Any]:
    stated = stated if stated is not None and _CLUSTER_ID.match(stated) else None
    birth_id = f"unknown-{digest(*birth)[:16]}" if birth else None
    return {
        "chroot": chroot,
        "birth_id": birth_id,
        "cluster_id": stated or birth_id,
        "cluster_rank": CLUSTER_ZNODE if stated else CLUSTER_BIRTH if birth_id else 0,
    }


class BinarySnapshotFacts:
    """Of a snapshot of ZooKeeper's own."""

    def __init__(self, name: str) -> None:
        self._facts = SnapshotFacts(name)

    def take(self, block: bytes) -> None:
        self._facts.take(block)

    def result(self) -> dict[str, Any]:
        found = self._facts.result()
        status, reason = None, None
        if not found["is_readable"]:
            status, reason = "rejected", found["damage"]
        elif found["captured_at_ms"] is None:
            status, reason = "empty", "no znode was written before this snapshot was begun"
        return {
            "status": status,
            "reason": reason,
            "captured_at_ms": found["captured_at_ms"],
            "snapshot_zxid": found["snapshot_zxid"],
            "line_count": found["line_count"],
            "cluster_at": str(found["captured_at_ms"] or ""),
        } | _of_cluster(found["chroot"] or "", found["birth"], found["cluster_id"])


class TransactionFacts:
    """Of a transaction log: how far it is written, too; where it ends for good, a torn transaction is its last."""

    def __init__(self, *, is_final: bool) -> None:
        self._facts = TransactionLogFacts()
        self._end = "written" if is_final else "complete"

    def take(self, block: bytes) -> None:
        self._facts.take(block)

    def result(self) -> dict[str, Any]:
        found = self._facts.result()
        first = found["first_record"]
        return {
            "status": "empty" if first is None and not found["damage"] else None,
            "reason": "no transaction is written yet" if first is None and not found["damage"] else None,
            "complete_bytes": found[f"{self._end}_bytes"],
            "complete_hash": found[f"{self._end}_hash"],
            "line_count": found["line_count"],
            "first_line": None if first is None else digest(first),
            "cluster_at": str(found["first_time_ms"] or ""),
        } | _of_cluster(found["chroot"] or "", found["birth"], found["cluster_id"])


class JsonSnapshotFacts:
    """The cluster's id, its birth and its chroot, from a snapshot of the znodes."""

    def __init__(self) -> None:
        self._held = b""
        self._captured_at: int | None = None
        self._births: dict[str, tuple[int, int]] = {}
        self._ids: dict[str, str] = {}
        self._chroot: str | None = None

    def take(self, block: bytes) -> None:
        *whole, self._held = (self._held + block).split(b"\n")
        for line in whole:
            if self._captured_at is None or b'/brokers"' in line or b'/brokers/ids"' in line or b'/cluster/id"' in line:
                self._line(line)

    def result(self) -> dict[str, Any]:
        if self._held:
            self._line(self._held)
        chroot = self._chroot if self._chroot is not None else ""
        return {
            "captured_at_ms": self._captured_at,
            "cluster_at": str(self._captured_at or ""),
        } | _of_cluster(chroot, self._births.get(f"{chroot}/brokers"), self._ids.get(f"{chroot}/cluster/id"))

    def _line(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            path = entry["path"]
            if self._captured_at is None:
                self._captured_at = int(entry["captured_at"])
            if path.endswith("/brokers/ids") and self._chroot is None:
                self._chroot = path[: -len("/brokers/ids")]
            elif path.endswith("/brokers"):
                self._births[path] = (int(entry["czxid"]), int(entry["ctime"]))
            elif path.endswith("/cluster/id"):
                self._ids[path] = str(json.loads(entry["data"])["id"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return


class DescriptionFacts:
    """The cluster that brokers say they are of: Metadata's ClusterId, since 0.10.1 (KIP-78). The first counts."""

    def __init__(self) -> None:
        self._held = b""
        self._cluster_id: str | None = None
        self._sent_at: str | None = None

    def take(self, block: bytes) -> None:
        if self._cluster_id is not None and self._sent_at is not None:
            return
        text = self._held + block
        self._held = text[-_OVERLAP:]
        if self._cluster_id is None and (found := _DESCRIBED_CLUSTER.search(text)) is not None:
            self._cluster_id = found[1].decode()
        if self._sent_at is None and (sent := _SENT_AT.search(text)) is not None:
            self._sent_at = sent[1].decode()

    def result(self) -> dict[str, Any]:
        if self._cluster_id is None:
            return {}
        return {
            "cluster_id": self._cluster_id,
            "cluster_rank": CLUSTER_METADATA,
            "cluster_at": self._sent_at or "",
        }
