"""The timeline of each cluster's quorum: its fold on Spark, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame

from ingest.lake.tables.quorum import QUORUM_TIMELINE
from reconstruct.engine.folds import fold, rows_of, table_columns
from reconstruct.engine.rows import Row, table_row, value_of
from reconstruct.metadata_log.evidence import ClusterLog
from reconstruct.quorum.evidence import QuorumFact
from reconstruct.quorum.timeline import QuorumSpan, quorum_timeline

_KEY: Final = ("cluster_id",)


def quorum_rows(spans: Sequence[QuorumSpan], cluster_id: str) -> Iterator[dict[str, Any]]:
    """Rows of ``silver.quorum_timeline`` of one cluster."""
    for sequence, span in enumerate(spans):
        interval, end = span.interval, span.leadership_end
        evidence = tuple(dict.fromkeys((*interval.evidence, *end.evidence)))
        given = {"cluster_id": cluster_id, "sequence": sequence, "evidence": evidence}
        yield table_row(QUORUM_TIMELINE, interval, interval.value, end, span, **given)


def quorum_timelines(evidence: DataFrame, logs: Mapping[str, ClusterLog]) -> DataFrame:
    """Rows of ``silver.quorum_timeline``; ``logs`` are the metadata logs by cluster, of those that have one."""

    def of_cluster(evidence: Iterable[Row]) -> Iterator[dict[str, Any]]:
        rows = list(evidence)
        cluster_id = rows[0]["cluster_id"]
        facts = [value_of(QuorumFact, row) for row in rows if row["kind"] is not None]
        yield from quorum_rows(quorum_timeline(facts, logs.get(cluster_id, ClusterLog(cluster_id))), cluster_id)

    return rows_of(fold(evidence, _KEY, table_columns(QUORUM_TIMELINE), of_cluster), QUORUM_TIMELINE)
