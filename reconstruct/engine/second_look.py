"""The second look at all findings of a run, on Spark; see :mod:`reconstruct.findings.alternatives`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import (
    LEADER_EPOCH_CHECKPOINTS,
    LOG_KINDS,
    LOG_RECORDS,
    LOG_SEGMENTS,
    OFFSET_CHECKPOINTS,
)
from ingest.shapes.event_types import EventType
from reconstruct.engine.folds import evidence_columns, fold, select_evidence
from reconstruct.engine.rows import Row, values_of
from reconstruct.events.spark.fields import speaker
from reconstruct.findings.alternatives import (
    EvidenceRecord,
    FoundDivergence,
    HandWrite,
    LogDirs,
    LogEnd,
    LoggedHour,
    StatedCluster,
    possible_alternatives,
    surroundings,
)
from reconstruct.findings.log_files import LogFile
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH, MIGRATION_PATH, PARTITION_STATE_PATTERN, TOPIC_PATTERN

_KEY: Final = ("cluster_id",)
_COLUMNS: Final = evidence_columns(
    FoundDivergence, EvidenceRecord, LoggedHour, LogFile, HandWrite, LogDirs, LogEnd, StatedCluster
)
#: A broker's configuration as it prints it, a setting on each line: all of them are the message where the logger's name
#: stands at its end, and follow it elsewhere.
_PRINTED: Final = r"concat_ws('\n', message, continuation)"
_LOG_DIRS: Final = rf"regexp_extract({_PRINTED}, '(?m)^\\s*log[.]dirs = (.*?)\\s*$', 1)"
_LOG_DIR: Final = rf"regexp_extract({_PRINTED}, '(?m)^\\s*log[.]dir = (.*?)\\s*$', 1)"
#: Of the collection that LogManager prints, whose name changes with the release: ArrayBuffer(/a, /b), ArraySeq(/a, /b).
_OPENED: Final = r"regexp_replace(fields['live_log_dirs'], '^[A-Za-z]+[(](.*)[)]$', '$1')"
#: Events after which a log ends lower by right.
_CUT: Final = (
    EventType.LOG_TRUNCATED,
    EventType.LOG_DELETION_SCHEDULED,
    EventType.LOG_MARKED_STRAY,
    EventType.LOG_DELETED,
    EventType.STOP_REPLICA_HANDLED,
)
_SECOND: Final = {"divergence_id": "string", "alternatives": "array<string>", "but": "string", "at_most": "string"}
#: The tables of what has a time of its own: lines, and copies that were captured.
DATED_TABLES: Final[tuple[TableSpec, ...]] = (
    LOG_RECORDS,
    OFFSET_CHECKPOINTS,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_SEGMENTS,
)


def is_configuration() -> Column:
    """Whether a log record is a broker's configuration as it prints it."""
    return F.expr("message LIKE 'KafkaConfig values:%' AND broker_id IS NOT NULL")


def printed_log_dirs() -> Column:
    """The directories of the broker's logs, of such a record; NULL where it names none."""
    return F.expr(f"coalesce(nullif(nullif({_LOG_DIRS}, 'null'), ''), {_LOG_DIR})")


def second_look(
    findings: DataFrame,
    tables: Sequence[DataFrame],
    counts: DataFrame,
    records: DataFrame,
    files: DataFrame,
    replication_events: DataFrame,
    znodes: DataFrame,
    transactions: DataFrame,
    stated: DataFrame,
) -> DataFrame:
    """Rows of ``gold.divergences`` with their ``alternatives``: an error that one explains is a warning, or *info*, and
    says so.

    ``tables`` are those of :data:`DATED_TABLES`, ``counts`` and ``records`` are rows of ``kept.record_counts`` and
    ``kept.key_records``, ``files`` is ``bronze.ingested_files``, ``znodes``
    ``silver.znode_changes``, ``transactions`` ``bronze.znode_transactions`` and ``stated`` what brokers stated of their
    cluster's id (:func:`reconstruct.cluster.spark.statements.stated_ids`).
    """
    no_alternatives = F.array().cast("array<string>")
    found = findings.where("severity <> 'info'")
    if found.isEmpty():
        return findings.withColumn("alternatives", no_alternatives)
    claims = F.broadcast(found.select(*_KEY, "divergence_id", F.explode("evidence").alias("record_id")))
    dated = union(
        [
            table.select(*_KEY, "record_id", *_kind_and_time(spec), "broker_id", "source_file")
            for spec, table in zip(DATED_TABLES, tables, strict=True)
        ]
    )
    evidence = union(
        [
            select_evidence(found, _KEY, _COLUMNS, FoundDivergence, at=F.unix_micros("detected_at")),
            select_evidence(
                dated.join(claims, [*_KEY, "record_id"]),
                _KEY,
                _COLUMNS,
                EvidenceRecord,
                divergence_id="divergence_id",
                source_kind="source_kind",
                broker_id="broker_id",
                folder=_folder(),
                at=F.unix_micros("at"),
            ),
            select_evidence(counts.select(*_KEY, "hour").distinct(), _KEY, _COLUMNS, LoggedHour),
            select_evidence(
                files.where(F.col("source_kind").isin(*LOG_KINDS) & F.col("first_event_time").isNotNull()),
                _KEY,
                _COLUMNS,
                LogFile,
                log_kind="source_kind",
                log_broker_id="broker_id",
                log_folder=_folder(),
                source_file="source_file",
                time_zone="time_zone",
                first_at=F.unix_micros("first_event_time"),
                last_at=F.unix_micros("last_event_time"),
            ),
            select_evidence(
                _hand_writes(znodes, transactions), _KEY, _COLUMNS, HandWrite, at=F.unix_micros("changed_at")
            ),
            select_evidence(
                records.where("log_dirs IS NOT NULL"),
                _KEY,
                _COLUMNS,
                LogDirs,
                at=F.unix_micros("event_time"),
                is_opened=F.lit(False),
            ),
            select_evidence(
                replication_events.where((F.col("event_type") == EventType.LOGS_LOADING) & F.expr(f"{_OPENED} <> ''"))
                .withColumn("broker_id", speaker())
                .where("broker_id IS NOT NULL"),
                _KEY,
                _COLUMNS,
                LogDirs,
                at=F.unix_micros("corrected_time"),
                log_dirs=_OPENED,
                is_opened=F.lit(True),
            ),
            select_evidence(stated.where("broker_id IS NOT NULL"), _KEY, _COLUMNS, StatedCluster),
            _log_ends(replication_events, found),
        ]
    )
    looked = fold(evidence, _KEY, {"cluster_id": "string"} | _SECOND, _second_look)
    joined = findings.drop("alternatives").join(F.broadcast(looked), [*_KEY, "divergence_id"], "left")
    is_explained = F.col("but").isNotNull()
    made: dict[str, Column] = {
        "severity": F.when(is_explained & (F.col("severity") == "error"), F.col("at_most"))
        .when(F.col("at_most") == "info", "info")
        .otherwise(F.col("severity")),
        "explanation": F.concat_ws(" ", "explanation", "but"),
        "alternatives": F.coalesce("alternatives", no_alternatives),
    }
    return joined.select(*(made.get(name, F.col(name)).alias(name) for name in findings.columns))


def _hand_writes(znodes: DataFrame, transactions: DataFrame) -> DataFrame:
    """Writes that only brokers make, and a quorum's controllers where they migrate, by sessions that were opened and
    closed without one registering."""
    sessions = transactions.where("operation = 'create_session'").select("cluster_id", "session_id").distinct()
    is_state = F.col("path").rlike(PARTITION_STATE_PATTERN) | (F.col("path") == CONTROLLER_EPOCH_PATH)
    is_deletion = F.col("path").rlike(TOPIC_PATTERN) & (F.col("change") == "deleted")
    written = znodes.where((is_state | is_deletion) & F.col("written_by_broker_id").isNull())
    key = ["cluster_id", "session_id"]
    migrating = znodes.where((F.col("path") == MIGRATION_PATH) & F.col("session_id").isNotNull()).select(*key)
    return written.join(F.broadcast(sessions), key, "left_semi").join(F.broadcast(migrating), key, "left_anti")


def _log_ends(replication_events: DataFrame, found: DataFrame) -> DataFrame:
    """Where the logs of the partitions that findings are about ended when they were loaded."""
    key = ("cluster_id", "topic", "topic_incarnation", "partition_id")
    end = F.when(F.col("event_type") == EventType.LOG_LOADED, F.col("log_end_offset")).when(
        F.col("event_type") == EventType.LOG_CREATED, F.lit(0)
    )
    events = replication_events.where(
        F.col("event_type").isin(EventType.LOG_LOADED, EventType.LOG_CREATED, *_CUT) & F.col("topic").isNotNull()
    ).withColumn("broker_id", speaker())
    return select_evidence(
        events.where("broker_id IS NOT NULL").join(F.broadcast(found.select(*key).distinct()), list(key), "left_semi"),
        _KEY,
        _COLUMNS,
        LogEnd,
        at=F.unix_micros("corrected_time"),
        log_end_offset=end,
    )


def _kind_and_time(spec: TableSpec) -> tuple[Column, Column]:
    if spec is LOG_RECORDS:
        return F.col("source_kind"), F.col("event_time").alias("at")
    return F.lit(spec.name).alias("source_kind"), F.col("captured_at").alias("at")


def _folder() -> Column:
    return F.regexp_replace("source_file", r"[^/!]*$", "")


def _second_look(evidence: Iterable[Row]) -> Iterator[dict[str, Any]]:
    rows = list(evidence)
    around = surroundings(
        values_of(LoggedHour, rows),
        values_of(LogFile, rows),
        values_of(HandWrite, rows),
        values_of(LogDirs, rows),
        values_of(LogEnd, rows),
        values_of(StatedCluster, rows),
    )
    records: dict[str, list[EvidenceRecord]] = {}
    for record in values_of(EvidenceRecord, rows):
        records.setdefault(record.divergence_id, []).append(record)
    for finding in values_of(FoundDivergence, rows):
        possible = possible_alternatives(finding, records.get(finding.divergence_id, ()), around)
        if possible:
            yield {
                "divergence_id": finding.divergence_id,
                "alternatives": [alternative.name for alternative, _ in possible],
                "but": f"But {'; and '.join(sentence for _, sentence in possible)}.",
                "at_most": "info" if any(one.at_most == "info" for one, _ in possible) else "warning",
            }
