"""What the report's queries share: the lake's tables limited to some clusters and a scope, how much of them is shown,
and collected rows as dataclasses, of which each field is the column of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dashboards.scope import Scope
from ingest.lake.delta import Lake
from ingest.lake.tables import TableSpec
from ingest.lake.tables.shared import PARTITION_KEY

T = TypeVar("T")
R = TypeVar("R")
PartitionKey = tuple[str, str, str, int]
#: A partition, as silver and gold key it.
PARTITION_TYPES: Final = (pa.string(), pa.string(), pa.string(), pa.int32())


@dataclass(frozen=True)
class Limits:
    """How much of each kind reaches the driver and the page; the page says where a limit cut something off."""

    clusters: int = 20
    lanes: int = 500
    segments: int = 30_000
    segments_per_lane: int = 2_000
    findings: int = 500
    findings_per_type: int = 100
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
class FileTotals:
    """A cluster's files, their bytes and records, the span of their times, the versions and brokers they name."""

    files: int = 0
    files_read: int = 0
    size_bytes: int | None = 0
    records_read: int | None = 0
    records_kept: int | None = 0
    records_rejected: int | None = 0
    from_ms: float | None = None
    to_ms: float | None = None
    versions: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Source:
    """The tables of one lake, read for some of its clusters. A table that is not there reads as empty.

    ``opened`` holds the tables met so far, and what was read of each: to open a Delta table costs more than most of
    these queries, and each of a dozen sections reads the same. ``totals`` and ``spans`` (first and last instant of the
    evidence, ms since 1970) are of each cluster.
    """

    lake: Lake
    limits: Limits
    clusters: tuple[str, ...] = ()
    scope: Scope = field(default_factory=Scope)
    opened: dict[str | tuple[str, tuple[str, ...], Scope], DataFrame] = field(default_factory=dict)
    totals: Mapping[str, FileTotals] = field(default_factory=dict)
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def all(self, spec: TableSpec) -> DataFrame:
        """Every row of the table."""
        if spec.full_name not in self.opened:
            there = self.lake.exists(spec)
            self.opened[spec.full_name] = (
                self.lake.pinned().read(spec) if there else self.lake.spark.createDataFrame([], spec.struct)
            )
        return self.opened[spec.full_name]

    def read(self, spec: TableSpec) -> DataFrame:
        """The rows of the chosen clusters that are in scope."""
        read = spec.full_name, self.clusters, self.scope
        if read not in self.opened:
            self.opened[read] = self.scope.of(spec, self._of_clusters)
        return self.opened[read]

    def _of_clusters(self, spec: TableSpec) -> DataFrame:
        return self.all(spec).where(F.col("cluster_id").isin(list(self.clusters)))

    def start(self) -> Column:
        """First instant of the evidence of the row's cluster, in ms."""
        return _of_cluster({cluster: first for cluster, (first, _) in self.spans.items()})

    def end(self) -> Column:
        """Last instant of the evidence of the row's cluster, in ms."""
        return _of_cluster({cluster: last for cluster, (_, last) in self.spans.items()})

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


def spanned(rows: DataFrame) -> DataFrame:
    """``valid_from`` and ``valid_to`` as ``from_ms`` and ``to_ms``."""
    return rows.withColumns({"from_ms": ms("valid_from"), "to_ms": ms("valid_to")})


def lasted_ms(source: Source) -> Column:
    """How much of an interval lies in the scope's time, open ones counted to the end of the evidence."""
    since, until, scope = ms("valid_from"), F.coalesce(ms("valid_to"), source.end()), source.scope
    if scope.begin is not None:
        since = F.greatest(since, ms(F.lit(scope.begin)))
    if scope.end is not None:
        until = F.least(until, ms(F.lit(scope.end)))
    return F.greatest(until - since, F.lit(0.0))


def with_total(rows: DataFrame) -> DataFrame:
    """With how many rows the cluster has, as ``total``."""
    return rows.withColumn("total", F.count("*").over(Window.partitionBy("cluster_id")))


def top_of_cluster(rows: DataFrame, order: Sequence[Column], count: int) -> DataFrame:
    """The first ``count`` rows of each cluster, in that order."""
    return top(rows, ["cluster_id"], order, count).orderBy("cluster_id", *order)


def latest_of_cluster(rows: DataFrame, order: Sequence[str], count: int) -> DataFrame:
    """The last ``count`` rows of each cluster by these columns, in their order."""
    return top(rows, ["cluster_id"], [F.col(name).desc() for name in order], count).orderBy("cluster_id", *order)


def most_frequent(source: Source, groups: DataFrame, order: Sequence[str]) -> DataFrame:
    """Of each cluster's groups those with the most ``records``; ``groups_total`` and ``records_total`` are of all."""
    whole = Window.partitionBy("cluster_id")
    totals = {"groups_total": F.count("*").over(whole), "records_total": F.sum("records").over(whole)}
    by = [F.col("records").desc(), *map(F.col, order)]
    return top_of_cluster(groups.withColumns(totals), by, source.limits.groups)


def by_cluster(kind: type[R], rows: DataFrame) -> dict[str, tuple[R, ...]]:
    """The rows by ``cluster_id``, in their order. Fields that no column fills keep their default."""
    return {key[0]: found for key, found in grouped(kind, rows, ("cluster_id",)).items()}


def by_partition(kind: type[R], rows: DataFrame) -> dict[PartitionKey, tuple[R, ...]]:
    """The rows by their partition's key, in their order."""
    return grouped(kind, rows, PARTITION_KEY)


def grouped(kind: type[R], rows: DataFrame, by: Sequence[str]) -> dict[Any, tuple[R, ...]]:
    """The rows by the values of the columns ``by``, in their order."""
    names = [field.name for field in fields(kind) if field.name in rows.columns]  # type: ignore[arg-type]
    found: dict[tuple[Any, ...], list[R]] = {}
    for row in rows.select(*by, *(name for name in names if name not in by)).collect():
        values = row.asDict()
        made = kind(**{name: plain(values[name]) for name in names})
        found.setdefault(tuple(values[name] for name in by), []).append(made)
    return {key: tuple(group) for key, group in found.items()}


def plain(value: Any) -> Any:
    """An int where a float is whole, else rounded to a microsecond; a tuple for a list; anything else as it is."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 3)
    return tuple(value) if isinstance(value, list) else value


def narrowed(kind: type[R], row: Any, **others: Any) -> R:
    """The fields of the row that ``kind`` has too, and others."""
    return kind(**{f.name: getattr(row, f.name) for f in fields(kind) if f.name not in others}, **others)  # type: ignore[arg-type]


def together(queries: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """The queries' answers by name. They are small and mostly wait for one another: four run at a time."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        answers = {name: pool.submit(query) for name, query in queries.items()}
    return {name: answer.result() for name, answer in answers.items()}


def _of_cluster(literal: dict[str, float]) -> Column:
    """A number that depends on the row's cluster."""
    pairs = [F.lit(item) for pair in sorted(literal.items()) for item in pair]
    return F.element_at(F.create_map(*pairs), F.col("cluster_id")) if pairs else F.lit(0.0)
