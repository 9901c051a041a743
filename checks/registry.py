"""All checks of our tables: those of the declarations and those that join tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from checks.catalog import Check, Pass
from checks.from_specs import row_pass, schema_check
from checks.relations import relation_passes
from ingest.lake.tables import TABLES, TableSpec

#: The tables that are checked, by full name; quality holds results, not data.
CHECKED_TABLES: Final[tuple[TableSpec, ...]] = tuple(spec for spec in TABLES.values() if spec.schema != "quality")


@dataclass(frozen=True, slots=True)
class Registry:
    """The schema checks, and the passes with theirs."""

    schema_checks: tuple[Check, ...]
    passes: tuple[Pass, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check once."""
        return (*self.schema_checks, *(check for each in self.passes for check in each.checks))


@cache
def registry() -> Registry:
    """The checks of this version of the program."""
    passes = tuple(row_pass(spec) for spec in CHECKED_TABLES)
    return Registry(tuple(schema_check(spec) for spec in CHECKED_TABLES), (*passes, *relation_passes()))
