"""Gold of the controllers: what each did in its tenure, and each of its procedures."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.shared import CLUSTER, PROVENANCE, SEQUENCE
from ingest.lake.tables.spec import TableSpec, col, required

CONTROLLER_EPISODES: Final = TableSpec(
    "gold",
    "controller_episodes",
    "one row per row of silver.controller_epoch_timeline: what one controller did from its election to its end, all of"
    " its gold.controller_procedures together",
    ("cluster_id", "controller_epoch", "controller_id", "sequence"),
    (
        CLUSTER,
        required("controller_id", "int", "Controller; -1 where nothing says."),
        required("controller_epoch", "int", "Its epoch."),
        SEQUENCE,
        required("elected_at", "timestamp", "When its epoch began, UTC."),
        col("ended_at", "timestamp", "When it ended, UTC; NULL while it lasts."),
        col(
            "without_controller_ms",
            "bigint",
            "How long no controller was registered before: from the end of the registration, or the resignation, of the"
            " one before to elected_at; NULL where that is not known, or for the first.",
        ),
        col("ready_at", "timestamp", "When it logged that it was ready, UTC; NULL where no line tells."),
        col("took_over_ms", "bigint", "From its first line as controller to ready_at; NULL where one is not known."),
        required(
            "steps",
            "array<string>",
            "Steps of its take-over as logged, each with the milliseconds since the first: 'register_handlers +3'.",
        ),
        col("found_brokers", "array<int>", "Live brokers that it found; NULL where no line tells."),
        col("found_partitions_count", "int", "Partitions that it found; NULL where no line tells (DEBUG since 2.3)."),
        col("found_offline_count", "int", "Of these: offline once it had tried to elect leaders."),
        required("elections_count", "int", "Rows of gold.leader_elections of it, new partitions included."),
        required(
            "left_leaderless_count",
            "int",
            "Partitions that went offline (gold.availability_intervals) from its election to the next controller's.",
        ),
        required("requests_count", "int", "Rows of gold.propagation_delays of it: requests to one broker."),
        required("requests_not_applied_count", "int", "Of these: not received, refused or failed."),
        required("brokers_came_count", "int", "Brokers of which it noticed that they came."),
        required("brokers_went_count", "int", "Brokers of which it noticed that they went."),
        required("reassignments_count", "int", "Partitions of which it completed a reassignment."),
        required("deletions_count", "int", "Topics whose deletion it completed."),
        required(
            "trouble",
            "array<string>",
            "What it failed of, left out or waited for: event types of controller.log, with how often.",
        ),
        col("resigned_ms", "bigint", "How long its resignation took; NULL where it logged none."),
        *PROVENANCE,
    ),
)

#: What a controller of ZooKeeper does once it notices or is asked for something; ``brokers_changed``: several at once.
PROCEDURES: Final = (
    "take_over",
    "broker_start",
    "broker_failure",
    "broker_bounce",
    "brokers_changed",
    "topic_creation",
    "partition_addition",
    "topic_deletion",
    "reassignment",
    "preferred_election",
    "unclean_election",
    "controlled_shutdown",
)

CONTROLLER_PROCEDURES: Final = TableSpec(
    "gold",
    "controller_procedures",
    "one row per (controller of ZooKeeper, thing that it noticed or was asked for): what set it off, what it then did,"
    " and how long that took; of a quorum's controllers the records tell",
    ("cluster_id", "controller_id", "controller_epoch", "sequence"),
    (
        CLUSTER,
        required("controller_id", "int", "Controller; -1 where nothing says."),
        col("controller_epoch", "int", "Its epoch; NULL where nothing tells of the tenure that the line is of."),
        required("sequence", "int", "Order of the procedures of one controller and epoch, from 0."),
        required(
            "procedure",
            "string",
            "What it was: a take-over is the start-up of the first controller and the failover of any other.",
            vocabulary=PROCEDURES,
        ),
        required(
            "about",
            "array<string>",
            "Brokers, topics or partitions (TOPIC-PARTITION) that its trigger names; empty for a take-over.",
        ),
        col("told_at", "timestamp", "When its watch or listener fired, UTC: up to 0.10.2, where a line says so."),
        required("began_at", "timestamp", "Its trigger: the line of controller.log; the election of a take-over. UTC."),
        col("until_at", "timestamp", "When the same controller's next procedure began, UTC; NULL for its last."),
        col(
            "completed_at",
            "timestamp",
            "When lines say, of any controller, that all it is about is deleted or reassigned, UTC; NULL where they do"
            " not.",
        ),
        col(
            "last_effect_at",
            "timestamp",
            "The last of its elections, tries, requests and answers, and of completed_at, UTC; NULL where there is"
            " none.",
        ),
        col(
            "last_effect",
            "string",
            "What that was.",
            vocabulary=("election", "failed_election", "request", "answer", "completion"),
        ),
        col("took_ms", "bigint", "From began_at to last_effect_at."),
        required(
            "elections_count",
            "int",
            "Rows of gold.leader_elections that are taken to be of it: those of its controller, and of a kind that it"
            " may set off, until that controller's next procedure that may; of a reassignment those of its partition.",
        ),
        required("unclean_count", "int", "Of these: unclean."),
        col(
            "tried_partitions_count",
            "int",
            "Partitions that it elected a leader of, or tried to by a line of state-change.log that says that it"
            " failed; a try without a line is not among them. NULL where no line of the controller's state-change.log"
            " is known.",
        ),
        col(
            "went_offline_count",
            "int",
            "Partitions that lost their leader (gold.availability_intervals, offline) meanwhile; NULL where another was"
            " the cluster's controller.",
        ),
        col(
            "left_offline_count",
            "int",
            "Partitions without a leader (gold.availability_intervals, offline) at last_effect_at, or when the next"
            " controller was elected before; NULL where it may elect none of such a partition, or another was the"
            " cluster's controller.",
        ),
        col("first_elected_ms", "bigint", "From began_at to its first election; NULL without one."),
        col("median_elected_ms", "bigint", "To the middle one of its elections: each partition waited so long."),
        col("last_elected_ms", "bigint", "To its last one: what they took together."),
        required(
            "transitions_count",
            "int",
            "Transitions of partitions and replicas that its controller logged until until_at. Each is done again by"
            " the model where its inputs are known (R13 to R16): what differs is among finding_ids.",
        ),
        required("requests_count", "int", "Rows of gold.propagation_delays that its controller sent until until_at."),
        required("requests_not_applied_count", "int", "Of these: not received, refused or failed."),
        col("last_acknowledged_at", "timestamp", "The last answer to one of them, UTC."),
        required(
            "judged_count",
            "int",
            "Of the elections: those that the model held again with inputs known as they were written.",
        ),
        required("as_decided_count", "int", "Of these: the model elects the same leader."),
        required(
            "finding_ids",
            "array<string>",
            "gold.divergences of its elections (R07, R09), and of transitions, requests and steps (R13 to R16) between"
            " began_at and until_at.",
        ),
        required(
            "trouble",
            "array<string>",
            "What its controller failed of, left out or waited for until until_at: event types of controller.log, with"
            " how often.",
        ),
        *PROVENANCE,
    ),
    constraints={"procedure_order": "until_at IS NULL OR began_at <= until_at"},
)
