"""What the content of ZooKeeper's files, of znode snapshots, probes, descriptions and ``meta.properties`` says of its
cluster or broker, gathered as they are inspected."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final, Protocol

from ingest.files.metadata_marks import LogMarks, SnapshotMarks
from ingest.files.znode_facts import (
    CLUSTER_META,
    CLUSTER_METADATA,
    JsonSnapshotFacts,
    SnapshotFacts,
    TransactionLogFacts,
)
from ingest.lake.tables.bronze import SourceKind
from ingest.readers.capture_lines.offset_probes import ProbeFacts
from ingest.readers.identity import digest
from ingest.readers.metadata_log.framing import BatchFramer
from ingest.readers.metadata_log.records import snapshot_id

#: In a description of the cluster; within a text of JSON the quotes would be escaped.
_DESCRIBED_CLUSTER: Final = re.compile(rb'"cluster_id"\s{0,8}:\s{0,8}"([A-Za-z0-9_.\-]{1,64})"')
_CLUSTER_KEY: Final = re.compile(rb"^[ \t]*cluster\.id[ \t]*[=:][ \t]*(\S++)\s*?$", re.MULTILINE)
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
        return SnapshotFacts(name)
    if kind == SourceKind.ZNODE_TRANSACTION_LOG:
        return TransactionLogFacts(is_final=is_final)
    if kind == SourceKind.METADATA_LOG:
        return MetadataLogFacts(is_final=is_final)
    if kind == SourceKind.METADATA_SNAPSHOT:
        return MetadataSnapshotFacts(name)
    if kind == SourceKind.OFFSET_PROBE:
        return ProbeFacts(name)
    if kind == SourceKind.CLUSTER_DESCRIPTION:
        return DescriptionFacts()
    if kind == SourceKind.META_PROPERTIES:
        return MetaPropertiesFacts()
    return None


class MetadataLogFacts:
    """How far a segment of the metadata log is to be read: to its last whole batch where it may grow, to its end where
    it is final or damaged; and whose it is. It is known again by its first batch."""

    def __init__(self, *, is_final: bool) -> None:
        self._is_final = is_final
        self._framer = BatchFramer()
        self._hash = hashlib.sha256()
        self._complete_hash = self._hash.copy()
        self._size = 0
        self._first: bytes | None = None
        self._marks = LogMarks()

    def take(self, block: bytes) -> None:
        batches = self._framer.take(block)
        for batch in batches:
            self._marks.take(batch)
        if batches and self._first is None:
            self._first = batches[0].data
        complete = max(0, self._framer.complete_end - self._size)
        self._hash.update(block[:complete])
        if batches:
            self._complete_hash = self._hash.copy()
        self._hash.update(block[complete:])
        self._size += len(block)

    def result(self) -> dict[str, Any]:
        is_lost = self._framer.is_lost
        rest = self._framer.finish()
        is_all_read = bool(rest) and (is_lost or self._is_final)
        is_empty = self._first is None and not is_all_read
        return {
            "status": "empty" if is_empty else None,
            "reason": "no batch is written yet" if is_empty else None,
            "complete_bytes": self._size if is_all_read else self._framer.complete_end,
            "complete_hash": (self._hash if is_all_read else self._complete_hash).hexdigest(),
            "line_count": self._framer.framed,
            "first_line": None if self._first is None else digest(self._first),
            "marks": self._marks.result(),
        }


class MetadataSnapshotFacts:
    """Whose a snapshot of the metadata log is; ``bootstrap.checkpoint`` does not say it."""

    def __init__(self, name: str) -> None:
        named = snapshot_id(name)
        self._marks = None if named is None else SnapshotMarks(*named)
        self._framer = BatchFramer()

    def take(self, block: bytes) -> None:
        if self._marks is not None:
            for batch in self._framer.take(block):
                self._marks.take(batch)

    def result(self) -> dict[str, Any]:
        return {} if self._marks is None else {"marks": self._marks.result()}


class MetaPropertiesFacts:
    """The cluster that ``meta.properties`` of a log directory names."""

    def __init__(self) -> None:
        self._cluster_id: str | None = None

    def take(self, block: bytes) -> None:
        found = _CLUSTER_KEY.search(block)
        if found is not None and self._cluster_id is None:
            self._cluster_id = found[1].decode("utf-8", "replace")

    def result(self) -> dict[str, Any]:
        return {} if self._cluster_id is None else {"cluster_id": self._cluster_id, "cluster_rank": CLUSTER_META}


class DescriptionFacts:
    """The cluster that brokers say they are of: Metadata's ClusterId, since 0.10.1 (KIP-78). The first counts."""

    def __init__(self) -> None:
        self._overlap = b""
        self._cluster_id: str | None = None
        self._sent_at: str | None = None

    def take(self, block: bytes) -> None:
        if self._cluster_id is not None and self._sent_at is not None:
            return
        text = self._overlap + block
        self._overlap = text[-_OVERLAP:]
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
