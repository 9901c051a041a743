"""What the tests that share one Spark do when a module of them has ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.lakes.captures import capture_lake, run_again
from tests.support.lakes.damaged import damaged_lake
from tests.support.lakes.offsets import offset_lake

__all__ = ["capture_lake", "damaged_lake", "offset_lake", "run_again"]

#: Lakes of many captures: the first test that names one pays for it.
_LARGE_LAKES: Final = frozenset({"capture_lake", "damaged_lake", "offset_lake", "run_again"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _LARGE_LAKES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(scope="module", autouse=True)
def _forget_lakes_of_the_module(spark: Any) -> Iterator[None]:
    """Delta keeps what it knows of each table for an hour: of a hundred lakes, it fills the driver's memory."""
    yield
    spark.catalog.clearCache()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
