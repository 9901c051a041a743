"""What a file may be, and what it may be packed in."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class SourceKind(StrEnum):
    """What a file was recognised as. Those that no reader takes (ingest/readers/sources.py) are counted and left
    alone."""

    STATE_CHANGE_LOG = "state_change_log"
    CONTROLLER_LOG = "controller_log"
    SERVER_LOG = "server_log"
    ZNODE_SNAPSHOT = "znode_snapshot"
    REPLICATION_OFFSET_CHECKPOINT = "replication_offset_checkpoint"
    RECOVERY_POINT_OFFSET_CHECKPOINT = "recovery_point_offset_checkpoint"
    LOG_START_OFFSET_CHECKPOINT = "log_start_offset_checkpoint"
    CLEANER_OFFSET_CHECKPOINT = "cleaner_offset_checkpoint"
    LEADER_EPOCH_CHECKPOINT = "leader_epoch_checkpoint"
    SERVER_PROPERTIES = "server_properties"
    META_PROPERTIES = "meta_properties"
    ZNODE_TRANSACTION_LOG = "znode_transaction_log"
    ZNODE_SNAPSHOT_BINARY = "znode_snapshot_binary"
    LOG_SEGMENT = "log_segment"
    OFFSET_INDEX = "offset_index"
    TIME_INDEX = "time_index"
    TRANSACTION_INDEX = "transaction_index"
    PRODUCER_SNAPSHOT = "producer_snapshot"
    PARTITION_METADATA = "partition_metadata"
    DIRECTORY_LISTING = "directory_listing"
    METADATA_LOG = "metadata_log"
    METADATA_SNAPSHOT = "metadata_snapshot"
    QUORUM_STATE = "quorum_state"
    OFFSET_PROBE = "offset_probe"
    CLUSTER_DESCRIPTION = "cluster_description"
    CAPTURE_GAP = "capture_gap"
    SCENARIO_EVENTS = "scenario_events"
    UNRECOGNISED = "unrecognised"


SOURCE_KINDS: Final = tuple(SourceKind)
LOG_KINDS: Final = (SourceKind.STATE_CHANGE_LOG, SourceKind.CONTROLLER_LOG, SourceKind.SERVER_LOG)
#: Files that are written line by line.
LINE_KINDS: Final = (*LOG_KINDS, SourceKind.OFFSET_PROBE, SourceKind.CLUSTER_DESCRIPTION, SourceKind.CAPTURE_GAP)
#: Files that are written on at their end, until another takes their place.
GROWING_KINDS: Final = (*LINE_KINDS, SourceKind.ZNODE_TRANSACTION_LOG, SourceKind.METADATA_LOG)
OFFSET_CHECKPOINT_KINDS: Final = (
    SourceKind.REPLICATION_OFFSET_CHECKPOINT,
    SourceKind.RECOVERY_POINT_OFFSET_CHECKPOINT,
    SourceKind.LOG_START_OFFSET_CHECKPOINT,
    SourceKind.CLEANER_OFFSET_CHECKPOINT,
)
#: Files of a partition's directory, and what lists them.
READ_PARTITION_FILE_KINDS: Final = (
    SourceKind.LOG_SEGMENT,
    SourceKind.OFFSET_INDEX,
    SourceKind.TIME_INDEX,
    SourceKind.TRANSACTION_INDEX,
    SourceKind.PRODUCER_SNAPSHOT,
    SourceKind.PARTITION_METADATA,
)
PARTITION_FILE_KINDS: Final = (*READ_PARTITION_FILE_KINDS, SourceKind.DIRECTORY_LISTING)
COMPRESSIONS: Final = (
    "none",
    "gzip",
    "zstd",
    "xz",
    "bzip2",
    "snappy",
    "tar",
    "tar.gz",
    "tar.zst",
    "tar.xz",
    "tar.bz2",
    "zip",
)
