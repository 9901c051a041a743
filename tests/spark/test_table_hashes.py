"""What a table's hash depends on: its rows, and neither their order nor our own clock."""

from __future__ import annotations

from typing import Any

from tests.table_hashes import table_hash

ROWS = [("a", 1, None, "first run"), ("b", 2, 0.5, "first run"), ("b", 2, 0.5, "first run")]


def hashed(spark: Any, rows: list[tuple[Any, ...]], *without: str) -> tuple[str, int]:
    return table_hash(spark.createDataFrame(rows, "name string, number int, ratio double, run_id string"), without)


def test_neither_order_nor_run_changes_a_hash_and_one_value_does(spark: Any) -> None:
    found = hashed(spark, ROWS)
    assert found[1] == 3
    assert len(found[0]) == 32
    assert hashed(spark, ROWS[::-1]) == found
    assert hashed(spark, [(*row[:3], "second run") for row in ROWS]) == found
    for rows in (
        ROWS[:2],
        [("a", 1, 0.0, ""), *ROWS[1:]],
        [("a", 3, None, ""), *ROWS[1:]],
        [("", 1, None, ""), *ROWS[1:]],
    ):
        assert hashed(spark, rows)[0] != found[0]


def test_a_column_that_is_left_out_changes_no_hash(spark: Any) -> None:
    others = [(name, number + 1, ratio, run) for name, number, ratio, run in ROWS]
    assert hashed(spark, others) != hashed(spark, ROWS)
    assert hashed(spark, others, "number") == hashed(spark, ROWS, "number")


def test_an_empty_table_has_a_hash_and_no_row(spark: Any) -> None:
    assert hashed(spark, []) == ("0" * 32, 0)
