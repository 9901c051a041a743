"""The templates of unrecognised messages: counted per version and logger, with the first record as the example."""

from __future__ import annotations

from datetime import UTC, datetime

from ingest.lake.tables import bronze
from reconstruct.events.spark.unrecognised import unrecognised_messages, unrecognised_templates


def at(second: int) -> datetime:
    return datetime(2026, 11, 21, 1, 0, second, tzinfo=UTC)


def test_templates_are_counted_per_version_and_logger(spark):
    columns = "cluster_id string, broker_id int, source_kind string, logger string, log_level string, message string"
    columns += ", event_time timestamp, event_type string, record_id string, source_file string, source_line int"
    columns += ", file_id string"

    def record(number, broker_id, message, logger="kafka.X", event_type="unrecognised"):
        place = (f"r{number}", f"broker-{broker_id}/server.log", number)
        return ("c", broker_id, "server_log", logger, "INFO", message, at(number), event_type, *place, f"f{number}")

    records = spark.createDataFrame(
        [
            record(3, 1, "moved t-0 to /a/b"),
            record(2, 1, "moved a.b-7 to /c/d/e"),
            record(5, 2, "moved t-1 to /a/b"),
            record(4, 3, "moved t-1 to /a/b", logger=None),
            record(1, 1, "moved t-0 to /a/b", event_type="log_loaded"),
        ],
        columns,
    )
    files = spark.createDataFrame(
        [("c", 1, "3.9.1"), ("c", 1, None), ("c", 2, "3.9.1"), ("c", 2, "3.8.0"), ("c", None, "1.1.1")],
        "cluster_id string, broker_id int, kafka_version string",
    )
    found = unrecognised_templates(unrecognised_messages(records), files).orderBy("example_record_id").collect()
    template = "moved <partition> to <path>"
    assert [
        (row["kafka_version"], row["logger"], row["template"], row["records_count"], row["example_record_id"])
        for row in found
    ] == [
        ("3.9.1", "kafka.X", template, 2, "r2"),
        ("unknown", "", template, 1, "r4"),
        ("3.8.0,3.9.1", "kafka.X", template, 1, "r5"),
    ]
    assert found[0]["source_line"] == 2
    seconds = (found[0]["last_event_time"] - found[0]["first_event_time"]).total_seconds()
    assert seconds == 1
    assert {"record_id", "message", "event_type"} <= set(bronze.LOG_RECORDS.column_names)
