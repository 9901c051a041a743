"""Steps of plans that are made at once: the rows of pyspark's own."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from ingest.lake.plans import differing, map_in_arrow, named, union


def rows_of(frame):
    return sorted(map(str, frame.collect()))


@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_parts_are_put_together_by_the_names_of_their_columns(spark, count):
    every = spark.range(3).select("id", F.col("id").cast("string").alias("name"))
    parts = [
        every,
        every.select("name", "id"),
        every.select("id"),
        every.select(F.lit(True).alias("other"), "name"),
        every.select(F.struct("id").alias("id_of")),
    ]
    parts = [parts[number % len(parts)] for number in range(count)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    made = union(iter(parts))
    assert made.schema == whole.schema
    assert rows_of(made) == rows_of(whole)
    assert made.count() == 3 * count


def test_parts_of_one_frame_stay_apart_in_what_is_made_of_them(spark):
    every = spark.range(4)
    parts = [every.where(F.col("id") > number).withColumn("n", F.lit(number)) for number in range(3)]
    found = (
        union(parts).join(every.withColumnRenamed("id", "other"), F.col("id") == F.col("other")).groupBy("n").count()
    )
    assert {row["n"]: row["count"] for row in found.collect()} == {0: 3, 1: 2, 2: 1}


def test_all_columns_come_to_the_function_also_where_few_of_its_own_are_asked_for(spark):
    given = spark.range(3).select("id", F.lit("x").alias("a.b"), F.lit(7).alias("c d"), F.array("id").alias("Id s"))

    def seen(batches):
        for batch in batches:
            yield batch.set_column(1, "a.b", pa.array([",".join(batch.schema.names)] * batch.num_rows))

    made = map_in_arrow(given, seen, given.schema)
    assert made.schema == given.schema
    # pyspark itself finds no column whose name has a dot
    plain = given.select("id", "c d", "Id s")
    assert rows_of(made.select(plain.columns)) == rows_of(plain.mapInArrow(lambda batches: batches, plain.schema))
    assert [row[0] for row in made.select("`a.b`").collect()] == ["id,a.b,c d,Id s"] * 3
    assert made.where("id = 2").select("c d").count() == 1


def test_rows_differ_where_one_side_has_more_of_them(spark):
    names = "a string, b array<int>"
    one = spark.createDataFrame([("x", [1]), ("x", [1]), ("y", None), (None, [2]), ("z", [])], names)
    other = spark.createDataFrame(
        [(None, "y"), ([1], "x"), ([2], None), ([], "z"), ([None], "z")], "b array<int>, a string"
    )
    expected = sorted(map(str, [("x", [1]), ("z", [None])]))
    assert sorted(str(tuple(row)) for row in differing(one, other).collect()) == expected
    assert sorted(str(tuple(row)) for row in differing(other, one).select("a", "b").collect()) == expected
    assert differing(one, one).collect() == []


@pytest.mark.parametrize(
    "names", [(), ("a",), ("a", ""), ("", "ä 1"), ("it's", "b\nc", "nothing"), ("a", "of\x01two"), ("a", "a")]
)
def test_rows_are_named_as_by_isin(spark, names):
    rows = spark.createDataFrame(
        [(name,) for name in ("a", "b", "", "ä 1", "it's", "b\nc", "of\x01two", "of", None)], "n string"
    )
    assert rows_of(named(rows, "n", names)) == rows_of(rows.where(F.col("n").isin(*names)))
