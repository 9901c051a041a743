"""The checks that join tables: nothing lost on the way, and every row reaches the records it comes from."""

from __future__ import annotations

from functools import partial
from typing import Final

from checks.catalog import WARNING, Check, Pass
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables.bronze import (
    BRONZE_TABLES,
    INGESTED_FILES,
    LOG_RECORDS,
    LOG_SEGMENTS,
    REJECTED_RECORDS,
    SourceKind,
)
from ingest.lake.tables.gold import GOLD_TABLES
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.lake.tables.silver import SILVER_TABLES

#: Bronze tables that hold records: whatever has an id of its own.
RECORD_TABLES: Final = tuple(spec for spec in BRONZE_TABLES if "record_id" in spec.column_names)
KEPT_TABLES: Final = tuple(spec for spec in RECORD_TABLES if spec is not REJECTED_RECORDS)
EVIDENCE_TABLES: Final = tuple(spec for spec in (*SILVER_TABLES, *GOLD_TABLES) if "evidence" in spec.column_names)
#: The tables of events, and the log of which the records become those.
_EVENT_TABLES: Final = {
    "silver.state_change_events": SourceKind.STATE_CHANGE_LOG,
    "silver.controller_events": SourceKind.CONTROLLER_LOG,
    "silver.replication_events": SourceKind.SERVER_LOG,
}


def relation_passes() -> tuple[Pass, ...]:
    """All passes of this module."""
    return (_files(), _records(), _timelines_of_assigned(), _indexes())


def _files() -> Pass:
    """Per file: what it says was kept and rejected against the rows that are there."""
    kept = " UNION ALL ".join(
        f"SELECT cluster_id, file_id, 1 AS kept, 0 AS rejected FROM {{{spec.name}}}" for spec in KEPT_TABLES
    )
    cases = (
        "SELECT cluster_id, file_id, source_kind, source_file, records_read_count, records_kept_count,"
        " records_rejected_count, coalesce(kept, 0) AS kept_rows, coalesce(rejected, 0) AS rejected_rows"
        " FROM (SELECT cluster_id, file_id, sum(kept) AS kept, sum(rejected) AS rejected"
        f" FROM ({kept} UNION ALL SELECT cluster_id, file_id, 0, 1 FROM {{{REJECTED_RECORDS.name}}})"
        " GROUP BY cluster_id, file_id)"
        f" FULL OUTER JOIN {{{INGESTED_FILES.name}}} USING (cluster_id, file_id)"
    )
    counts = ("source_kind", "source_file", "records_read_count", "kept_rows", "rejected_rows")
    has_file = "records_read_count IS NOT NULL"
    check = partial(Check, INGESTED_FILES.full_name)
    checks = (
        check(
            "read_is_kept_and_rejected",
            "records read from a file = its rows in the bronze tables + its rows in bronze.rejected_records",
            "records_read_count <> kept_rows + rejected_rows",
            has_file,
            counts,
        ),
        check(
            "rejected_rows_are_there",
            "records rejected from a file = its rows in bronze.rejected_records",
            "records_rejected_count <> rejected_rows",
            has_file,
            (*counts, "records_rejected_count"),
        ),
        check(
            "rows_have_a_file",
            "the file of every bronze row is in bronze.ingested_files",
            "records_read_count IS NULL",
            shows=("kept_rows", "rejected_rows"),
        ),
    )
    return Pass("files and their records", cases, "bronze", ("cluster_id", "file_id"), checks)


def _records() -> Pass:
    """Every id of a bronze record, and every one that a silver or gold row names, with what tables say of it, a bit for
    each: to be looked up among the records a row per id goes through one aggregation, where joins would sort them all.

    ``says`` has of a record that it is there, into which table of events it belongs (all of a state-change log, of the
    others those that are typed), that it became an event, and which tables name it as evidence.
    """
    said = ("record", "event", *_EVENT_TABLES, *map(_named_by, EVIDENCE_TABLES))
    bits = {name: 1 << number for number, name in enumerate(said)}
    belongs = " ".join(f"WHEN '{kind}' THEN {bits[table]}" for table, kind in _EVENT_TABLES.items())
    must_be_one = f"source_kind = '{SourceKind.STATE_CHANGE_LOG}' OR event_type <> 'unrecognised'"
    claims = []
    for spec in RECORD_TABLES:
        own = f" | IF({must_be_one}, CASE source_kind {belongs} ELSE 0 END, 0)" if spec is LOG_RECORDS else ""
        claims.append(f"SELECT record_id, {bits['record']}L{own} AS says FROM {{{spec.name}}}")
    for spec in EVIDENCE_TABLES:
        named = bits[_named_by(spec)]
        ids, says = "evidence", f"{named}L"
        if "record_id" in spec.column_names:
            # most name that record and no other
            ids = "IF(evidence = array(record_id), evidence, concat(evidence, array(record_id)))"
        if spec.full_name in _EVENT_TABLES:
            says = f"IF(named = record_id, {named | bits['event']}L, {named}L)"
        rows = f"{{{spec.name}}} LATERAL VIEW explode({ids}) AS named"
        claims.append(f"SELECT named AS record_id, {says} AS says FROM {rows}")
    cases = f"SELECT record_id, bit_or(says) AS says FROM ({' UNION ALL '.join(claims)}) GROUP BY record_id"
    promise = "every record that a row names as evidence is in bronze"

    def has(name: str) -> str:
        return f"says & {bits[name]} <> 0"

    checks = [
        Check(spec.full_name, "evidence_exists", promise, f"NOT {has('record')}", has(_named_by(spec)))
        for spec in EVIDENCE_TABLES
    ]
    for table in _EVENT_TABLES:
        promise = f"every record that belongs into {table} has at least one row there"
        shown = ("cluster_id", "source_file", "source_line", "message")
        checks.append(Check(table, "no_record_lost", promise, f"NOT {has('event')}", has(table), shown))
    beside = f"SELECT record_id, cluster_id, source_file, source_line, message FROM {{{LOG_RECORDS.name}}}"
    return Pass("records and what names them", cases, "across", ("record_id",), tuple(checks), beside)


def _named_by(spec: TableSpec) -> str:
    return f"evidence of {spec.full_name}"


def _indexes() -> Pass:
    """Offset indexes with the segments beside them, where one copy of each was read: what the index names must be in
    the segment. Copies of a broker that writes are not made at one instant: an index may be the later one."""
    folder = "regexp_replace(source_file, '[^/!]*$', '')"
    one_copy = f"cluster_id, broker_id, captured_at, {folder}, file_name"
    files = (
        f"SELECT *, {folder} AS folder, count(*) OVER (PARTITION BY {one_copy}) AS copies"
        f" FROM {{{LOG_SEGMENTS.name}}} WHERE is_read AND problem IS NULL"
    )
    cases = (
        "SELECT index.cluster_id, index.record_id, index.source_file, index.last_indexed_offset, segment.next_offset,"
        f" index.last_indexed_position, segment.valid_bytes FROM ({files}) AS index JOIN ({files}) AS segment"
        " ON index.cluster_id = segment.cluster_id AND index.broker_id <=> segment.broker_id"
        " AND index.captured_at <=> segment.captured_at AND index.folder = segment.folder"
        " AND index.file_name = replace(segment.file_name, '.log', '.index')"
        f" WHERE index.file_kind = '{SourceKind.OFFSET_INDEX}' AND segment.file_kind = '{SourceKind.LOG_SEGMENT}'"
        " AND index.copies = 1 AND segment.copies = 1 AND index.entries_count > 0"
    )
    check = Check(
        LOG_SEGMENTS.full_name,
        "indexes_point_into_their_segment",
        "what the last entry of an offset index names is in the segment beside it; where it is not, the index is"
        " corrupt, or was copied later than the segment",
        "last_indexed_offset >= next_offset OR last_indexed_position >= valid_bytes",
        shows=("source_file", "last_indexed_offset", "next_offset", "last_indexed_position", "valid_bytes"),
        severity=WARNING,
    )
    return Pass("offset indexes and their segments", cases, "bronze", ("cluster_id", "record_id"), (check,))


def _timelines_of_assigned() -> Pass:
    """The partitions of the assignment timeline, and whether the other timelines know them. Not that of replicas'
    states: their transitions are logged at TRACE alone since 2.6 (KAFKA-8470), and no znode holds them."""
    others = [TABLES[f"silver.{what}_timeline"] for what in ("partition_state", "leader_and_isr")]
    columns = ", ".join(PARTITION_KEY)
    joins = " ".join(
        f"LEFT JOIN (SELECT DISTINCT {columns}, true AS in_{spec.name} FROM {{{spec.name}}}) USING ({columns})"
        for spec in others
    )
    cases = f"SELECT * FROM (SELECT DISTINCT {columns} FROM {{assignment_timeline}}) {joins}"
    checks = tuple(
        Check(
            spec.full_name,
            "knows_every_assigned_partition",
            f"every partition of silver.assignment_timeline has an interval in {spec.full_name}",
            f"in_{spec.name} IS NULL",
            severity=WARNING,
        )
        for spec in others
    )
    return Pass("assigned partitions and their timelines", cases, "silver", PARTITION_KEY, checks)
