"""Bounds of offsets as steps of a curve, few enough to draw, each still true at every instant of its span.

Rows of ``silver.replica_offset_timeline`` become one step where nothing changes between them, and where they begin in
one slice of time too narrow to draw. A step of several rows has the least lower and the greatest upper bound of them:
wider than each, proven for all. Where nothing is known (a gap between rows), and where a bound begins or ends to be
known, steps end whatever the slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dashboards.source import ms, top
from ingest.lake.tables.shared import PARTITION_KEY

BOUNDS: Final = ("high_watermark_lower", "high_watermark_upper", "log_end_offset_lower", "log_end_offset_upper")
#: How far around an instant of interest slices are narrow.
NEAR_MS: Final = 60_000.0
#: What :func:`slices_of` gives, and :func:`thinned_steps` reads from every row.
SLICE_COLUMNS: Final = {
    "slice_ms": pa.float64(),
    "near_slice_ms": pa.float64(),
    "near": pa.list_(pa.float64()),
    "steps_most": pa.int32(),
}
_REPLICA: Final = (*PARTITION_KEY, "replica_id")
_IDS_PER_STEP: Final = 4


def slices_of(span: tuple[float, float], near: Sequence[float], steps: int) -> tuple[float, float, list[float], int]:
    """Of a partition, the values of :data:`SLICE_COLUMNS`: width in ms of a slice far from the instants ``near``, width
    of one near them, these instants, and the steps of a replica.

    ``steps`` slices cover the span and the surroundings of the instants together, half of them each.
    """
    length = max(span[1] - span[0], 1.0)
    if not near:
        return length / steps, length / steps, [], steps
    half = max(1, steps // 2)
    narrow = min(length, 2 * NEAR_MS * len(near)) / half
    return length / half, min(narrow, length / half), list(near), steps


def thinned_steps(rows: DataFrame) -> DataFrame:
    """Grain: one row per (replica, step): ``number``, ``from_ms``, ``to_ms``, the four bounds, ``rows`` (how many rows
    of the timeline), ``rows_total`` (of the replica), ``evidence`` (of its first and last row, at most four ids).

    ``rows`` are of ``silver.replica_offset_timeline`` with :data:`SLICE_COLUMNS`. Of more steps of a
    replica than ``steps_most`` the latest are kept.
    """
    timeline = rows.select(
        *_REPLICA,
        *SLICE_COLUMNS,
        *BOUNDS,
        "evidence",
        F.col("sequence").alias("number"),
        ms("valid_from").alias("from_ms"),
        ms("valid_to").alias("to_ms"),
        F.lit(1).alias("rows"),
    )
    same = _joined(timeline, ~F.struct(*BOUNDS).eqNullSafe(F.lag(F.struct(*BOUNDS)).over(_in_order())))
    unknown = F.struct(*(F.col(name).isNull() for name in BOUNDS))
    begun = F.struct(_slice(), unknown)
    steps = _joined(same, ~begun.eqNullSafe(F.lag(begun).over(_in_order())))
    total = F.sum("rows").over(Window.partitionBy(*_REPLICA)).alias("rows_total")
    return top(steps.select("*", total), _REPLICA, [F.col("number").desc()], F.col("steps_most")).select(
        *_REPLICA, "number", "from_ms", "to_ms", *BOUNDS, "rows", "rows_total", "evidence"
    )


def _in_order() -> Any:
    return Window.partitionBy(*_REPLICA).orderBy("number")


def _slice() -> Column:
    """In which slice a step begins: near an instant of interest, or far from all."""
    is_near = F.exists("near", lambda at: F.abs(F.col("from_ms") - at) <= NEAR_MS)
    width = F.when(is_near, F.col("near_slice_ms")).otherwise(F.col("slice_ms"))
    return F.struct(is_near.alias("is_near"), F.floor(F.col("from_ms") / width).alias("slice"))


def _joined(steps: DataFrame, begins: Column) -> DataFrame:
    """Neighbours as one, up to where ``begins`` says that another begins, or a gap."""
    gap = ~F.col("from_ms").eqNullSafe(F.lag("to_ms").over(_in_order()))
    marked = steps.withColumn("_begins", (begins | gap).cast("int"))
    numbered = marked.withColumn("_step", F.sum("_begins").over(_in_order()))

    def bound(name: str) -> Column:
        extreme = F.min(name) if name.endswith("_lower") else F.max(name)
        return F.when(F.count(name) == F.count("*"), extreme).alias(name)

    first, last = (pick("evidence", "number") for pick in (F.min_by, F.max_by))
    return (
        numbered.groupBy(*_REPLICA, "_step")
        .agg(
            F.min("number").alias("number"),
            F.min("from_ms").alias("from_ms"),
            F.max_by("to_ms", "number").alias("to_ms"),
            *(bound(name) for name in BOUNDS),
            *(F.first(name).alias(name) for name in SLICE_COLUMNS),
            F.slice(F.array_distinct(F.concat(first, last)), 1, _IDS_PER_STEP).alias("evidence"),
            F.sum("rows").cast("int").alias("rows"),
        )
        .drop("_step")
    )
