"""Gold, from above: what happened in a cluster, its cause and its effects together."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.shared import CLUSTER, HARMS, INTERVAL, INTERVAL_ORDER, PROVENANCE, SEQUENCE
from ingest.lake.tables.spec import TableSpec, col, required

INCIDENT_CAUSES: Final = (
    "broker_died",  # its process ended without an order to
    "broker_halted",  # it ended itself over an error
    "session_expired",  # it lived on, paused or cut off
    "broker_stopped",  # it was shut down in order
    "broker_lost",  # its registration ended; nothing says how
    "replicas_behind",  # replicas left the ISR, or partitions their leaders, though their brokers were there
    "rule_broken",  # a finding that no broker's absence explains
)
CONFIDENCES: Final = (
    "observed",  # logs tell how the broker went
    "inferred",  # the end of its registration is all that is known
    "unknown",  # nothing tells of a cause
)
#: In the order in which events of one instant stand: causes, then what was decided, then what it did.
INCIDENT_EVENT_KINDS: Final = (
    *INCIDENT_CAUSES[:5],
    "no_live_leader",
    "offline",
    "controller_elected",
    "election",
    "unclean_election",
    "two_leaders",
    "records_lost",
    "records_perhaps_lost",
    "uncommitted_records_cut",
    "under_min_isr",
    "under_replicated",
    "finding",
    "broker_returned",
)
_INCIDENT: Final = required("incident_id", "string", "Hash of the cluster and of its first cause.")

INCIDENTS: Final = TableSpec(
    "gold",
    "incidents",
    "one row per incident: absences of brokers that partitions connect, with all that followed from them; or what"
    " happened within a minute of one another and no absence explains",
    ("cluster_id", "incident_id"),
    (
        CLUSTER,
        _INCIDENT,
        required("cause", "string", "What began it.", vocabulary=INCIDENT_CAUSES),
        required("confidence", "string", "How the cause is known.", vocabulary=CONFIDENCES),
        required("brokers", "array<int>", "Brokers that were away, or whose replicas were."),
        *INTERVAL,
        col(
            "valid_from_lower",
            "timestamp",
            "Earliest instant it can have begun: the last sign of life of the broker; NULL where valid_from is exact.",
        ),
        required("harm", "string", "The worst that is proven, or possible.", vocabulary=HARMS),
        required("partitions_count", "int", "Partitions that anything happened to."),
        required("unavailable_partitions_count", "int", "Of these: without a live, or a registered, leader."),
        col(
            "unavailable_ms",
            "bigint",
            "How long at least, the times of all partitions together; NULL where one is still without.",
        ),
        required("under_min_isr_partitions_count", "int", "Partitions under min.insync.replicas."),
        required("elections_count", "int", "Leaders that changed, unclean elections included."),
        required("unclean_elections_count", "int", "Of these: to a replica outside of the ISR."),
        required("lost_count_lower", "bigint", "Committed records lost, at least."),
        col("lost_count_upper", "bigint", "Committed records lost, at most; NULL: not bounded."),
        required("findings_count", "int", "Errors and warnings of gold.divergences among it."),
        required("summary", "string", "All of it in a few sentences."),
        *PROVENANCE,
    ),
    constraints=INTERVAL_ORDER | {"begin_order": "valid_from_lower IS NULL OR valid_from_lower <= valid_from"},
)

INCIDENT_EVENTS: Final = TableSpec(
    "gold",
    "incident_events",
    "one row per (incident, event): what happened to a broker; and for each kind of effect all of that kind that one"
    " cause had",
    ("cluster_id", "incident_id", "sequence"),
    (
        CLUSTER,
        _INCIDENT,
        SEQUENCE,
        required("began_at", "timestamp", "When it happened, or the first of them began, UTC."),
        col("ended_at", "timestamp", "When the last of them ended, UTC; NULL: not over."),
        required("event_kind", "string", "What happened.", vocabulary=INCIDENT_EVENT_KINDS),
        col("broker_id", "int", "Broker of the cause; NULL where none is known."),
        required("rows_count", "int", "How many intervals, elections or findings it stands for."),
        required("partitions_count", "int", "Of how many partitions; 0 where it is of none."),
        required("partitions", "array<string>", "The first of them, at most ten."),
        required("description", "string", "All of it in a sentence."),
        required(
            "finding_types",
            "array<string>",
            "Rule and type of findings (R08 unclean_election); empty for other events.",
        ),
        *PROVENANCE,
    ),
    version=2,
    constraints={"event_order": "ended_at IS NULL OR began_at <= ended_at"},
)
