"""The sources that are read: of which kinds, into which bronze table, by which reader. Declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import (
    BROKER_CONFIGS,
    CAPTURE_GAPS,
    CLUSTER_DESCRIPTIONS,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_KINDS,
    LOG_RECORDS,
    LOG_SEGMENTS,
    METADATA_RECORDS,
    METADATA_SNAPSHOTS,
    OFFSET_CHECKPOINT_KINDS,
    OFFSET_CHECKPOINTS,
    OFFSET_PROBES,
    QUORUM_STATES,
    READ_PARTITION_FILE_KINDS,
    ZNODE_SNAPSHOTS,
    ZNODE_TRANSACTIONS,
    SourceKind,
)
from ingest.readers import properties
from ingest.readers.capture_lines import capture_gaps, cluster_descriptions, offset_probes, znode_snapshots
from ingest.readers.log_dirs import checkpoints, listings, partition_files
from ingest.readers.metadata_log import quorum_state
from ingest.readers.metadata_log import records as metadata_records
from ingest.readers.work import Kept, Rejected, WorkItem
from ingest.readers.zookeeper import snapshots, transaction_log

#: The bytes of one file to its records, kept or rejected, in their order.
Reader = Callable[[WorkItem, Iterable[bytes]], Iterator[Kept | Rejected]]


@dataclass(frozen=True)
class Source:
    """Files of these kinds fill ``table``.

    ``read`` gives their records one by one; NULL for logs, read batch by batch by :mod:`ingest.readers.logs.records`.
    ``instant`` is the table's column that says when a record speaks of, NULL where none does: a capture's gaps are no
    evidence of the times they are of.
    """

    kinds: tuple[str, ...]
    table: TableSpec
    read: Reader | None
    instant: str | None


SOURCES: Final = (
    Source(LOG_KINDS, LOG_RECORDS, None, "event_time"),
    Source((SourceKind.ZNODE_SNAPSHOT,), ZNODE_SNAPSHOTS, znode_snapshots.read, "captured_at"),
    Source((SourceKind.ZNODE_SNAPSHOT_BINARY,), ZNODE_SNAPSHOTS, snapshots.read, "captured_at"),
    Source((SourceKind.ZNODE_TRANSACTION_LOG,), ZNODE_TRANSACTIONS, transaction_log.read, "transaction_time"),
    Source(OFFSET_CHECKPOINT_KINDS, OFFSET_CHECKPOINTS, checkpoints.read, "captured_at"),
    Source((SourceKind.LEADER_EPOCH_CHECKPOINT,), LEADER_EPOCH_CHECKPOINTS, checkpoints.read, "captured_at"),
    Source((SourceKind.OFFSET_PROBE,), OFFSET_PROBES, offset_probes.read, "sent_at"),
    Source((SourceKind.CLUSTER_DESCRIPTION,), CLUSTER_DESCRIPTIONS, cluster_descriptions.read, "sent_at"),
    Source((SourceKind.CAPTURE_GAP,), CAPTURE_GAPS, capture_gaps.read, None),
    Source(READ_PARTITION_FILE_KINDS, LOG_SEGMENTS, partition_files.read, "captured_at"),
    Source((SourceKind.DIRECTORY_LISTING,), LOG_SEGMENTS, listings.read, "captured_at"),
    Source((SourceKind.METADATA_LOG,), METADATA_RECORDS, metadata_records.read, "appended_at"),
    Source((SourceKind.METADATA_SNAPSHOT,), METADATA_SNAPSHOTS, metadata_records.read_snapshot, None),
    Source((SourceKind.QUORUM_STATE,), QUORUM_STATES, quorum_state.read, "captured_at"),
    Source((SourceKind.SERVER_PROPERTIES, SourceKind.META_PROPERTIES), BROKER_CONFIGS, properties.read, None),
)
SOURCE_OF_KIND: Final[Mapping[str, Source]] = {kind: source for source in SOURCES for kind in source.kinds}
#: The tables that kept records go to, each once.
KEPT_TABLES: Final = tuple({source.table.name: source.table for source in SOURCES}.values())
#: Column that says when a record speaks of, by table name.
INSTANT_COLUMNS: Final[Mapping[str, str]] = {
    source.table.name: source.instant for source in SOURCES if source.instant is not None
}
