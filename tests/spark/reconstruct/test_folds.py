"""A fold is given all evidence of each key, and of no other, however the rows lie; and what it gives is of that key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

from reconstruct.engine.folds import fold, select_evidence
from reconstruct.engine.rows import Row
from tests.support.lakes.parts import in_parts

KEY: Final = ("cluster_id", "partition_id")
COLUMNS: Final = {"cluster_id": "string", "partition_id": "int", "rows": "bigint", "total": "bigint"}
#: More of each key than a batch of Arrow holds, and than a task hands back at once.
ROWS: Final = 12_500
KEYS: Final = 4


def totals(rows: Iterable[Row]) -> Iterator[Row]:
    found = [row["at"] for row in rows]
    yield {"rows": len(found), "total": sum(found)}


def each(rows: Iterable[Row]) -> Iterator[Row]:
    return ({"rows": 1, "total": row["at"]} for row in rows)


@pytest.fixture(scope="module")
def evidence(spark: Any) -> Any:
    """Rows of keys by turns, of one of which the partition is NULL; in three parts."""
    at = spark.range(0, KEYS * ROWS, 1, 3).withColumnRenamed("id", "at")
    of_key = at.select("at", F.lit("c").alias("cluster_id"), F.expr(f"nullif(at % {KEYS}, 0)").alias("partition_id"))
    return select_evidence(of_key, KEY, {"at": "bigint"}, at="at")


def test_a_key_is_folded_once_with_all_that_is_of_it(spark: Any, evidence: Any) -> None:
    expected = {("c", key or None, ROWS, sum(range(key, KEYS * ROWS, KEYS))) for key in range(KEYS)}
    for count in (1, 2):
        with in_parts(spark, count):
            found = [tuple(row) for row in fold(evidence, KEY, COLUMNS, totals).collect()]
        assert (len(found), set(found)) == (KEYS, expected)


def test_a_key_is_folded_once_though_of_its_evidence_nothing_is_read(evidence: Any) -> None:
    found = fold(evidence, KEY, COLUMNS, lambda rows: [{"rows": 0}, {"rows": 1}]).collect()
    assert {tuple(row) for row in found} == {("c", key or None, n, None) for key in range(KEYS) for n in (0, 1)}
    assert len(found) == 2 * KEYS


def test_all_that_a_fold_gives_is_given_its_key(evidence: Any) -> None:
    found = fold(evidence, KEY, COLUMNS, each)
    wrong = "NOT coalesce(partition_id, 0) <=> total % 4 OR cluster_id <> 'c'"
    assert found.agg(F.count("*"), F.count_distinct("total"), F.count_if(F.expr(wrong))).collect() == [
        (KEYS * ROWS, KEYS * ROWS, 0)
    ]
    assert fold(evidence.where("false"), KEY, COLUMNS, totals).collect() == []


def test_a_fold_that_fails_fails_the_query(evidence: Any) -> None:
    def failing(rows: Iterable[Row]) -> Iterator[Row]:
        raise ValueError(f"partition {next(iter(rows))['partition_id']} is odd")

    with pytest.raises(PythonException, match="is odd"):
        fold(evidence, KEY, COLUMNS, failing).collect()
