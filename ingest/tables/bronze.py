"""Bronze: what was read, as it was read, accounted for to the byte."""

from __future__ import annotations

from typing import Final

from ingest.tables.spec import TableSpec, col

#: What a file was recognised as. The first eleven are read; the others are counted and left alone.
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
    "offset_probe",
    "znode_transaction_log",
    "znode_snapshot_binary",
    "scenario_events",
    "unrecognised",
)
LOG_KINDS: Final = ("state_change_log", "controller_log", "server_log")
OFFSET_CHECKPOINT_KINDS: Final = (
    "replication_offset_checkpoint",
    "recovery_point_offset_checkpoint",
    "log_start_offset_checkpoint",
    "cleaner_offset_checkpoint",
)

_CLUSTER = col(
    "cluster_id",
    "string",
    "Cluster: given, else /cluster/id, else the log's Cluster ID line, else meta.properties, else 'unknown-' and a hash"
    " of the creation zxid and time of /brokers, else 'unknown'.",
    nullable=False,
)
_FILE = col("file_id", "string", "The file, bronze.ingested_files.file_id.", nullable=False)
_BROKER = col("broker_id", "int", "Broker whose machine the file comes from; NULL where nothing says.")
_KIND = col("source_kind", "string", "What the file was recognised as.", nullable=False, vocabulary=SOURCE_KINDS)
_RECORD = col(
    "record_id",
    "string",
    "Hash of cluster, broker, source kind, the first record's first line, the byte offset and the record's bytes.",
    nullable=False,
)
_PLACE = (
    col("source_file", "string", "Path below the path given; ARCHIVE!MEMBER inside an archive.", nullable=False),
    col("source_line", "int", "Line in the uncompressed file, from 1.", nullable=False),
    col("byte_offset", "bigint", "First byte in the uncompressed file.", nullable=False),
    col("byte_length", "bigint", "Bytes of the record, line ends and continuation lines included.", nullable=False),
)
_INGESTED_AT = col("ingested_at", "timestamp", "When this row was written: our clock, no fact of the cluster.")

INGESTED_FILES: Final = TableSpec(
    "bronze",
    "ingested_files",
    "one row per (cluster, file taken), the file known by its content and not by its name",
    ("cluster_id", "file_id"),
    (
        _CLUSTER,
        col(
            "file_id", "string", "Hash of cluster, broker, kind and the first line of the first record.", nullable=False
        ),
        _BROKER,
        _KIND,
        col(
            "source_file",
            "string",
            "Path below the path given when last seen; ARCHIVE!MEMBER inside an archive.",
            nullable=False,
        ),
        col(
            "compression",
            "string",
            "none, gzip or tar.gz.",
            nullable=False,
            vocabulary=("none", "gzip", "tar", "tar.gz"),
        ),
        col("layout", "string", "Log layout the records are framed by; NULL for what is no log."),
        col("time_zone", "string", "Zone that the log's local times were read in; NULL where times carry their own."),
        col("kafka_version", "string", "Version the file itself states, or --kafka-version; NULL where neither does."),
        col(
            "status",
            "string",
            "ingested, not_read_yet (known, no reader yet), empty, or rejected (with a reason).",
            nullable=False,
            vocabulary=("ingested", "not_read_yet", "empty", "rejected"),
        ),
        col("reason", "string", "Why the file is not read; NULL where it is."),
        col("size_bytes", "bigint", "Uncompressed size when last seen.", nullable=False),
        col("ingested_bytes", "bigint", "Uncompressed bytes that records account for.", nullable=False),
        col("content_hash", "string", "SHA-256 of the first ingested_bytes bytes."),
        col("records_read_count", "bigint", "Records framed: kept + rejected.", nullable=False),
        col("records_kept_count", "bigint", "Records kept in a bronze table.", nullable=False),
        col("records_rejected_count", "bigint", "Records in bronze.rejected_records.", nullable=False),
        col("first_event_time", "timestamp", "Earliest instant in the file, UTC."),
        col("last_event_time", "timestamp", "Latest instant in the file, UTC."),
        col("level_floor", "string", "Lowest log level seen (TRACE < DEBUG < INFO < WARN < ERROR < FATAL)."),
        _INGESTED_AT,
    ),
    constraints={"kept_and_rejected": "records_read_count = records_kept_count + records_rejected_count"},
)

LOG_RECORDS: Final = TableSpec(
    "bronze",
    "log_records",
    "one row per (file, log record), continuation lines joined to their record",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        _BROKER,
        _KIND,
        *_PLACE,
        col("event_time", "timestamp", "The record's own time, UTC.", nullable=False),
        col("event_time_text", "string", "The record's time as printed.", nullable=False),
        col("log_level", "string", "Level as printed, upper case."),
        col("thread", "string", "Thread, where the layout prints one."),
        col("logger", "string", "Logger as printed; NULL where the layout prints none."),
        col("message", "string", "Message without header and logger.", nullable=False),
        col(
            "continuation",
            "string",
            "Continuation lines (stack trace), joined by line feeds; NULL where there are none.",
        ),
        col("shape_id", "string", "Message shape matched (ingest/shapes); NULL where none did."),
        col("event_type", "string", "Event type of the shape; 'unrecognised' where none matched.", nullable=False),
        col("fields", "map<string,string>", "Fields of the message by their normalised names."),
        _INGESTED_AT,
    ),
)

ZNODE_SNAPSHOTS: Final = TableSpec(
    "bronze",
    "znode_snapshots",
    "one row per (snapshot file, znode) as one read of the tree saw it",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        *_PLACE,
        col(
            "captured_at",
            "timestamp",
            "Start of the reading round, UTC: the znode was read at or after it.",
            nullable=False,
        ),
        col("path", "string", "Path below Kafka's chroot.", nullable=False),
        col("data", "string", "Data as text; NULL where the znode has none."),
        col("czxid", "bigint", "Transaction that created the znode."),
        col("mzxid", "bigint", "Transaction of the write that this row shows."),
        col("pzxid", "bigint", "Transaction that last changed the children."),
        col("ctime", "timestamp", "Creation time by ZooKeeper's clock, UTC."),
        col("mtime", "timestamp", "Time of the write that this row shows, by ZooKeeper's clock, UTC."),
        col("version", "int", "Data version: writes since creation."),
        col("cversion", "int", "Child version."),
        col("ephemeral_owner", "bigint", "Session that owns an ephemeral znode; 0 for others."),
        col("num_children", "int", "Number of children."),
        _INGESTED_AT,
    ),
)

OFFSET_CHECKPOINTS: Final = TableSpec(
    "bronze",
    "offset_checkpoints",
    "one row per (copy of a checkpoint file, entry line)",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        _BROKER,
        _KIND,
        *_PLACE,
        col("captured_at", "timestamp", "The copy was made at or after this instant, UTC; NULL where nothing says."),
        col("captured_at_upper", "timestamp", "The copy was made before this instant, UTC; NULL where nothing says."),
        col("topic", "string", "Topic.", nullable=False),
        col("partition_id", "int", "Partition.", nullable=False),
        col("offset", "bigint", "The checkpointed offset.", nullable=False),
        _INGESTED_AT,
    ),
)

LEADER_EPOCH_CHECKPOINTS: Final = TableSpec(
    "bronze",
    "leader_epoch_checkpoints",
    "one row per (copy of a leader-epoch-checkpoint, entry line)",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        _BROKER,
        *_PLACE,
        col("captured_at", "timestamp", "The copy was made at or after this instant, UTC; NULL where nothing says."),
        col("captured_at_upper", "timestamp", "The copy was made before this instant, UTC; NULL where nothing says."),
        col("topic", "string", "Topic, from the name of the partition's directory.", nullable=False),
        col("partition_id", "int", "Partition, from the name of its directory.", nullable=False),
        col(
            "directory",
            "string",
            "Name of the partition's directory: TOPIC-PARTITION, with a suffix once renamed for deletion or a move.",
            nullable=False,
        ),
        col("leader_epoch", "int", "Leader epoch.", nullable=False),
        col("start_offset", "bigint", "First offset written in that epoch.", nullable=False),
        _INGESTED_AT,
    ),
)

BROKER_CONFIGS: Final = TableSpec(
    "bronze",
    "broker_configs",
    "one row per (properties file, key)",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        _BROKER,
        _KIND,
        *_PLACE,
        col("config_key", "string", "Property.", nullable=False),
        col("config_value", "string", "Value as written; '[hidden]' for what holds a secret.", nullable=False),
        _INGESTED_AT,
    ),
)

REJECTED_RECORDS: Final = TableSpec(
    "bronze",
    "rejected_records",
    "one row per record, or file, that could not be read",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        _BROKER,
        _KIND,
        *_PLACE,
        col("reason", "string", "What is wrong with it, in one sentence.", nullable=False),
        col("raw", "string", "The record's text, at most 64 KiB of it; damaged bytes as U+FFFD.", nullable=False),
        _INGESTED_AT,
    ),
)

BRONZE_TABLES: Final = (
    INGESTED_FILES,
    LOG_RECORDS,
    ZNODE_SNAPSHOTS,
    OFFSET_CHECKPOINTS,
    LEADER_EPOCH_CHECKPOINTS,
    BROKER_CONFIGS,
    REJECTED_RECORDS,
)
