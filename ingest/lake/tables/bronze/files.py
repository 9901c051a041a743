"""What was taken, and what could not be read."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze.columns import BROKER, CLUSTER, INGESTED_AT, KIND, record_table
from ingest.lake.tables.bronze.kinds import COMPRESSIONS
from ingest.lake.tables.spec import TableSpec, col, required

#: The status of a file that is recognised as nothing, and whose name no Kafka file has.
NOT_OF_KAFKA: Final = "not_of_kafka"

INGESTED_FILES: Final = TableSpec(
    "bronze",
    "ingested_files",
    "one row per (cluster, file taken), the file known by its content and not by its name",
    ("cluster_id", "file_id"),
    (
        CLUSTER,
        required("file_id", "string", "Hash of cluster, broker, kind and the first line of the first record."),
        required(
            "cluster_source",
            "string",
            "What says that the file is the cluster's: --cluster (given), the file (stated), the files of its folder,"
            " which state one cluster only (folder) or one for that time (time), the lake, which has one only (lake);"
            " nothing, or ambiguous where several are possible: such a file is a cluster of its own, or 'unknown' where"
            " it is not read.",
            vocabulary=("given", "stated", "folder", "time", "lake", "nothing", "ambiguous"),
        ),
        BROKER,
        KIND,
        required(
            "source_file", "string", "Path below the path given when last seen; ARCHIVE!MEMBER inside an archive."
        ),
        required(
            "compression",
            "string",
            "What the file, or the archive it is a member of, is packed in.",
            vocabulary=COMPRESSIONS,
        ),
        col("layout", "string", "Log layout the records are framed by; NULL for what is no log."),
        col("time_zone", "string", "Zone that the log's local times were read in; NULL where times carry their own."),
        col("kafka_version", "string", "Version the file itself states, or --kafka-version; NULL where neither does."),
        required(
            "status",
            "string",
            "ingested, not_read_yet (known, no reader yet), empty, rejected (with a reason), or not_of_kafka"
            " (recognised as nothing, with a name that no Kafka file has: .java, .html).",
            vocabulary=("ingested", "not_read_yet", "empty", "rejected", NOT_OF_KAFKA),
        ),
        col("reason", "string", "Why the file is not read; NULL where it is."),
        required("size_bytes", "bigint", "Uncompressed size when last seen."),
        required("ingested_bytes", "bigint", "Uncompressed bytes that records account for."),
        col("content_hash", "string", "SHA-256 of the first ingested_bytes bytes; of a file not read, of all of it."),
        required("records_read_count", "bigint", "Records framed: kept + rejected."),
        required("records_kept_count", "bigint", "Records kept in a bronze table."),
        required("records_rejected_count", "bigint", "Records in bronze.rejected_records."),
        col("first_event_time", "timestamp", "Earliest instant in the file, UTC."),
        col("last_event_time", "timestamp", "Latest instant in the file, UTC."),
        col("level_floor", "string", "Lowest log level seen (TRACE < DEBUG < INFO < WARN < ERROR < FATAL)."),
        INGESTED_AT,
    ),
    constraints={"kept_and_rejected": "records_read_count = records_kept_count + records_rejected_count"},
    version=5,
)

REJECTED_RECORDS: Final = record_table(
    "rejected_records",
    "one row per record, or file, that could not be read",
    required("reason", "string", "What is wrong with it, in one sentence."),
    required(
        "raw", "string", "The record's text, at most 64 KiB of it; damaged bytes as U+FFFD, secrets as '[hidden]'."
    ),
    version=3,
)
