"""Typed events: bronze's matched records as columns, one row for each partition a record names."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.events import CONTROLLER_EVENTS, REPLICATION_EVENTS, STATE_CHANGE_EVENTS
from ingest.readers.log_dirs.names import METADATA_TOPIC
from ingest.shapes.partition_lists import ALIGNED, ALIGNED_LISTS
from reconstruct.events.spark.fields import boolean_field, field_of_type, int_field, ints_field, text_field
from reconstruct.events.spark.placing import with_incarnation
from reconstruct.model.versions import MODEL_VERSION

_LIST: Final = "topic_partitions"
_CHANGED: Final = ("added_broker_ids", "deleted_broker_ids", "bounced_broker_ids", "shutting_down_broker_ids")


def state_change_events(records: DataFrame, incarnations: DataFrame) -> DataFrame:
    """``bronze.log_records`` of state-change.log as ``silver.state_change_events``."""
    events = records.where(F.col("source_kind") == SourceKind.STATE_CHANGE_LOG)
    to_broker_id = int_field("to_broker_id")
    return _typed(
        events,
        incarnations,
        STATE_CHANGE_EVENTS,
        is_delete=boolean_field("delete"),
        to_broker_ids=F.coalesce(ints_field("to_broker_ids"), F.when(to_broker_id.isNotNull(), F.array(to_broker_id))),
    )


def controller_events(records: DataFrame, incarnations: DataFrame) -> DataFrame:
    """Matched ``bronze.log_records`` of controller.log as ``silver.controller_events``."""
    events = records.where((F.col("source_kind") == SourceKind.CONTROLLER_LOG) & F.col("shape_id").isNotNull())
    changed = F.array_distinct(
        F.concat(*(F.coalesce(ints_field(name), F.array().cast("array<int>")) for name in _CHANGED))
    )
    broker_ids = F.when(F.size(changed) > 0, changed).otherwise(ints_field("live_broker_ids"))
    return _typed(events, incarnations, CONTROLLER_EVENTS, broker_ids=broker_ids)


def replication_events(records: DataFrame, incarnations: DataFrame) -> DataFrame:
    """Matched ``bronze.log_records`` of server.log as ``silver.replication_events``."""
    events = records.where((F.col("source_kind") == SourceKind.SERVER_LOG) & F.col("shape_id").isNotNull())
    log_end = F.coalesce(text_field("log_end_offset"), text_field("leader_epoch_start_offset"))
    return _typed(
        events,
        incarnations,
        REPLICATION_EVENTS,
        isr=F.coalesce(ints_field("new_isr"), ints_field("isr")),
        log_end_offset=log_end.try_cast("bigint"),
    )


def named_partitions(records: DataFrame) -> DataFrame:
    """Every (cluster, topic) that a matched record names, with its instant: what incarnations are made from. The
    metadata log of a quorum is a partition to brokers, but was never created as a topic.

    Of what a record says of the partition there are ``to_state`` and ``topic_id``, not its ``fields``: to hand on all
    of them for each partition takes longer than to find it.
    """
    of_topics = F.col("topic").isNotNull() & (F.col("topic") != METADATA_TOPIC)
    told = {name: text_field(name) for name in ("to_state", "topic_id", "topic_ids")}
    each = _each_partition(records.where(F.col("shape_id").isNotNull()).withColumns(told), "fields")
    of_list = F.when(F.col("has_list"), _element(F.col("topic_ids"), is_list=False))
    return each.withColumn("topic_id", F.coalesce(of_list, "topic_id")).drop("topic_ids", "has_list").where(of_topics)


def _one_per_partition(records: DataFrame) -> DataFrame:
    """A row for each partition that a record names, one for a record that names none; ``ordinal`` tells them apart.

    Where a record lists partitions, the row's ``fields`` are those of its own partition: each aligned list gives its
    element (:mod:`ingest.shapes.partition_lists`), and no row carries the lists of all of them.
    """
    of_one = F.when(F.col("has_list"), _fields_of_one()).otherwise(F.col("fields"))
    return _each_partition(records).withColumn("fields", of_one).drop("has_list")


def _each_partition(records: DataFrame, *left_out: str) -> DataFrame:
    """A row for each partition that a record names, without the columns ``left_out``; ``has_list``: it is one of the
    record's list, and ``ordinal`` says which."""
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
        .drop(*left_out)
        .select("*", F.posexplode("named").alias("ordinal", "name"))
        .withColumns({"topic": F.col("name.topic"), "partition_id": F.col("name.partition_id")})
        .drop("named", "name")
    )


def _fields_of_one() -> Column:
    """The record's fields without its lists, and what they say of the partition at ``ordinal``."""
    names = [_LIST, *ALIGNED]
    shared = F.map_filter("fields", lambda name, _: ~name.isin(*names))
    elements = [
        F.struct(F.lit(single).alias("key"), _element(text_field(name), name in ALIGNED_LISTS).alias("value"))
        for name, single in ALIGNED.items()
    ]
    of_one = F.map_from_entries(F.filter(F.array(*elements), lambda element: element["value"].isNotNull()))
    return F.map_concat(shared, of_one)


def _element(aligned: Column, is_list: bool) -> Column:
    """The element at ``ordinal`` of an aligned list; NULL where there is none. An empty list is an empty text."""
    element = F.get(F.split(aligned, r"\|" if is_list else ","), F.col("ordinal"))
    return F.translate(element, ";", ",") if is_list else F.nullif(element, F.lit(""))


def _typed(records: DataFrame, incarnations: DataFrame, spec: TableSpec, /, **given: Column) -> DataFrame:
    """The columns of a table of events: as ``given``, else the records' own, else the field of the name, typed."""
    made = given | {
        "event_id": F.concat_ws(":", "record_id", F.col("ordinal").cast("string")),
        "cause": F.substring_index("continuation", "\n", 1),
        "evidence": F.array("record_id"),
        "inferred_from": F.lit(None).cast("string"),
        "model_version": F.lit(MODEL_VERSION),
    }
    events = with_incarnation(_one_per_partition(records), incarnations, F.unix_micros("corrected_time"), "left")
    for column in spec.columns:
        if column.name not in made:
            own = column.name in events.columns
            made[column.name] = F.col(column.name) if own else field_of_type(column.name, column.type)
    return events.select(*(made[name].alias(name) for name in spec.column_names))
