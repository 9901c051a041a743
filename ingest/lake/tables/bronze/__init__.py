"""Bronze: what was read, as it was read, accounted for to the byte. A module for each kind of source."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze.capture import CAPTURE_GAPS, CLUSTER_DESCRIPTIONS, DESCRIPTION_TYPES, OFFSET_PROBES
from ingest.lake.tables.bronze.files import INGESTED_FILES, NOT_OF_KAFKA, REJECTED_RECORDS
from ingest.lake.tables.bronze.kinds import (
    COMPRESSIONS,
    GROWING_KINDS,
    LINE_KINDS,
    LOG_KINDS,
    OFFSET_CHECKPOINT_KINDS,
    PARTITION_FILE_KINDS,
    READ_PARTITION_FILE_KINDS,
    SOURCE_KINDS,
    SourceKind,
)
from ingest.lake.tables.bronze.log_dirs import (
    BROKER_CONFIGS,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_SEGMENTS,
    OFFSET_CHECKPOINTS,
)
from ingest.lake.tables.bronze.logs import LOG_LEVELS, LOG_RECORDS
from ingest.lake.tables.bronze.quorum import METADATA_RECORDS, METADATA_SNAPSHOTS, QUORUM_STATES
from ingest.lake.tables.bronze.znodes import ZNODE_OPERATIONS, ZNODE_SNAPSHOTS, ZNODE_TRANSACTIONS

BRONZE_TABLES: Final = (
    INGESTED_FILES,
    LOG_RECORDS,
    ZNODE_SNAPSHOTS,
    ZNODE_TRANSACTIONS,
    OFFSET_CHECKPOINTS,
    LEADER_EPOCH_CHECKPOINTS,
    OFFSET_PROBES,
    CLUSTER_DESCRIPTIONS,
    CAPTURE_GAPS,
    LOG_SEGMENTS,
    BROKER_CONFIGS,
    METADATA_RECORDS,
    METADATA_SNAPSHOTS,
    QUORUM_STATES,
    REJECTED_RECORDS,
)

__all__ = [
    "BROKER_CONFIGS",
    "BRONZE_TABLES",
    "CAPTURE_GAPS",
    "CLUSTER_DESCRIPTIONS",
    "COMPRESSIONS",
    "DESCRIPTION_TYPES",
    "GROWING_KINDS",
    "INGESTED_FILES",
    "LEADER_EPOCH_CHECKPOINTS",
    "LINE_KINDS",
    "LOG_KINDS",
    "LOG_LEVELS",
    "LOG_RECORDS",
    "LOG_SEGMENTS",
    "METADATA_RECORDS",
    "METADATA_SNAPSHOTS",
    "NOT_OF_KAFKA",
    "OFFSET_CHECKPOINTS",
    "OFFSET_CHECKPOINT_KINDS",
    "OFFSET_PROBES",
    "PARTITION_FILE_KINDS",
    "QUORUM_STATES",
    "READ_PARTITION_FILE_KINDS",
    "REJECTED_RECORDS",
    "SOURCE_KINDS",
    "ZNODE_OPERATIONS",
    "ZNODE_SNAPSHOTS",
    "ZNODE_TRANSACTIONS",
    "SourceKind",
]
