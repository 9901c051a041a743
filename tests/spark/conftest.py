"""What the tests that share one Spark do when a module of them has ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.lakes.shared import (
    captures,
    damaged_copies,
    extracts,
    incident_lake,
    kraft_lake,
    migrated,
    offset_lake,
    quorum,
    reordered,
    shared_checks,
    shared_lake,
    truths,
)
from tests.support.lakes.two_runs import two_runs

# its modules assert, and are no tests themselves
pytest.register_assert_rewrite("tests.spark.dashboards.kraft_answers")

__all__ = [
    "captures",
    "damaged_copies",
    "extracts",
    "incident_lake",
    "kraft_lake",
    "migrated",
    "offset_lake",
    "quorum",
    "reordered",
    "shared_checks",
    "shared_lake",
    "truths",
    "two_runs",
]


@pytest.fixture(scope="module", autouse=True)
def _forget_lakes_of_the_module(spark: Any) -> Iterator[None]:
    """Delta keeps what it knows of each table for an hour: of a hundred lakes, it fills the driver's memory."""
    yield
    spark.catalog.clearCache()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
