"""Quality: what was checked, what it cost, and what cannot be said."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.shared import CLUSTER
from ingest.lake.tables.spec import TableSpec, col, required

VERDICTS: Final = ("kept", "broken", "cannot_be_judged")

CHECK_RESULTS: Final = TableSpec(
    "quality",
    "check_results",
    "one row per (run, check): an expectation over a table, or a rule over the timelines",
    ("run_id", "check_id"),
    (
        required("run_id", "string", "Run that checked."),
        required("check_id", "string", "TABLE.EXPECTATION, or the rule's id."),
        required("table_name", "string", "Table the check owns."),
        required(
            "severity",
            "string",
            "critical fails the gate; warning is reported.",
            vocabulary=("critical", "warning", "info"),
        ),
        required("verdict", "string", "Verdict.", vocabulary=VERDICTS),
        col("checked_count", "bigint", "Rows, or cases, judged."),
        col("broken_count", "bigint", "Those that break it."),
        col("examples", "string", "First offending rows as JSON; NULL where there are none."),
        required("explanation", "string", "What the check means, in a sentence."),
        required("rules_fingerprint", "string", "Fingerprint of the set of checks that judged."),
        required("model_version", "string", "Version of the rules."),
        required("run_at", "timestamp", "When it ran: our clock."),
    ),
)

RUN_METRICS: Final = TableSpec(
    "quality",
    "run_metrics",
    "one row per (run, metric, cluster, subject)",
    ("run_id", "metric", "cluster_id", "subject"),
    (
        required("run_id", "string", "Run that measured."),
        CLUSTER,
        required("metric", "string", "Name, unit included."),
        required("subject", "string", "What it is about: a version, a broker, a table; empty for the whole."),
        required("value", "double", "Value."),
        required("run_at", "timestamp", "When it was measured: our clock."),
    ),
)

#: How a broker's clock stands to the reference clock.
CLOCK_VERDICTS: Final = ("agrees", "skewed", "other_zone", "unbounded", "unknown")
#: In ``evidence_coverage.source_kind``: an interval of a broker's clock.
CLOCK: Final = "clock"

#: Why a span of a log counts as a gap; reconstruct/coverage/gaps.py says what makes each.
GAP_REASONS: Final = ("missing_number", "no_later_file", "unread_file", "missing_period")
#: Why one of anything else does: the capture says itself that it could not record it.
NOT_CAPTURED: Final = "not_captured"

EVIDENCE_COVERAGE: Final = TableSpec(
    "quality",
    "evidence_coverage",
    "one row per (source, broker, interval) in which evidence exists, per span of a broker's log that is missing or"
    " whose level leaves out what rules need, per outage of a capture, and per interval of a broker's clock",
    ("cluster_id", "source_kind", "broker_id", "source_file", "coverage", "valid_from"),
    (
        CLUSTER,
        required("source_kind", "string", "Kind of source, or 'clock' for an interval of a broker's clock."),
        required("broker_id", "int", "Broker; -1 for what belongs to none."),
        required(
            "source_file",
            "string",
            "File; 'segment N' of a clock; of a gap the file before it, the one not read, or the one that tells of"
            " it; of too_coarse the first.",
        ),
        required(
            "coverage",
            "string",
            "covered: a file that was read, or a clock. gap: lines or answers are missing. Beside covered: too_coarse,"
            " nothing below level_floor was seen and rules need it; out_of_order, the file's times jump back as no"
            " clock explains; clock_set_back, the file tells this time twice: once, or twice, its corrected times jump"
            " back by more than a minute.",
            vocabulary=("covered", "gap", "out_of_order", "clock_set_back", "too_coarse"),
        ),
        col(
            "gap_reason",
            "string",
            "What proves the gap (missing_number, no_later_file, unread_file) or strongly suggests it (missing_period);"
            " not_captured: the capture says so, bronze.capture_gaps has its words. NULL for what is no gap.",
            vocabulary=(*GAP_REASONS, NOT_CAPTURED),
        ),
        col("level_floor", "string", "Lowest log level seen; NULL for what has none."),
        required("valid_from", "timestamp", "First instant, as printed and in UTC."),
        required("valid_to", "timestamp", "Last instant, as printed and in UTC."),
        required("records_count", "bigint", "Records in it."),
        col("clock_verdict", "string", "How the broker's clock stood; NULL for files.", vocabulary=CLOCK_VERDICTS),
        col("clock_reference", "int", "Clock that offsets are relative to: -1 ZooKeeper's, else a broker's."),
        col("clock_offset_lower_ms", "bigint", "The broker's clock was at least so much ahead; NULL where unbounded."),
        col("clock_offset_upper_ms", "bigint", "The broker's clock was at most so much ahead; NULL where unbounded."),
        col("clock_zone_offset_minutes", "int", "Zone of the log's times, where the bounds prove one."),
        col("clock_correction_us", "bigint", "Subtracted from printed times to order them; NULL where nothing is."),
        col("clock_pairs_count", "bigint", "Causal pairs behind the bounds."),
        col("clock_dropped_pairs_count", "bigint", "Pairs that contradict all others, and were not used."),
    ),
    version=6,
)

UNRECOGNISED_TEMPLATES: Final = TableSpec(
    "quality",
    "unrecognised_templates",
    "one row per (cluster, Kafka version, source kind, logger, template) of messages that no shape knows",
    ("cluster_id", "kafka_version", "source_kind", "logger", "template"),
    (
        CLUSTER,
        required(
            "kafka_version",
            "string",
            "Version that a log of the broker states, several with commas; 'unknown' where none does.",
        ),
        required("source_kind", "string", "Kind of source."),
        required("logger", "string", "Logger; empty where the layout prints none."),
        required("template", "string", "The message, its values taken out."),
        required("records_count", "bigint", "Records."),
        col("log_level", "string", "Level of the example."),
        col("first_event_time", "timestamp", "First of them, UTC."),
        col("last_event_time", "timestamp", "Last of them, UTC."),
        required("example_record_id", "string", "First record by time and id, bronze.log_records."),
        col("source_file", "string", "Its file."),
        col("source_line", "int", "Its line."),
    ),
)

QUALITY_TABLES: Final = (CHECK_RESULTS, RUN_METRICS, EVIDENCE_COVERAGE, UNRECOGNISED_TEMPLATES)
