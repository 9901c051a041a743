"""Silver's typed events: records of logs, writes to znodes, sightings of offsets."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.shared import CLUSTER, OFFSET_KINDS, PARTITION, PROVENANCE
from ingest.lake.tables.spec import Column, TableSpec, col, required

_LEADER_AND_ISR: Final = (
    col("leader", "int", "Leader's broker id; -1 none, -2 the topic is being deleted."),
    col("leader_epoch", "int", "Leader epoch."),
    col("isr", "array<int>", "In-sync replicas in the order written."),
)
_RECORD_PLACE: Final = (
    required("source_file", "string", "File of the record, below the path given."),
    required("source_line", "int", "Line of the record, from 1."),
    required("byte_offset", "bigint", "First byte of the record in its file: the order of records of one file."),
    required("file_id", "string", "File of the record, bronze.ingested_files."),
)
_EVENT_HEAD: Final = (
    required("event_id", "string", "The record's id and the ordinal of the event in it."),
    required("record_id", "string", "bronze.log_records.record_id."),
    CLUSTER,
    col("broker_id", "int", "Broker whose log it is."),
    required("event_type", "string", "What happened; 'unrecognised' where no known message shape matched."),
    required("event_time", "timestamp", "The log's own time, UTC."),
    required(
        "corrected_time",
        "timestamp",
        "That time as a right clock in UTC would have printed it; event_time itself where nothing proves otherwise.",
    ),
    col("log_level", "string", "Level."),
    col("shape_id", "string", "Message shape."),
)
_EVENT_PARTITION: Final = (
    col("topic", "string", "Topic; NULL where the record names none."),
    col("topic_incarnation", "string", "Incarnation of the topic at that time; NULL without topic."),
    col("partition_id", "int", "Partition; NULL where the record names none."),
)


def _events(name: str, grain: str, *columns: Column) -> TableSpec:
    """A table of typed records: what every event has, and the columns of its log."""
    of_record = (
        col("fields", "map<string,string>", "All fields of the message."),
        col("cause", "string", "First line of the stack trace; NULL without one."),
        col("cause_type", "string", "What that line says, as an event type; NULL where it is not known."),
    )
    every = (*_EVENT_HEAD, *_EVENT_PARTITION, *columns, *of_record, *_RECORD_PLACE, *PROVENANCE)
    key = ("cluster_id", "event_id")
    return TableSpec("silver", name, grain, key, every, version=2, sorted_by=("event_type", "topic"))


STATE_CHANGE_EVENTS: Final = _events(
    "state_change_events",
    "one row per (state-change record, partition it names); one for a record that names none",
    col("controller_id", "int", "Controller that acts, or that sent the request."),
    col("controller_epoch", "int", "Its epoch, from the line's own prefix or the request: not the partition's."),
    col("state_controller_epoch", "int", "Controller epoch printed inside the partition's state."),
    col("replica_id", "int", "Replica the transition concerns."),
    col("from_state", "string", "State before, Kafka's spelling."),
    col("to_state", "string", "State after, Kafka's spelling."),
    *_LEADER_AND_ISR,
    col("partition_epoch", "int", "Version of the partition's state (znode version)."),
    col("leader_recovery_state", "int", "0 recovered, 1 recovering."),
    col("replicas", "array<int>", "Assigned replicas in the order printed."),
    col("adding_replicas", "array<int>", "Replicas being added by a reassignment."),
    col("removing_replicas", "array<int>", "Replicas being removed by a reassignment."),
    col("is_new", "boolean", "The request's isNew."),
    col("is_delete", "boolean", "StopReplica with deletion."),
    col("correlation_id", "int", "Correlation id of the request."),
    col("to_broker_ids", "array<int>", "Brokers that a request goes to, or that answered."),
)

CONTROLLER_EVENTS: Final = _events(
    "controller_events",
    "one row per (typed record of controller.log, partition or replica it names); one for a record that names none",
    col("controller_id", "int", "Controller that speaks."),
    col("controller_epoch", "int", "Controller epoch the message names."),
    col("broker_ids", "array<int>", "Brokers the message is about."),
)

REPLICATION_EVENTS: Final = _events(
    "replication_events",
    "one row per (typed record of server.log, partition it names); one for a record that names none",
    *_LEADER_AND_ISR,
    col("old_isr", "array<int>", "ISR before the change."),
    col("partition_epoch", "int", "Version of the partition's state (znode version)."),
    col("high_watermark", "bigint", "High watermark the message prints."),
    col("log_end_offset", "bigint", "Log end offset the message prints."),
    col("offset", "bigint", "Any other offset the message prints."),
)

ZNODE_CHANGES: Final = TableSpec(
    "silver",
    "znode_changes",
    "one row per (znode, write known): every one that a transaction log holds, else those that snapshots show",
    ("cluster_id", "path", "czxid", "change", "mzxid"),
    (
        CLUSTER,
        required("path", "string", "Path below Kafka's chroot."),
        required("change", "string", "written (created or set), or deleted.", vocabulary=("written", "deleted")),
        col("data", "string", "Data after the write; NULL after a deletion."),
        required("czxid", "bigint", "Transaction that created this znode; 0 where nothing tells."),
        required("mzxid", "bigint", "Transaction of the write; of the last write seen, for a deletion."),
        col("zxid", "bigint", "Transaction of the change; NULL for a deletion that only snapshots show."),
        col("version", "int", "Data version after the write; before it, for a deletion."),
        col("ephemeral_owner", "bigint", "Owning session; 0 for others."),
        col("created_at", "timestamp", "When this znode was created, UTC; NULL where nothing tells."),
        col("session_id", "bigint", "Session that wrote; NULL where only snapshots show the write."),
        col(
            "written_by_broker_id",
            "int",
            "Broker that registered itself in that session; NULL where it is no broker's, or not known.",
        ),
        col(
            "hidden_writes_count",
            "int",
            "Writes to this znode between this one and the last one known, or its creation, that nothing shows; NULL"
            " for a deletion, and where the creation is not known.",
        ),
        required("changed_at", "timestamp", "Instant of the write; for a deletion the earliest it can have been."),
        required("changed_at_upper", "timestamp", "Latest it can have been; equal to changed_at for a write."),
        col(
            "first_shown_at",
            "timestamp",
            "Begin of the first round, read over the wire, that shows this write, by the clock of who read, UTC; NULL"
            " for a deletion, and where none shows it.",
        ),
        col("last_shown_at", "timestamp", "Begin of the last such round: the znode was still so then."),
        *PROVENANCE,
    ),
    version=3,
)

METADATA_CHANGES: Final = TableSpec(
    "silver",
    "metadata_changes",
    "one row per (subject, record of the metadata log that made its state another); what only a snapshot shows is a row"
    " too",
    ("cluster_id", "subject_kind", "subject", "partition_id", "offset"),
    (
        CLUSTER,
        required(
            "subject_kind",
            "string",
            "Of what the state is.",
            vocabulary=("topic", "partition", "broker", "controller", "feature", "config"),
        ),
        required(
            "subject",
            "string",
            "Topic id, broker or controller id, feature, or what is configured as TYPE:NAME (2 topic, 4 broker).",
        ),
        col("topic", "string", "Topic, of topics, their partitions and settings; else NULL."),
        col("topic_incarnation", "string", "Topic id, of topics and their partitions; else NULL."),
        col("partition_id", "int", "Partition; NULL of other subjects."),
        col("state", "string", "State after the record, as JSON; NULL where the record took the subject away."),
        required("offset", "bigint", "Offset of the record; the last that the snapshot holds."),
        required("leader_epoch", "int", "Epoch of the active controller that appended it."),
        col("record_type", "string", "Type of the record; NULL where only a snapshot shows the state."),
        required(
            "commitment",
            "string",
            "committed: a snapshot, or the copies of a majority of the voters, prove it; tail: nothing does yet.",
            vocabulary=("committed", "tail"),
        ),
        required("changed_at", "timestamp", "When it was appended, by the active controller's clock, UTC."),
        *PROVENANCE,
    ),
)

OFFSET_OBSERVATIONS: Final = TableSpec(
    "silver",
    "offset_observations",
    "one row per (sighting of one replica's offset)",
    ("cluster_id", "observation_id"),
    (
        required("observation_id", "string", "Hash of the evidence and the offset's kind."),
        *PARTITION,
        col("replica_id", "int", "Replica; NULL where nothing says whose file it is."),
        required("offset_kind", "string", "Which offset.", vocabulary=OFFSET_KINDS),
        required("offset", "bigint", "The offset."),
        col("leader_epoch", "int", "Leader epoch, where the source names one."),
        col("observed_at", "timestamp", "The sighting is not earlier, UTC; NULL where nothing says."),
        col("observed_at_upper", "timestamp", "The sighting is not later, UTC; NULL where nothing says."),
        required("source", "string", "Kind of source."),
        col("file_id", "string", "Copied checkpoint that holds it, bronze.ingested_files; NULL where none does."),
        *PROVENANCE,
    ),
    version=2,
)

EVENT_TABLES: Final = (
    STATE_CHANGE_EVENTS,
    CONTROLLER_EVENTS,
    REPLICATION_EVENTS,
    ZNODE_CHANGES,
    METADATA_CHANGES,
    OFFSET_OBSERVATIONS,
)
