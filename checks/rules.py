"""Kafka's rules as check results: a broken rule is a finding about the cluster and fails no gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from checks.measure import EXAMPLE_LENGTH, EXAMPLES_COUNT
from ingest.lake.delta import Lake
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.quality import RUN_METRICS
from reconstruct.findings.verdicts import BROKEN, CANNOT_BE_JUDGED, KEPT
from reconstruct.rule_book import RULES, Rule

_SHOWN: Final = (
    "divergence_id",
    "cluster_id",
    "topic",
    "partition_id",
    "broker_id",
    "severity",
    "detected_at",
    "explanation",
)


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """How a rule fared over the whole lake; counts are cases, ``by_severity`` the findings of each severity."""

    rule: Rule
    kept_count: int = 0
    unjudged_count: int = 0
    by_severity: tuple[tuple[str, int], ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def broken_count(self) -> int:
        return sum(count for _, count in self.by_severity)

    @property
    def verdict(self) -> str:
        """Broken by any finding; kept by at least one case; otherwise nothing could be judged."""
        if self.broken_count:
            return BROKEN
        return KEPT if self.kept_count else CANNOT_BE_JUDGED

    @property
    def explanation(self) -> str:
        """The rule, where it comes from, and what was found."""
        findings = ", ".join(f"{count} of severity {severity}" for severity, count in self.by_severity)
        unjudged = f"; {self.unjudged_count} cases cannot be judged" if self.unjudged_count else ""
        return f"{self.rule.promise} ({self.rule.source}){'; findings: ' + findings if findings else ''}{unjudged}"


def rule_outcomes(lake: Lake, rules: Mapping[str, Rule] = RULES) -> tuple[RuleOutcome, ...]:
    """Each rule against ``gold.divergences`` and the verdicts counted by the latest run of reconstruct."""
    counted = _verdict_counts(lake)
    found, examples = _findings(lake)
    return tuple(
        RuleOutcome(
            rule,
            counted.get((rule_id, KEPT), 0),
            counted.get((rule_id, CANNOT_BE_JUDGED), 0),
            tuple(sorted((severity, count) for (of, severity), count in found.items() if of == rule_id)),
            tuple(examples.get(rule_id, ())),
        )
        for rule_id, rule in sorted(rules.items())
    )


def _verdict_counts(lake: Lake) -> dict[tuple[str, str], int]:
    """Cases by (rule, verdict), over all clusters, of the run that measured last: a few dozen rows."""
    names = {f"rule_{verdict}_count": verdict for verdict in (KEPT, BROKEN, CANNOT_BE_JUDGED)}
    metrics = lake.read(RUN_METRICS).where(F.col("metric").isin(list(names)))
    last = metrics.orderBy(F.col("run_at").desc(), F.col("run_id").desc()).select("run_id").limit(1)
    summed = metrics.join(last, "run_id").groupBy("metric", "subject").agg(F.sum("value").alias("times"))
    return {(row["subject"], names[row["metric"]]): int(row["times"]) for row in summed.collect()}


def _findings(lake: Lake) -> tuple[dict[tuple[str, str], int], dict[str, list[str]]]:
    """Findings by (rule, severity), and the first ones of each rule, as JSON."""
    alike = Window.partitionBy("rule_id", "severity")
    ranked = lake.read(DIVERGENCES).select(
        "rule_id",
        "severity",
        F.left(F.to_json(F.struct(*_SHOWN), {"ignoreNullFields": "false"}), F.lit(EXAMPLE_LENGTH)).alias("example"),
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


def rule_ids(rules: Iterable[str] = RULES) -> tuple[str, ...]:
    """The rules' ids, sorted: they are part of the fingerprint."""
    return tuple(sorted(rules))
