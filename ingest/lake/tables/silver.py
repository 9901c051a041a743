"""Silver: timelines beside the typed events, each row with its evidence and whether it was observed or inferred."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.events import EVENT_TABLES
from ingest.lake.tables.quorum import QUORUM_TIMELINE
from ingest.lake.tables.shared import (
    CLUSTER,
    INTERVAL,
    INTERVAL_ORDER,
    PARTITION,
    PARTITION_KEY,
    PARTITION_STATES,
    PROVENANCE,
    REPLICA_STATES,
    SEQUENCE,
)
from ingest.lake.tables.spec import Column, TableSpec, col, required


def _timeline(name: str, grain: str, key: tuple[str, ...], *columns: Column, version: int = 1) -> TableSpec:
    """A table of intervals, of partitions where its key is one of theirs, else of a cluster's parts."""
    of = PARTITION if key[: len(PARTITION_KEY)] == PARTITION_KEY else (CLUSTER,)
    return TableSpec(
        "silver", name, grain, key, (*of, *columns, *PROVENANCE), constraints=INTERVAL_ORDER, version=version
    )


CONTROLLER_EPOCH_TIMELINE: Final = _timeline(
    "controller_epoch_timeline",
    "one row per (cluster, controller epoch, controller that claims it)",
    ("cluster_id", "controller_epoch", "controller_id", "sequence"),
    required("controller_id", "int", "Broker that held the epoch; -1 where nothing says."),
    required("controller_epoch", "int", "Controller epoch."),
    SEQUENCE,
    *INTERVAL,
    col(
        "end_reason",
        "string",
        "superseded, resigned, cluster_recreated, migrated (a quorum took over); NULL while open.",
        vocabulary=("superseded", "resigned", "cluster_recreated", "migrated"),
    ),
)

BROKER_LIVENESS_TIMELINE: Final = _timeline(
    "broker_liveness_timeline",
    "one row per (broker, registration in /brokers/ids; in a KRaft cluster, time that it was not fenced)",
    ("cluster_id", "broker_id", "sequence"),
    required("broker_id", "int", "Broker."),
    SEQUENCE,
    *INTERVAL,
    col(
        "end_reason",
        "string",
        "controlled_shutdown, registration_lost (in a KRaft cluster: fenced, or unregistered), registered_again; NULL"
        " while open or unknown.",
        vocabulary=("controlled_shutdown", "registration_lost", "registered_again"),
    ),
    col("ended_before", "timestamp", "Latest instant the registration can have ended; NULL while open."),
    col("ended_after", "timestamp", "Earliest such instant; NULL while open, or where only logs tell of it."),
    col(
        "ended_as",
        "string",
        "How it ended, by the broker's own logs and its request to shut down. clean_stop: it shut down in order;"
        " stop_not_finished: it died while it did; session_expired: it lived on, paused or cut off from ZooKeeper, or"
        " from its quorum; crash: its process died, for the next one found its logs not closed; halted: it ended itself"
        " over an error. NULL while open, or where nothing proves one of them. A broker of a ZooKeeper cluster is never"
        " fenced.",
        vocabulary=("clean_stop", "stop_not_finished", "session_expired", "crash", "halted"),
    ),
    col(
        "shutdown_began_at",
        "timestamp",
        "Of a controlled shutdown: when the broker first asked its controller to move its leaders away. Which ones"
        " moved is in gold.leader_elections (controlled_shutdown).",
    ),
    col("shutdown_took_ms", "bigint", "How long until they had moved, or the broker went without; NULL: no line says."),
    col("shutdown_retry_count", "int", "How often it tried again."),
    version=4,
)

PARTITION_STATE_TIMELINE: Final = _timeline(
    "partition_state_timeline",
    "one row per (partition, interval in one state of the controller's partition state machine)",
    (*PARTITION_KEY, "sequence"),
    SEQUENCE,
    required("state", "string", "State, Kafka's spelling.", vocabulary=PARTITION_STATES),
    *INTERVAL,
    col("controller_id", "int", "Controller that holds the state."),
    col("controller_epoch", "int", "Its epoch."),
)

REPLICA_STATE_TIMELINE: Final = _timeline(
    "replica_state_timeline",
    "one row per (replica, interval in one state of the controller's replica state machine)",
    (*PARTITION_KEY, "replica_id", "sequence"),
    required("replica_id", "int", "Replica: its broker's id."),
    SEQUENCE,
    required("state", "string", "State, Kafka's spelling.", vocabulary=REPLICA_STATES),
    *INTERVAL,
    col("controller_id", "int", "Controller that holds the state."),
    col("controller_epoch", "int", "Its epoch."),
)

LEADER_AND_ISR_TIMELINE: Final = _timeline(
    "leader_and_isr_timeline",
    "one row per (partition, interval of one decided leader, leader epoch and ISR)",
    (*PARTITION_KEY, "sequence"),
    SEQUENCE,
    required("leader", "int", "Leader's broker id; -1 none."),
    required("leader_epoch", "int", "Leader epoch."),
    required("isr", "array<int>", "In-sync replicas in the order written."),
    col("controller_epoch", "int", "Controller epoch stored with the state; NULL where unknown."),
    col("partition_epoch", "int", "Version of the partition's state (znode version); NULL where unknown."),
    col("leader_recovery_state", "int", "0 recovered, 1 recovering."),
    col("elr", "array<int>", "Eligible leader replicas (KIP-966); NULL where the source does not say."),
    col(
        "last_known_elr",
        "array<int>",
        "Who was to lead when ISR and ELR ran empty; NULL where the source does not say.",
    ),
    col(
        "directories",
        "array<string>",
        "Ids of the assigned replicas' log directories, in the order of assignment (KIP-858); NULL where the source"
        " does not say.",
    ),
    *INTERVAL,
    col(
        "written_by",
        "string",
        "controller, or leader where the leader asked for the ISR change; NULL where unknown.",
        vocabulary=("controller", "leader"),
    ),
    version=2,
)

ASSIGNMENT_TIMELINE: Final = _timeline(
    "assignment_timeline",
    "one row per (partition, interval of one replica assignment)",
    (*PARTITION_KEY, "sequence"),
    SEQUENCE,
    required("replicas", "array<int>", "Assigned replicas, the preferred leader first."),
    col("adding_replicas", "array<int>", "Replicas being added; NULL where the version does not say."),
    col("removing_replicas", "array<int>", "Replicas being removed; NULL where the version does not say."),
    *INTERVAL,
)

REPLICA_ROLE_TIMELINE: Final = _timeline(
    "replica_role_timeline",
    "one row per (partition, broker, view, interval): what one broker believed of one partition",
    (*PARTITION_KEY, "broker_id", "view", "sequence"),
    required("broker_id", "int", "Broker that believes."),
    required(
        "view",
        "string",
        "replica_manager: what it acts as; metadata_cache: what it tells clients.",
        vocabulary=("replica_manager", "metadata_cache"),
    ),
    SEQUENCE,
    required(
        "role",
        "string",
        "leader, follower, or none (stopped, or not in its cache); in the cache: cached.",
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

FETCHER_TIMELINE: Final = _timeline(
    "fetcher_timeline",
    "one row per (partition, broker, interval): whom one broker fetched the partition from, or since when its fetcher"
    " had given it up",
    (*PARTITION_KEY, "broker_id", "sequence"),
    required("broker_id", "int", "Broker that fetches."),
    SEQUENCE,
    required(
        "state",
        "string",
        "failed: the fetcher gave the partition up, and nothing fetches it.",
        vocabulary=("fetching", "failed"),
    ),
    col("leader", "int", "Whom it fetches from; NULL where nothing says."),
    col(
        "fetcher_id",
        "int",
        "Which of its threads to that leader: by the hash of topic and partition over num.replica.fetchers, or as a"
        " line of the thread names it; NULL where neither is known.",
    ),
    col(
        "fetch_offset",
        "bigint",
        "Offset it begins from: the replica's log end or high watermark, by version (silver.offset_observations).",
    ),
    *INTERVAL,
    col(
        "ended_by",
        "string",
        "removed from the thread, added again, given up, or a new process; NULL while open.",
        vocabulary=("removed", "added_again", "failed", "process_started"),
    ),
    required("failure_count", "int", "Lines of trouble with it: failed fetches, refused epochs, offsets out of range."),
    col("last_failure", "string", "Event type of the last of them; NULL without any."),
)

REPLICA_OFFSET_TIMELINE: Final = _timeline(
    "replica_offset_timeline",
    "one row per (replica, interval): what is proven of its offsets at every instant of it; and per (replica, answer of"
    " a broker): a row without length, at an instant between asking and answering, where the bounds meet",
    (*PARTITION_KEY, "replica_id", "sequence"),
    required("replica_id", "int", "Replica: its broker's id."),
    SEQUENCE,
    *INTERVAL,
    col("high_watermark_lower", "bigint", "The high watermark is at least this; NULL: not bounded."),
    col("high_watermark_upper", "bigint", "The high watermark is at most this; NULL: not bounded."),
    col("log_end_offset_lower", "bigint", "The log end offset is at least this; NULL: not bounded."),
    col("log_end_offset_upper", "bigint", "The log end offset is at most this; NULL: not bounded."),
    col("log_start_offset_lower", "bigint", "The log start offset is at least this; NULL: not bounded."),
    col("recovery_point_lower", "bigint", "The recovery point is at least this; NULL: not bounded."),
)

LOG_SEGMENT_TIMELINE: Final = _timeline(
    "log_segment_timeline",
    "one row per (replica, segment of its log): from the roll that began it to its deletion; one that begins at the"
    " same offset after that is another",
    (*PARTITION_KEY, "replica_id", "base_offset", "sequence"),
    required("replica_id", "int", "Replica: its broker's id."),
    required("base_offset", "bigint", "The segment's base offset: where the log ended when it began."),
    SEQUENCE,
    *INTERVAL,
    col("closed_at", "timestamp", "When the next one was begun; NULL while it is the active one, or not known."),
    col(
        "next_offset",
        "bigint",
        "The offset after its last record: as a copy has it, else where the next segment begins; NULL: not known.",
    ),
    col("size_bytes", "bigint", "Its size when it was last seen; NULL: not known."),
    col("index_entries_count", "bigint", "Entries of its offset index when that was last read; NULL: never."),
    required("recovered_count", "int", "How often a start walked through it."),
    col(
        "ended_by",
        "string",
        "Why it was deleted; NULL while it is there.",
        vocabulary=(
            "retention_time",
            "retention_size",
            "log_start_offset",
            "truncation",
            "replica_deleted",
            "not_told",
        ),
    ),
    col("problem", "string", "What is, or was, wrong with it or its indexes; NULL where nothing is."),
)

TOPIC_INCARNATIONS: Final = TableSpec(
    "silver",
    "topic_incarnations",
    "one row per (topic, incarnation): the span of instants at which the name meant that topic",
    ("cluster_id", "topic", "topic_incarnation"),
    (
        CLUSTER,
        required("topic", "string", "Topic."),
        required("topic_incarnation", "string", "Topic id, else creation zxid, else its first evidence."),
        col(
            "valid_from",
            "timestamp",
            "When it was created, UTC; NULL for the first of its name, unless a metadata log has its record.",
        ),
        col("valid_to", "timestamp", "When the next one was created, UTC; NULL for the last."),
        *PROVENANCE,
    ),
    constraints={"interval_order": "valid_from IS NULL OR valid_to IS NULL OR valid_from <= valid_to"},
)

SILVER_TABLES: Final = (
    TOPIC_INCARNATIONS,
    *EVENT_TABLES,
    CONTROLLER_EPOCH_TIMELINE,
    QUORUM_TIMELINE,
    BROKER_LIVENESS_TIMELINE,
    PARTITION_STATE_TIMELINE,
    REPLICA_STATE_TIMELINE,
    LEADER_AND_ISR_TIMELINE,
    ASSIGNMENT_TIMELINE,
    REPLICA_ROLE_TIMELINE,
    FETCHER_TIMELINE,
    REPLICA_OFFSET_TIMELINE,
    LOG_SEGMENT_TIMELINE,
)
