"""Signs that brokers lived, or did not, around the end of each registration: gathered by Spark, few for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.shapes.event_types import EventType
from reconstruct.cluster.broker_past import BrokerPast, broker_pasts
from reconstruct.cluster.brokers import RegistrationSpan, broker_registrations
from reconstruct.cluster.departures import FAILURES_US
from reconstruct.cluster.evidence import (
    ENDINGS,
    FOUND_CLEAN,
    FOUND_UNCLEAN,
    LEAVING,
    LIVES,
    LIVING,
    STARTING,
    STARTS,
    UNREACHABLE,
    UNREACHABLE_ERROR,
    ClusterFacts,
    LifeSign,
)
from reconstruct.engine.windows import STRETCH, time_windows
from reconstruct.events.spark.fields import int_field, text_field

_FAR_FUTURE: Final = 2**62
_COLUMNS: Final = ("cluster_id", "broker_id", "kind", "at", "evidence_id")
_SIGN: Final = ("at", "evidence_id")
_BROKER: Final = ("cluster_id", "broker_id")
_WINDOW: Final = (
    "cluster_id string, broker_id int, begins_us bigint, ends_us bigint, again_us bigint, until_us bigint,"
    " silent_us bigint, from_us bigint, to_us bigint"
)


def _place(instant: str, evidence_id: Column) -> tuple[Column, Column]:
    return F.unix_micros(instant).alias("at"), evidence_id.alias("evidence_id")


def _chosen(signs: DataFrame, kinds: Sequence[tuple[str, Column]]) -> DataFrame:
    """Of the signs in each window those that aggregates of them (:data:`_SIGN`) choose, each with its kind."""
    names = [f"chosen_{number}" for number in range(len(kinds))]
    of_window = signs.groupBy("cluster_id", "broker_id", "ends_us").agg(
        *(choice.alias(name) for name, (_, choice) in zip(names, kinds, strict=True))
    )
    rows = (
        F.when(
            F.col(name).isNotNull(), F.struct(F.lit(kind).alias("kind"), F.col(name)["at"], F.col(name)["evidence_id"])
        )
        for name, (kind, _) in zip(names, kinds, strict=True)
    )
    return of_window.select("cluster_id", "broker_id", F.inline(F.array_compact(F.array(*rows))))


def _window(past: BrokerPast, span: RegistrationSpan, again: int) -> tuple[int | None, ...]:
    """When a registration begins and ends, and the next one begins (inclusive); before when lines are of its process,
    or of none known; since when it was silent; and all of that together."""
    begins, ends = span.interval.start, span.interval.end
    assert ends is not None
    until = min(past.next_process_start(begins) or _FAR_FUTURE, again + 1)
    everything = min(begins, ends - FAILURES_US), max(until, again + 1, ends + 1)
    return begins, ends, again, until, past.silent_since(span), *everything


def add_life_signs(
    facts: Mapping[str, ClusterFacts],
    state_changes: DataFrame,
    controller_events: DataFrame,
    replication_events: DataFrame,
    znodes: DataFrame,
) -> None:
    """Put into the facts of each cluster what :func:`~reconstruct.cluster.departures.broker_departures` judges from.

    Of the lines of a broker's own logs, and of its writes to ZooKeeper, only the last before each end of a
    registration, the last before its silence, and the first line after that end; of the next process the first line of
    its start, and the first that tells how it found the logs; of failed connections to it those of the minute before.
    """
    ends = []
    for cluster_id, known in facts.items():
        registrations = broker_registrations(known.brokers, known.controllers)
        for broker_id, past in broker_pasts(known, registrations).items():
            ended = [span for span in registrations[broker_id] if span.interval.end is not None]
            # what comes after the next one began is told of that
            again = [*(span.interval.start for span in ended[1:]), _FAR_FUTURE]
            ends += [
                (cluster_id, broker_id, *_window(past, span, next_begins))
                for span, next_begins in zip(ended, again, strict=False)
            ]
    if not ends:
        return
    windows = time_windows(state_changes.sparkSession, _WINDOW, ends, since="from_us", until="to_us")

    def placed(signs: DataFrame) -> DataFrame:
        stretch = windows.stretches.holding(F.col("at"))
        return signs.withColumn(STRETCH, stretch).join(windows.frame, [*_BROKER, STRETCH])

    # up to 1.0 a process prints its configuration before the line of its start: of which process that is, nothing says
    spoken = replication_events.where(F.col("event_type") != EventType.BROKER_CONFIGURED)
    own = union(
        events.select("cluster_id", "broker_id", *_place("corrected_time", F.col("record_id")), "event_type", found)
        for events, found in (
            (state_changes, F.lit(None).cast("string").alias("found")),
            (controller_events, F.lit(None).cast("string").alias("found")),
            (spoken, F.when(F.col("event_type") == EventType.LOG_RECOVERY, text_field("stop_before")).alias("found")),
        )
    )
    in_window = placed(own).where("at > begins_us AND at < until_us")
    is_before = F.col("at") <= F.col("ends_us")
    is_leaving = F.col("event_type").isin(*LEAVING)
    written = placed(
        znodes.where("change = 'written' AND written_by_broker_id IS NOT NULL").select(
            "cluster_id",
            F.col("written_by_broker_id").alias("broker_id"),
            *_place("changed_at", F.col("evidence")[0]),
        )
    ).where("at > begins_us AND at <= ends_us AND at < until_us")
    error = F.concat_ws(" ", text_field("error"), "cause")
    is_failure = (F.col("event_type") != EventType.FETCH_FAILED) | error.rlike(UNREACHABLE_ERROR)
    failed = placed(
        replication_events.where(F.col("event_type").isin(*UNREACHABLE, EventType.FETCH_FAILED))
        .where(is_failure)
        .withColumnRenamed("broker_id", "speaker_id")
        .withColumn("broker_id", F.coalesce(int_field("leader"), int_field("to_broker_id")))
        .where("speaker_id <> broker_id")
        .select("cluster_id", "broker_id", *_place("corrected_time", F.col("record_id")))
    ).where(F.col("at").between(F.col("ends_us") - FAILURES_US, F.col("ends_us")))
    starts = own.where(F.col("event_type").isin(*STARTING, EventType.LOG_RECOVERY))
    starting = starts.where((F.col("event_type") != EventType.LOG_RECOVERY) | F.col("found").isNotNull())
    sign, is_silent = F.struct(*_SIGN), F.col("at") <= F.col("silent_us")
    signs = union(
        [
            # the lines are gone through once
            _chosen(
                in_window,
                [
                    ("line", F.max(F.when(is_before, sign))),
                    ("line", F.min(F.when(~is_before, sign))),
                    ("line", F.max(F.when(is_silent, sign))),
                    ("leaving", F.max(F.when(is_before & is_leaving, sign))),
                    (LIVES, F.min(F.when(~is_before & F.col("event_type").isin(*LIVING), sign))),
                ],
            ),
            _chosen(
                placed(starting).where("at > begins_us AND at <= again_us"),
                [
                    (STARTS, F.min(F.when(F.col("event_type").isin(*STARTING), sign))),
                    (FOUND_UNCLEAN, F.min(F.when(F.col("found") == FOUND_UNCLEAN, sign))),
                    (FOUND_CLEAN, F.min(F.when(F.col("found") == FOUND_CLEAN, sign))),
                ],
            ),
            in_window.where(F.col("event_type").isin(*ENDINGS))
            .withColumn("kind", F.col("event_type"))
            .select(*_COLUMNS)
            .distinct(),
            _chosen(written, [("written", F.max(sign)), ("written", F.max(F.when(is_silent, sign)))]),
            failed.withColumn("kind", F.lit("unreachable")).select(*_COLUMNS).distinct(),
        ]
    )
    for cluster_id, broker_id, kind, at, evidence_id in signs.collect():
        facts[cluster_id].life_signs.append(LifeSign(broker_id, kind, at, evidence_id))
