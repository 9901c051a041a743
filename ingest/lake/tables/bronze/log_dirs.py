"""What lies on a broker's disks: checkpoints, files of partitions, properties."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze.columns import BROKER, record_table
from ingest.lake.tables.bronze.kinds import READ_PARTITION_FILE_KINDS, SourceKind
from ingest.lake.tables.spec import col, required

#: When a copy was made.
COPIED: Final = (
    col("captured_at", "timestamp", "The copy was made at or after this instant, UTC; NULL where nothing says."),
    col("captured_at_upper", "timestamp", "The copy was made before this instant, UTC; NULL where nothing says."),
)
#: Which partition a file of a partition's directory is of.
_DIRECTORY = (
    required("topic", "string", "Topic, from the name of the partition's directory."),
    required("partition_id", "int", "Partition, from the name of its directory."),
    required(
        "directory",
        "string",
        "Name of the partition's directory: TOPIC-PARTITION, with a suffix once renamed for deletion or a move.",
    ),
)

OFFSET_CHECKPOINTS: Final = record_table(
    "offset_checkpoints",
    "one row per (copy of a checkpoint file, entry line)",
    *COPIED,
    required("topic", "string", "Topic."),
    required("partition_id", "int", "Partition."),
    required("offset", "bigint", "The checkpointed offset."),
)

LEADER_EPOCH_CHECKPOINTS: Final = record_table(
    "leader_epoch_checkpoints",
    "one row per (copy of a leader-epoch-checkpoint, entry line)",
    *COPIED,
    *_DIRECTORY,
    required("leader_epoch", "int", "Leader epoch."),
    required("start_offset", "bigint", "First offset written in that epoch."),
    of=(BROKER,),
)

LOG_SEGMENTS: Final = record_table(
    "log_segments",
    "one row per file of a partition's directory: read whole, or a line of a listing that names it",
    *COPIED,
    *_DIRECTORY,
    required("file_name", "string", "Name in that directory, suffixes such as .deleted included."),
    required(
        "file_kind",
        "string",
        "What the file is, whether read or listed.",
        vocabulary=(*READ_PARTITION_FILE_KINDS, SourceKind.LEADER_EPOCH_CHECKPOINT),
    ),
    col("base_offset", "bigint", "Base offset of the segment, from the name; NULL for files of no segment."),
    col("size_bytes", "bigint", "Size of the file; NULL where a listing does not say."),
    col("modified_at", "timestamp", "Last change as a listing shows it, UTC; NULL for copies, which lose it."),
    required("is_read", "boolean", "Whether the file's content was read; a listing has names and sizes only."),
    col("valid_bytes", "bigint", "Of a segment: bytes up to the end of its last whole and intact batch."),
    col("batches_count", "bigint", "Of a segment: its whole and intact batches, or messages of formats 0 and 1."),
    col("first_offset", "bigint", "Of a segment: first offset of its first batch; NULL where it has none."),
    col(
        "next_offset",
        "bigint",
        "Of a segment: the offset after its last record; its base offset where it is"
        " empty. The log end offset, if no later segment exists.",
    ),
    col("last_leader_epoch", "int", "Of a segment: leader epoch of its last batch (format 2)."),
    col("message_format", "int", "Of a segment: message format of its last batch: 0, 1 or 2."),
    col(
        "max_timestamp",
        "timestamp",
        "Of a segment: largest timestamp of its records, as producers or brokers set"
        " it, UTC; NULL where the format has none.",
    ),
    col("entries_count", "bigint", "Of an index: its entries, without the zeros allocated ahead."),
    col("last_indexed_offset", "bigint", "Of an index: offset of its last entry."),
    col("last_indexed_position", "bigint", "Of an offset index: byte position of its last entry in the segment."),
    col("max_index_interval_bytes", "bigint", "Of an offset index: most bytes between two entries' positions."),
    col(
        "sampled_one_in",
        "int",
        "Of a segment or an index: one in so many of its batches or entries is in the next columns, of the same places"
        " in each file; 1: all of them.",
    ),
    col(
        "sampled_positions",
        "array<bigint>",
        "Of a segment: byte positions at which its batches begin. Of an offset index: those its entries point at.",
    ),
    col(
        "sampled_offsets",
        "array<bigint>",
        "Of a segment: the first offset of each of these batches, at the least. Of an index: those of its entries.",
    ),
    col(
        "sampled_timestamps",
        "array<bigint>",
        "Of a segment: the largest timestamp of all batches before each of these, ms; -1 where none has one. Of a time"
        " index: the timestamps of its entries, ms.",
    ),
    col(
        "last_records",
        "array<struct<offset:bigint,leader_epoch:int,timestamp_ms:bigint,key_hash:string>>",
        "Of a segment: its last 4,096 records of format 2 in its last MiB of batches, but of batches of more than that"
        " and of such as cannot be decompressed; key_hash: the first 16 hexadecimal digits of the SHA-256 of the"
        " record's key, NULL without one. Keys and values are not kept.",
    ),
    col("topic_id", "string", "Of partition.metadata: the topic id."),
    col("problem", "string", "What is wrong with the file, in one sentence; NULL where nothing is."),
    version=3,
)

BROKER_CONFIGS: Final = record_table(
    "broker_configs",
    "one row per (properties file, key)",
    required("config_key", "string", "Property."),
    required("config_value", "string", "Value as written; '[hidden]' for what holds a secret."),
)
