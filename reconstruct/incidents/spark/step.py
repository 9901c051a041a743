"""Incidents on Spark: gold's other tables and the absences of brokers in, rows of gold's incidents out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.local_frames import local_frame
from ingest.lake.plans import union
from ingest.lake.tables.incidents import INCIDENT_EVENTS, INCIDENTS
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.engine.folds import evidence_columns, fold, select_evidence, table_columns
from reconstruct.engine.rows import SAYS, Row, says, table_row, values_of
from reconstruct.engine.staging import Staging
from reconstruct.incidents.causes import Absence, absences, connected, successors
from reconstruct.incidents.spark.effects import OUTAGES, unavailable_us, with_causes, with_sessions
from reconstruct.incidents.story import Effects, Successor, Totals, events_of, incident_of

_KEY: Final = ("cluster_id", "incident_id")
_COLUMNS: Final = evidence_columns(Absence, Successor, Effects, Totals)


def incidents(found: DataFrame, histories: Sequence[ClusterHistory], stage: Staging) -> DataFrame:
    """Rows of both tables, of all effects (:func:`~reconstruct.incidents.spark.effects.effects`)."""
    away = {
        history.cluster_id: absences(
            history.registrations, history.ends, history.view.departures, history.view.recreations
        )
        for history in histories
    }
    caused = stage.keep(with_sessions(with_causes(found, away)), "effects_with_causes")
    ids = _incident_ids(caused, away)
    spark = caused.sparkSession
    known = ((*key, incident_id) for key, incident_id in ids.items())
    mapped = local_frame(spark, "cluster_id string, cause string, known_id string", known)
    own_id = F.coalesce("known_id", F.md5(F.concat_ws(" ", "cluster_id", "cause")))
    of_incidents = caused.join(F.broadcast(mapped), ["cluster_id", "cause"], "left").withColumn("incident_id", own_id)
    columns = ", ".join(f"{name} string" for name in (*_KEY, SAYS))
    causes = local_frame(spark, columns, _cause_rows(histories, away, ids))
    evidence = union([causes, _effects(of_incidents), _totals(of_incidents)])
    return fold(evidence, _KEY, table_columns(INCIDENTS, INCIDENT_EVENTS), _rows)


def _incident_ids(caused: DataFrame, away: Mapping[str, Sequence[Absence]]) -> dict[tuple[str, str], str]:
    """By cluster and key of an absence, the incident that it is of."""
    links: dict[str, list[list[str]]] = {}
    # as many as there are sets of brokers that were away together
    for row in caused.where(F.size("links") > 1).select("cluster_id", "links").distinct().collect():
        links.setdefault(row["cluster_id"], []).append(row["links"])
    return {
        (cluster_id, key): hashlib.md5(f"{cluster_id} {root}".encode(), usedforsecurity=False).hexdigest()
        for cluster_id, known in away.items()
        for key, root in connected((absence.key for absence in known), links.get(cluster_id, ())).items()
    }


def _cause_rows(
    histories: Sequence[ClusterHistory], away: Mapping[str, Sequence[Absence]], ids: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, str, str]]:
    for history in histories:
        cluster_id = history.cluster_id
        for absence in away[cluster_id]:
            key = cluster_id, ids[cluster_id, absence.key]
            yield *key, says(absence)
            for tenure in successors(absence, [span.tenure for span in history.tenures]):
                new = Successor(
                    absence.broker_id, tenure.controller_id, tenure.controller_epoch, tenure.start, tenure.evidence[:2]
                )
                yield *key, says(new)


def _partitions(of: Any = None) -> Any:
    """How many partitions, each once, of the rows for which ``of`` holds."""
    partition = F.struct("topic", "topic_incarnation", "partition_id")
    is_counted = F.col("topic").isNotNull() if of is None else F.col("topic").isNotNull() & of
    # for a distinct count all sets that are collected beside it would be put together twice more
    return F.size(F.collect_set(F.when(is_counted, partition))).cast("bigint")


def _effects(of_incidents: DataFrame) -> DataFrame:
    names = F.sort_array(F.collect_set(F.concat_ws("-", "topic", "partition_id")))
    is_bounded = F.count("count_upper") == F.count("*")
    until = F.coalesce("until", "at")
    rows = of_incidents.groupBy(*_KEY, "event_kind", "broker_id").agg(
        F.min("at").alias("start"),
        F.max(F.greatest(until, "at")).alias("end"),
        F.max("is_open").alias("is_open"),
        F.count("*").alias("rows_count"),
        _partitions().alias("partitions_count"),
        F.sum("count_lower").alias("count_lower"),
        F.when(is_bounded, F.sum("count_upper")).alias("count_upper"),
        F.sort_array(F.array_distinct(F.flatten(F.collect_set("brokers")))).alias("brokers"),
        F.slice(F.filter(names, lambda name: name != ""), 1, 10).alias("partitions"),
        F.sort_array(F.collect_set("harm")).alias("harms"),
        F.sort_array(F.collect_set("name")).alias("names"),
        F.min("inferred_from").alias("inferred_from"),
        F.min_by("evidence", F.struct("at", "topic", "partition_id", "evidence")).alias("evidence"),
    )
    return select_evidence(rows, _KEY, _COLUMNS, Effects)


def _totals(of_incidents: DataFrame) -> DataFrame:
    timed = of_incidents.withColumn("unavailable_us", unavailable_us(of_incidents))
    rows = timed.groupBy(*_KEY).agg(
        _partitions().alias("partitions_count"),
        _partitions(F.col("event_kind").isin(*OUTAGES)).alias("unavailable_partitions_count"),
        F.sum("unavailable_us").alias("unavailable_us"),
        _partitions(F.col("event_kind") == "under_min_isr").alias("under_min_isr_partitions_count"),
    )
    return select_evidence(rows, _KEY, _COLUMNS, Totals)


def _rows(evidence: Iterable[Row]) -> Iterator[dict[str, Any]]:
    rows = list(evidence)
    away = sorted(values_of(Absence, rows), key=lambda absence: (absence.start, absence.broker_id))
    effects = sorted(values_of(Effects, rows), key=lambda one: (one.start, one.event_kind, one.broker_id or -1))
    totals = next(iter(values_of(Totals, rows)), Totals())
    incident_id = rows[0]["incident_id"]
    yield table_row(INCIDENTS, incident_of(away, effects, totals), totals, incident_id=incident_id)
    for sequence, event in enumerate(events_of(away, values_of(Successor, rows), effects)):
        yield table_row(INCIDENT_EVENTS, event, incident_id=incident_id, sequence=sequence)
