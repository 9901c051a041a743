"""The metrics' values, in Spark: one job over all passes, one look at earlier runs, and beside these what is of each
hour, of which there may be too much for the driver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, cast

from pyspark.sql import Window
from pyspark.sql import functions as F

from checks.catalog import tables_in
from checks.measure import is_unusable, schema_problems
from checks.metrics.catalog import MetricPass, values_sql
from checks.metrics.judge import EARLIER_RUNS_COUNT, Earlier, Value
from checks.metrics.passes import METRIC_PASSES
from checks.metrics.queries import HOURLY_QUERY
from checks.tables import NamedTables
from ingest.lake.delta import Lake, side_by_side
from ingest.lake.tables import TABLES
from ingest.lake.tables.quality import RUN_METRICS

#: Values of hours that are more stay with the tasks that find them.
_FEW: Final = 1000


@dataclass(frozen=True, slots=True)
class Measured:
    """What this run found, what earlier ones did, and the passes that could not run, by name."""

    values: tuple[Value, ...]
    earlier: Earlier
    unmeasured: frozenset[str]


def measure_metrics(lake: Lake, tables: NamedTables, run_id: str, run_at: datetime) -> Measured:
    """Measure every metric and add the values to ``quality.run_metrics``, key (run, metric, cluster, subject). They are
    there, too, where what is checked beside them fails.

    A pass that reads a table of another shape is left out. Raises :class:`~ingest.lake.delta.LakeError` where a table
    is missing.
    """
    hourly = set(tables_in(HOURLY_QUERY))
    names = sorted(hourly.union(*(each.reads for each in METRIC_PASSES)))
    unusable = {n for n in names if is_unusable(schema_problems(tables[n].schema, TABLES[n]))}
    usable = [each for each in METRIC_PASSES if not unusable & set(each.reads)]

    def hours() -> list[dict[str, object]]:
        """Those of each hour, where they are few; else none, and tasks write them."""
        if unusable & hourly:
            return []
        rows = tables.answer(HOURLY_QUERY)
        if all(tables[name].is_tiny for name in hourly):
            found = rows.limit(_FEW + 1).collect()
            if len(found) <= _FEW:
                return [row.asDict() for row in found]
        lake.append(rows.withColumns({"run_id": F.lit(run_id), "run_at": F.lit(run_at)}), RUN_METRICS)
        return []

    def measured() -> Measured:
        values = _values(tables, usable)
        earlier = _earlier(tables, run_id, {value.metric for value in values})
        return Measured(values, earlier, frozenset(each.name for each in METRIC_PASSES if each not in usable))

    # the hours first: where tasks write them, Python starts while all else is planned
    parts: tuple[Callable[[], object], ...] = (hours, measured)
    of_hours, found = cast("tuple[list[dict[str, object]], Measured]", side_by_side(lambda part: part(), parts))
    known = [*map(asdict, found.values), *of_hours]
    lake.append_known([row | {"run_id": run_id, "run_at": run_at} for row in known], RUN_METRICS)
    return found


def _values(tables: NamedTables, passes: Sequence[MetricPass]) -> tuple[Value, ...]:
    """Every value: clusters x metrics x subjects, of which there are few."""
    if not passes:
        return ()
    rows = tables.answer(" UNION ALL ".join(values_sql(each) for each in passes)).collect()
    return tuple(Value(row["cluster_id"], row["metric"], row["subject"], row["value"]) for row in rows)


def _earlier(tables: NamedTables, run_id: str, metrics: Collection[str]) -> Earlier:
    """What the latest earlier runs found, the latest first: a few values for each one of this run."""
    own = ("cluster_id", "metric", "subject")
    latest = Window.partitionBy(*own).orderBy(F.col("run_at").desc(), F.col("run_id").desc())
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in (
        tables[RUN_METRICS.full_name]
        .rows.where(F.col("metric").isin(sorted(metrics)) & (F.col("run_id") != run_id))
        .withColumn("rank", F.row_number().over(latest))
        .where(F.col("rank") <= EARLIER_RUNS_COUNT)
        .orderBy(*own, "rank")
        .collect()
    ):
        found.setdefault((row["cluster_id"], row["metric"], row["subject"]), []).append(row["value"])
    return found
