"""Kafka's rules as check results: a broken rule is a finding about the cluster and fails no gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from checks.catalog import INFO
from checks.measure import EXAMPLE_LENGTH, EXAMPLES_COUNT
from checks.results import CheckResult, examples_array
from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import INGESTED_FILES
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.quality import RUN_METRICS
from reconstruct.findings.verdicts import BROKEN, CANNOT_BE_JUDGED, KEPT
from reconstruct.rule_book import RULES, Rule

_EXAMPLE_COLUMNS: Final = (
    "divergence_id",
    "cluster_id",
    "topic",
    "partition_id",
    "broker_id",
    "severity",
    "detected_at",
    "explanation",
)


def rule_results(lake: Lake) -> tuple[CheckResult, ...]:
    """Each rule against ``gold.divergences`` and the verdicts counted by the latest run of reconstruct."""
    counted = _verdict_counts(lake)
    found, examples = _findings(lake)
    return tuple(
        rule_result(
            rule,
            counted.get((rule_id, KEPT), 0),
            counted.get((rule_id, CANNOT_BE_JUDGED), 0),
            {severity: count for (of, severity), count in sorted(found.items()) if of == rule_id},
            examples.get(rule_id, ()),
        )
        for rule_id, rule in sorted(RULES.items())
    )


def rule_result(
    rule: Rule, kept: int, unjudged: int, findings: Mapping[str, int], examples: Sequence[str]
) -> CheckResult:
    """How a rule fared over the whole lake; counts are cases, ``findings`` those of each severity.

    It is broken by any finding, and kept by at least one case; otherwise nothing could be judged.
    """
    broken = sum(findings.values())
    explanation = f"{rule.promise} ({rule.source})"
    if findings:
        explanation += f"; findings: {', '.join(f'{n} of severity {severity}' for severity, n in findings.items())}"
    if unjudged:
        explanation += f"; {unjudged} cases cannot be judged"
    verdict = BROKEN if broken else KEPT if kept else CANNOT_BE_JUDGED
    shown = examples_array(examples)
    return CheckResult(rule.rule_id, rule.table, INFO, verdict, kept + broken, broken, shown, explanation)


def _verdict_counts(lake: Lake) -> dict[tuple[str, str], int]:
    """Cases by (rule, verdict), over all clusters, of the run that measured each last: a few dozen rows."""
    names = {f"rule_{verdict}_count": verdict for verdict in (KEPT, BROKEN, CANNOT_BE_JUDGED)}
    metrics = lake.read(RUN_METRICS).where(F.col("metric").isin(list(names)))
    there = lake.read(INGESTED_FILES).select("cluster_id").distinct()
    latest = F.max(F.struct("run_at", "run_id")).over(Window.partitionBy("cluster_id"))
    of_last = (
        metrics.join(there, "cluster_id", "left_semi").withColumn("latest", latest).where("run_id = latest.run_id")
    )
    summed = of_last.groupBy("metric", "subject").agg(F.sum("value").alias("times"))
    return {(row["subject"], names[row["metric"]]): int(row["times"]) for row in summed.collect()}


def _findings(lake: Lake) -> tuple[dict[tuple[str, str], int], dict[str, list[str]]]:
    """Findings by (rule, severity), and the first ones of each rule, as JSON."""
    alike = Window.partitionBy("rule_id", "severity")
    ranked = lake.read(DIVERGENCES).select(
        "rule_id",
        "severity",
        F.left(F.to_json(F.struct(*_EXAMPLE_COLUMNS), {"ignoreNullFields": "false"}), F.lit(EXAMPLE_LENGTH)).alias(
            "example"
        ),
        F.row_number().over(alike.orderBy("detected_at", "cluster_id", "divergence_id")).alias("rank"),
        F.count("*").over(alike).alias("times"),
    )
    counts: dict[tuple[str, str], int] = {}
    examples: dict[str, list[str]] = {}
    first = ranked.where(F.col("rank") <= EXAMPLES_COUNT).orderBy("rule_id", "severity", "rank")
    for row in first.collect():  # rules x severities x EXAMPLES_COUNT at most
        counts[row["rule_id"], row["severity"]] = row["times"]
        examples[row["rule_id"]] = [*examples.get(row["rule_id"], ()), row["example"]][:EXAMPLES_COUNT]
    return counts, examples
