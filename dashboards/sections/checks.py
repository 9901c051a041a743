"""The latest run of the checks over the whole lake: how many gave which verdict, and those that broke."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import functions as F

from checks.advice import MATTERS, advice
from dashboards import words
from dashboards.source import Source, grouped
from ingest.lake.tables import quality

_SEVERITY_WORDS: Final = {
    "critical": ("check of these tables failed", "checks of these tables failed"),
    "warning": ("warning of the checks", "warnings of the checks"),
}


@dataclass(frozen=True)
class BrokenCheck:
    """A check that failed."""

    check_id: str
    table_name: str
    severity: str
    checked_count: int | None
    broken_count: int | None
    examples: str | None
    explanation: str

    @property
    def advice(self) -> str:
        """What to do."""
        return advice(self.check_id, self.severity)


@dataclass(frozen=True)
class Checks:
    """Checks by verdict, and the broken ones; empty where no check ran. ``docs`` is the address of the Data Docs from
    the page, None where there are none."""

    verdicts: Mapping[str, int] = field(default_factory=dict)
    broken: tuple[BrokenCheck, ...] = ()
    docs: str | None = None

    @property
    def verdict(self) -> str:
        """Which checks are broken, and whether it matters; empty where none is."""
        sentences = []
        for severity, (one, many) in _SEVERITY_WORDS.items():
            if names := [row.check_id for row in self.broken if row.severity == severity]:
                listed = words.listing(map(words.visible, names))
                sentences.append(f"{words.count(len(names), one, many)}: {listed}. {MATTERS[severity]}")
        return " ".join(sentences)


def latest_checks(source: Source) -> Checks:
    """The latest run of the checks."""
    rows = source.all(quality.CHECK_RESULTS)
    latest = rows.orderBy(F.col("run_at").desc(), F.col("run_id").desc()).select("run_id").first()
    if latest is None:
        return Checks()
    # Kafka's rules are among them (severity info): a broken one is a finding and shown as such, not a failed check.
    run = rows.where((F.col("run_id") == latest["run_id"]) & (F.col("severity") != "info"))
    verdicts = {row["verdict"]: row["count"] for row in run.groupBy("verdict").count().collect()}
    broken = run.where("verdict = 'broken'").orderBy("severity", "check_id").limit(source.limits.groups)
    return Checks(verdicts, grouped(BrokenCheck, broken, ()).get((), ()))
