"""What the tests that share one Spark do when a module of them has ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.lakes.shared import (
    captures,
    created_again,
    damaged_copies,
    extracts,
    incident_lake,
    kraft_lake,
    migrated,
    named_lake,
    offset_lake,
    outage,
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
    "created_again",
    "damaged_copies",
    "extracts",
    "incident_lake",
    "kraft_lake",
    "migrated",
    "named_lake",
    "offset_lake",
    "outage",
    "quorum",
    "reordered",
    "shared_checks",
    "shared_lake",
    "truths",
    "two_runs",
]


@pytest.fixture(scope="module", autouse=True)
def _forget_lakes_of_the_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Delta keeps what it knows of each table for an hour: of a hundred lakes, it fills the driver's memory. Of the few
    that tests share it stays known: to read the log of each table again costs seconds in each module."""
    yield
    of_module = [item for item in request.session.items if item.path == request.path]
    spark = SparkSession.getActiveSession()
    if spark is None or any(item.get_closest_marker("shared") for item in of_module):
        return
    spark.catalog.clearCache()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
