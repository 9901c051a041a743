"""Silver: typed events and timelines, each row with its evidence and whether it was observed or inferred."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.spec import Column, TableSpec, col

PARTITION_STATES: Final = ("NewPartition", "OnlinePartition", "OfflinePartition", "NonExistentPartition")
REPLICA_STATES: Final = (
    "NewReplica",
    "OnlineReplica",
    "OfflineReplica",
    "ReplicaDeletionStarted",
    "ReplicaDeletionSuccessful",
    "ReplicaDeletionIneligible",
    "NonExistentReplica",
)

#: Why a value that nobody logged is in a table. NULL in ``inferred_from`` means: observed.
INFERRED_FROM: Final = (
    "znode_snapshot",  # the write happened between two snapshots; its effect was seen
    "unlogged_transition",  # the version, or the log level, does not log this step
    "log_gap",  # a line must have been here and is not
    "conflict_closed",  # contradicting evidence ended the interval
    "retention_boundary",  # the evidence begins after the interval did
    "controller_failover",  # state a new controller initialises without logging it
    "request_sent",  # the decision is known only from a request that restates it
    "isr_proposal",  # a leader's ISR change whose commit is not logged at this level
    "replication_rules",  # sightings of offsets, carried to other instants and replicas by the rules of replication
)

OFFSET_KINDS: Final = ("high_watermark", "log_end_offset", "log_start_offset", "recovery_point", "epoch_start")

CLUSTER: Final = col("cluster_id", "string", "Cluster.", nullable=False)
PARTITION: Final = (
    CLUSTER,
    col("topic", "string", "Topic.", nullable=False),
    col(
        "topic_incarnation",
        "string",
        "Topic id, else creation zxid of the topic's znode, else its first evidence: a topic"
        " deleted and created again is another incarnation.",
        nullable=False,
    ),
    col("partition_id", "int", "Partition.", nullable=False),
)
PARTITION_KEY: Final = ("cluster_id", "topic", "topic_incarnation", "partition_id")
SEQUENCE: Final = col(
    "sequence", "int", "Order of the intervals of one key, from 0: zero-length intervals are real.", nullable=False
)
INTERVAL: Final = (
    col("valid_from", "timestamp", "Instant the interval began, UTC, inclusive.", nullable=False),
    col("valid_to", "timestamp", "Instant it ended, UTC, exclusive; NULL while open."),
)
PROVENANCE: Final[tuple[Column, ...]] = (
    col("evidence", "array<string>", "Ids of the bronze records that say so.", nullable=False),
    col("inferred_from", "string", "Why the row is inferred; NULL where it was observed.", vocabulary=INFERRED_FROM),
    col("model_version", "string", "Version of the rules that made the row.", nullable=False),
)
_INTERVAL_ORDER: Final = {"interval_order": "valid_to IS NULL OR valid_from <= valid_to"}
_LEADER_AND_ISR: Final = (
    col("leader", "int", "Leader's broker id; -1 none, -2 the topic is being deleted."),
    col("leader_epoch", "int", "Leader epoch."),
    col("isr", "array<int>", "In-sync replicas in the order written."),
)
_RECORD_PLACE: Final = (
    col("source_file", "string", "File of the record, below the path given.", nullable=False),
    col("source_line", "int", "Line of the record, from 1.", nullable=False),
    col(
        "byte_offset",
        "bigint",
        "First byte of the record in its file: the order of records of one file.",
        nullable=False,
    ),
    col("file_id", "string", "File of the record, bronze.ingested_files.", nullable=False),
)
_EVENT_HEAD: Final = (
    col("event_id", "string", "The record's id and the ordinal of the event in it.", nullable=False),
    col("record_id", "string", "bronze.log_records.record_id.", nullable=False),
    CLUSTER,
    col("broker_id", "int", "Broker whose log it is."),
    col("event_type", "string", "What happened; 'unrecognised' where no known message shape matched.", nullable=False),
    col("event_time", "timestamp", "The log's own time, UTC.", nullable=False),
    col(
        "corrected_time",
        "timestamp",
        "That time as a right clock in UTC would have printed it; event_time itself where nothing proves otherwise.",
        nullable=False,
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
    return TableSpec("silver", name, grain, ("cluster_id", "event_id"), every, version=2)


def _timeline(name: str, grain: str, key: tuple[str, ...], *columns: Column) -> TableSpec:
    """A table of intervals, of partitions where its key is one of theirs, else of a cluster's parts."""
    of = PARTITION if key[: len(PARTITION_KEY)] == PARTITION_KEY else (CLUSTER,)
    return TableSpec("silver", name, grain, key, (*of, *columns, *PROVENANCE), constraints=_INTERVAL_ORDER)


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
        col("path", "string", "Path below Kafka's chroot.", nullable=False),
        col(
            "change",
            "string",
            "written (created or set), or deleted.",
            nullable=False,
            vocabulary=("written", "deleted"),
        ),
        col("data", "string", "Data after the write; NULL after a deletion."),
        col("czxid", "bigint", "Transaction that created this znode; 0 where nothing tells.", nullable=False),
        col("mzxid", "bigint", "Transaction of the write; of the last write seen, for a deletion.", nullable=False),
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
        col(
            "changed_at",
            "timestamp",
            "Instant of the write; for a deletion the earliest it can have been.",
            nullable=False,
        ),
        col(
            "changed_at_upper", "timestamp", "Latest it can have been; equal to changed_at for a write.", nullable=False
        ),
        *PROVENANCE,
    ),
    version=2,
)

OFFSET_OBSERVATIONS: Final = TableSpec(
    "silver",
    "offset_observations",
    "one row per (sighting of one replica's offset)",
    ("cluster_id", "observation_id"),
    (
        col("observation_id", "string", "Hash of the evidence and the offset's kind.", nullable=False),
        *PARTITION,
        col("replica_id", "int", "Replica; NULL where nothing says whose file it is."),
        col("offset_kind", "string", "Which offset.", nullable=False, vocabulary=OFFSET_KINDS),
        col("offset", "bigint", "The offset.", nullable=False),
        col("leader_epoch", "int", "Leader epoch, where the source names one."),
        col("observed_at", "timestamp", "The sighting is not earlier, UTC; NULL where nothing says."),
        col("observed_at_upper", "timestamp", "The sighting is not later, UTC; NULL where nothing says."),
        col("source", "string", "Kind of source.", nullable=False),
        *PROVENANCE,
    ),
)

CONTROLLER_EPOCH_TIMELINE: Final = _timeline(
    "controller_epoch_timeline",
    "one row per (cluster, controller epoch, controller that claims it)",
    ("cluster_id", "controller_epoch", "controller_id", "sequence"),
    col("controller_id", "int", "Broker that held the epoch; -1 where nothing says.", nullable=False),
    col("controller_epoch", "int", "Controller epoch.", nullable=False),
    SEQUENCE,
    *INTERVAL,
    col(
        "end_reason",
        "string",
        "superseded, resigned, cluster_recreated; NULL while open.",
        vocabulary=("superseded", "resigned", "cluster_recreated"),
    ),
)

BROKER_LIVENESS_TIMELINE: Final = _timeline(
    "broker_liveness_timeline",
    "one row per (broker, registration in /brokers/ids)",
    ("cluster_id", "broker_id", "sequence"),
    col("broker_id", "int", "Broker.", nullable=False),
    SEQUENCE,
    *INTERVAL,
    col(
        "end_reason",
        "string",
        "controlled_shutdown, registration_lost, registered_again; NULL while open or unknown.",
        vocabulary=("controlled_shutdown", "registration_lost", "registered_again"),
    ),
    col("ended_before", "timestamp", "Latest instant the registration can have ended; NULL while open."),
)

PARTITION_STATE_TIMELINE: Final = _timeline(
    "partition_state_timeline",
    "one row per (partition, interval in one state of the controller's partition state machine)",
    (*PARTITION_KEY, "sequence"),
    SEQUENCE,
    col("state", "string", "State, Kafka's spelling.", nullable=False, vocabulary=PARTITION_STATES),
    *INTERVAL,
    col("controller_id", "int", "Controller that holds the state."),
    col("controller_epoch", "int", "Its epoch."),
)

REPLICA_STATE_TIMELINE: Final = _timeline(
    "replica_state_timeline",
    "one row per (replica, interval in one state of the controller's replica state machine)",
    (*PARTITION_KEY, "replica_id", "sequence"),
    col("replica_id", "int", "Replica: its broker's id.", nullable=False),
    SEQUENCE,
    col("state", "string", "State, Kafka's spelling.", nullable=False, vocabulary=REPLICA_STATES),
    *INTERVAL,
    col("controller_id", "int", "Controller that holds the state."),
    col("controller_epoch", "int", "Its epoch."),
)

LEADER_AND_ISR_TIMELINE: Final = _timeline(
    "leader_and_isr_timeline",
    "one row per (partition, interval of one decided leader, leader epoch and ISR)",
    (*PARTITION_KEY, "sequence"),
    SEQUENCE,
    col("leader", "int", "Leader's broker id; -1 none.", nullable=False),
    col("leader_epoch", "int", "Leader epoch.", nullable=False),
    col("isr", "array<int>", "In-sync replicas in the order written.", nullable=False),
    col("controller_epoch", "int", "Controller epoch stored with the state; NULL where unknown."),
    col("partition_epoch", "int", "Version of the partition's state (znode version); NULL where unknown."),
    col("leader_recovery_state", "int", "0 recovered, 1 recovering."),
    *INTERVAL,
    col(
        "written_by",
        "string",
        "controller, or leader where the leader asked for the ISR change; NULL where unknown.",
        vocabulary=("controller", "leader"),
    ),
)

ASSIGNMENT_TIMELINE: Final = _timeline(
    "assignment_timeline",
    "one row per (partition, interval of one replica assignment)",
    (*PARTITION_KEY, "sequence"),
    SEQUENCE,
    col("replicas", "array<int>", "Assigned replicas, the preferred leader first.", nullable=False),
    col("adding_replicas", "array<int>", "Replicas being added; NULL where the version does not say."),
    col("removing_replicas", "array<int>", "Replicas being removed; NULL where the version does not say."),
    *INTERVAL,
)

REPLICA_ROLE_TIMELINE: Final = _timeline(
    "replica_role_timeline",
    "one row per (partition, broker, view, interval): what one broker believed of one partition",
    (*PARTITION_KEY, "broker_id", "view", "sequence"),
    col("broker_id", "int", "Broker that believes.", nullable=False),
    col(
        "view",
        "string",
        "replica_manager: what it acts as; metadata_cache: what it tells clients.",
        nullable=False,
        vocabulary=("replica_manager", "metadata_cache"),
    ),
    SEQUENCE,
    col(
        "role",
        "string",
        "leader, follower, or none (stopped, or not in its cache); in the cache: cached.",
        nullable=False,
        vocabulary=("leader", "follower", "none", "cached"),
    ),
    col("leader", "int", "Whom it believes to lead; NULL where nothing says."),
    col("leader_epoch", "int", "At which leader epoch; NULL where nothing says."),
    col("isr", "array<int>", "ISR as told to it; NULL where nothing says."),
    col("partition_epoch", "int", "Version of the partition's state as told to it; NULL where nothing says."),
    col("told_by_controller_id", "int", "Controller whose request told it."),
    col("told_by_controller_epoch", "int", "Epoch of that request."),
    *INTERVAL,
)

REPLICA_OFFSET_TIMELINE: Final = _timeline(
    "replica_offset_timeline",
    "one row per (replica, interval): what is proven of its offsets at every instant of it; and per (replica, answer of"
    " a broker): a row without length, at an instant between asking and answering, where the bounds meet",
    (*PARTITION_KEY, "replica_id", "sequence"),
    col("replica_id", "int", "Replica: its broker's id.", nullable=False),
    SEQUENCE,
    *INTERVAL,
    col("high_watermark_lower", "bigint", "The high watermark is at least this; NULL: not bounded."),
    col("high_watermark_upper", "bigint", "The high watermark is at most this; NULL: not bounded."),
    col("log_end_offset_lower", "bigint", "The log end offset is at least this; NULL: not bounded."),
    col("log_end_offset_upper", "bigint", "The log end offset is at most this; NULL: not bounded."),
    col("log_start_offset_lower", "bigint", "The log start offset is at least this; NULL: not bounded."),
    col("recovery_point_lower", "bigint", "The recovery point is at least this; NULL: not bounded."),
)

TOPIC_INCARNATIONS: Final = TableSpec(
    "silver",
    "topic_incarnations",
    "one row per (topic, incarnation): the span of instants at which the name meant that topic",
    ("cluster_id", "topic", "topic_incarnation"),
    (
        CLUSTER,
        col("topic", "string", "Topic.", nullable=False),
        col("topic_incarnation", "string", "Topic id, else creation zxid, else its first evidence.", nullable=False),
        col("valid_from", "timestamp", "When it was created, UTC; NULL for the first of its name."),
        col("valid_to", "timestamp", "When the next one was created, UTC; NULL for the last."),
        *PROVENANCE,
    ),
    constraints={"interval_order": "valid_from IS NULL OR valid_to IS NULL OR valid_from <= valid_to"},
)

SILVER_TABLES: Final = (
    TOPIC_INCARNATIONS,
    STATE_CHANGE_EVENTS,
    CONTROLLER_EVENTS,
    REPLICATION_EVENTS,
    ZNODE_CHANGES,
    OFFSET_OBSERVATIONS,
    CONTROLLER_EPOCH_TIMELINE,
    BROKER_LIVENESS_TIMELINE,
    PARTITION_STATE_TIMELINE,
    REPLICA_STATE_TIMELINE,
    LEADER_AND_ISR_TIMELINE,
    ASSIGNMENT_TIMELINE,
    REPLICA_ROLE_TIMELINE,
    REPLICA_OFFSET_TIMELINE,
)
