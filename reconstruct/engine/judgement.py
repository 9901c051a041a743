"""What every step of a run finds and counts: gold.divergences is made once, when all have judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.tables.gold import DIVERGENCES
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.engine.staging import Staging
from reconstruct.partitions.spark.step import VERDICTS, finding_row, rows_of

Counts = Mapping[tuple[str, str, str], int]


class Judgement:
    """Collects the wide rows of the steps: findings, and how often each (cluster, rule, verdict) occurred."""

    def __init__(self, lake: Lake, stage: Staging) -> None:
        self._spark = lake.spark
        self._stage = stage
        self._findings: list[DataFrame] = []
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def keep(self, judged: DataFrame, name: str) -> DataFrame:
        """Wide rows that hold findings and verdicts: staged, so that they are made once, and counted."""
        kept = self._stage.keep(judged, name)
        self._findings.append(rows_of(kept, DIVERGENCES))
        verdicts = kept.where(F.col("table_name") == VERDICTS).groupBy("cluster_id", "rule", "verdict")
        for row in verdicts.agg(F.sum("times").alias("times")).collect():
            self._counts[row["cluster_id"], row["rule"], row["verdict"]] += row["times"]
        return kept

    def add_clusters(self, histories: Sequence[ClusterHistory]) -> None:
        """What was judged of each cluster as a whole."""
        nothing = dict.fromkeys(DIVERGENCES.column_names)
        rows = [
            {**nothing, **finding_row(finding), "cluster_id": history.cluster_id}
            for history in histories
            for finding in history.verdicts.findings
        ]
        self._findings.append(self._spark.createDataFrame(rows, DIVERGENCES.struct))
        for history in histories:
            for (rule_id, verdict), times in history.verdicts.counts.items():
                self._counts[history.cluster_id, rule_id, verdict] += times

    def findings(self) -> DataFrame:
        """All that was found, as rows of gold.divergences."""
        return reduce(DataFrame.unionByName, self._findings)

    @property
    def counts(self) -> Counts:
        """How often each (cluster, rule, verdict) occurred."""
        return self._counts
