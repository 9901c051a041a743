"""Records of logs."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze.columns import record_table
from ingest.lake.tables.spec import col, required

#: What a record may be logged at, as it is printed, from the lowest on; Python's logging writes WARNING.
LOG_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL")

LOG_RECORDS: Final = record_table(
    "log_records",
    "one row per (file, log record), continuation lines joined to their record",
    required("event_time", "timestamp", "The record's own time, UTC."),
    required("event_time_text", "string", "The record's time as printed."),
    col("log_level", "string", "Level as printed, upper case."),
    col("thread", "string", "Thread, where the layout prints one."),
    col("logger", "string", "Logger as printed; NULL where the layout prints none."),
    required("message", "string", "Message without header and logger."),
    col(
        "continuation",
        "string",
        "Continuation lines (stack trace), joined by line feeds; NULL where there are none.",
    ),
    col("shape_id", "string", "Message shape matched (ingest/shapes); NULL where none did."),
    required("event_type", "string", "Event type of the shape; 'unrecognised' where none matched."),
    col(
        "cause_type",
        "string",
        "What the exception in the first continuation line says; NULL without one that is known.",
    ),
    col("fields", "map<string,string>", "Fields of the message by their normalised names."),
    version=2,
)
