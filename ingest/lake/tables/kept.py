"""Kept: what a run of ``ingest`` or ``reconstruct`` leaves for the next, so that only what is new is looked at.

No question is answered by these tables and nothing is checked in them: without them everything is made anew.
"""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.spec import Column, TableSpec, col, required

STEP: Final = required("step", "string", "Step of the run.")

RUNS: Final = TableSpec(
    "kept",
    "runs",
    "one row per run that ended well and was not over at once",
    ("run_number", "ended_at"),
    (
        required("run_number", "int", "Counts the runs that found bronze changed, from 1."),
        required("program", "string", "Fingerprint of the program that ran."),
        required("evidence", "map<string,bigint>", "Version of each table of bronze that was read."),
        col("evidence_until", "timestamp", "When the newest file in it was ingested; NULL where there is none."),
        required("tables", "map<string,bigint>", "Version of each table that was written, when it ended."),
        required("report", "string", "What it reported, as JSON."),
        required("ended_at", "timestamp", "When it ended: our clock."),
    ),
)

#: What is kept of each key of a fold: columns that the fold gives beside its tables', with their types.
OF_KEY: Final[tuple[Column, ...]] = (
    required("evidence_count", "bigint", "Rows of its evidence."),
    required("evidence_hash", "array<bigint>", "Hashes of all of them, whatever their order."),
    required("asked", "array<string>", "What it asked of the facts it was given beside."),
    required("answers", "string", "Hash of all answers."),
)
#: By some of these the evidence of each fold is grouped.
_KEY: Final = (
    required("cluster_id", "string", "Cluster."),
    col("topic", "string", "Topic; NULL, as the others are, where the step does not group by it."),
    col("topic_incarnation", "string", "Its incarnation."),
    col("partition_id", "int", "Partition."),
    col("broker_id", "int", "Broker."),
    col("replica_id", "int", "Replica."),
)

FOLDED_KEYS: Final = TableSpec(
    "kept",
    "folded_keys",
    "one row per (step, key of its fold): by which it is known whether its evidence or an answer is another",
    ("step", *(column.name for column in _KEY)),
    (STEP, *_KEY, *OF_KEY),
)

JUDGED_ROWS: Final = TableSpec(
    "kept",
    "judged_rows",
    "one row per (step, finding), (step, key, rule, verdict) and (step, key, loss), as the folds gave them",
    (),
    (
        STEP,
        required("table_name", "string", "gold.divergences, or what else the row is."),
        *(col(column.name, column.type, column.comment) for column in DIVERGENCES.columns),
        col("rule", "string", "Of a verdict: the rule."),
        col("verdict", "string", "Kept, broken or not to be judged."),
        col("times", "bigint", "How often."),
        col("event_at", "timestamp", "Of a loss: the election that lost."),
        col("leader", "int", "Its leader."),
    ),
)

TOPIC_HASHES: Final = TableSpec(
    "kept",
    "topic_hashes",
    "one row per (step, topic) of a lake that is not small: by which it is known whether any evidence of it that is not"
    " made of log records is another",
    ("step", "cluster_id", "topic"),
    (
        STEP,
        required("cluster_id", "string", "Cluster."),
        required("topic", "string", "Topic."),
        required("rows_count", "bigint", "Rows that such evidence is made of."),
        required("rows_hash", "array<bigint>", "Hashes of all of them, whatever their order."),
    ),
)

_OF_FILE: Final = (
    required("cluster_id", "string", "Cluster."),
    required("file_id", "string", "File of the record, bronze.ingested_files."),
)

CLOCKS: Final = TableSpec(
    "kept",
    "clocks",
    "one row per (cluster, broker, segment of its clock): by which the times of its records were corrected",
    ("cluster_id", "broker_id", "sequence"),
    (
        required("cluster_id", "string", "Cluster."),
        required("broker_id", "bigint", "Broker."),
        required("sequence", "bigint", "Number of the segment, from 0."),
        col("from_us", "bigint", "Begin in printed time, µs; NULL is open."),
        col("to_us", "bigint", "End in printed time, µs; NULL is open."),
        col("correction_us", "bigint", "To be subtracted from what was printed, µs; NULL where nothing is proven."),
    ),
)

_MARK: Final = "struct<at_us:bigint,evidence_id:string>"
CLOCK_MARKS: Final = TableSpec(
    "kept",
    "clock_marks",
    "of each (log file, side of a possible causal pair, clock) the marks that its records leave, in one row or more",
    (),
    (
        *_OF_FILE,
        required("rule", "string", "Rule of the pair."),
        required("key", "string", "What ties the two sides."),
        required("is_earlier", "boolean", "Whether it is the side that comes first."),
        required("clock", "bigint", "Whose clock it shows."),
        required("marks", "bigint", "How many records left such a mark."),
        required("first", _MARK, "The first of them, by what it prints, µs."),
        required("last", _MARK, "The last of them."),
    ),
)

CLOCK_PAIRS: Final = TableSpec(
    "kept",
    "clock_pairs",
    "one row per (what ties marks, clock that comes later): the pair that they make",
    (),
    (
        required("cluster_id", "string", "Cluster."),
        required("tie", "bigint", "Hash of the rule and of what ties the two sides."),
        required("earlier_clock", "bigint", "Whose clock shows what comes first."),
        required("later_clock", "bigint", "Whose clock shows what comes later."),
        required("earlier_us", "bigint", "What the one prints, µs."),
        required("later_us", "bigint", "What the other prints, µs."),
        required("rule", "string", "Rule of the pair."),
        required("evidence", "array<string>", "Both records."),
    ),
)

RECORD_COUNTS: Final = TableSpec(
    "kept",
    "record_counts",
    "one row per (log file, broker, kind of source, hour)",
    (),
    (
        *_OF_FILE,
        col("broker_id", "int", "Broker."),
        required("source_kind", "string", "Kind of source."),
        required("hour", "bigint", "Begin of the hour that the records print, µs."),
        required("records_count", "bigint", "Records."),
        required("typed_count", "bigint", "Of these, those that a shape knows."),
    ),
)

KEY_RECORDS: Final = TableSpec(
    "kept",
    "key_records",
    "one row per log record that is looked for among all: an election of a controller, the start of a process, an id of"
    " the cluster, directories of logs, a checkpoint file that could not be read",
    ("cluster_id", "record_id"),
    (
        *_OF_FILE,
        required("record_id", "string", "The record."),
        col("broker_id", "int", "Broker."),
        required("source_kind", "string", "Kind of source."),
        required("source_file", "string", "Name of the file."),
        required("event_time", "timestamp", "The record's own time, UTC."),
        col("corrected_time", "timestamp", "Its time by a right clock, UTC."),
        required("event_type", "string", "Event type of its shape."),
        col("shape_id", "string", "Message shape; NULL where none matched."),
        col("fields", "map<string,string>", "Fields of the message; not of a whole configuration."),
        col("cause_type", "string", "What its exception says."),
        col("continuation", "string", "Of one of no known shape: the lines that follow it."),
        col("log_dirs", "string", "Of a configuration: the directories of the broker's logs."),
    ),
)

FILE_JUMPS: Final = TableSpec(
    "kept",
    "file_jumps",
    "one row per log file any of whose times jump back",
    ("cluster_id", "file_id"),
    (
        *_OF_FILE,
        required("jumps_back", "bigint", "How often."),
        required("far_jumps_back", "bigint", "How often far."),
        col(
            "set_back",
            "array<bigint>",
            "Of the first and the last far jump: times jumped to and from, µs.",
        ),
    ),
)

OFFSET_STATEMENTS: Final = TableSpec(
    "kept",
    "offset_statements",
    "one row per observation of an offset, or act of a replica, that a record of a log tells of",
    (),
    (
        *_OF_FILE,
        col("topic", "string", "Topic."),
        col("partition_id", "int", "Partition."),
        col("replica_id", "int", "Replica."),
        col("offset_kind", "string", "Of an observation: of what."),
        col("kind", "string", "Of an act: which."),
        col("offset", "bigint", "Offset."),
        col("leader", "int", "Leader."),
        col("leader_epoch", "int", "Leader epoch."),
        col("cause", "string", "Why it was done."),
        col("previous_epoch", "int", "Leader epoch before."),
        col("at_us", "bigint", "Corrected time of the record, µs."),
        col("source", "string", "Kind of the log."),
        required("record_id", "string", "The record."),
        required("ordinal", "int", "Counts the observations, and the acts, of one record."),
    ),
)

GENERATIONS: Final = TableSpec(
    "kept",
    "generations",
    "one row per (cluster, time it was created): in whose span topics were named",
    ("cluster_id", "begins_us"),
    (
        required("cluster_id", "string", "Cluster."),
        required("begins_us", "bigint", "Begin of its span, µs."),
        required("ends_us", "bigint", "End of its span, µs."),
    ),
)

TOPIC_NAMINGS: Final = TableSpec(
    "kept",
    "topic_namings",
    "one row per (log file, partition that a record names, time the cluster was created)",
    (),
    (
        *_OF_FILE,
        col("topic", "string", "Topic."),
        col("partition_id", "int", "Partition; NULL where a record names none."),
        col("since", "bigint", "When the cluster was created again, µs; NULL for the first time."),
        col("at", "bigint", "Corrected time of the first record that names it, µs."),
        col(
            "first",
            "struct<corrected_time:timestamp,byte_offset:bigint,record_id:string>",
            "The first record that names it.",
        ),
        col(
            "new",
            "array<struct<at:bigint,name:string,is_behind:boolean>>",
            "Records by which it became New, and whether a state-change log tells of it above that line, and earlier.",
        ),
        col("ids", "array<struct<id:string,at:bigint,record_id:string>>", "Records that print the topic's id."),
    ),
    version=2,
)

CONTROLLER_MINUTES: Final = TableSpec(
    "kept",
    "controller_minutes",
    "one row per (file of a state-change log, controller, epoch, minute) in which the controller did something itself",
    (),
    (
        *_OF_FILE,
        required("source_file", "string", "Name of the file."),
        required("controller_id", "int", "Controller."),
        required("epoch", "int", "Its epoch."),
        col("minute", "bigint", "Minute since 1970."),
        col("at", "bigint", "Corrected time of its first line, µs."),
        col("byte_offset", "bigint", "Place of that line."),
        col("evidence_id", "string", "That line."),
        col("lowest", "bigint", "Place of the lowest level among the levels."),
    ),
)

UNRECOGNISED_MESSAGES: Final = TableSpec(
    "kept",
    "unrecognised_messages",
    "one row per (log file, broker, source kind, logger, template) of messages that no shape knows",
    (),
    (
        *_OF_FILE,
        col("broker_id", "int", "Broker."),
        required("source_kind", "string", "Kind of source."),
        col("logger", "string", "Logger."),
        required("template", "string", "The message, its values taken out."),
        required("records_count", "bigint", "Records."),
        col("first_event_time", "timestamp", "First of them, UTC."),
        col("last_event_time", "timestamp", "Last of them, UTC."),
        required(
            "example",
            "struct<event_time:timestamp,record_id:string,source_file:string,source_line:int,log_level:string>",
            "First record by time and id.",
        ),
    ),
)

LOG_SPANS: Final = TableSpec(
    "kept",
    "log_spans",
    "one row per (broker, file of a state-change log) and per server log whose times jump back",
    ("cluster_id", "broker_id", "file_id"),
    (
        required("source_kind", "string", "Kind of the log."),
        *_OF_FILE,
        required("broker_id", "int", "Broker that speaks."),
        required("source_file", "string", "Name of the file."),
        required("start", "bigint", "Corrected time of the earliest line, µs."),
        required("end", "bigint", "Corrected time of the latest, µs."),
        required("lines", "bigint", "How many lines."),
        required("unnamed_lines", "bigint", "Of these, those whose broker the file's does not tell."),
        required("jumps_back", "bigint", "How often the times jump back."),
        required("far_jumps_back", "bigint", "How often far."),
        col("most_back_us", "bigint", "By how much at the most, µs."),
        col("level_floor", "string", "Lowest level of a state-change log's lines."),
    ),
)

LIFE_SIGNS: Final = TableSpec(
    "kept",
    "life_signs",
    "one row per (end of a broker's registration, sign in lines that it lived around then, or did not); one without"
    " kind for an end without any",
    (),
    (
        required("cluster_id", "string", "Cluster."),
        required("broker_id", "int", "Broker."),
        required("ends_us", "bigint", "When the registration ended, µs."),
        required("windows", "string", "In which spans of time signs were looked for: JSON."),
        col("kind", "string", "Kind of the sign."),
        col("at", "bigint", "Corrected time of the line, µs."),
        col("evidence_id", "string", "The line."),
    ),
)

_TIME_SLOT: Final = required("time_slot", "bigint", "Twelve minutes of corrected time, counted from 1970.")
FILE_CONTROLLERS: Final = TableSpec(
    "kept",
    "file_controllers",
    "one row per (log file, controller that lines of a state-change log tell of, time slot of these lines)",
    ("cluster_id", "controller_id", "time_slot", "file_id"),
    (*_OF_FILE, col("controller_id", "int", "Controller; NULL where lines name none."), _TIME_SLOT),
)

UNORDERED_LOGS: Final = TableSpec(
    "kept",
    "unordered_logs",
    "one row per broker whose state-change log has lines that are not in order",
    ("cluster_id", "unordered_broker_id"),
    (required("cluster_id", "string", "Cluster."), required("unordered_broker_id", "int", "Broker.")),
)

_PLACE: Final = "struct<file_start:timestamp,file_id:string,time_order:bigint,byte_offset:bigint,event_id:string>"
MATCHED_REQUESTS: Final = TableSpec(
    "kept",
    "matched_requests",
    "one row per request of a controller, as the lines of its sending, receipt and answer tell of it",
    (),
    (
        required("cluster_id", "string", "Cluster."),
        col("controller_id", "int", "Controller."),
        col("controller_epoch", "int", "Its epoch."),
        col("to_broker_id", "int", "Broker that it was sent to."),
        col("api", "string", "Kind of the request."),
        col("correlation_id", "int", "Its correlation id."),
        col("partitions", "int", "Partitions in it."),
        col("decided_at", "bigint", "When the last decision before it was made, µs."),
        col("sent_at", "bigint", "When it was sent, µs."),
        col("sent_ref", "string", "Record of the sending."),
        col("lacking_sent", "int", "Lines that the controller's log lacks of it."),
        col("received_at", "bigint", "When it was received, µs."),
        col("received_ref", "string", "Record of the receipt."),
        col("applied_at", "bigint", "When it was in force, µs."),
        col("applied_ref", "string", "Record that says so."),
        col("known_epoch", "int", "Controller epoch for which it was refused."),
        col("is_refused", "boolean", "Whether it was refused as a whole."),
        col("accepts", "boolean", "Whether the broker acted upon it and it states its controller epoch."),
        col("lacking_received", "int", "Lines that the broker's log lacks of it."),
        col("is_counted", "boolean", "Whether the broker's log has its count, and all lines of it."),
        col("lines", "int", "Lines of the broker that name a partition."),
        col("received_lines", "int", "That say that it came."),
        col("started", "int", "That begin a transition."),
        col("completed", "int", "That end one."),
        col("applied_lines", "int", "That say that it is in force."),
        col("failed", "int", "That say that a partition failed."),
        col("ignored", "int", "That say that one was ignored."),
        col("skipped", "int", "That say that one was as asked already."),
        col("is_repeated", "boolean", "Whether the same words had been sent once less than they were received."),
        col("response_error", "int", "Error of the answer."),
        col("acknowledged_at", "bigint", "When the answer came, µs."),
        col("acknowledged_ref", "string", "Record of the answer."),
        col("stated_epoch", "int", "Controller epoch that its own lines name."),
        col("begin", _PLACE, "Place of its first line in the broker's files."),
        col("acted_upon", _PLACE, "Place of the first line that acts upon it; of the first where none does."),
        _TIME_SLOT,
    ),
)

INSPECTED_FILES: Final = TableSpec(
    "kept",
    "inspected_files",
    "one row per file of paths that hold much: what ``ingest`` found when it last looked into it",
    ("location",),
    (
        required("location", "string", "Where it lies: a path of the machine that ran ``ingest``, or a URI."),
        required("source_file", "string", "Its path below the path given."),
        required("state", "string", "Its size and when it last changed, as the file system told."),
        required("by", "string", "Fingerprint of the program that looked, and of how it was asked to."),
        required("found", "string", "What it found, of each member where it is an archive: JSON."),
    ),
)

#: What is made of log records and kept: empty of a small lake.
RECORD_ROWS_TABLES: Final = (
    CLOCKS,
    CLOCK_MARKS,
    CLOCK_PAIRS,
    RECORD_COUNTS,
    KEY_RECORDS,
    FILE_JUMPS,
    OFFSET_STATEMENTS,
    GENERATIONS,
    TOPIC_NAMINGS,
    CONTROLLER_MINUTES,
    UNRECOGNISED_MESSAGES,
    LOG_SPANS,
    LIFE_SIGNS,
    FILE_CONTROLLERS,
    UNORDERED_LOGS,
    MATCHED_REQUESTS,
)
#: What ``reconstruct`` keeps.
KEPT_TABLES: Final = (RUNS, FOLDED_KEYS, JUDGED_ROWS, TOPIC_HASHES, *RECORD_ROWS_TABLES)
