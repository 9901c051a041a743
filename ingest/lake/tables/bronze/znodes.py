"""What ZooKeeper holds, and what was written to it."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze.columns import record_table
from ingest.lake.tables.spec import col, required

ZNODE_SNAPSHOTS: Final = record_table(
    "znode_snapshots",
    "one row per (snapshot file, znode) as one read of the tree saw it",
    required(
        "captured_at",
        "timestamp",
        "Start of the reading round, UTC: the znode was read at or after it. Of ZooKeeper's own snapshot: the last"
        " write before its reading began.",
    ),
    col(
        "snapshot_zxid",
        "bigint",
        "Of ZooKeeper's own snapshot: the last transaction before its reading began; later ones may be in it or"
        " not. NULL for snapshots read over the wire.",
    ),
    required("path", "string", "Path below Kafka's chroot."),
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
    of=(),
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
_OPERATION_PLACE = (
    required("source_file", "string", "Path below the path given; ARCHIVE!MEMBER inside an archive."),
    required("source_line", "int", "Number of the transaction in its file, from 1."),
    required("byte_offset", "bigint", "First byte in the uncompressed file."),
    required(
        "byte_length", "bigint", "Bytes of the operation; those of a transaction add up to it, its framing included."
    ),
)

ZNODE_TRANSACTIONS: Final = record_table(
    "znode_transactions",
    "one row per (transaction log, operation of a transaction); a multi has several, others one",
    required("zxid", "bigint", "Transaction."),
    required("ordinal", "int", "Operation of the transaction, from 0."),
    required("transaction_time", "timestamp", "ZooKeeper leader's clock, UTC."),
    col("session_id", "bigint", "Session that asked; 0 for ZooKeeper itself."),
    col("cxid", "int", "The client's own number of its request."),
    required("operation", "string", "What it did.", vocabulary=ZNODE_OPERATIONS),
    col("path", "string", "Path below Kafka's chroot; NULL for what names no znode, or one outside of the chroot."),
    col("full_path", "string", "Path as written; NULL for what names no znode."),
    col("data", "string", "Data written, as text; NULL where there is none."),
    col("version", "int", "Data version after the write: 0 of a create; of a check the version asked for."),
    col("is_ephemeral", "boolean", "Whether a created znode goes with its session; NULL for other operations."),
    col("ttl_ms", "bigint", "Time to live of a created znode; NULL without one."),
    col("session_timeout_ms", "int", "Timeout of a created session; NULL for other operations."),
    col("error_code", "int", "ZooKeeper's code of a refusal, negative; NULL where nothing was refused."),
    of=(),
    place=_OPERATION_PLACE,
)
