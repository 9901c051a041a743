"""Views over the lake's tables, for what everybody would otherwise join by hand: named for SQL as the tables are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dashboards.questions.question import questions
from ingest.lake.tables import TABLES, TableSpec, bronze
from ingest.lake.tables.bronze import SourceKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of each bronze table whose records evidence may name: the text of a record, as Spark SQL. Log records come first:
#: nearly all evidence is of them.
_TEXTS: Final = (
    (
        bronze.LOG_RECORDS,
        "concat('[', event_time_text, '] ', coalesce(log_level, ''), ' ', message,"
        " coalesce(concat(' (', logger, ')'), ''), coalesce(concat('\\n', continuation), ''))",
    ),
    (bronze.ZNODE_SNAPSHOTS, "concat_ws(' ', path, concat('version ', version), concat('mzxid ', mzxid), data)"),
    (bronze.ZNODE_TRANSACTIONS, "concat_ws(' ', concat('zxid ', zxid), operation, full_path, version, data)"),
    (bronze.OFFSET_CHECKPOINTS, "concat_ws(' ', topic, partition_id, offset)"),
    (bronze.LEADER_EPOCH_CHECKPOINTS, "concat_ws(' ', directory, 'epoch', leader_epoch, 'starts at', start_offset)"),
    (bronze.OFFSET_PROBES, "concat_ws(' ', topic, partition_id, 'asked as', replica_id, 'offset', offset)"),
    (bronze.LOG_SEGMENTS, "concat_ws(' ', concat_ws('/', directory, file_name), 'next offset', next_offset)"),
    (bronze.BROKER_CONFIGS, "concat(config_key, '=', config_value)"),
    (bronze.METADATA_RECORDS, "concat_ws(' ', 'offset', offset, record_type, fields, problem)"),
    (bronze.METADATA_SNAPSHOTS, "concat_ws(' ', 'before offset', snapshot_end_offset, record_type, fields, problem)"),
    (bronze.QUORUM_STATES, "concat_ws(' ', 'leader', leader_id, 'epoch', leader_epoch, 'voted', voted_id)"),
    (bronze.CLUSTER_DESCRIPTIONS, "concat_ws(' ', description_type, topic, log_dir)"),
    (bronze.CAPTURE_GAPS, "concat_ws(' ', 'missed', missed_source, missed_of, reason)"),
    (bronze.REJECTED_RECORDS, "raw"),
)
#: The kind of source of tables that have only one, and no column of it.
_KINDS: Final = {
    bronze.ZNODE_SNAPSHOTS.name: SourceKind.ZNODE_SNAPSHOT,
    bronze.ZNODE_TRANSACTIONS.name: SourceKind.ZNODE_TRANSACTION_LOG,
    bronze.LEADER_EPOCH_CHECKPOINTS.name: SourceKind.LEADER_EPOCH_CHECKPOINT,
}


def _as_read(spec: TableSpec, text: str) -> tuple[str, str, str]:
    names = {column.name for column in spec.columns}
    kind = f"'{_KINDS[spec.name]}' AS source_kind" if spec.name in _KINDS else "source_kind"
    return kind, "broker_id" if "broker_id" in names else "CAST(NULL AS INT) AS broker_id", f"{text} AS text"


#: Of each bronze table: the source kind, the broker and the text of a record, as Spark SQL.
RECORD_TEXTS: Final = tuple((spec, _as_read(spec, text)) for spec, text in _TEXTS)
_EVIDENCE_LINES: Final = "\nUNION ALL\n".join(
    f"SELECT cluster_id, record_id, source_file, source_line, {', '.join(columns)} FROM {spec.full_name}"
    for spec, columns in RECORD_TEXTS
)
_SAME_PARTITION: Final = (
    "{0}.cluster_id = {1}.cluster_id AND {0}.topic = {1}.topic AND {0}.topic_incarnation = {1}.topic_incarnation"
    " AND {0}.partition_id = {1}.partition_id"
)
_LEADER_TIMELINE: Final = """
SELECT l.*, CASE l.written_by WHEN 'leader' THEN nullif(l.leader, -1)
  WHEN 'controller' THEN c.controller_id END AS written_by_broker_id
FROM silver.leader_and_isr_timeline l LEFT JOIN (
  SELECT cluster_id, controller_epoch, min(controller_id) AS controller_id
  FROM silver.controller_epoch_timeline
  WHERE controller_id >= 0
  GROUP BY cluster_id, controller_epoch
  HAVING count(DISTINCT controller_id) = 1
) c ON c.cluster_id = l.cluster_id AND c.controller_epoch = l.controller_epoch
"""
_REPLICA_LAG: Final = f"""
SELECT r.cluster_id, r.topic, r.topic_incarnation, r.partition_id, r.replica_id, r.sequence, r.valid_from, r.valid_to,
  s.leader, s.leader_epoch, array_contains(s.isr, r.replica_id) AS is_in_sync,
  greatest(max(l.log_end_offset_lower) - r.log_end_offset_upper, 0) AS lag_lower,
  min(l.log_end_offset_upper) - r.log_end_offset_lower AS lag_upper, r.evidence
FROM silver.replica_offset_timeline r
  JOIN silver.leader_and_isr_timeline s ON {_SAME_PARTITION.format("s", "r")}
    AND s.valid_from <= r.valid_from AND coalesce(s.valid_to > r.valid_from, TRUE) AND s.leader <> r.replica_id
  JOIN silver.replica_offset_timeline l ON {_SAME_PARTITION.format("l", "r")} AND l.replica_id = s.leader
    AND l.valid_from <= r.valid_from AND coalesce(l.valid_to > r.valid_from, TRUE)
WHERE s.leader >= 0
GROUP BY r.cluster_id, r.topic, r.topic_incarnation, r.partition_id, r.replica_id, r.sequence, r.valid_from, r.valid_to,
  s.leader, s.leader_epoch, s.isr, r.log_end_offset_lower, r.log_end_offset_upper, r.evidence
"""
_PREFERRED_SHARE: Final = f"""
WITH led AS (
  SELECT l.cluster_id, greatest(l.valid_from, a.valid_from) AS begin, least(l.valid_to, a.valid_to) AS end,
    CAST(l.leader = a.replicas[0] AS INT) AS is_preferred
  FROM silver.leader_and_isr_timeline l JOIN silver.assignment_timeline a ON {_SAME_PARTITION.format("a", "l")}
    AND coalesce(l.valid_from < a.valid_to, TRUE) AND coalesce(a.valid_from < l.valid_to, TRUE)
  WHERE l.leader >= 0
), turns AS (
  SELECT cluster_id, begin AS at, 1 AS led, is_preferred AS preferred FROM led
  UNION ALL
  SELECT cluster_id, end, -1, -is_preferred FROM led WHERE end IS NOT NULL
), summed AS (
  SELECT cluster_id, at, sum(sum(led)) OVER (PARTITION BY cluster_id ORDER BY at) AS led_partitions,
    sum(sum(preferred)) OVER (PARTITION BY cluster_id ORDER BY at) AS led_by_preferred
  FROM turns GROUP BY cluster_id, at
)
SELECT *, led_by_preferred / nullif(led_partitions, 0) AS preferred_share FROM summed
"""
_METADATA_LAG: Final = f"""
WITH decided AS (
  SELECT cluster_id, topic, topic_incarnation, partition_id, offset, leader_epoch AS controller_epoch, record_type,
    changed_at AS decided_at, from_json(state, 'leader_epoch int, partition_epoch int') AS state
  FROM silver.metadata_changes
  WHERE subject_kind = 'partition' AND state IS NOT NULL AND record_type IS NOT NULL
), applied AS (
  SELECT cluster_id, topic, topic_incarnation, partition_id, broker_id, leader_epoch, partition_epoch,
    min(valid_from) AS applied_at, min_by(evidence, valid_from) AS evidence
  FROM silver.replica_role_timeline WHERE view = 'replica_manager' AND inferred_from IS NULL
  GROUP BY ALL
)
SELECT d.cluster_id, d.topic, d.topic_incarnation, d.partition_id, a.broker_id, d.offset, d.record_type,
  c.controller_id, d.controller_epoch, d.decided_at, a.applied_at,
  timestampdiff(MILLISECOND, d.decided_at, a.applied_at) AS lag_ms, b.broker_id IS NOT NULL AS was_live, a.evidence
FROM decided d
  JOIN applied a ON {_SAME_PARTITION.format("a", "d")}
    AND a.leader_epoch = d.state.leader_epoch AND a.partition_epoch = d.state.partition_epoch
  LEFT JOIN silver.broker_liveness_timeline b ON b.cluster_id = a.cluster_id AND b.broker_id = a.broker_id
    AND b.valid_from <= d.decided_at AND coalesce(b.valid_to > a.applied_at, TRUE)
  LEFT JOIN silver.controller_epoch_timeline c ON c.cluster_id = d.cluster_id
    AND c.controller_epoch = d.controller_epoch
"""


@dataclass(frozen=True)
class View:
    """A named query over tables; ``grain`` says what one row of it is, or what it answers, ``meaning`` what the columns
    are. One with ``parameters``, names and types, is a function that gives a table: in ``sql`` they are
    ``NAME_given``."""

    full_name: str
    grain: str
    meaning: str
    sql: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def called(self) -> str:
        """Its name, with what a function takes."""
        taken = ", ".join(f"{name} {kind}" for name, kind in self.parameters)
        return f"{self.name}({taken})" if taken else self.full_name

    @property
    def name(self) -> str:
        """The name without its schema."""
        return self.full_name.rpartition(".")[2]

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        """The tables that it reads."""
        named = set(re.findall(r"\b(?:FROM|JOIN) (\w+\.\w+)", self.sql))
        of_views = {spec.full_name for view in self.views for spec in view.tables}
        return tuple(spec for name, spec in TABLES.items() if name in named | of_views)

    @property
    def views(self) -> tuple[View, ...]:
        """The other views that it reads."""
        return tuple(view for view in VIEWS.values() if view.full_name in self.sql)


VIEWS: Final[Mapping[str, View]] = {
    view.full_name: view
    for view in (
        View(
            "bronze.evidence_lines",
            "bronze record that evidence may name",
            "What an id in a column evidence stands for: the record's file and line (source_file, source_line), the"
            " broker, and its text.",
            _EVIDENCE_LINES,
        ),
        View(
            "silver.leader_timeline",
            "row of silver.leader_and_isr_timeline",
            "All its columns, and in written_by_broker_id which broker written_by is: the leader that asked for the"
            " change of the ISR, or the one controller known of controller_epoch; NULL where nothing says.",
            _LEADER_TIMELINE,
        ),
        View(
            "silver.replica_lag",
            "interval of silver.replica_offset_timeline of a replica that does not lead",
            "How many offsets the replica was behind the leader that there was when the interval began: at least"
            " lag_lower, at most lag_upper; NULL: not bounded.",
            _REPLICA_LAG,
        ),
        View(
            "gold.preferred_share",
            "(cluster, instant at which a leader or assignment changed)",
            "From then on: how many partitions had a leader (led_partitions), how many of them their preferred one"
            " (led_by_preferred), and the share.",
            _PREFERRED_SHARE,
        ),
        View(
            "gold.metadata_lag",
            "(record of a KRaft quorum about a partition, broker that acted by the state that it made)",
            "How late the broker was: lag_ms from decided_at, when the active controller appended the record, until"
            " applied_at, when the broker's log says that it leads or follows so, or does already. was_live: the broker"
            " was there, not fenced, all that time; one that was not learned of it when it came back.",
            _METADATA_LAG,
        ),
    )
}
#: Where saved questions are views, those that need parameters functions; - in a name is written _.
QUESTIONS_SCHEMA: Final = "questions"
#: The schema that a session is in unless it says otherwise.
DEFAULT_SCHEMA: Final = "default"


def name_views(spark: SparkSession, views: Iterable[View], schemas: Iterable[str] = (DEFAULT_SCHEMA,)) -> None:
    """Name them for SQL; the tables that they read have their names. A function is named in each of ``schemas``: Spark
    finds it in the one that a session is in, and lets nobody write another before its name."""
    for view in views:
        taken = ", ".join(f"{name}_given {kind}" for name, kind in view.parameters)
        for schema in schemas if taken else ():
            spark.sql(f"CREATE OR REPLACE FUNCTION {schema}.{view.name}({taken}) RETURNS TABLE RETURN {view.sql}")
        if not taken:
            spark.sql(f"CREATE OR REPLACE VIEW {view.full_name} AS {view.sql}")


def question_view(name: str) -> str:
    """The view of the question of that name."""
    return f"{QUESTIONS_SCHEMA}.{name.replace('-', '_')}"


_QUESTIONS: Final = tuple(
    View(question_view(question.name), question.title, question.read, question.sql_of_all, question.given_types)
    for question in questions().values()
)
QUESTION_VIEWS: Final[Mapping[str, View]] = {view.full_name: view for view in _QUESTIONS if not view.parameters}
#: Those that need parameters, as functions: ``SELECT * FROM leader_at(TIMESTAMP '...')``.
QUESTION_FUNCTIONS: Final[Mapping[str, View]] = {view.name: view for view in _QUESTIONS if view.parameters}
