"""What is drawn: which question each chart asks, and the answers of a lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dashboards.questions.question import questions
from dashboards.scope import Scope
from dashboards.source import together, top_of_cluster
from dashboards.trends.drawing import OTHERS, Chart, Drawing, Point, draw
from dashboards.views import QUESTION_VIEWS, name_views, question_view
from ingest.lake.delta import Lake

#: Of a chart's series the largest are drawn, the rest together.
_SERIES: Final = 7
#: Clusters shown, and partitions of each in the table of the worst.
_CLUSTERS, _WORST = 20, 15
WORST_QUESTION: Final = "worst-partitions"
CHARTS: Final = (
    Chart(
        "Minutes of partitions without a registered leader", "outages-by-day", "minutes", "topic", "kind = 'offline'"
    ),
    Chart(
        "Minutes of partitions without a live leader", "outages-by-day", "minutes", "topic", "kind = 'no_live_leader'"
    ),
    Chart(
        "Minutes of partitions under min.insync.replicas",
        "outages-by-day",
        "minutes",
        "topic",
        "kind = 'under_min_isr'",
    ),
    Chart("Minutes of under-replicated partitions", "outages-by-day", "minutes", "topic", "kind = 'under_replicated'"),
    Chart(
        "Elections, by kind",
        "elections-by-day",
        "elections",
        "election_kind",
        "election_kind NOT IN ('new_partition', 'nobody')",
    ),
    Chart("Unclean elections", "elections-by-day", "unclean_elections"),
    Chart("Departures from ISRs, by broker", "isr-changes-by-day", "left_count", "broker_id"),
    Chart("Controllers elected", "controllers-by-day", "controllers_elected"),
    Chart("Findings, by severity", "findings-by-day", "findings", "severity"),
    Chart(
        "From decision to effect, ms, half of the requests (p50)",
        "propagation-by-day",
        "p50_ms",
        "request_kind",
        "p50_ms IS NOT NULL",
        adds_up=False,
    ),
    Chart(
        "From decision to effect, ms, the slowest of a hundred (p99)",
        "propagation-by-day",
        "p99_ms",
        "request_kind",
        "p99_ms IS NOT NULL",
        adds_up=False,
    ),
    Chart(
        "Quality: what was missing, as a share (0 is best), by day of the run",
        "quality-by-day",
        "missing_share",
        "quality",
        adds_up=False,
        of_runs=True,
    ),
)


@dataclass(frozen=True)
class ClusterTrends:
    """A cluster's charts and the points of each, its worst partitions (None: not asked for), and the days that its
    evidence tells of."""

    cluster_id: str
    drawings: tuple[Drawing, ...]
    worst: tuple[Any, ...] | None
    first: date
    last: date
    points: tuple[tuple[Point, ...], ...] = ()


def gather(lake: Lake, scope: Scope | None = None) -> tuple[ClusterTrends, ...]:
    """The charts of the first clusters by name: those whose questions can be limited to the scope. Raises
    :class:`~dashboards.scope.NothingInScope`."""
    scope = scope or Scope()
    holders = scope.clusters(lake.read)
    charts = [chart for chart in CHARTS if _knows(chart.question, scope)]
    answers = _answers(lake, scope)
    queries: dict[str, Callable[[], Any]] = {
        str(number): partial(_points, answers[chart.question], chart) for number, chart in enumerate(charts)
    }
    if WORST_QUESTION in answers:
        queries["worst"] = partial(_worst, answers[WORST_QUESTION])
    found = together(queries)
    points = [found[str(number)] for number in range(len(charts))]
    told = [of_chart for chart, of_chart in zip(charts, points, strict=True) if not chart.of_runs]
    clusters = sorted({name for of_chart in told for name in of_chart if holders is None or name in holders})
    return tuple(
        _trends(cluster, charts, [of_chart.get(cluster, ()) for of_chart in points], found.get("worst"))
        for cluster in clusters[:_CLUSTERS]
    )


def columns(lake: Lake) -> Mapping[str, Mapping[str, str]]:
    """By question that is drawn, the columns of its answer and their types, as Spark SQL writes them."""
    return {
        name: {field.name: field.dataType.simpleString() for field in rows.schema}
        for name, rows in _answers(lake, Scope()).items()
    }


def _answers(lake: Lake, scope: Scope) -> Mapping[str, DataFrame]:
    """The questions that are drawn and can be limited to the scope, asked."""
    asked = [name for name in sorted({*(chart.question for chart in CHARTS), WORST_QUESTION}) if _knows(name, scope)]
    views = [QUESTION_VIEWS[question_view(name)] for name in asked]
    lake.register({spec.full_name: spec for view in views for spec in view.tables}.values(), stays=True)
    name_views(lake.spark, {of.full_name: of for view in views for of in view.views}.values())
    return {name: _asked(lake, name, scope) for name in asked}


def _knows(question: str, scope: Scope) -> bool:
    return set(scope.parameters) <= set(questions()[question].parameters)


def _asked(lake: Lake, name: str, scope: Scope) -> DataFrame:
    question = questions()[name]
    return lake.spark.sql(question.sql, args={**dict.fromkeys(question.parameters), **scope.parameters})


def _points(rows: DataFrame, chart: Chart) -> Mapping[str, tuple[Point, ...]]:
    """By cluster the chart's values of each day and series, the smaller series together."""
    chosen = rows.where(chart.where).where(F.col("day").isNotNull())
    series = F.coalesce(F.col(chart.series).cast("string"), F.lit("unknown")) if chart.series else F.lit("")
    valued = chosen.select(
        "cluster_id", "day", series.alias("series"), F.col(chart.value).cast("double").alias("value")
    )
    value = (F.sum if chart.adds_up else F.max)("value").alias("value")
    sizes = valued.groupBy("cluster_id", "series").agg(F.sum("value").alias("size"))
    largest = F.row_number().over(Window.partitionBy("cluster_id").orderBy(F.desc("size"), "series")) <= _SERIES
    kept = sizes.select("cluster_id", "series", F.when(largest, F.col("series")).otherwise(OTHERS).alias("name"))
    by_day = valued.join(kept, ["cluster_id", "series"]).groupBy("cluster_id", "day", "name").agg(value)
    found: dict[str, list[Point]] = {}
    for row in by_day.where("value > 0").orderBy("cluster_id", "day", "name").collect():  # days of a few series
        found.setdefault(row["cluster_id"], []).append(Point(row["day"], row["name"], row["value"]))
    return {cluster: tuple(points) for cluster, points in found.items()}


def _worst(rows: DataFrame) -> Mapping[str, tuple[Any, ...]]:
    """By cluster the first rows of worst-partitions, in its order."""
    worst_first = ("without_leader_minutes", "under_min_isr_minutes", "unclean_elections", "under_replicated_minutes")
    order = [*map(F.desc, (*worst_first, "elections")), F.col("topic"), F.col("partition_id")]
    found: dict[str, list[Any]] = {}
    for row in top_of_cluster(rows, order, _WORST).collect():
        found.setdefault(row["cluster_id"], []).append(row)
    return {cluster: tuple(of_cluster) for cluster, of_cluster in found.items()}


def _trends(
    cluster: str,
    charts: Sequence[Chart],
    points: Sequence[tuple[Point, ...]],
    worst: Mapping[str, tuple[Any, ...]] | None,
) -> ClusterTrends:
    days = [point.day for chart, of in zip(charts, points, strict=True) for point in of if not chart.of_runs]
    first, last = min(days), max(days)
    drawings = tuple(_drawn(chart, of, first, last) for chart, of in zip(charts, points, strict=True))
    rows = None if worst is None else worst.get(cluster, ())
    return ClusterTrends(cluster, drawings, rows, first, last, tuple(points))


def _drawn(chart: Chart, points: Sequence[Point], first: date, last: date) -> Drawing:
    days = [point.day for point in points] if chart.of_runs else []
    return draw(chart, points, min(days, default=first), max(days, default=last))
