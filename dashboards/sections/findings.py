"""Findings: how many by rule, the worst one by one with their evidence, and how often each rule was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from dashboards import words
from dashboards.section import Cluster, Section
from dashboards.sections.timelines import partitions
from dashboards.source import Source, by_cluster, ms, narrowed, together, top, top_of_cluster
from ingest.lake.tables import gold, quality
from reconstruct.rule_book import RULES

_SEVERITY_WORDS: Final = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("info", "info")}
#: Harm that the evidence proves, the worst first, in the words of the verdict and of a badge.
PROVEN_HARM: Final[Mapping[str, tuple[str, str]]] = {
    "records_lost": ("committed records were lost", "records lost"),
    "replicas_differ": ("replicas hold different records at one offset", "replicas differ"),
    "two_leaders": ("two replicas led at a time", "two leaders"),
    "unavailable": ("nobody could write", "unavailable"),
}


@dataclass(frozen=True)
class FindingCount:
    """Findings of one rule, type, severity and harm."""

    severity: str
    rule_id: str
    divergence_type: str
    findings: int
    partitions: int = 0
    first_ms: float | None = None
    last_ms: float | None = None
    harm: str | None = None


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
    harm: str | None = None
    alternatives: tuple[str, ...] = ()

    @property
    def proves_harm(self) -> bool:
        """Whether its evidence proves that harm was done."""
        return self.harm in PROVEN_HARM

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
        return RULES[self.rule_id].promise if self.rule_id in RULES else ""


@dataclass(frozen=True)
class Findings:
    """Counts, the worst findings, and the verdicts of the cluster's latest reconstruction."""

    counts: tuple[FindingCount, ...] = ()
    worst: tuple[Finding, ...] = ()
    rules: tuple[RuleVerdicts, ...] = ()

    @property
    def total(self) -> int:
        return sum(row.findings for row in self.counts)

    def broken_words(self, rule_id: str) -> str:
        """The findings of a rule by severity; empty where it has none."""
        return _by_severity([row for row in self.counts if row.rule_id == rule_id])

    @property
    def harm(self) -> str:
        """The proven harm as a sentence; empty where there is none."""
        harms = []
        for harm, (sentence, _) in PROVEN_HARM.items():
            if number := sum(row.findings for row in self.counts if row.harm == harm):
                harms.append(f"{sentence} ({words.count(number, 'finding')})")
        return f"Harm is proven: {words.listing(harms)}." if harms else ""

    @property
    def worst_severity(self) -> str:
        """``none`` without findings."""
        return next((word for word in gold.SEVERITIES if any(row.severity == word for row in self.counts)), "none")


@dataclass(frozen=True)
class FindingInTimeline:
    """A finding as a sign on the lane of its partition, and what the page saves of it beside its texts."""

    at_ms: float
    severity: str
    harm: str | None
    proves_harm: bool
    rule_id: str
    divergence_type: str
    topic: str | None
    topic_incarnation: str | None
    partition_id: int | None
    broker_id: int | None
    replica_id: int | None
    alternatives: tuple[str, ...]
    inferred_from: str | None


def gather(source: Source) -> Mapping[str, Findings]:
    """Findings of each cluster."""
    found: dict[str, Mapping[str, Any]] = together(
        {name: partial(query, source) for name, query in (("counts", _counts), ("worst", _worst), ("rules", _verdicts))}
    )
    return {
        cluster: Findings(**{name: rows.get(cluster, ()) for name, rows in found.items()})
        for cluster in source.clusters
    }


def lane_id(cluster: Cluster, finding: Finding) -> str | None:
    """The page's id of the lane that a finding belongs to; None where the page draws no such lane.

    A finding that names no incarnation belongs to the only lane of its partition.
    """
    lanes, place = cluster.of(partitions.SECTION), (finding.topic, finding.partition_id)
    same = [number for number, lane in enumerate(lanes) if (lane.topic, lane.partition_id) == place]
    exact = [number for number in same if lanes[number].topic_incarnation == finding.topic_incarnation]
    chosen = exact or (same if len(same) == 1 else [])
    return f"lane-{cluster.number}-{chosen[0]}" if chosen else None


def chart(data: Findings) -> tuple[FindingInTimeline, ...]:
    """The findings as signs."""
    return tuple(narrowed(FindingInTimeline, row) for row in data.worst)


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
    by_rule: dict[str, int] = {}
    for row in counts:
        rule = f"{words.visible(row.rule_id)} {words.named(row.divergence_type)}"
        by_rule[rule] = by_rule.get(rule, 0) + int(row.findings)
    named_rules = [f"{rule} ({number:,})" for rule, number in by_rule.items()]
    return f"{words.count(total, 'finding')} ({_by_severity(counts)}): {words.listing(named_rules)}."


def _by_severity(counts: Sequence[FindingCount]) -> str:
    """``1 error, 2 warnings and 1 info``"""
    numbers = {word: sum(row.findings for row in counts if row.severity == word) for word in _SEVERITY_WORDS}
    return words.listing(words.count(number, *_SEVERITY_WORDS[word]) for word, number in numbers.items() if number)


def _gravity() -> list[Column]:
    """The order of findings, the worst first: by proven harm, then by severity."""
    harm = F.array_position(F.array(*map(F.lit, PROVEN_HARM)), F.col("harm"))
    severity = F.array_position(F.array(*map(F.lit, gold.SEVERITIES)), F.col("severity"))
    return [F.when(harm > 0, harm).asc_nulls_last(), severity]


def _counts(source: Source) -> dict[str, tuple[FindingCount, ...]]:
    rows = (
        source.read(gold.DIVERGENCES)
        .groupBy("cluster_id", "severity", "harm", "rule_id", "divergence_type")
        .agg(
            F.count("*").alias("findings"),
            F.count_distinct("topic", "topic_incarnation", "partition_id").alias("partitions"),
            F.min(ms("detected_at")).alias("first_ms"),
            F.max(ms("detected_at")).alias("last_ms"),
        )
    )
    return by_cluster(
        FindingCount, top_of_cluster(rows, [*_gravity(), *map(F.col, ("rule_id", "divergence_type", "harm"))], 200)
    )


def _worst(source: Source) -> dict[str, tuple[Finding, ...]]:
    """The findings shown one by one, the worst first, by time within a harm and severity.

    No rule takes more than its share, so that one noisy rule hides no other.
    """
    order = [*_gravity(), F.col("detected_at"), F.col("rule_id"), F.col("divergence_id")]
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


SECTION: Final = Section("findings", gather, Findings(), chart=chart)
