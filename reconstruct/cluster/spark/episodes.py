"""The rows of gold.controller_episodes: each tenure's take-over and what its controller did, counted by Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import collect_all
from ingest.lake.tables.gold import CONTROLLER_EPISODES
from ingest.shapes.event_types import EventType
from reconstruct.cluster.episodes import TROUBLE
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.engine.rows import numbered, table_row

_COUNTED: Final = (*TROUBLE, EventType.REASSIGNMENT_COMPLETED, EventType.TOPIC_DELETION_COMPLETED)
_BY_EPOCH: Final = ("cluster_id", "controller_id", "controller_epoch")
_UNDONE: Final = ("ignored_stale", "failed", "not_received")
_FOREVER_US: Final = 2**62
_Key = tuple[str, int, int]


def controller_episodes(
    histories: Sequence[ClusterHistory],
    controller_events: DataFrame,
    elections: DataFrame,
    unavailable: DataFrame,
    requests: DataFrame,
) -> list[dict[str, Any]]:
    """Rows of ``gold.leader_elections``, ``gold.availability_intervals`` and ``gold.propagation_delays``."""
    windows = [
        (history.cluster_id, span.tenure.controller_id, span.tenure.controller_epoch, since, until)
        for history in histories
        for span, (since, until) in zip(history.tenures, history.windows, strict=True)
    ]
    names = "w_cluster_id string, w_controller_id int, controller_epoch int, since_us bigint, until_us bigint"
    spark = controller_events.sparkSession
    tenures = F.broadcast(spark.createDataFrame(windows, names))
    reigns = F.broadcast(spark.createDataFrame(list(_reigns(histories)), names))
    since = F.unix_micros("valid_from")
    leaderless = unavailable.where("kind = 'offline'").join(
        reigns,
        (F.col("cluster_id") == F.col("w_cluster_id")) & (since >= F.col("since_us")) & (since < F.col("until_us")),
    )
    at = F.unix_micros("corrected_time")
    lines = controller_events.where(F.col("event_type").isin(*_COUNTED)).drop("controller_epoch")
    of_tenure = lines.join(
        tenures,
        (F.col("cluster_id") == F.col("w_cluster_id"))
        & (F.coalesce("controller_id", "broker_id") == F.col("w_controller_id"))
        & (at >= F.col("since_us"))
        & (at < F.col("until_us")),
    ).drop("controller_id")
    told, elected, left, sent = collect_all(
        [
            of_tenure.groupBy(
                "cluster_id", F.col("w_controller_id").alias("controller_id"), "controller_epoch", "event_type"
            ).agg(
                F.count_distinct("record_id").alias("lines"),
                F.count_distinct(F.struct("topic", "partition_id")).alias("subjects"),
            ),
            elections.groupBy(*_BY_EPOCH).agg(F.count("*").alias("all")),
            leaderless.groupBy("cluster_id", F.col("w_controller_id").alias("controller_id"), "controller_epoch").agg(
                F.count("*").alias("all")
            ),
            requests.groupBy(*_BY_EPOCH).agg(
                F.count("*").alias("all"), F.count_if(F.col("outcome").isin(*_UNDONE)).alias("some")
            ),
        ]
    )
    counts: dict[_Key, dict[str, tuple[int, int]]] = {}
    for row in told:
        counts.setdefault(_key(row), {})[row["event_type"]] = (row["lines"], row["subjects"])
    held, lost = ({_key(row): row["all"] for row in rows} for rows in (elected, left))
    asked = {_key(row): (row["all"], row["some"]) for row in sent}
    return [row for history in histories for row in _rows(history, counts, held, lost, asked)]


def _reigns(histories: Sequence[ClusterHistory]) -> Iterator[tuple[str, int, int, int, int]]:
    """By cluster each controller from its election to the next one's: what happened then is of no other."""
    for history in histories:
        in_order = sorted((span.tenure for span in history.tenures), key=lambda tenure: tenure.start)
        ends = [*(later.start for _, later in pairwise(in_order)), _FOREVER_US]
        for tenure, end in zip(in_order, ends, strict=False):
            yield history.cluster_id, tenure.controller_id, tenure.controller_epoch, tenure.start, end


def _key(row: Any) -> _Key:
    return row["cluster_id"], row["controller_id"], row["controller_epoch"]


def _rows(
    history: ClusterHistory,
    counts: dict[_Key, dict[str, tuple[int, int]]],
    elected: dict[_Key, int],
    leaderless: dict[_Key, int],
    sent: dict[_Key, tuple[int, int]],
) -> Iterator[dict[str, Any]]:
    of_tenure = zip(history.tenures, history.take_overs, history.episodes, strict=True)
    for sequence, (span, take_over, episode) in numbered(
        of_tenure, lambda one: (one[0].tenure.controller_epoch, one[0].tenure.controller_id)
    ):
        tenure = span.tenure
        key = (history.cluster_id, tenure.controller_id, tenure.controller_epoch)
        told, none = counts.get(key, {}), (0, 0)
        yield table_row(
            CONTROLLER_EPISODES,
            take_over,
            episode,
            tenure,
            cluster_id=history.cluster_id,
            sequence=sequence,
            elected_at=tenure.start,
            ended_at=None if tenure.end is None else max(tenure.start, tenure.end),
            elections_count=elected.get(key, 0),
            left_leaderless_count=leaderless.get(key, 0),
            requests_count=sent.get(key, none)[0],
            requests_not_applied_count=sent.get(key, none)[1],
            reassignments_count=told.get(EventType.REASSIGNMENT_COMPLETED, none)[1],
            deletions_count=told.get(EventType.TOPIC_DELETION_COMPLETED, none)[1],
            trouble=[f"{name} x{told[name][0]}" for name in TROUBLE if name in told],
            evidence=list(dict.fromkeys((*tenure.evidence, *take_over.evidence))),
            inferred_from=span.inferred_from,
        )
