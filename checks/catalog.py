"""What a check is, and the fingerprint of a set of checks.

A check counts the *cases* that break it: rows of a table, keys, ids, files, records. Checks that look at the same
cases share a :class:`Pass`, so that one aggregation answers all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from string import Formatter
from typing import Final

from ingest.lake.tables import TABLES

CRITICAL: Final = "critical"  # fails the gate
WARNING: Final = "warning"  # is reported
INFO: Final = "info"  # a fact about the cluster, not about our tables


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation over the cases of a pass.

    ``applies`` and ``broken`` are Spark SQL conditions over the columns of a case: the check judges the cases to which
    it applies and is broken by those for which ``broken`` is true (NULL breaks nothing). ``shows`` names the columns
    that an example prints beside the pass's key. ``not_null`` names the column that the check wants without NULL: a
    table whose own schema says NOT NULL cannot hold one (Delta refuses it, and Spark does not even look), so there the
    check holds without being run. ``unique`` names columns that no two cases may share: then a case that repeats them
    breaks the check, and ``broken`` only says so.
    """

    table: str
    name: str
    explanation: str
    broken: str
    applies: str = "true"
    shows: tuple[str, ...] = ()
    severity: str = CRITICAL
    not_null: str | None = None
    unique: tuple[str, ...] = ()

    @property
    def check_id(self) -> str:
        """``schema.table.expectation``, the key of ``quality.check_results`` within a run."""
        return f"{self.table}.{self.name}"


@dataclass(frozen=True, slots=True)
class Query:
    """Spark SQL that gives cases; ``{name}`` in it stands for the table of that name."""

    name: str
    cases: str

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables that the query reads, by full name."""
        return tables_in(self.cases)


@dataclass(frozen=True, slots=True)
class Pass(Query):
    """A query, and the checks over its cases: answered together by one aggregation.

    ``stage`` says when: ``bronze`` after ingest, ``silver`` after reconstruct, ``gold`` before publication, ``across``
    what joins the layers. ``key`` names the columns that identify a case: examples begin with them, in their order.
    ``beside`` is Spark SQL that gives, for some keys, more columns for examples to show.
    """

    stage: str
    key: tuple[str, ...]
    checks: tuple[Check, ...]
    beside: str = ""


def tables_in(query: str) -> tuple[str, ...]:
    """The tables that stand in a query as ``{name}``, by full name, sorted."""
    by_name = {spec.name: spec.full_name for spec in TABLES.values()}
    return tuple(sorted({by_name[name] for _, name, _, _ in Formatter().parse(query) if name}))


def fingerprint(checks: Iterable[Check], passes: Iterable[Query], rule_ids: Iterable[str]) -> str:
    """Hash of everything that decides a verdict: results of equal fingerprint are comparable between runs."""
    judged = [
        sorted([c.check_id, c.severity, c.applies, c.broken] for c in checks),
        sorted([p.name, p.cases] for p in passes),
        sorted(rule_ids),
    ]
    return hashlib.sha256(json.dumps(judged, sort_keys=True).encode()).hexdigest()[:16]
