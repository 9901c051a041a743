"""Findings: how many by rule, the worst one by one with their evidence, and how often each rule was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from dashboards import words
from dashboards.records import Record
from dashboards.rows import by_cluster
from dashboards.section import Cluster, Section
from dashboards.sections.timelines import partitions
from dashboards.source import Source, ms, together, top, top_of_cluster
from ingest.lake.tables import gold, quality
from reconstruct.rule_book import RULES

_SEVERITY_WORDS: Final = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("note", "notes")}


@dataclass(frozen=True)
class FindingCount:
    """Findings of one rule, type and severity."""

    severity: str
    rule_id: str
    divergence_type: str
    findings: int
    partitions: int = 0
    first_ms: float | None = None
    last_ms: float | None = None


@dataclass(frozen=True)
class Finding:
    """A row of ``gold.divergences``; ``evidence_count`` is of all its evidence, ``evidence`` holds the first ids."""

    divergence_id: str
    topic: str | None
    topic_incarnation: str | None
    partition_id: int | None
    broker_id: int | None
    replica_id: int | None
    rule_id: str
    divergence_type: str
    severity: str
    at_ms: float
    expected: str
    observed: str
    explanation: str
    known_issue: str | None
    rule_source: str
    inferred_from: str | None
    evidence: tuple[str, ...]
    evidence_count: int

    @property
    def place(self) -> str:
        """``topic-0``; empty where it is of no partition."""
        return words.partition(self.topic, self.partition_id)


@dataclass(frozen=True)
class RuleVerdicts:
    """How often a rule was kept, broken, or could not be judged."""

    rule_id: str
    kept: int
    broken: int
    cannot_be_judged: int

    @property
    def promise(self) -> str:
        return next((rule.promise for rule in RULES.values() if rule.rule_id == self.rule_id), "")


@dataclass(frozen=True)
class Findings:
    """Counts, the worst findings, and the verdicts of the cluster's latest reconstruction."""

    counts: tuple[FindingCount, ...] = ()
    worst: tuple[Finding, ...] = ()
    rules: tuple[RuleVerdicts, ...] = ()

    @property
    def total(self) -> int:
        return sum(row.findings for row in self.counts)

    @property
    def worst_severity(self) -> str:
        """``none`` without findings."""
        return next((word for word in gold.SEVERITIES if any(row.severity == word for row in self.counts)), "none")


@dataclass(frozen=True)
class FindingInTimeline:
    """A finding as a sign on the lane of its partition."""

    at_ms: float
    severity: str
    rule_id: str
    divergence_type: str
    topic: str | None
    topic_incarnation: str | None
    partition_id: int | None


@dataclass(frozen=True)
class FindingWithEvidence:
    """A finding with its place on the page and the records behind it, None where the lake has no such record."""

    finding: Finding
    anchor: str
    lane: str | None
    records: tuple[tuple[str, Record | None], ...]


@dataclass(frozen=True)
class FindingsView:
    """What the template reads."""

    data: Findings
    findings: tuple[FindingWithEvidence, ...]
    judged: bool


def gather(source: Source) -> Mapping[str, Findings]:
    """Findings of each cluster."""
    found: dict[str, Mapping[str, Any]] = together(
        {
            "counts": lambda: _counts(source),
            "worst": lambda: _worst(source),
            "rules": lambda: _verdicts(source),
        }
    )
    return {
        cluster: Findings(**{name: rows.get(cluster, ()) for name, rows in found.items()})
        for cluster in source.clusters
    }


def view(cluster: Cluster, data: Findings) -> FindingsView:
    """The findings with their anchors, lanes and records."""
    lanes = cluster.of(partitions.SECTION)
    findings = tuple(
        FindingWithEvidence(
            row,
            f"finding-{cluster.number}-{number}",
            None if row.topic is None else partitions.lane_id(cluster.number, lanes, row),
            tuple((record_id, cluster.records.get(record_id)) for record_id in row.evidence),
        )
        for number, row in enumerate(data.worst)
    )
    return FindingsView(data, findings, partitions.is_judged(cluster))


def chart(data: Findings) -> tuple[FindingInTimeline, ...]:
    """The findings as signs."""
    return tuple(
        FindingInTimeline(
            row.at_ms,
            row.severity,
            row.rule_id,
            row.divergence_type,
            row.topic,
            row.topic_incarnation,
            row.partition_id,
        )
        for row in data.worst
    )


def verdict(counts: Sequence[FindingCount], judged: bool, rules: Sequence[RuleVerdicts] = ()) -> str:
    """How many findings, of which severity, by which rules."""
    total = sum(row.findings for row in counts)
    if not total:
        if not judged:
            return "Nothing could be judged: the lake holds no timeline of this cluster."
        if not rules:
            return "No findings: no rule that was judged is broken in this evidence."
        kept, unjudged = sum(row.kept for row in rules), sum(row.cannot_be_judged for row in rules)
        some = f"; {words.count(unjudged, 'time')} the evidence allowed no verdict" if unjudged else ""
        return (
            f"No findings: {words.count(len(rules), 'rule')} judged {words.count(kept, 'time')}"
            f" and kept each time{some}."
        )
    by_severity = []
    for severity, (one, many) in _SEVERITY_WORDS.items():
        if number := sum(row.findings for row in counts if row.severity == severity):
            by_severity.append(words.count(number, one, many))
    by_rule: dict[str, int] = {}
    for row in counts:
        rule = f"{words.visible(row.rule_id)} {words.named(row.divergence_type)}"
        by_rule[rule] = by_rule.get(rule, 0) + int(row.findings)
    named_rules = [f"{rule} ({number:,})" for rule, number in by_rule.items()]
    return f"{words.count(total, 'finding')} ({words.listing(by_severity)}): {words.listing(named_rules)}."


def _severity() -> Column:
    """The severity's rank, the worst first."""
    pairs = [F.lit(item) for number, word in enumerate(gold.SEVERITIES) for item in (word, number)]
    return F.element_at(F.create_map(*pairs), F.col("severity"))


def _counts(source: Source) -> dict[str, tuple[FindingCount, ...]]:
    rows = (
        source.read(gold.DIVERGENCES)
        .groupBy("cluster_id", "severity", "rule_id", "divergence_type")
        .agg(
            F.count("*").alias("findings"),
            F.count_distinct("topic", "topic_incarnation", "partition_id").alias("partitions"),
            F.min(ms("detected_at")).alias("first_ms"),
            F.max(ms("detected_at")).alias("last_ms"),
        )
    )
    return by_cluster(
        FindingCount, top_of_cluster(rows, [_severity(), F.col("rule_id"), F.col("divergence_type")], 200)
    )


def _worst(source: Source) -> dict[str, tuple[Finding, ...]]:
    """The findings shown one by one, the worst first, by time within a severity.

    No rule takes more than its share, so that one noisy rule hides no other.
    """
    order = [_severity(), F.col("detected_at"), F.col("rule_id"), F.col("divergence_id")]
    types = ["cluster_id", "severity", "rule_id", "divergence_type"]
    each = top(source.read(gold.DIVERGENCES), types, order, source.limits.findings_per_type)
    worst = top_of_cluster(each, order, source.limits.findings).withColumns(
        {
            "at_ms": ms("detected_at"),
            "evidence_count": F.size("evidence"),
            "evidence": F.slice("evidence", 1, source.limits.evidence_per_finding),
        }
    )
    return by_cluster(Finding, worst)


def _verdicts(source: Source) -> dict[str, tuple[RuleVerdicts, ...]]:
    rows = source.read(quality.RUN_METRICS).where(F.col("metric").rlike("^rule_.*_count$"))
    latest = F.max(F.struct("run_at", "run_id")).over(Window.partitionBy("cluster_id"))
    run = rows.withColumn("latest", latest).where("run_id = latest.run_id")

    def times(verdict: str) -> Column:
        value = F.when(F.col("metric") == f"rule_{verdict}_count", F.col("value")).otherwise(F.lit(0.0))
        return F.sum(value).alias(verdict)

    counted = run.groupBy("cluster_id", F.col("subject").alias("rule_id")).agg(*map(times, quality.VERDICTS))
    return by_cluster(RuleVerdicts, top_of_cluster(counted, [F.col("rule_id")], 200))


SECTION: Final = Section("findings", gather, Findings(), view, chart)
