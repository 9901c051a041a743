"""Which mark of a sender belongs to which mark of a receiver: the order of one connection, looked at from its end.

A *mark* is what one line says of one request: a ``place`` (a partition, or the whole request) and a ``content`` (what
it says of it), both hashed.

A controller keeps one request in flight on each connection, so that what it sends about one place arrives in that
order, or, when the connection ends, not at all. Going back in time, each sent mark goes to the latest receipt that has
none yet: the k-th from the end to the k-th from the end. A sent mark that finds no receipt waiting was not received; a
receipt without a sent mark was sent again (the content was sent before, once), or never sent.

What a log lost, or what was received twice, would so move all that is before it by one: a broker is told the same of a
partition again whenever a broker starts. So each stretch of marks none of which is far from the next is looked at by
itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

#: How much later than its receipt a mark may claim to have been sent, clock against clock: µs.
CLOCK_SLACK_US: Final = 250_000

#: What is tied is no further apart, µs: a send thread tries again after ``controller.socket.timeout.ms``, 30 s, and
#: ends with its broker's session. What a broker that hung for longer handles at last is tied to nothing.
UNDER_WAY_US: Final = 600_000_000


def match_marks(marks: DataFrame) -> DataFrame:
    """One row per ``(connection, is_receipt, ref)`` of ``marks``: how it was matched. Their columns: connection, place,
    content, is_receipt, at, ref, carried (the sender's, for the receiver), facts (of one mark of a ref, handed on).

    ``carried`` is the greatest of the sent marks matched to a receipt; NULL where none is. ``is_matched`` says whether
    any mark of the ref was; ``is_repeated``, of a receipt, that its content was sent, but not once more.
    Matched are marks of one place and content; then, among what is left over, those of one place.
    """
    placed = marks.withColumn(
        "at", F.when(F.col("is_receipt"), F.col("at") + CLOCK_SLACK_US).otherwise(F.col("at"))
    ).repartition("connection", "place")
    # sorted by the place first, of which there are most
    group = ("place", "connection")
    exact = _backwards(placed, (*group, "content")).withColumnsRenamed(
        {"is_matched": "is_exact", "number": "exact_number"}
    )
    repeated = F.col("is_receipt") & ~F.col("is_exact") & F.col("is_sent_at_all")
    left_over = exact.withColumns({"is_repeated": repeated, "is_left": ~F.col("is_exact") & ~repeated}).drop(
        "is_sent_at_all"
    )
    loose = _backwards(left_over, (*group, "is_left"))
    is_exact, is_loose = F.col("is_exact"), F.col("is_left") & F.col("is_matched")
    pair = {
        "is_paired": is_exact | is_loose,
        "of_content": F.when(is_exact, F.col("content")),
        "k": F.when(is_exact, F.col("exact_number")).when(is_loose, F.col("number")),
    }
    of_pair = Window.partitionBy(*group, "is_exact", *pair)
    return (
        loose.withColumns(pair)
        .withColumn("carried", F.when(F.col("is_paired"), F.max("carried").over(of_pair)))
        .groupBy("connection", "is_receipt", "ref")
        .agg(
            F.max("carried").alias("carried"),
            F.bool_or("is_paired").alias("is_matched"),
            F.bool_or("is_repeated").alias("is_repeated"),
            F.first("facts", ignorenulls=True).alias("facts"),
        )
    )


def _backwards(marks: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Each mark with ``is_matched`` and ``number``, the same for the two marks of a pair; ``is_sent_at_all``."""
    order = F.col("at").desc(), F.col("is_receipt").desc(), F.col("ref")
    whole = Window.partitionBy(*key).orderBy(*order)
    is_receipt, is_sent = F.col("is_receipt"), (~F.col("is_receipt")).cast("int")
    in_stretches = marks.withColumns(
        {
            "is_begin": F.lag("at").over(whole) - F.col("at") > UNDER_WAY_US,
            "is_sent_at_all": F.bool_or(~is_receipt).over(_all_rows(whole)),
        }
    ).withColumn("stretch", F.count_if("is_begin").over(_rows(whole)))
    back = Window.partitionBy(*key, "stretch").orderBy(*order)
    counted = in_stretches.withColumns(
        {
            "sent": F.sum(is_sent).over(_rows(back)),
            "waiting": F.sum(F.when(is_receipt, 1).otherwise(-1)).over(_rows(back)),
            "all_sent": F.sum(is_sent).over(_all_rows(back)),
        }
    )
    lowest = counted.withColumns(
        {"lowest": F.min("waiting").over(_rows(back, -1)), "lowest_of_all": F.min("waiting").over(_all_rows(back))}
    )
    # as far as it is below zero: how many, so far, found no receipt
    without = F.least(F.lit(0), "lowest", "waiting")
    number = F.col("sent") + F.when(is_receipt, F.col("waiting")).otherwise(without)
    is_taken = F.col("waiting") >= F.least(F.lit(0), "lowest")
    all_taken = F.col("all_sent") + F.least(F.lit(0), "lowest_of_all")
    return lowest.withColumns(
        {
            "is_matched": F.when(is_receipt, number <= all_taken).otherwise(is_taken),
            "number": F.shiftleft("stretch", 32) + number,
        }
    ).drop("is_begin", "stretch", "sent", "waiting", "all_sent", "lowest", "lowest_of_all")


def _rows(order: WindowSpec, last: int = 0) -> WindowSpec:
    return order.rowsBetween(Window.unboundedPreceding, last)


def _all_rows(order: WindowSpec) -> WindowSpec:
    return order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def tie(
    rows: DataFrame, key: Sequence[Column], is_receipt: Column, at: Column, ref: Column, gives: Column
) -> DataFrame:
    """``rows`` that are both sides of pairs, with ``partner``: what the row of its pair that gives something gives.

    ``is_receipt`` is NULL for rows that take no part; ``is_tied`` says whether a row has a partner, no further off than
    :data:`UNDER_WAY_US`.
    """
    names = [f"key_{number}" for number in range(len(key))]
    keyed = rows.withColumns(
        {
            **dict(zip(names, key, strict=True)),
            "takes_part": is_receipt.isNotNull(),
            "is_receipt": F.coalesce(is_receipt, F.lit(False)),
            "ref": ref,
            "gives": gives,
        }
    ).withColumn("at", at + F.when(F.col("is_receipt"), CLOCK_SLACK_US).otherwise(0))
    paired = _backwards(keyed, (*names, "takes_part"))
    pair = Window.partitionBy(*names, "takes_part", "is_matched", "number")
    is_near = F.max("at").over(pair) - F.min("at").over(pair) <= UNDER_WAY_US
    is_tied = F.col("takes_part") & F.col("is_matched") & is_near
    return paired.withColumns({"is_tied": is_tied, "partner": F.when(is_tied, F.max("gives").over(pair))}).drop(
        *names, "takes_part", "is_receipt", "at", "ref", "gives", "is_matched", "number", "is_sent_at_all"
    )


def connection_of(*parts: str | Column) -> Column:
    """A connection as one number: equal only where all parts are (NULL is a value)."""
    return F.xxhash64(F.concat_ws("|", *(F.coalesce(_column(part).cast("string"), F.lit("-")) for part in parts)))


def _column(part: str | Column) -> Column:
    return F.col(part) if isinstance(part, str) else part


def line_mark() -> Column:
    """What a line says of one partition."""
    return _mark(
        F.xxhash64("topic", "partition_id"),
        F.xxhash64("leader", "leader_epoch", F.sort_array("isr")),
        F.unix_micros("corrected_time"),
    )


def batch_mark(batch: Column) -> Column:
    """What a line says of a whole request: how many partitions it holds."""
    return _mark(F.xxhash64(F.lit("batch")), F.xxhash64(batch), F.unix_micros("corrected_time"))


def correlation_mark(at: Column) -> Column:
    """The correlation id, which up to 0.8.2 both sides print."""
    return _mark(F.xxhash64(F.lit("correlation id")), F.xxhash64("correlation_id"), at)


def _mark(place: Column, content: Column, at: Column) -> Column:
    return F.struct(place.alias("place"), content.alias("content"), at.alias("at"))
