"""What the report's queries share: the lake's tables limited to some clusters, instants as numbers, and the caps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TableSpec
from ingest.lake.tables.silver import PARTITION_KEY

#: A partition, as silver and gold key it.
PARTITION_TYPES: Final = (pa.string(), pa.string(), pa.string(), pa.int32())


@dataclass(frozen=True)
class Limits:
    """How much of each kind reaches the driver and the page; the page says where a limit cut something off."""

    clusters: int = 20
    lanes: int = 200
    segments: int = 20_000
    segments_per_lane: int = 2_000
    findings: int = 300
    findings_per_type: int = 50
    evidence_per_finding: int = 5
    text_characters: int = 2_000
    tenures: int = 200
    liveness: int = 1_000
    coverage: int = 400
    groups: int = 50
    buckets: int = 400
    curves: int = 8
    curve_steps: int = 6_000
    curve_events: int = 100
    curve_losses: int = 20

    def lanes_per_cluster(self, clusters: int) -> int:
        """Lanes each cluster gets when they share the page."""
        return max(10, self.lanes // max(1, clusters))

    def segments_each(self, lanes: int) -> int:
        """Intervals each lane gets when they share the page."""
        return max(1, min(self.segments_per_lane, self.segments // max(1, lanes)))

    def curves_per_cluster(self, clusters: int) -> int:
        """Partitions of each cluster whose offsets are drawn."""
        return max(1, self.curves // max(1, clusters))

    def curve_steps_each(self, wanted: Sequence[int]) -> int:
        """Steps each partition gets that wants so many; what one does not need goes to the others."""
        left, waiting = self.curve_steps, sorted(wanted)
        while waiting and waiting[0] <= left // len(waiting):
            left -= waiting.pop(0)
        return max(1, left // len(waiting)) if waiting else self.curve_steps


@dataclass(frozen=True)
class Source:
    """The tables of one lake, read for some of its clusters. A table that is not there reads as empty.

    ``opened`` holds the tables met so far: opening a Delta table costs more than most of these queries.
    """

    lake: Lake
    limits: Limits
    clusters: tuple[str, ...] = ()
    opened: dict[str, DataFrame] = field(default_factory=dict)

    def all(self, spec: TableSpec) -> DataFrame:
        """Every row of the table."""
        if spec.full_name not in self.opened:
            there = self.lake.exists(spec)
            self.opened[spec.full_name] = (
                PinnedLake(self.lake).read(spec) if there else self.lake.spark.createDataFrame([], spec.struct)
            )
        return self.opened[spec.full_name]

    def read(self, spec: TableSpec) -> DataFrame:
        """The rows of the chosen clusters."""
        return self.all(spec).where(F.col("cluster_id").isin(list(self.clusters)))

    def keys(self, names: Sequence[str], rows: Iterable[Sequence[Any]], types: Sequence[pa.DataType]) -> DataFrame:
        """A small table made on the driver, to join with."""
        columns = list(zip(*rows, strict=True)) or [() for _ in names]
        arrays = [pa.array(list(values), type=kind) for values, kind in zip(columns, types, strict=True)]
        return F.broadcast(self.lake.spark.createDataFrame(pa.table(dict(zip(names, arrays, strict=True)))))


def ms(column: Column | str) -> Column:
    """A timestamp as milliseconds since 1970 UTC, fractions kept: no session's time zone enters."""
    return F.unix_micros(column) / F.lit(1000.0)


def top(rows: DataFrame, by: Sequence[str], order: Sequence[Column], count: int | Column) -> DataFrame:
    """The first ``count`` rows of each group."""
    rank = F.row_number().over(Window.partitionBy(*by).orderBy(*order))
    return rows.withColumn("_rank", rank).where(F.col("_rank") <= count).drop("_rank")


def of_partition(cluster: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The row's partition as a key, in the order of :data:`PARTITION_KEY`."""
    return (cluster, *(row[name] for name in PARTITION_KEY[1:]))


def together(queries: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """The queries' answers by name. They are small and mostly wait for one another: four run at a time."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        answers = {name: pool.submit(query) for name, query in queries.items()}
    return {name: answer.result() for name, answer in answers.items()}


def of_cluster(literal: dict[str, float]) -> Column:
    """A number that depends on the row's cluster."""
    pairs = [F.lit(item) for pair in sorted(literal.items()) for item in pair]
    return F.element_at(F.create_map(*pairs), F.col("cluster_id")) if pairs else F.lit(0.0)


def plain(row: Row) -> dict[str, Any]:
    """A row as a dictionary whose whole floats are ints, so that JSON stays short."""
    return {name: number(value) for name, value in row.asDict().items()}


def number(value: Any) -> Any:
    """An int where a float is whole; rounded to a microsecond otherwise; anything else as it is."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 3)
    return value


def by_cluster(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """Collected rows by their cluster, in the order collected."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        values = plain(row)
        grouped.setdefault(values.pop("cluster_id"), []).append(values)
    return grouped
