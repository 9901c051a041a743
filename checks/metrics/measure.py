"""The metrics' values, in Spark: one job over all passes, one append, one look at earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from checks.measure import Table, is_unusable, open_table, schema_problems
from checks.metrics.catalog import MetricPass, values_sql
from checks.metrics.hours import BROKER_HOURS_READS, hourly_sql
from checks.metrics.judge import Earlier, Value
from checks.metrics.passes import metric_passes
from checks.metrics.trend import EARLIER_RUNS_COUNT
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from ingest.lake.tables.quality import RUN_METRICS


@dataclass(frozen=True, slots=True)
class Measured:
    """What this run found, what earlier ones did, and the passes that could not run, by name."""

    values: tuple[Value, ...]
    earlier: Earlier
    unmeasured: frozenset[str]


def measure_metrics(lake: Lake, run_id: str, run_at: datetime, progress: Callable[[str], None]) -> Measured:
    """Measure every metric and add the values to ``quality.run_metrics``, key (run, metric, cluster, subject).

    A pass that reads a table of another shape is left out. Raises :class:`~ingest.lake.delta.LakeError` where a table
    is missing.
    """
    passes = metric_passes()
    names = sorted({name for each in passes for name in each.reads} | set(BROKER_HOURS_READS))
    tables = {name: open_table(lake, TABLES[name]) for name in names}
    unusable = {n for n in names if is_unusable(schema_problems(tables[n].schema, TABLES[n]))}
    usable = [each for each in passes if not unusable & set(each.reads)]
    progress(f"measuring {sum(len(each.metrics) for each in usable)} metrics")
    values = _values(lake, usable, tables)
    earlier = _earlier(lake, run_id, {value.metric for value in values})
    rows = _frame(lake, values)
    if not unusable & set(BROKER_HOURS_READS):
        rows = rows.unionByName(lake.spark.sql(hourly_sql(), **_named(BROKER_HOURS_READS, tables)))
    lake.append(rows.withColumns({"run_id": F.lit(run_id), "run_at": F.lit(run_at)}), RUN_METRICS)
    return Measured(values, earlier, frozenset(each.name for each in passes if each not in usable))


def _values(lake: Lake, passes: Sequence[MetricPass], tables: Mapping[str, Table]) -> tuple[Value, ...]:
    """Every value: clusters x metrics x subjects, of which there are few."""
    if not passes:
        return ()
    query = " UNION ALL ".join(values_sql(each) for each in passes)
    frames = _named({name for each in passes for name in each.reads}, tables)
    rows = lake.spark.sql(query, **frames).collect()
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


def _frame(lake: Lake, values: Sequence[Value]) -> DataFrame:
    rows = [(v.cluster_id, v.metric, v.subject, v.value) for v in values]
    return lake.spark.createDataFrame(rows, "cluster_id string, metric string, subject string, value double")


def _named(names: Collection[str], tables: Mapping[str, Table]) -> dict[str, Any]:
    """The tables by the names that queries give them."""
    return {TABLES[name].name: tables[name].rows for name in names}
