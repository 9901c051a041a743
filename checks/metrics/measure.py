"""The metrics' values, in Spark: one job over all passes, one look at earlier runs, and beside these what is of each
hour, of which there is too much for the driver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from checks.catalog import tables_in
from checks.measure import Table, is_unusable, open_table, run_query, schema_problems
from checks.metrics.catalog import MetricPass, values_sql
from checks.metrics.judge import EARLIER_RUNS_COUNT, Earlier, Value
from checks.metrics.passes import METRIC_PASSES
from checks.metrics.queries import HOURLY_QUERY
from ingest.lake.delta import Lake, side_by_side
from ingest.lake.tables import TABLES
from ingest.lake.tables.quality import RUN_METRICS
from ingest.lake.tables.types import arrow_schema

#: The fields of :class:`~checks.metrics.judge.Value`.
_VALUES: Final = arrow_schema({"cluster_id": "string", "metric": "string", "subject": "string", "value": "double"})


@dataclass(frozen=True, slots=True)
class Measured:
    """What this run found, what earlier ones did, and the passes that could not run, by name."""

    values: tuple[Value, ...]
    earlier: Earlier
    unmeasured: frozenset[str]


def measure_metrics(lake: Lake, run_id: str, run_at: datetime) -> Measured:
    """Measure every metric and add the values to ``quality.run_metrics``, key (run, metric, cluster, subject). They are
    there, too, where what is checked beside them fails.

    A pass that reads a table of another shape is left out. Raises :class:`~ingest.lake.delta.LakeError` where a table
    is missing.
    """
    hourly = set(tables_in(HOURLY_QUERY))
    names = sorted(hourly.union(*(each.reads for each in METRIC_PASSES)))
    tables = {name: open_table(lake, TABLES[name]) for name in names}
    unusable = {n for n in names if is_unusable(schema_problems(tables[n].schema, TABLES[n]))}
    usable = [each for each in METRIC_PASSES if not unusable & set(each.reads)]

    def append(rows: DataFrame) -> None:
        lake.append(rows.withColumns({"run_id": F.lit(run_id), "run_at": F.lit(run_at)}), RUN_METRICS)

    def append_hours() -> None:
        if not unusable & hourly:
            append(run_query(lake, HOURLY_QUERY, tables))

    def measured() -> Measured:
        values = _values(lake, usable, tables)
        earlier = _earlier(lake, run_id, {value.metric for value in values})
        append(lake.spark.createDataFrame(pa.Table.from_pylist([asdict(value) for value in values], schema=_VALUES)))
        return Measured(values, earlier, frozenset(each.name for each in METRIC_PASSES if each not in usable))

    # the hours first: tasks write them, and Python starts while all else is planned
    parts: tuple[Callable[[], Measured | None], ...] = (append_hours, measured)
    return cast(Measured, side_by_side(lambda part: part(), parts)[-1])


def _values(lake: Lake, passes: Sequence[MetricPass], tables: Mapping[str, Table]) -> tuple[Value, ...]:
    """Every value: clusters x metrics x subjects, of which there are few."""
    if not passes:
        return ()
    rows = run_query(lake, " UNION ALL ".join(values_sql(each) for each in passes), tables).collect()
    return tuple(Value(row["cluster_id"], row["metric"], row["subject"], row["value"]) for row in rows)


def _earlier(lake: Lake, run_id: str, metrics: Collection[str]) -> Earlier:
    """What the latest earlier runs found, the latest first: a few values for each one of this run."""
    own = ("cluster_id", "metric", "subject")
    latest = Window.partitionBy(*own).orderBy(F.col("run_at").desc(), F.col("run_id").desc())
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in (
        open_table(lake, RUN_METRICS)
        .rows.where(F.col("metric").isin(sorted(metrics)) & (F.col("run_id") != run_id))
        .withColumn("rank", F.row_number().over(latest))
        .where(F.col("rank") <= EARLIER_RUNS_COUNT)
        .orderBy(*own, "rank")
        .collect()
    ):
        found.setdefault((row["cluster_id"], row["metric"], row["subject"]), []).append(row["value"])
    return found
