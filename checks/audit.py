"""The gate before publication: gold as a run would publish it, judged by the checks of that stage alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from checks.catalog import CRITICAL
from checks.measure import Table, measure_passes, read_table
from checks.pipeline import gate_sentence
from checks.registry import registry
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES

STAGE: Final = "gold"


def audit_gold(candidate: Lake, progress: Callable[[str], None]) -> tuple[str, ...]:
    """A sentence for each critical check of gold that ``candidate`` breaks: none, and it may be published.

    Great Expectations judges what Spark has counted, as in :func:`checks.pipeline.run_checks`. Columns and types are
    not asked for: rows that are published take those of their table.
    """
    from checks.gate import judge  # Great Expectations takes seconds to import

    passes = [each for each in registry().passes if each.stage == STAGE]
    progress(f"audit: {sum(len(each.checks) for each in passes)} checks of gold before it is published")
    tables = {name: Table.of(read_table(candidate, TABLES[name])) for each in passes for name in each.reads}
    measured = [m for m in measure_passes(candidate, passes, tables) if m.check.severity == CRITICAL]
    holds = judge(measured)
    return tuple(gate_sentence(m) for m in measured if not holds[m.check.check_id])
