"""The rows of gold.controller_episodes: each tenure's take-over and what its controller did, counted by Spark; and what
it failed of, left out or waited for, by tenure and by procedure, in one pass over the lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.plans import collect_all
from ingest.lake.tables.controllers import CONTROLLER_EPISODES
from ingest.shapes.event_types import EventType
from reconstruct.cluster.episodes.tenures import TROUBLE, reigns
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.engine.rows import numbered, table_row
from reconstruct.engine.windows import STRETCH, Windows, time_windows

_COMPLETED: Final = (EventType.REASSIGNMENT_COMPLETED, EventType.TOPIC_DELETION_COMPLETED)
_COUNTED: Final = (*TROUBLE, *_COMPLETED)
_BY_EPOCH: Final = ("cluster_id", "controller_id", "controller_epoch")
#: What became of a request that did nothing.
UNDONE: Final = ("ignored_stale", "failed", "not_received")
#: Later than any instant, µs.
FOREVER_US: Final = 2**62
_Key = tuple[str, int, int]
#: A cluster and a procedure by its number.
ProcedureKey = tuple[str, int]


@dataclass(frozen=True)
class ToldLines:
    """By event type, of tenures: how many lines, and the partitions or topics of those of :data:`_COMPLETED`; of
    procedures: how many lines."""

    of_tenures: Mapping[_Key, Mapping[str, tuple[int, int]]]
    of_procedures: Mapping[ProcedureKey, Mapping[str, int]]

    @staticmethod
    def trouble(counts: Mapping[str, int]) -> list[str]:
        """As both tables have it."""
        return [f"{name} x{counts[name]}" for name in TROUBLE if name in counts]


def controller_episodes(
    histories: Sequence[ClusterHistory],
    controller_events: DataFrame,
    elections: DataFrame,
    unavailable: DataFrame,
    requests: DataFrame,
) -> tuple[list[dict[str, Any]], ToldLines]:
    """Of rows of ``gold.leader_elections``, ``gold.availability_intervals`` and ``gold.propagation_delays``."""
    windows = [
        (history.cluster_id, span.tenure.controller_id, span.tenure.controller_epoch, since, until)
        for history in histories
        for span, (since, until) in zip(history.tenures, history.windows, strict=True)
    ]
    spark = controller_events.sparkSession
    tenures = _tenure_windows(spark, windows)
    in_charge = [
        (history.cluster_id, tenure.controller_id, tenure.controller_epoch, start, FOREVER_US if end is None else end)
        for history in histories
        for tenure, start, end in reigns(history.tenures)
    ]
    since, reigning = F.unix_micros("valid_from"), _tenure_windows(spark, in_charge)
    leaderless = unavailable.where("kind = 'offline'").join(
        reigning.frame,
        (F.col("cluster_id") == F.col("w_cluster_id"))
        & (reigning.stretches.holding(since) == F.col(STRETCH))
        & (since >= F.col("since_us"))
        & (since < F.col("until_us")),
    )
    lines, elected, left, sent = collect_all(
        [
            _told(histories, controller_events, tenures),
            elections.groupBy(*_BY_EPOCH).agg(F.count("*").alias("all")),
            leaderless.groupBy("cluster_id", F.col("w_controller_id").alias("controller_id"), "controller_epoch").agg(
                F.count("*").alias("all")
            ),
            requests.groupBy(*_BY_EPOCH).agg(
                F.count("*").alias("all"), F.count_if(F.col("outcome").isin(*UNDONE)).alias("some")
            ),
        ]
    )
    told = _by_tenure_and_procedure(lines)
    held, lost = ({_key(row): row["all"] for row in rows} for rows in (elected, left))
    asked = {_key(row): (row["all"], row["some"]) for row in sent}
    return [row for history in histories for row in _rows(history, told, held, lost, asked)], told


def _tenure_windows(spark: SparkSession, rows: Collection[tuple[Any, ...]]) -> Windows:
    names = "w_cluster_id string, w_controller_id int, controller_epoch int, since_us bigint, until_us bigint"
    return time_windows(spark, names, rows, since="since_us", until="until_us")


def _told(histories: Sequence[ClusterHistory], controller_events: DataFrame, tenures: Windows) -> DataFrame:
    """Grain: one row per (tenure, procedure of its controller, event type). A line of no procedure has none."""
    turns = [
        (history.cluster_id, one.controller_id, number, one.began_at, FOREVER_US if one.until is None else one.until)
        for history in histories
        for number, one in enumerate(history.procedures)
    ]
    procedures = time_windows(
        controller_events.sparkSession,
        "t_cluster_id string, t_controller_id int, procedure_number int, began_us bigint, ended_us bigint",
        turns,
        since="began_us",
        until="ended_us",
    )
    at = F.unix_micros("corrected_time")
    is_completion = F.col("event_type").isin(*_COMPLETED)
    return (
        controller_events.where(F.col("event_type").isin(*_COUNTED))
        .drop("controller_epoch")
        .join(
            tenures.frame,
            (F.col("cluster_id") == F.col("w_cluster_id"))
            & (F.coalesce("controller_id", "broker_id") == F.col("w_controller_id"))
            & (tenures.stretches.holding(at) == F.col(STRETCH))
            & (at >= F.col("since_us"))
            & (at < F.col("until_us")),
        )
        .drop(STRETCH)
        .join(
            procedures.frame,
            (F.col("cluster_id") == F.col("t_cluster_id"))
            & (F.col("w_controller_id") == F.col("t_controller_id"))
            & (procedures.stretches.holding(at) == F.col(STRETCH))
            & (at >= F.col("began_us"))
            & (at < F.col("ended_us")),
            "left",
        )
        .drop("controller_id")
        .groupBy(
            "cluster_id",
            F.col("w_controller_id").alias("controller_id"),
            "controller_epoch",
            "procedure_number",
            "event_type",
        )
        .agg(
            F.count_distinct("record_id").alias("lines"),
            F.collect_set(F.when(is_completion, F.struct("topic", "partition_id"))).alias("subjects"),
        )
    )


def _by_tenure_and_procedure(rows: Sequence[Any]) -> ToldLines:
    lines: dict[_Key, dict[str, int]] = {}
    subjects: dict[_Key, dict[str, set[Any]]] = {}
    of_procedures: dict[ProcedureKey, dict[str, int]] = {}
    for row in rows:
        key, event, count = _key(row), row["event_type"], row["lines"]
        own = lines.setdefault(key, {})
        own[event] = own.get(event, 0) + count
        subjects.setdefault(key, {}).setdefault(event, set()).update(row["subjects"])
        if row["procedure_number"] is not None:
            of_procedure = of_procedures.setdefault((row["cluster_id"], row["procedure_number"]), {})
            of_procedure[event] = of_procedure.get(event, 0) + count
    of_tenures = {
        key: {event: (count, len(subjects[key][event])) for event, count in own.items()} for key, own in lines.items()
    }
    return ToldLines(of_tenures, of_procedures)


def _key(row: Any) -> _Key:
    return row["cluster_id"], row["controller_id"], row["controller_epoch"]


def _rows(
    history: ClusterHistory,
    lines: ToldLines,
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
        told, none = lines.of_tenures.get(key, {}), (0, 0)
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
            trouble=lines.trouble({event: count for event, (count, _) in told.items()}),
            evidence=list(dict.fromkeys((*tenure.evidence, *take_over.evidence))),
            inferred_from=span.inferred_from,
        )
