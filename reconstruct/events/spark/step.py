"""Typed events: bronze's matched records as columns, one row for each partition a record names."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.events import CONTROLLER_EVENTS, REPLICATION_EVENTS, STATE_CHANGE_EVENTS
from ingest.shapes.partition_lists import ALIGNED, ALIGNED_LISTS
from reconstruct.events.spark.fields import boolean_field, int_field, ints_field, long_field, text_field
from reconstruct.events.spark.placing import with_incarnation
from reconstruct.model.versions import MODEL_VERSION

_LIST: Final = "topic_partitions"
_CHANGED: Final = ("added_broker_ids", "deleted_broker_ids", "bounced_broker_ids", "shutting_down_broker_ids")


def state_change_events(records: DataFrame, incarnations: DataFrame) -> DataFrame:
    """``bronze.log_records`` of state-change.log as ``silver.state_change_events``."""
    events = _one_per_partition(records.where(F.col("source_kind") == "state_change_log"))
    return _finish(
        events,
        incarnations,
        STATE_CHANGE_EVENTS.column_names,
        {
            "controller_id": int_field("controller_id"),
            "controller_epoch": int_field("controller_epoch"),
            "state_controller_epoch": int_field("state_controller_epoch"),
            "replica_id": int_field("replica_id"),
            "from_state": text_field("from_state"),
            "to_state": text_field("to_state"),
            "leader": int_field("leader"),
            "leader_epoch": int_field("leader_epoch"),
            "isr": ints_field("isr"),
            "partition_epoch": int_field("partition_epoch"),
            "leader_recovery_state": int_field("leader_recovery_state"),
            "replicas": ints_field("replicas"),
            "adding_replicas": ints_field("adding_replicas"),
            "removing_replicas": ints_field("removing_replicas"),
            "is_new": boolean_field("is_new"),
            "is_delete": boolean_field("delete"),
            "correlation_id": int_field("correlation_id"),
            "to_broker_ids": F.coalesce(
                ints_field("to_broker_ids"),
                F.when(int_field("to_broker_id").isNotNull(), F.array(int_field("to_broker_id"))),
            ),
        },
    )


def controller_events(records: DataFrame, incarnations: DataFrame) -> DataFrame:
    """Matched ``bronze.log_records`` of controller.log as ``silver.controller_events``."""
    typed = records.where((F.col("source_kind") == "controller_log") & F.col("shape_id").isNotNull())
    changed = F.array_distinct(
        F.concat(*(F.coalesce(ints_field(name), F.array().cast("array<int>")) for name in _CHANGED))
    )
    return _finish(
        _one_per_partition(typed),
        incarnations,
        CONTROLLER_EVENTS.column_names,
        {
            "controller_id": int_field("controller_id"),
            "controller_epoch": int_field("controller_epoch"),
            "broker_ids": F.when(F.size(changed) > 0, changed).otherwise(ints_field("live_broker_ids")),
        },
    )


def replication_events(records: DataFrame, incarnations: DataFrame) -> DataFrame:
    """Matched ``bronze.log_records`` of server.log as ``silver.replication_events``."""
    typed = records.where((F.col("source_kind") == "server_log") & F.col("shape_id").isNotNull())
    return _finish(
        _one_per_partition(typed),
        incarnations,
        REPLICATION_EVENTS.column_names,
        {
            "leader": int_field("leader"),
            "leader_epoch": int_field("leader_epoch"),
            "isr": F.coalesce(ints_field("new_isr"), ints_field("isr")),
            "old_isr": ints_field("old_isr"),
            "partition_epoch": int_field("partition_epoch"),
            "high_watermark": long_field("high_watermark"),
            "log_end_offset": F.coalesce(
                text_field("log_end_offset"), text_field("leader_epoch_start_offset")
            ).try_cast("bigint"),
            "offset": long_field("offset"),
        },
    )


def named_partitions(records: DataFrame) -> DataFrame:
    """Every (cluster, topic) that a matched record names, with its instant: what incarnations are made from."""
    return _one_per_partition(records.where(F.col("shape_id").isNotNull())).where(F.col("topic").isNotNull())


def _one_per_partition(records: DataFrame) -> DataFrame:
    """A row for each partition that a record names, one for a record that names none; ``ordinal`` tells them apart.

    Where a record lists partitions, the row's ``fields`` are those of its own partition: each aligned list gives its
    element (:mod:`ingest.shapes.partition_lists`), and no row carries the lists of all of them.
    """
    own = F.array(F.struct(text_field("topic").alias("topic"), int_field("partition_id").alias("partition_id")))
    listed = F.transform(
        F.split(text_field(_LIST), ","),
        lambda name: F.struct(
            F.regexp_extract(name, r"^(.*)-(\d+)$", 1).alias("topic"),
            F.regexp_extract(name, r"^(.*)-(\d+)$", 2).try_cast("int").alias("partition_id"),
        ),
    )
    has_list = text_field(_LIST).isNotNull() & (text_field(_LIST) != "") & text_field("partition_id").isNull()
    return (
        records.withColumn("has_list", F.coalesce(has_list, F.lit(False)))
        .withColumn("named", F.when(F.col("has_list"), listed).otherwise(own))
        .select("*", F.posexplode("named").alias("ordinal", "name"))
        .withColumns(
            {
                "topic": F.col("name.topic"),
                "partition_id": F.col("name.partition_id"),
                "fields": F.when(F.col("has_list"), _fields_of_one()).otherwise(F.col("fields")),
            }
        )
        .drop("has_list", "named", "name")
    )


def _fields_of_one() -> Column:
    """The record's fields without its lists, and what they say of the partition at ``ordinal``."""
    names = [_LIST, *ALIGNED]
    shared = F.map_filter("fields", lambda name, _: ~name.isin(*names))
    elements = [
        F.struct(F.lit(single).alias("key"), _element(name, name in ALIGNED_LISTS).alias("value"))
        for name, single in ALIGNED.items()
    ]
    of_one = F.map_from_entries(F.filter(F.array(*elements), lambda element: element["value"].isNotNull()))
    return F.map_concat(shared, of_one)


def _element(name: str, is_list: bool) -> Column:
    """The element at ``ordinal`` of an aligned list; NULL where there is none. An empty list is an empty text."""
    element = F.get(F.split(text_field(name), r"\|" if is_list else ","), F.col("ordinal"))
    return F.translate(element, ";", ",") if is_list else F.nullif(element, F.lit(""))


def _finish(
    events: DataFrame, incarnations: DataFrame, columns: tuple[str, ...], typed: dict[str, Column]
) -> DataFrame:
    """The select at the end: typed fields, the incarnation, where the row comes from."""
    common = {
        "event_id": F.concat_ws(":", "record_id", F.col("ordinal").cast("string")),
        "cause": F.substring_index("continuation", "\n", 1),
        "evidence": F.array("record_id"),
        "inferred_from": F.lit(None).cast("string"),
        "model_version": F.lit(MODEL_VERSION),
    }
    made = {**typed, **common}
    joined = with_incarnation(events, incarnations, F.unix_micros("corrected_time"), "left")
    return joined.select(*(made[name].alias(name) if name in made else F.col(name) for name in columns))
