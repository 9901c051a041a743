"""Shuffles in several parts, as a lake that is not small has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_PARTS: Final = "spark.sql.shuffle.partitions"


@contextmanager
def in_parts(spark: Any, count: int) -> Iterator[None]:
    """What is done in here shuffles in so many parts."""
    usual = spark.conf.get(_PARTS)
    spark.conf.set(_PARTS, str(count))
    try:
        yield
    finally:
        spark.conf.set(_PARTS, usual)
