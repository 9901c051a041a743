"""What a KRaft quorum leaves behind: its metadata log, snapshots of it, the state of its election."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze.columns import record_table
from ingest.lake.tables.bronze.log_dirs import COPIED
from ingest.lake.tables.spec import col, required

#: What a metadata record says.
_RECORD = (
    required(
        "record_type",
        "string",
        "Type, by its name in Kafka's schemas (PartitionChangeRecord, ...), those of the quorum itself included"
        " (LeaderChangeMessage, VotersRecord, ...); 'type N' of one that is not known.",
    ),
    col("record_version", "int", "Version of the type."),
    col(
        "fields",
        "string",
        "Its fields as JSON, by Kafka's names, as kafka-dump-log prints them; '[hidden]' for what holds a secret;"
        " NULL where they cannot be read.",
    ),
    col("problem", "string", "Why its fields cannot be read, in one sentence; NULL where they can."),
)

METADATA_RECORDS: Final = record_table(
    "metadata_records",
    "one row per (node's copy of the metadata log, record); up to 1,000 NoOps that follow one another are one row",
    required("offset", "bigint", "Offset of the record; of NoOps that of the first."),
    required("last_offset", "bigint", "Offset of the last record that the row stands for."),
    required("leader_epoch", "int", "Epoch of the active controller that appended it."),
    required("batch_offset", "bigint", "First offset of its batch; a batch is applied as a whole."),
    col("appended_at", "timestamp", "When it was appended, by the clock of the active controller, UTC."),
    *_RECORD,
)

METADATA_SNAPSHOTS: Final = record_table(
    "metadata_snapshots",
    "one row per (copy of a snapshot of the metadata log, record)",
    col(
        "snapshot_end_offset",
        "bigint",
        "The snapshot holds what records before this offset say; NULL of the bootstrap snapshot.",
    ),
    col("snapshot_epoch", "int", "Leader epoch of the last of those records."),
    required("position", "bigint", "Place of the record in the snapshot, from 0."),
    col("appended_at", "timestamp", "When it was written into the snapshot, by the node's clock, UTC."),
    *_RECORD,
)

QUORUM_STATES: Final = record_table(
    "quorum_states",
    "one row per copy of a node's quorum-state file",
    *COPIED,
    col("leader_id", "int", "Leader of the quorum that the node knew; NULL where it knew none."),
    required("leader_epoch", "int", "Highest epoch that the node knew."),
    col("voted_id", "int", "Candidate that it had voted for in that epoch; NULL where none."),
    col("voted_directory_id", "string", "Directory id of that candidate, since 3.9; NULL where the file has none."),
    col("voter_ids", "array<int>", "Voters that the file lists; NULL since version 1 of it, where the log has them."),
    col("data_version", "int", "Version of the file."),
)
