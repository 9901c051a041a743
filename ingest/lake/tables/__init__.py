"""Every table of the lake, declared once.

``bronze``, ``silver`` (with ``events``), ``gold`` and ``quality`` declare them. ``spec`` is what a declaration is made
of, ``shared`` the columns that many tables have, ``types`` the types of columns for Spark and Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ingest.lake.tables.bronze import BRONZE_TABLES
from ingest.lake.tables.gold import GOLD_TABLES
from ingest.lake.tables.quality import QUALITY_TABLES
from ingest.lake.tables.silver import SILVER_TABLES
from ingest.lake.tables.spec import Column, TableSpec, col

#: All tables by their full name, in the order in which they are made.
TABLES: Final[Mapping[str, TableSpec]] = {
    spec.full_name: spec for spec in (*BRONZE_TABLES, *SILVER_TABLES, *GOLD_TABLES, *QUALITY_TABLES)
}
SCHEMAS: Final = ("bronze", "silver", "gold", "quality")

__all__ = ["SCHEMAS", "TABLES", "Column", "TableSpec", "col"]
