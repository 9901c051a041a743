"""Bronze: what was read, as it was read, accounted for to the byte."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.spec import TableSpec, col

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
#: What a record may be logged at, as it is printed, from the lowest on; Python's logging writes WARNING.
LOG_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL")
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

_CLUSTER = col(
    "cluster_id",
    "string",
    "Cluster: given, else /cluster/id, else the log's Cluster ID line, else Metadata's ClusterId, else meta.properties,"
    " else 'unknown-' and a hash of the creation zxid and time of /brokers, else 'unknown'.",
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
_ASKED = (
    col("sent_at", "timestamp", "When the request was sent, by the client's clock, UTC.", nullable=False),
    col("received_at", "timestamp", "When the answer was there, by the client's clock, UTC.", nullable=False),
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
            "What the file, or the archive it is a member of, is packed in.",
            nullable=False,
            vocabulary=COMPRESSIONS,
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
        col("content_hash", "string", "SHA-256 of the first ingested_bytes bytes; of a file not read, of all of it."),
        col("records_read_count", "bigint", "Records framed: kept + rejected.", nullable=False),
        col("records_kept_count", "bigint", "Records kept in a bronze table.", nullable=False),
        col("records_rejected_count", "bigint", "Records in bronze.rejected_records.", nullable=False),
        col("first_event_time", "timestamp", "Earliest instant in the file, UTC."),
        col("last_event_time", "timestamp", "Latest instant in the file, UTC."),
        col("level_floor", "string", "Lowest log level seen (TRACE < DEBUG < INFO < WARN < ERROR < FATAL)."),
        _INGESTED_AT,
    ),
    constraints={"kept_and_rejected": "records_read_count = records_kept_count + records_rejected_count"},
    version=3,
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
        col(
            "cause_type",
            "string",
            "What the exception in the first continuation line says; NULL without one that is known.",
        ),
        col("fields", "map<string,string>", "Fields of the message by their normalised names."),
        _INGESTED_AT,
    ),
    version=2,
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
            "Start of the reading round, UTC: the znode was read at or after it. Of ZooKeeper's own snapshot: the last"
            " write before its reading began.",
            nullable=False,
        ),
        col(
            "snapshot_zxid",
            "bigint",
            "Of ZooKeeper's own snapshot: the last transaction before its reading began; later ones may be in it or"
            " not. NULL for snapshots read over the wire.",
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
    version=2,
)

ZNODE_OPERATIONS: Final = (
    "create",
    "delete",
    "set_data",
    "set_acl",
    "check",
    "create_session",
    "close_session",
    "error",  # refused, and logged all the same: it changed nothing
    "other",
)

ZNODE_TRANSACTIONS: Final = TableSpec(
    "bronze",
    "znode_transactions",
    "one row per (transaction log, operation of a transaction); a multi has several, others one",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        col("source_file", "string", "Path below the path given; ARCHIVE!MEMBER inside an archive.", nullable=False),
        col("source_line", "int", "Number of the transaction in its file, from 1.", nullable=False),
        col("byte_offset", "bigint", "First byte in the uncompressed file.", nullable=False),
        col(
            "byte_length",
            "bigint",
            "Bytes of the operation; those of a transaction add up to it, its framing included.",
            nullable=False,
        ),
        col("zxid", "bigint", "Transaction.", nullable=False),
        col("ordinal", "int", "Operation of the transaction, from 0.", nullable=False),
        col("transaction_time", "timestamp", "ZooKeeper leader's clock, UTC.", nullable=False),
        col("session_id", "bigint", "Session that asked; 0 for ZooKeeper itself."),
        col("cxid", "int", "The client's own number of its request."),
        col("operation", "string", "What it did.", nullable=False, vocabulary=ZNODE_OPERATIONS),
        col("path", "string", "Path below Kafka's chroot; NULL for what names no znode, or one outside of the chroot."),
        col("full_path", "string", "Path as written; NULL for what names no znode."),
        col("data", "string", "Data written, as text; NULL where there is none."),
        col("version", "int", "Data version after the write: 0 of a create; of a check the version asked for."),
        col("is_ephemeral", "boolean", "Whether a created znode goes with its session; NULL for other operations."),
        col("ttl_ms", "bigint", "Time to live of a created znode; NULL without one."),
        col("session_timeout_ms", "int", "Timeout of a created session; NULL for other operations."),
        col("error_code", "int", "ZooKeeper's code of a refusal, negative; NULL where nothing was refused."),
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

OFFSET_PROBES: Final = TableSpec(
    "bronze",
    "offset_probes",
    "one row per (file of probes, answer of a broker to ListOffsets for one partition)",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        col("broker_id", "int", "Broker that answered.", nullable=False),
        _KIND,
        *_PLACE,
        *_ASKED,
        col(
            "replica_id",
            "int",
            "As whom the client asked: -1 a consumer, whom only a leader answers, with its high watermark; -2 a"
            " debugging client, whom any replica answers with its log end offset.",
            nullable=False,
        ),
        col(
            "target_timestamp",
            "bigint",
            "Timestamp of the request: -1 latest, -2 earliest (the log start offset).",
            nullable=False,
        ),
        col(
            "isolation_level",
            "int",
            "Isolation level of the request: 0 read_uncommitted; 1 read_committed, whom the last stable offset is told"
            " in place of the high watermark.",
            nullable=False,
        ),
        col("topic", "string", "Topic.", nullable=False),
        col("partition_id", "int", "Partition.", nullable=False),
        col("offset", "bigint", "The offset; NULL where the broker answered with an error."),
        col("error_code", "int", "Kafka's code of the error; 0 for none.", nullable=False),
        _INGESTED_AT,
    ),
)

#: What one line of :data:`CLUSTER_DESCRIPTIONS` describes.
DESCRIPTION_TYPES: Final = ("cluster", "topic", "topic_gone", "log_dir", "log_dir_topic", "reassignments")

CLUSTER_DESCRIPTIONS: Final = TableSpec(
    "bronze",
    "cluster_descriptions",
    "one row per (file of descriptions, line of a broker's answer: a cluster, a topic, a log directory, a topic's"
    " replicas in a log directory, or all reassignments under way)",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        col("broker_id", "int", "Broker that answered: what follows is its own view.", nullable=False),
        _KIND,
        *_PLACE,
        *_ASKED,
        col(
            "description_type",
            "string",
            "What is described. cluster, topic: Metadata. topic_gone: the broker's Metadata names the topic no longer."
            " log_dir, log_dir_topic: DescribeLogDirs. reassignments: ListPartitionReassignments; every one under way,"
            " an empty array where none is.",
            nullable=False,
            vocabulary=DESCRIPTION_TYPES,
        ),
        col("metadata_cluster_id", "string", "Of cluster: the id that the broker states; NULL up to 0.10.0."),
        col(
            "controller_id",
            "int",
            "Of cluster: the controller, to the broker's knowledge; -1 for none, NULL in 0.8 and 0.9.",
        ),
        col(
            "brokers",
            "array<struct<broker_id:int,host:string,port:int,rack:string>>",
            "Of cluster: the live brokers, to the broker's knowledge, with the addresses of the listener asked.",
        ),
        col("topics_count", "int", "Of cluster and log_dir: how many topics the answer names."),
        col("topic", "string", "Of topic, topic_gone and log_dir_topic: the topic."),
        col("topic_id", "string", "Of topic: its id, as Kafka writes it; NULL where it has none, or up to 2.7."),
        col("is_internal", "boolean", "Of topic: whether it is one of Kafka's own; NULL in 0.8 and 0.9."),
        col("error_code", "int", "Of topic and log_dir: Kafka's code of the error; 0 for none."),
        col(
            "partitions",
            "array<struct<partition_id:int,error_code:int,leader:int,leader_epoch:int,replicas:array<int>"
            ",isr:array<int>,offline_replicas:array<int>>>",
            "Of topic: its partitions as the broker's metadata cache holds them. leader is -1 for none; leader_epoch is"
            " NULL before Metadata 7 (Kafka 2.1), offline_replicas before Metadata 5 (1.0).",
        ),
        col("log_dir", "string", "Of log_dir and log_dir_topic: absolute path on the broker."),
        col("total_bytes", "bigint", "Of log_dir: size of its volume; -1 not known, NULL before Kafka 3.3."),
        col("usable_bytes", "bigint", "Of log_dir: usable bytes of its volume; -1 not known, NULL before Kafka 3.3."),
        col(
            "replicas",
            "array<struct<partition_id:int,size_bytes:bigint,offset_lag:bigint,is_future:boolean>>",
            "Of log_dir_topic: the topic's replicas there. offset_lag is how far the log end offset is behind the high"
            " watermark, of a future replica behind the current one; -1 not known. is_future: it is being moved there.",
        ),
        col(
            "reassignments",
            "array<struct<topic:string,partition_id:int,replicas:array<int>,adding_replicas:array<int>"
            ",removing_replicas:array<int>>>",
            "Of reassignments: the partitions being reassigned; replicas are all, those added and removed included.",
        ),
        _INGESTED_AT,
    ),
)

CAPTURE_GAPS: Final = TableSpec(
    "bronze",
    "capture_gaps",
    "one row per (file of a capture, line that says that something could not be recorded); an outage has a line when it"
    " begins and one when it ends",
    ("cluster_id", "record_id"),
    (
        _RECORD,
        _CLUSTER,
        _FILE,
        col("broker_id", "int", "Broker whose answers or files were missed; NULL where it is none's."),
        _KIND,
        *_PLACE,
        col("missed_from", "timestamp", "Since when, by the capture's clock, UTC.", nullable=False),
        col(
            "missed_to",
            "timestamp",
            "Until when, by the capture's clock, UTC; missed_from where something is not recorded at all. NULL in the"
            " line of an outage's beginning.",
        ),
        col("missed_source", "string", "What was missed, as probes, znodes, log dirs, logs.", nullable=False),
        col("missed_of", "string", "Of whom: a broker, a path, ZooKeeper; empty for all.", nullable=False),
        col("reason", "string", "Why, in the capture's words.", nullable=False),
        _INGESTED_AT,
    ),
)

LOG_SEGMENTS: Final = TableSpec(
    "bronze",
    "log_segments",
    "one row per file of a partition's directory: read whole, or a line of a listing that names it",
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
        col("topic", "string", "Topic, from the name of the partition's directory.", nullable=False),
        col("partition_id", "int", "Partition, from the name of its directory.", nullable=False),
        col(
            "directory",
            "string",
            "Name of the partition's directory: TOPIC-PARTITION, with a suffix once renamed for deletion or a move.",
            nullable=False,
        ),
        col("file_name", "string", "Name in that directory, suffixes such as .deleted included.", nullable=False),
        col(
            "file_kind",
            "string",
            "What the file is, whether read or listed.",
            nullable=False,
            vocabulary=(*READ_PARTITION_FILE_KINDS, "leader_epoch_checkpoint"),
        ),
        col("base_offset", "bigint", "Base offset of the segment, from the name; NULL for files of no segment."),
        col("size_bytes", "bigint", "Size of the file; NULL where a listing does not say."),
        col("modified_at", "timestamp", "Last change as a listing shows it, UTC; NULL for copies, which lose it."),
        col(
            "is_read",
            "boolean",
            "Whether the file's content was read; a listing has names and sizes only.",
            nullable=False,
        ),
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
        col("topic_id", "string", "Of partition.metadata: the topic id."),
        col("problem", "string", "What is wrong with the file, in one sentence; NULL where nothing is."),
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
    version=3,
)

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
    REJECTED_RECORDS,
)
