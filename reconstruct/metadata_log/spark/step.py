"""The metadata log on Spark: topics folded each by itself, what belongs to none replayed on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame

from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import METADATA_RECORDS, METADATA_SNAPSHOTS
from ingest.lake.tables.events import METADATA_CHANGES
from ingest.lake.tables.gold import DIVERGENCES
from reconstruct.engine.folds import fold, local_rows, table_columns
from reconstruct.engine.rows import Row, value_of, verdict_rows
from reconstruct.engine.staging import Staging
from reconstruct.metadata_log.evidence import ClusterLog, LogRow
from reconstruct.metadata_log.rows import change_rows
from reconstruct.metadata_log.spark.evidence import cluster_logs, log_rows
from reconstruct.metadata_log.timeline import Replayed, replay_of_none, replay_rows

_TOPIC_KEY: Final = ("cluster_id", "topic")


@dataclass(frozen=True, slots=True)
class MetadataHistory:
    """One cluster's metadata log, and what its records of no topic made."""

    log: ClusterLog
    replayed: Replayed


def metadata_histories(lake: Lake, stage: Staging) -> tuple[dict[str, MetadataHistory], DataFrame]:
    """By cluster; and the staged rows of log and snapshots."""
    records, snapshots = lake.read(METADATA_RECORDS), lake.read(METADATA_SNAPSHOTS)
    if not (lake.rows_count(METADATA_RECORDS) or lake.rows_count(METADATA_SNAPSHOTS)):
        return {}, records
    rows = stage.keep(log_rows(records, snapshots), "metadata_log_rows")
    logs = cluster_logs(records, snapshots, rows)
    return {cluster_id: MetadataHistory(log, replay_of_none(log)) for cluster_id, log in logs.items()}, rows


def topic_changes(rows: DataFrame, histories: Mapping[str, MetadataHistory]) -> DataFrame:
    """Rows of ``silver.metadata_changes`` of topics, their partitions and settings, with findings and verdicts."""
    logs = {cluster_id: history.log.of_quorum for cluster_id, history in histories.items()}

    def of_topic(evidence: Iterable[Row]) -> Iterator[dict[str, Any]]:
        rows = list(evidence)
        replayed = replay_rows((value_of(LogRow, row) for row in rows), logs[rows[0]["cluster_id"]])
        yield from change_rows(replayed.changes)
        yield from verdict_rows(replayed.verdicts)

    return fold(rows.where("topic IS NOT NULL"), _TOPIC_KEY, table_columns(METADATA_CHANGES, DIVERGENCES), of_topic)


def other_changes(lake: Lake, histories: Mapping[str, MetadataHistory]) -> DataFrame:
    """Rows of ``silver.metadata_changes`` of what belongs to no topic."""
    return local_rows(
        lake.spark,
        METADATA_CHANGES,
        (
            row
            for cluster_id, history in histories.items()
            for row in change_rows(history.replayed.changes, cluster_id=cluster_id, topic=None)
        ),
    )
