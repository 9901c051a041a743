"""What every step of a run finds and counts: gold.divergences is made once, when all have judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.plans import union
from ingest.lake.tables.gold import DIVERGENCES
from reconstruct.engine.folds import local_rows, rows_of
from reconstruct.engine.rows import TABLE, VERDICTS, finding_row
from reconstruct.engine.staging import Staging
from reconstruct.findings.verdicts import Verdicts

#: What tells findings apart: rule, subject and evidence. Several may rest on the same records. The topic's incarnation
#: is left out: older evidence that comes later may name it anew.
_IDENTITY: Final = (
    *("rule_id", "divergence_type", "topic", "partition_id", "broker_id", "replica_id"),
    *("observed", "evidence"),
)
#: Of which clusters, rules and verdicts there are few.
_VERDICT: Final = ("cluster_id", "rule", "verdict")


class Judgement:
    """Collects what the steps found, and how often each (cluster, rule, verdict) occurred."""

    def __init__(self, lake: Lake, stage: Staging) -> None:
        self._spark = lake.spark
        self._stage = stage
        self._findings: list[DataFrame] = []
        self._verdicts: list[DataFrame] = []
        self._known: Counter[tuple[str, str, str]] = Counter()

    def keep(self, judged: DataFrame, name: str) -> DataFrame:
        """Rows of a step that hold findings and verdicts: staged, so that they are made once."""
        return self.take(self._stage.keep(judged, name))

    def take(self, kept: DataFrame) -> DataFrame:
        """Rows of a step that hold findings and verdicts and are staged already."""
        self._findings.append(rows_of(kept, DIVERGENCES))
        self._verdicts.append(kept.where(F.col(TABLE) == VERDICTS).select(*_VERDICT, "times"))
        return kept

    def add(self, verdicts_of_clusters: Mapping[str, Verdicts]) -> None:
        """What was judged of each cluster as a whole, by its id."""
        rows = [
            finding_row(finding, cluster_id=cluster_id)
            for cluster_id, verdicts in verdicts_of_clusters.items()
            for finding in verdicts.findings
        ]
        self._findings.append(local_rows(self._spark, DIVERGENCES, rows))
        for cluster_id, verdicts in verdicts_of_clusters.items():
            for (rule_id, verdict), times in verdicts.counts.items():
                self._known[cluster_id, rule_id, verdict] += times

    def counts(self) -> Counter[tuple[str, str, str]]:
        """How often each (cluster, rule, verdict) occurred, in all steps."""
        counts = Counter(self._known)
        if self._verdicts:
            summed = union(self._verdicts).groupBy(*_VERDICT).agg(F.sum("times").alias("times"))
            counts.update({(row[0], row[1], row[2]): row["times"] for row in summed.collect()})
        return counts

    def findings(self, rule_sources: Mapping[str, str]) -> DataFrame:
        """All that was found, as rows of gold.divergences; ``rule_sources`` say by rule id where a rule comes from."""
        sources = F.create_map(*(F.lit(text) for pair in sorted(rule_sources.items()) for text in pair))
        identity = F.to_json(F.struct(*_IDENTITY), {"ignoreNullFields": "false"})
        added = {"rule_source": sources[F.col("rule_id")], "divergence_id": F.substring(F.sha2(identity, 256), 1, 32)}
        return union(self._findings).withColumns(added)
