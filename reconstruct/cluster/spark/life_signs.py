"""Signs that brokers lived, or did not, around the end of each registration: gathered by Spark, few for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.plans import collect_all, union
from ingest.lake.tables.kept import LIFE_SIGNS
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
from reconstruct.engine.folds import local_rows
from reconstruct.engine.windows import STRETCH, time_windows
from reconstruct.events.spark.fields import int_field, text_field

_FAR_FUTURE: Final = 2**62
#: The last instant that Spark prints, µs.
_LATEST: Final = 253_402_300_799_999_999
_COLUMNS: Final = ("cluster_id", "broker_id", "ends_us", "kind", "at", "evidence_id")
_SIGN: Final = ("at", "evidence_id")
#: What a line is, by which it may be how far from the end of a registration.
_OF: Final = "of"
_LINE: Final = "line"
_START: Final = "start"
_FAILURE: Final = "failure"
_NO_SPAN: Final = (_FAR_FUTURE, -_FAR_FUTURE)
_BROKER: Final = ("cluster_id", "broker_id")
#: Of a registration that ended: see :func:`_window`.
_WINDOW: Final = (
    "cluster_id string, broker_id int, begins_us bigint, ends_us bigint, again_us bigint, until_us bigint,"
    " silent_us bigint, from_us bigint, to_us bigint"
)
_Window = tuple[str, int, int, int, int, int, int | None, int, int]
#: A broker and an end of a registration of it; its signs.
_Key = tuple[str, int, int]
_Sign = tuple[str, int, str]


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
    return of_window.select("cluster_id", "broker_id", "ends_us", F.inline(F.array_compact(F.array(*rows))))


def _window(past: BrokerPast, span: RegistrationSpan, again: int) -> tuple[int, int, int, int, int | None, int, int]:
    """When a registration begins and ends, and the next one begins (inclusive); before when lines are of its process,
    or of none known; since when it was silent; and all of that together."""
    begins, ends = span.interval.start, span.interval.end
    assert ends is not None
    until = min(past.next_process_start(begins) or _FAR_FUTURE, again + 1)
    everything = min(begins, ends - FAILURES_US), max(until, again + 1, ends + 1)
    return begins, ends, again, until, past.silent_since(span), *everything


def _windows(facts: Mapping[str, ClusterFacts]) -> dict[_Key, list[_Window]]:
    """Of all registrations that ended."""
    windows: dict[_Key, list[_Window]] = {}
    for cluster_id, known in facts.items():
        registrations = broker_registrations(known.brokers, known.controllers, known.process_starts)
        for broker_id, past in broker_pasts(known, registrations).items():
            spans = registrations[broker_id]
            # what comes after the next one began is told of that
            for span, after in zip_longest(spans, spans[1:]):
                if span.interval.end is not None:
                    again = _FAR_FUTURE if after is None else after.interval.start
                    window = (cluster_id, broker_id, *_window(past, span, again))
                    windows.setdefault((cluster_id, broker_id, window[3]), []).append(window)
    return windows


class KeptSigns:
    """What the last run found in the brokers' lines; ``changed`` says which :func:`told_lines` came or went since, None
    where that is not known."""

    def __init__(self, lake: Lake, changed: Callable[[], DataFrame | None]) -> None:
        self._lake, self._changed = lake, changed

    def of(self, windows: Mapping[_Key, list[_Window]]) -> dict[_Key, list[_Sign]]:
        """The signs of those ends of which all is as it was, and that no line reaches which came or went."""
        changed = self._changed()
        if changed is None:
            return {}
        ends = changed.groupBy(*_BROKER, _OF).agg(F.min("at").alias("first"), F.max("at").alias("last"))
        kept, spans = collect_all([self._lake.read(LIFE_SIGNS), ends])
        changed_in = {(*row[:2], row[_OF]): (row["first"], row["last"]) for row in spans}

        def is_reached(window: _Window) -> bool:
            broker, (begins, ends, again, until) = window[:2], window[2:6]
            reach = {_LINE: (begins, until), _START: (begins, again), _FAILURE: (ends - FAILURES_US, ends)}
            both = ((changed_in.get((*broker, of), _NO_SPAN), span) for of, span in reach.items())
            return any(bool(first <= to and since <= last) for (first, last), (since, to) in both)

        asked = {key: _as_text(of_key) for key, of_key in windows.items() if not any(map(is_reached, of_key))}
        known: dict[_Key, list[_Sign]] = {}
        for row in kept:
            key = (row["cluster_id"], row["broker_id"], row["ends_us"])
            if asked.get(key) == row["windows"]:
                of_key = known.setdefault(key, [])
                if row["kind"] is not None:
                    of_key.append((row["kind"], row["at"], row["evidence_id"]))
        return known

    def keep(self, windows: Mapping[_Key, list[_Window]], signs: Mapping[_Key, list[_Sign]]) -> None:
        """For the next run."""
        none: list[tuple[None, None, None]] = [(None, None, None)]
        rows = (
            dict(zip(LIFE_SIGNS.column_names, (*key, _as_text(of_key), *sign), strict=True))
            for key, of_key in windows.items()
            for sign in sorted(signs.get(key, ())) or none
        )
        self._lake.overwrite(local_rows(self._lake.spark, LIFE_SIGNS, rows), LIFE_SIGNS)


def _as_text(windows: list[_Window]) -> str:
    return json.dumps(windows)


def told_lines(state_changes: DataFrame, controller_events: DataFrame, replication_events: DataFrame) -> DataFrame:
    """The lines from which the signs come: those of each broker, those of the starts of its process once more, and
    those of others that could not reach it."""
    own = _own_lines(state_changes, controller_events, replication_events)
    of = {_LINE: own, _START: _starting(own), _FAILURE: _failures(replication_events)}
    return union(rows.withColumn(_OF, F.lit(name)) for name, rows in of.items())


def _starting(own: DataFrame) -> DataFrame:
    """Of a broker's own lines those of the start of a process."""
    starts = own.where(F.col("event_type").isin(*STARTING, EventType.LOG_RECOVERY))
    return starts.where((F.col("event_type") != EventType.LOG_RECOVERY) | F.col("found").isNotNull())


def _own_lines(state_changes: DataFrame, controller_events: DataFrame, replication_events: DataFrame) -> DataFrame:
    # up to 1.0 a process prints its configuration before the line of its start: of which process that is, nothing says
    spoken = replication_events.where(F.col("event_type") != EventType.BROKER_CONFIGURED)
    found = F.when(F.col("event_type") == EventType.LOG_RECOVERY, text_field("stop_before"))
    return union(
        events.select(*_BROKER, *_place("corrected_time", F.col("record_id")), "event_type", found_logs.alias("found"))
        for events, found_logs in (
            (state_changes, F.lit(None).cast("string")),
            (controller_events, F.lit(None).cast("string")),
            (spoken, found),
        )
    )


def _failures(replication_events: DataFrame) -> DataFrame:
    """Failed connections to each broker, as others tell of them."""
    error = F.concat_ws(" ", text_field("error"), "cause")
    is_failure = (F.col("event_type") != EventType.FETCH_FAILED) | error.rlike(UNREACHABLE_ERROR)
    return (
        replication_events.where(F.col("event_type").isin(*UNREACHABLE, EventType.FETCH_FAILED))
        .where(is_failure)
        .withColumnRenamed("broker_id", "speaker_id")
        .withColumn("broker_id", F.coalesce(int_field("leader"), int_field("to_broker_id")))
        .where("speaker_id <> broker_id")
        .select(*_BROKER, *_place("corrected_time", F.col("record_id")))
    )


def add_life_signs(
    facts: Mapping[str, ClusterFacts],
    state_changes: DataFrame,
    controller_events: DataFrame,
    replication_events: DataFrame,
    znodes: DataFrame,
    kept: KeptSigns | None = None,
) -> None:
    """Put into the facts of each cluster what :func:`~reconstruct.cluster.departures.broker_departures` judges from.

    Of the lines of a broker's own logs, and of its writes to ZooKeeper, only the last before each end of a
    registration, the last before its silence, and the first line after that end; of the next process the first line of
    its start, and the first that tells how it found the logs; of failed connections to it those of the minute before.
    Lines are gone through for those ends alone of which the last run's signs (``kept``) may be others.
    """
    windows = _windows(facts)
    if not windows:
        return
    signs = {} if kept is None else kept.of(windows)
    others = [window for key, of_key in windows.items() if key not in signs for window in of_key]
    every = [window for of_key in windows.values() for window in of_key]
    found = [_of_writes(znodes, _in_windows(znodes.sparkSession, every)).withColumn("is_line", F.lit(False))]
    if others:
        since, until = min(window[-2] for window in others), max(window[-1] for window in others)
        reach = F.col("corrected_time").between(*(F.timestamp_micros(F.lit(at)) for at in (since, min(until, _LATEST))))
        lines = [events.where(reach) for events in (state_changes, controller_events, replication_events)]
        of_lines = _of_lines(_own_lines(*lines), _failures(lines[-1]), _in_windows(znodes.sparkSession, others))
        found.append(of_lines.withColumn("is_line", F.lit(True)))
    told: dict[str, set[tuple[int, str, int, str]]] = {}
    for cluster_id, broker_id, ends, *sign, is_line in union(found).collect():
        told.setdefault(cluster_id, set()).add((broker_id, *sign))
        if is_line:
            signs.setdefault((cluster_id, broker_id, ends), []).append((*sign,))
    for (cluster_id, broker_id, _), of_key in signs.items():
        told.setdefault(cluster_id, set()).update((broker_id, *sign) for sign in of_key)
    for cluster_id, of_cluster in told.items():
        facts[cluster_id].life_signs.extend(LifeSign(*sign) for sign in sorted(of_cluster))
    if kept is not None and others:
        kept.keep(windows, signs)


def _in_windows(spark: SparkSession, windows: Sequence[_Window]) -> Callable[[DataFrame], DataFrame]:
    """Beside each row the windows that may hold it."""
    framed = time_windows(spark, _WINDOW, windows, since="from_us", until="to_us")

    def placed(rows: DataFrame) -> DataFrame:
        stretch = framed.stretches.holding(F.col("at"))
        return rows.withColumn(STRETCH, stretch).join(framed.frame, [*_BROKER, STRETCH])

    return placed


def _of_lines(own: DataFrame, failures: DataFrame, placed: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Signs (:data:`_COLUMNS`) in the brokers' lines."""
    in_window = placed(own).where("at > begins_us AND at < until_us")
    is_before = F.col("at") <= F.col("ends_us")
    is_leaving = F.col("event_type").isin(*LEAVING)
    failed = placed(failures).where(F.col("at").between(F.col("ends_us") - FAILURES_US, F.col("ends_us")))
    sign = F.struct(*_SIGN)
    return union(
        [
            # the lines are gone through once
            _chosen(
                in_window,
                [
                    ("line", F.max(F.when(is_before, sign))),
                    ("line", F.min(F.when(~is_before, sign))),
                    ("line", F.max(F.when(F.col("at") <= F.col("silent_us"), sign))),
                    ("leaving", F.max(F.when(is_before & is_leaving, sign))),
                    (LIVES, F.min(F.when(~is_before & F.col("event_type").isin(*LIVING), sign))),
                ],
            ),
            _chosen(
                placed(_starting(own)).where("at > begins_us AND at <= again_us"),
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
            failed.withColumn("kind", F.lit("unreachable")).select(*_COLUMNS).distinct(),
        ]
    )


def _of_writes(znodes: DataFrame, placed: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Signs (:data:`_COLUMNS`) that are brokers' writes to ZooKeeper."""
    written = placed(
        znodes.where("change = 'written' AND written_by_broker_id IS NOT NULL").select(
            "cluster_id",
            F.col("written_by_broker_id").alias("broker_id"),
            *_place("changed_at", F.col("evidence")[0]),
        )
    ).where("at > begins_us AND at <= ends_us AND at < until_us")
    sign = F.struct(*_SIGN)
    return _chosen(
        written, [("written", F.max(sign)), ("written", F.max(F.when(F.col("at") <= F.col("silent_us"), sign)))]
    )
