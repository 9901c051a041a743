"""Hashes over many rows, whatever their order: by them a later run knows that it would be given the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconstruct.engine.rows import Row

#: Columns beside the rows: two hashes of each.
_HASHES: Final = ("evidence_hash_1", "evidence_hash_2")
#: Of the first, so many bits are left out of a sum of many, that it may not overflow: 2^25 rows of one key.
_LEFT_OUT: Final = 26


def with_hashes(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows with two hashes of each, over all its columns but the key. Which of them are NULL is hashed too, since
    Spark's hashes do not know where a NULL is."""
    names = [name for name in rows.columns if name not in key]
    hashed = (_bits([F.col(name).isNull() for name in names]), *map(F.col, names))
    return rows.select("*", F.xxhash64(*hashed).alias(_HASHES[0]), F.hash(*hashed).cast("bigint").alias(_HASHES[1]))


def _bits(conditions: Sequence[Column]) -> Column:
    ones = (F.when(condition, F.lit(1 << i)).otherwise(F.lit(0)) for i, condition in enumerate(conditions))
    bits = (one.cast("bigint") for one in ones)
    return reduce(lambda one, other: one.bitwiseOR(other), bits)


def counted_and_hashed(count: str, hashes: str) -> list[Column]:
    """Of all rows of a key: how many there are, and the hash that :func:`hash_of` gives."""
    first, second = map(F.col, _HASHES)
    summed = (F.bit_xor(first), F.sum(F.shiftright(first, _LEFT_OUT)), F.sum(second))
    return [F.count("*").alias(count), F.array(*summed).alias(hashes)]


def hash_of(rows: Sequence[Row]) -> list[int]:
    """Of rows with hashes."""
    first, second = ([row[name] for row in rows] for name in _HASHES)
    return [reduce(lambda one, other: one ^ other, first), sum(one >> _LEFT_OUT for one in first), sum(second)]
