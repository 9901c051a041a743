"""Gold: what the timelines mean: findings, and intervals in which something was not as it should be."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.controllers import CONTROLLER_EPISODES, CONTROLLER_PROCEDURES
from ingest.lake.tables.incidents import INCIDENT_EVENTS, INCIDENTS
from ingest.lake.tables.shared import (
    CLUSTER,
    HARMS,
    INTERVAL,
    INTERVAL_ORDER,
    PARTITION,
    PARTITION_KEY,
    PROVENANCE,
    SEQUENCE,
)
from ingest.lake.tables.spec import TableSpec, col, required

SEVERITIES: Final = ("error", "warning", "info")
AVAILABILITY_KINDS: Final = (
    "offline",  # no leader was decided, or the one that was had lost its registration
    "no_live_leader",  # the leader had died or stopped, registered or not, and no other had taken over
    "under_replicated",
    "at_min_isr",
    "under_min_isr",
    "non_preferred_leader",
    "reassigning",
    "deleting",
)

DIVERGENCES: Final = TableSpec(
    "gold",
    "divergences",
    "one row per finding: a point where what happened is not what the rules say",
    ("cluster_id", "divergence_id"),
    (
        required("divergence_id", "string", "Hash of rule, subject, what was observed, and evidence."),
        CLUSTER,
        col("topic", "string", "Topic; NULL where the finding concerns none."),
        col("topic_incarnation", "string", "Its incarnation."),
        col("partition_id", "int", "Partition; NULL where the finding concerns none."),
        col("broker_id", "int", "Broker the finding concerns; NULL where it concerns none."),
        col("replica_id", "int", "Replica the finding concerns; NULL where it concerns none."),
        required("rule_id", "string", "Rule, R01 and so on."),
        required("divergence_type", "string", "Kind of divergence."),
        required(
            "severity", "string", "error: no behaviour the rules allow explains the evidence.", vocabulary=SEVERITIES
        ),
        col(
            "harm",
            "string",
            "What the evidence proves of harm, whether a rule was broken or not; possible: there may have been some;"
            " none: there was none. NULL where the finding says nothing of it.",
            vocabulary=HARMS,
        ),
        required("detected_at", "timestamp", "Instant of the cluster's time that the finding is about."),
        required("expected", "string", "What the rule expects, with values."),
        required("observed", "string", "What the evidence shows, with values."),
        required("explanation", "string", "A sentence that argues the case with the actual values."),
        required(
            "alternatives",
            "array<string>",
            "Explanations without a broken rule that the evidence does not rule out, those that a second look tries;"
            " with any of them the finding is no error.",
        ),
        col("known_issue", "string", "Kafka issue or KIP that explains it; NULL where none is known."),
        required("rule_source", "string", "Where the rule comes from."),
        *PROVENANCE,
    ),
)

#: What ``gold.finding_history`` tells of a finding.
_HISTORY_COLUMNS: Final = (
    *("divergence_id", "cluster_id", "topic", "topic_incarnation", "partition_id", "broker_id", "replica_id"),
    *("rule_id", "divergence_type", "severity", "detected_at", "observed", "explanation"),
)

AVAILABILITY_INTERVALS: Final = TableSpec(
    "gold",
    "availability_intervals",
    "one row per (partition, kind, interval) in which a partition was not as it should be",
    (*PARTITION_KEY, "kind", "sequence"),
    (
        *PARTITION,
        required("kind", "string", "What was wrong.", vocabulary=AVAILABILITY_KINDS),
        SEQUENCE,
        *INTERVAL,
        col(
            "valid_from_lower",
            "timestamp",
            "Earliest instant it can have begun, where valid_from is only the latest; NULL where that is exact. Of"
            " no_live_leader it is the leader's last sign of life.",
        ),
        col("opened_by", "string", "What began it, in words."),
        col("closed_by", "string", "What ended it, in words; NULL while open."),
        required(
            "brokers",
            "array<int>",
            "Brokers that were missing when it began: the leader that was gone, replicas that were not in the ISR, the"
            " preferred leader; of a partition without a leader the last one and the last ISR.",
        ),
        *PROVENANCE,
    ),
    constraints=INTERVAL_ORDER | {"begin_order": "valid_from_lower IS NULL OR valid_from_lower <= valid_from"},
    version=3,
)

ELECTION_KINDS: Final = (
    "new_partition",
    "offline_partition",
    "reassigned_partition",
    "preferred_replica",
    "controlled_shutdown",
    "unknown",
)

LEADER_ELECTIONS: Final = TableSpec(
    "gold",
    "leader_elections",
    "one row per (partition, election): a change of its leader, and the choice of its first",
    (*PARTITION_KEY, "leader_epoch", "sequence"),
    (
        *PARTITION,
        SEQUENCE,
        required("elected_at", "timestamp", "When the new state was written, UTC."),
        required("election_kind", "string", "Which election it was.", vocabulary=ELECTION_KINDS),
        col("previous_leader", "int", "Leader before; -1 none; NULL for a new partition."),
        col("previous_isr", "array<int>", "ISR before; where it was empty, the last that was not."),
        col("controller_id", "int", "Controller that held it; NULL where no line of its own tells."),
        col("controller_epoch", "int", "Its controller epoch."),
        col("assigned_replicas", "array<int>", "Replicas assigned, in their order; NULL where not known."),
        col("live_brokers", "array<int>", "Of the replicas concerned: those that the controller saw live."),
        col("shutting_down_brokers", "array<int>", "Those that it saw shutting down: live, and not to be elected."),
        col("uncertain_brokers", "array<int>", "Those of which the evidence leaves open what they were to it."),
        required(
            "allowed_leaders",
            "array<int>",
            "Every leader that the version's election gives, with the ISR written, for an input that the"
            " evidence allows, unclean ones included; empty where the inputs are not known.",
        ),
        required("is_exact", "boolean", "Whether all inputs are known as they were written."),
        required("observed_leader", "int", "The leader elected."),
        col("leader_epoch", "int", "Leader epoch it leads at."),
        col("isr", "array<int>", "ISR after."),
        col("is_unclean", "boolean", "Whether it was outside the ISR; NULL where the ISR just before is not known."),
        *PROVENANCE,
    ),
)

OVERLAP_ENDS: Final = ("became_follower", "elected_again", "replica_stopped", "process_ended")

LEADERSHIP_OVERLAPS: Final = TableSpec(
    "gold",
    "leadership_overlaps",
    "one row per (partition, leadership) that outlasted the begin of a later leader's: two brokers acted as leader",
    (*PARTITION_KEY, "deposed_leader", "deposed_leader_epoch"),
    (
        *PARTITION,
        required("deposed_leader", "int", "Broker that still acted as leader."),
        required("deposed_leader_epoch", "int", "Leader epoch it acted at."),
        required("leader", "int", "Broker that led at the later leader epoch."),
        required("leader_epoch", "int", "The later leader epoch."),
        required(
            "valid_from", "timestamp", "Instant the later leader became leader, UTC, by its own clock, corrected."
        ),
        col(
            "valid_to",
            "timestamp",
            "Instant the deposed one stopped, UTC, by its own clock, corrected; after process_ended the latest"
            " possible; NULL where nothing says.",
        ),
        col("ended_by", "string", "What stopped it; NULL where nothing says.", vocabulary=OVERLAP_ENDS),
        *PROVENANCE,
    ),
    constraints=INTERVAL_ORDER,
)

ISR_FLAPPING: Final = TableSpec(
    "gold",
    "isr_flapping",
    "one row per (replica, window): its departures from the ISR and returns to it that are no more than ten minutes"
    " apart; without those that a reassignment took out",
    (*PARTITION_KEY, "replica_id", "sequence"),
    (
        *PARTITION,
        required("replica_id", "int", "Replica that left."),
        SEQUENCE,
        required("valid_from", "timestamp", "Its first departure, UTC."),
        col("valid_to", "timestamp", "Its last return, UTC; NULL: it did not come back."),
        required("shrink_count", "int", "Departures."),
        required("expand_count", "int", "Returns."),
        required("shrinks_by_leader_count", "int", "Departures that a leader asked for: the replica lagged."),
        required(
            "shrinks_by_controller_count",
            "int",
            "Departures that a controller decided: the broker was gone, shut down, or another was elected.",
        ),
        required("leaders", "array<int>", "Leaders it departed from."),
        col("longest_absence_ms", "bigint", "Longest time between a departure and the return; NULL without a return."),
        col("period_ms", "bigint", "Median time from one departure to the next; NULL where there is one only."),
        col(
            "lag_count_max",
            "bigint",
            "Offsets that it was behind its leader's log end, the most that a leader's line prints (since 2.2).",
        ),
        col(
            "lag_ms_max",
            "bigint",
            "Milliseconds since it had last caught up, the most that a leader's line tells (since 3.6); as exact as the"
            " time of the line.",
        ),
        *PROVENANCE,
    ),
    constraints=INTERVAL_ORDER,
)

LOSS_CAUSES: Final = (
    "unclean_election",  # the new leader was outside of the ISR
    "clean_election",  # it was in the ISR and lacked committed records all the same
    "leader_returned_with_less",  # the leader kept its place, with a shorter log
)

DATA_LOSS_BOUNDS: Final = TableSpec(
    "gold",
    "data_loss_bounds",
    "one row per (partition, election) that lost committed records, or was unclean and may have",
    (*PARTITION_KEY, "leader_epoch", "sequence"),
    (
        *PARTITION,
        SEQUENCE,
        required("event_at", "timestamp", "When the new leader was decided, UTC."),
        required("cause", "string", "What lost them.", vocabulary=LOSS_CAUSES),
        required("leader", "int", "The leader elected."),
        required("previous_leader", "int", "The leader before it."),
        required("leader_epoch", "int", "Leader epoch that began."),
        required("lost_from_offset", "bigint", "First offset lost: where the new epoch begins."),
        col("lost_to_offset_lower", "bigint", "Last offset lost, at least; NULL: none is proven to be lost."),
        col("lost_to_offset_upper", "bigint", "Last offset lost, at most; NULL: not bounded."),
        required("lost_count_lower", "bigint", "Offsets lost, at least; 0: none is proven to be lost."),
        col("lost_count_upper", "bigint", "Offsets lost, at most; NULL: not bounded."),
        required(
            "diverging_replicas",
            "array<int>",
            "Replicas that then followed the new leader and kept records of their own where its log has others.",
        ),
        required(
            "diverging_offsets", "array<string>", "For each of them FIRST-LAST, the offsets of the records it kept."
        ),
        *PROVENANCE,
    ),
)

TRUNCATION_CAUSES: Final = (
    "leader_epoch",  # where the leader says that the follower's last epoch ends (KIP-101)
    "leader_log_start",  # the leader's log begins above
    "leader_log_end",  # the follower's fetch was out of the leader's range
    "high_watermark",  # the follower's own: up to 0.10, and where no epoch is known
    "start",  # what its broker did not find again when it started
    "unknown",
)
_COUNTED: Final = ", at least; 0: none is proven.", ", at most; NULL: not bounded."

TRUNCATIONS: Final = TableSpec(
    "gold",
    "truncations",
    "one row per (replica, cut of its log) that lines, lineages, checkpoints or probes show, without those that are"
    " proven to have dropped nothing",
    (*PARTITION_KEY, "replica_id", "sequence"),
    (
        *PARTITION,
        required("replica_id", "int", "Replica whose log was cut."),
        SEQUENCE,
        required("truncated_at", "timestamp", "Earliest it can have been: the time of the first line, UTC."),
        col("truncated_at_upper", "timestamp", "Latest it can have been, UTC; NULL: not bounded."),
        required("truncated_to", "bigint", "Where the log ended then; where inferred, at the most."),
        col("log_end_lower", "bigint", "Where it ended before, at least; NULL: not known."),
        col("log_end_upper", "bigint", "Where it ended before, at most; NULL: not bounded."),
        required("cause", "string", "Why.", vocabulary=TRUNCATION_CAUSES),
        col("leader", "int", "Leader that the replica followed then; NULL: none, or not known."),
        col("leader_epoch", "int", "Its leader epoch."),
        required("dropped_count_lower", "bigint", "Offsets cut off" + _COUNTED[0]),
        col("dropped_count_upper", "bigint", "Offsets cut off" + _COUNTED[1]),
        required("committed_count_lower", "bigint", "Of them committed ones" + _COUNTED[0]),
        col("committed_count_upper", "bigint", "Of them committed ones" + _COUNTED[1]),
        required(
            "uncommitted_count_lower",
            "bigint",
            "Of them those above every high watermark of their leader, which producers with acks=1 or acks=0 took for"
            " written" + _COUNTED[0],
        ),
        col("uncommitted_count_upper", "bigint", "The same" + _COUNTED[1]),
        *PROVENANCE,
    ),
)

REQUEST_KINDS: Final = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
REQUEST_OUTCOMES: Final = (
    "applied",  # a transition completed, the metadata cached; a StopReplica answered without error
    "ignored_stale",  # refused, whole or for each partition: an old controller, leader or broker epoch
    "failed",  # an error, and no partition that changed
    "not_received",  # the broker's whole log, with the broker live throughout, shows no receipt
    "unknown",  # the evidence does not say
)
_DELAY: Final = " in milliseconds, cut off; NULL where an end is not known or the clocks put it before the begin."
_TWO_CLOCKS: Final = " Two brokers' clocks: as exact as quality.evidence_coverage bounds them."

PROPAGATION_DELAYS: Final = TableSpec(
    "gold",
    "propagation_delays",
    "one row per request of a controller to one broker that any log tells of, from decision to answer",
    ("cluster_id", "controller_id", "controller_epoch", "to_broker_id", "request_kind", "sequence"),
    (
        CLUSTER,
        required("controller_id", "int", "Controller that sends."),
        col("controller_epoch", "int", "Its epoch; NULL where no line of the request or near it tells."),
        required("to_broker_id", "int", "Broker that receives."),
        required("request_kind", "string", "Which request.", vocabulary=REQUEST_KINDS),
        required(
            "sequence",
            "int",
            "Order of the requests of one kind from this controller epoch to this broker, from 0, as far as known:"
            " correlation ids begin anew when a broker registers anew (0.9 and later).",
        ),
        col("correlation_id", "int", "Correlation id; NULL where the request's lines print none."),
        col(
            "partitions_count",
            "int",
            "Partitions in it; NULL where no line tells. Of a request that was not received, from 0.9 to 2.5, those"
            " sent in one go, by several requests perhaps.",
        ),
        col(
            "decided_at",
            "timestamp",
            "Last decision (transition, ISR change) that the controller logged for the batch of requests; NULL where"
            " the batch only restates.",
        ),
        col("sent_at", "timestamp", "When it was logged, just before it was queued for the send thread."),
        col("received_at", "timestamp", "First line of the broker about it: receipt, or its effect."),
        col("applied_at", "timestamp", "Last transition completed, or partition cached."),
        col("acknowledged_at", "timestamp", "When the controller logged the answer."),
        col("decided_to_sent_ms", "bigint", "From decided_at to sent_at," + _DELAY),
        col("sent_to_received_ms", "bigint", "From sent_at to received_at," + _DELAY + _TWO_CLOCKS),
        col("received_to_applied_ms", "bigint", "From received_at to applied_at," + _DELAY),
        col("decided_to_applied_ms", "bigint", "From decided_at to applied_at," + _DELAY + _TWO_CLOCKS),
        col("sent_to_acknowledged_ms", "bigint", "From sent_at to acknowledged_at," + _DELAY),
        required("outcome", "string", "What became of it.", vocabulary=REQUEST_OUTCOMES),
        *PROVENANCE,
    ),
)

RECORDS_AT_RISK: Final = TableSpec(
    "gold",
    "records_at_risk",
    "one row per (partition, interval): which records would be gone if the leader died at any instant of it",
    (*PARTITION_KEY, "sequence"),
    (
        *PARTITION,
        SEQUENCE,
        *INTERVAL,
        required("leader", "int", "Leader's broker id; -1 none."),
        required("last_leader", "int", "The leader whose log counts: the last one while there is none."),
        required("leader_epoch", "int", "Leader epoch."),
        required("isr", "array<int>", "In-sync replicas in the order written."),
        col("elr", "array<int>", "Eligible leader replicas (KIP-966); NULL where the source does not say."),
        col("uncommitted_lower", "bigint", "Records that the leader has and has not committed, at least."),
        col("uncommitted_upper", "bigint", "The same, at most; NULL: not bounded."),
        required("held_by", "array<int>", "Replicas proven to hold every committed record."),
        col("next_leader", "int", "Who would be elected from the ISR, else the ELR; NULL: nobody, or not known."),
        col("clean_from_offset", "bigint", "No record below this would be gone with a leader from either."),
        col("clean_lost_lower", "bigint", "Records of the leader that such a leader lacks, at least."),
        col("clean_lost_upper", "bigint", "The same, at most: none of them committed; NULL: not bounded, or nobody."),
        col(
            "worst_replica",
            "int",
            "Replica in neither with the shortest log, live or not; NULL: none, or not bounded.",
        ),
        col("unclean_from_offset", "bigint", "No record below this would be gone with that replica as leader."),
        col("unclean_lost_lower", "bigint", "Committed records that it lacks, at least; NULL: none is out of sync."),
        col("unclean_lost_upper", "bigint", "The same, at most; NULL: not bounded."),
        col(
            "truncation",
            "string",
            "To what the other replicas then cut their logs: to_high_watermark keeps records that nobody serves, the"
            " others remove them; NULL where the version leaves it open.",
            vocabulary=("to_high_watermark", "by_leader_epoch", "by_epoch_lineage"),
        ),
        *PROVENANCE,
    ),
    constraints=INTERVAL_ORDER,
    version=2,
)

FINDING_HISTORY: Final = TableSpec(
    "gold",
    "finding_history",
    "one row per finding that any run published, those withdrawn since included",
    ("cluster_id", "divergence_id"),
    (
        *(column for column in DIVERGENCES.columns if column.name in _HISTORY_COLUMNS),
        required("records", "array<string>", "Ids of the records that said so; they may be gone."),
        required(
            "first_seen_run",
            "int",
            "Run that found it first; runs are counted by what they found new in bronze, from 1.",
        ),
        required("last_seen_run", "int", "The last run that found it."),
        col("withdrawn_run", "int", "The run that found it no longer; NULL while it stands."),
        col("withdrawn_because", "string", "Why, in a sentence; NULL while it stands."),
        col("replaced_by", "string", "The finding that the same rule then made of the same subject; NULL: none."),
    ),
    constraints={"withdrawn_with_reason": "(withdrawn_run IS NULL) = (withdrawn_because IS NULL)"},
)

GOLD_TABLES: Final = (
    INCIDENTS,
    INCIDENT_EVENTS,
    DIVERGENCES,
    FINDING_HISTORY,
    AVAILABILITY_INTERVALS,
    LEADER_ELECTIONS,
    LEADERSHIP_OVERLAPS,
    ISR_FLAPPING,
    DATA_LOSS_BOUNDS,
    TRUNCATIONS,
    PROPAGATION_DELAYS,
    RECORDS_AT_RISK,
    CONTROLLER_EPISODES,
    CONTROLLER_PROCEDURES,
)
