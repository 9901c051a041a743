"""What if: of each broker, what would have happened if it had stopped when the evidence ends, by the saved question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dashboards import words
from dashboards.questions.question import questions
from dashboards.section import Section
from dashboards.source import Source, by_cluster, ms, top_of_cluster, with_total
from dashboards.views import QUESTION_VIEWS, question_view

QUESTION: Final = "would-restart"
_BROKERS: Final = 50
_NAMED: Final = 5


@dataclass(frozen=True)
class Stop:
    """Partitions with a replica at one broker, by what its stop at ``at_ms`` would have done to them.

    ``offline_names`` are the first of those that would have gone offline, ``refuses_names`` of those that would refuse
    writes. ``lost_at_most`` sums the records that the new leaders may lack of those of which that is bounded
    (``may_lose``: where it is not 0), and ``lost_unknown`` counts the others; ``unclean_at_most`` sums the committed
    ones that unclean elections would cost, None where one of them is not bounded. ``total`` counts the cluster's
    brokers.
    """

    broker_id: int
    at_ms: float
    partitions: int
    offline: int
    refuses_writes: int
    new_leader: int
    fewer_replicas: int
    may_lose: int
    lost_at_most: int | None
    lost_unknown: int
    unclean_at_most: int | None
    total: int
    offline_names: tuple[str, ...] = ()
    refuses_names: tuple[str, ...] = ()

    @property
    def offline_words(self) -> str:
        """Which partitions would have gone offline."""
        return words.listing(map(words.visible, self.offline_names), _NAMED, self.offline)

    @property
    def refuses_words(self) -> str:
        """Which partitions would refuse writes."""
        return words.listing(map(words.visible, self.refuses_names), _NAMED, self.refuses_writes)


def gather(source: Source) -> Mapping[str, tuple[Stop, ...]]:
    """The brokers of each cluster, those whose stop would do the most harm first."""
    rows = _asked(source)
    name = F.concat_ws("-", "topic", "partition_id")
    is_new = (F.col("leader") == F.col("broker_id")) & (F.col("effect") != "offline")

    def names(effect: str) -> Column:
        return F.slice(F.array_sort(F.collect_list(F.when(F.col("effect") == effect, name))), 1, _NAMED)

    are_bounded = F.count_if(F.col("effect") == "offline") == F.count("unclean_lost_upper")
    effects = ("offline", "refuses_writes", "new_leader", "fewer_replicas")
    counted = rows.groupBy("cluster_id", "broker_id", ms("at").alias("at_ms")).agg(
        F.count("*").alias("partitions"),
        *(F.count_if(F.col("effect") == effect).alias(effect) for effect in effects),
        F.count_if(F.col("clean_lost_upper") > 0).alias("may_lose"),
        F.sum("clean_lost_upper").alias("lost_at_most"),
        F.count_if(is_new & F.col("clean_lost_upper").isNull()).alias("lost_unknown"),
        F.when(are_bounded, F.sum("unclean_lost_upper")).alias("unclean_at_most"),
        names("offline").alias("offline_names"),
        names("refuses_writes").alias("refuses_names"),
    )
    worst = [F.col(effect).desc() for effect in effects] + [F.col("broker_id")]
    return by_cluster(Stop, top_of_cluster(with_total(counted), worst, _BROKERS))


def _asked(source: Source) -> DataFrame:
    """The question's own answer for the page's clusters, at the end of what is shown."""
    tables = {
        spec.full_name.replace(".", "_"): source.all(spec) for spec in QUESTION_VIEWS[question_view(QUESTION)].tables
    }
    question, scope = questions()[QUESTION], source.scope
    sql = re.sub(r"\b(FROM|JOIN) (\w+)\.(\w+)", r"\1 {\2_\3}", question.sql)
    given = {"topic": scope.topic, "broker": scope.broker, "at": scope.end}
    bound = {name: given.get(name) for name in question.parameters}
    of_clusters = {name: rows.where(F.col("cluster_id").isin(list(source.clusters))) for name, rows in tables.items()}
    return source.lake.spark.sql(sql, bound, **of_clusters)


SECTION: Final[Section[tuple[Stop, ...]]] = Section("cluster/stops", gather, (), is_long=True)
