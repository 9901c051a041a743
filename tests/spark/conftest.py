"""What the tests that share one Spark do when a module of them has ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.budget import IS_HARD

#: What takes minutes for itself: ``make test-hard`` runs it.
collect_ignore = [] if IS_HARD else ["test_damaged_captures.py"]


@pytest.fixture(scope="module", autouse=True)
def _forget_lakes_of_the_module(spark: Any) -> Iterator[None]:
    """Delta keeps what it knows of each table for an hour: of a hundred lakes, it fills the driver's memory."""
    yield
    spark.catalog.clearCache()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
