"""What gold says happened to partitions, in one shape: the effects that incidents are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.tables.gold import (
    AVAILABILITY_INTERVALS,
    DATA_LOSS_BOUNDS,
    DIVERGENCES,
    LEADER_ELECTIONS,
    LEADERSHIP_OVERLAPS,
    TRUNCATIONS,
)
from reconstruct.engine.folds import map_rows
from reconstruct.incidents.causes import CONNECTED_US, Absence, causes_of
from reconstruct.partitions.availability import NO_LEADER_DECIDED

#: What :func:`effects` reads, in the order of its arguments.
EFFECT_TABLES: Final = (
    AVAILABILITY_INTERVALS,
    LEADER_ELECTIONS,
    DATA_LOSS_BOUNDS,
    LEADERSHIP_OVERLAPS,
    TRUNCATIONS,
    DIVERGENCES,
)
#: Per effect: when it began (at the earliest, at the latest) and ended, in µs; the brokers that it names; records.
_EFFECT: Final = {
    **dict.fromkeys(("cluster_id", "topic", "topic_incarnation"), "string"),
    "partition_id": "int",
    "event_kind": "string",
    "brokers": "array<int>",
    **dict.fromkeys(("at", "at_lower", "until"), "bigint"),
    "is_open": "boolean",
    **dict.fromkeys(("count_lower", "count_upper"), "bigint"),
    **dict.fromkeys(("harm", "name", "inferred_from"), "string"),
    "evidence": "array<string>",
}
#: With its cause: the key and the broker of an absence, and the keys of all that it connects.
_CAUSED: Final = _EFFECT | {"cause": "string", "broker_id": "int", "links": "array<string>"}
_INTERVALS: Final = ("offline", "no_live_leader", "under_min_isr", "under_replicated")
#: Effects of a partition that had no live leader; both kinds may tell of the same time.
OUTAGES: Final = ("offline", "no_live_leader")
#: Elections that move a leader by order, away or back, and the first of a partition.
_ORDERED: Final = ("new_partition", "preferred_replica", "reassigned_partition")


def effects(
    availability: DataFrame,
    elections: DataFrame,
    losses: DataFrame,
    overlaps: DataFrame,
    truncations: DataFrame,
    divergences: DataFrame,
) -> DataFrame:
    """All effects, from the tables of gold of those names (:data:`EFFECT_TABLES`)."""
    lost = F.col("lost_count_lower") > 0
    last_led = F.when(F.col("previous_leader") >= 0, F.array("previous_leader")).otherwise(F.col("previous_isr"))
    lasted = F.col("valid_to").isNull() | (F.col("valid_to") > F.col("valid_from"))
    # a leader that only lost its registration may have gone on serving
    had_none = (F.col("kind") == "no_live_leader") | F.col("opened_by").startswith(NO_LEADER_DECIDED)
    # who is elected uncleanly had left the ISR before
    elected = F.array(F.when(F.col("is_unclean"), F.col("observed_leader")))
    parts = (
        _effects(
            availability.where(F.col("kind").isin(*_INTERVALS)),
            event_kind=F.col("kind"),
            at=F.unix_micros("valid_from"),
            at_lower=F.unix_micros("valid_from_lower"),
            until=F.unix_micros("valid_to"),
            is_open=F.col("valid_to").isNull(),
            harm=F.when(F.col("kind").isin(*OUTAGES) & lasted & had_none, "unavailable"),
        ),
        _effects(
            elections.where(~F.col("election_kind").isin(*_ORDERED) & (F.col("observed_leader") >= 0)),
            event_kind=F.when(F.col("is_unclean"), "unclean_election").otherwise("election"),
            brokers=F.concat(F.coalesce(last_led, F.array()), elected),
            at=F.unix_micros("elected_at"),
        ),
        _effects(
            losses,
            event_kind=F.when(lost, "records_lost").otherwise("records_perhaps_lost"),
            brokers=F.array("previous_leader", "leader"),
            at=F.unix_micros("event_at"),
            count_lower=F.col("lost_count_lower"),
            count_upper=F.col("lost_count_upper"),
        ),
        _effects(
            overlaps,
            event_kind=F.lit("two_leaders"),
            brokers=F.array("deposed_leader"),
            at=F.unix_micros("valid_from"),
            until=F.unix_micros("valid_to"),
        ),
        _effects(
            truncations.where(F.col("uncommitted_count_lower") > 0),
            event_kind=F.lit("uncommitted_records_cut"),
            brokers=F.array("replica_id"),
            at=F.unix_micros("truncated_at"),
            count_lower=F.col("uncommitted_count_lower"),
            count_upper=F.col("uncommitted_count_upper"),
        ),
        _effects(
            divergences.where(F.col("severity").isin("error", "warning")),
            event_kind=F.lit("finding"),
            brokers=F.array("broker_id", "replica_id"),
            at=F.unix_micros("detected_at"),
            name=F.concat_ws(" ", "rule_id", "divergence_type"),
        ),
    )
    return reduce(DataFrame.union, parts)


def _effects(rows: DataFrame, **given: Column) -> DataFrame:
    """``rows`` as effects: a column is as given, else theirs of the name; records are 0, ``until`` is the begin."""
    zero = F.lit(0)
    defaults = {"until": given["at"], "is_open": F.lit(False), "count_lower": zero, "count_upper": zero}
    own = {name: F.col(name) for name in _EFFECT if name in rows.columns}
    columns = defaults | own | given
    columns["brokers"] = F.array_distinct(F.array_compact(columns["brokers"]))
    columns["evidence"] = F.slice("evidence", 1, 2)
    return rows.select(*(columns.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in _EFFECT.items()))


def with_causes(found: DataFrame, absences: Mapping[str, Sequence[Absence]]) -> DataFrame:
    """The effects with the absences that they are of, by cluster."""

    def caused(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            known = absences.get(row["cluster_id"], ())
            causes = causes_of(row["event_kind"], row["brokers"] or (), row["at"], row["at_lower"], known)
            first = causes[0] if causes else None
            yield {
                **row,
                "cause": first and first.key,
                "broker_id": first and first.broker_id,
                "links": [cause.key for cause in causes],
            }

    return map_rows(found, _CAUSED, caused)


def with_sessions(caused: DataFrame) -> DataFrame:
    """Effects without a cause get one: those of a kind that are no more than a minute apart have the same."""
    kind = F.when(F.col("event_kind") == "finding", "rule_broken").otherwise("replicas_behind")
    order = Window.partitionBy("cluster_id", "series").orderBy("at", "topic", "partition_id", "event_kind")
    forever = F.lit(2**62)
    until = F.when(F.col("is_open"), forever).otherwise(F.coalesce("until", "at"))
    before = F.max(until).over(order.rowsBetween(Window.unboundedPreceding, -1))
    begins = F.when(before.isNull() | (F.col("at") > before + CONNECTED_US), F.col("at"))
    begun = F.max("begins").over(order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    session = F.concat_ws("@", "series", begun)
    rows = caused.withColumn("series", F.coalesce("cause", kind)).withColumn("begins", begins)
    return rows.withColumn("cause", F.coalesce("cause", session)).drop("series", "begins")


def unavailable_us(of_incidents: DataFrame) -> Column:
    """How long its partition had no live leader by this row, without what rows before it have counted; 0 for others."""
    is_outage = F.col("event_kind").isin(*OUTAGES) & ~F.col("is_open")
    partition = ("cluster_id", "incident_id", "topic", "topic_incarnation", "partition_id", is_outage)
    order = Window.partitionBy(*partition).orderBy("at", "until").rowsBetween(Window.unboundedPreceding, -1)
    since = F.greatest(F.col("at"), F.max("until").over(order))
    return F.when(is_outage, F.greatest(F.col("until") - since, F.lit(0))).otherwise(F.lit(0))
