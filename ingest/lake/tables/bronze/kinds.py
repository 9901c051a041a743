"""What a file may be, and what it may be packed in."""

from __future__ import annotations

from typing import Final

#: Files of a partition's directory, and what lists them.
READ_PARTITION_FILE_KINDS: Final = (
    "log_segment",
    "offset_index",
    "time_index",
    "transaction_index",
    "producer_snapshot",
    "partition_metadata",
)
PARTITION_FILE_KINDS: Final = (*READ_PARTITION_FILE_KINDS, "directory_listing")
#: What a file was recognised as. Those that no reader takes (ingest/readers/sources.py) are counted and left alone.
SOURCE_KINDS: Final = (
    "state_change_log",
    "controller_log",
    "server_log",
    "znode_snapshot",
    "replication_offset_checkpoint",
    "recovery_point_offset_checkpoint",
    "log_start_offset_checkpoint",
    "cleaner_offset_checkpoint",
    "leader_epoch_checkpoint",
    "server_properties",
    "meta_properties",
    "znode_transaction_log",
    "znode_snapshot_binary",
    *PARTITION_FILE_KINDS,
    "offset_probe",
    "cluster_description",
    "capture_gap",
    "scenario_events",
    "unrecognised",
)
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
LOG_KINDS: Final = ("state_change_log", "controller_log", "server_log")
#: Files that are written line by line.
LINE_KINDS: Final = (*LOG_KINDS, "offset_probe", "cluster_description", "capture_gap")
#: Files that are written on at their end, until another takes their place.
GROWING_KINDS: Final = (*LINE_KINDS, "znode_transaction_log")
OFFSET_CHECKPOINT_KINDS: Final = (
    "replication_offset_checkpoint",
    "recovery_point_offset_checkpoint",
    "log_start_offset_checkpoint",
    "cleaner_offset_checkpoint",
)
