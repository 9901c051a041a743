"""What a run of the checks leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A row of ``quality.check_results``, whose columns these are.

    ``examples`` is a JSON array of objects, None where there are none; the counts are None where nothing was counted.
    """

    run_id: str
    check_id: str
    table_name: str
    severity: str
    verdict: str
    checked_count: int | None
    broken_count: int | None
    examples: str | None
    explanation: str
    rules_fingerprint: str
    model_version: str
    run_at: datetime


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All results of a run; ``failed_gates`` has a sentence for each critical check that does not hold.

    ``docs_index`` is the first page of the Data Docs, None where none were asked for.
    """

    run_id: str
    run_at: datetime
    rules_fingerprint: str
    results: tuple[CheckResult, ...]
    failed_gates: tuple[str, ...] = field(default=())
    docs_index: str | None = None
