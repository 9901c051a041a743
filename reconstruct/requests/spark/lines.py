"""Lines of state-change.log grouped into requests: what each controller sent, and what each broker received and did.

Each line that one side prints for a partition, or for a whole request, leaves a *mark*, by which
:mod:`reconstruct.requests.spark.matching` ties the two sides together.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.shapes.event_types import EventType
from reconstruct.events.spark.fields import int_field, speaker, text_field
from reconstruct.requests.propagation import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from reconstruct.requests.spark.matching import batch_mark, correlation_mark, line_mark

#: Lines of one connection that are further apart belong to two requests, though they print one correlation id: µs.
SAME_REQUEST_US: Final = 10_000_000
#: The lines of one batch of a controller follow each other faster than this, where no correlation id tells: µs.
SAME_BATCH_US: Final = 1_000_000

_SENT: Final = {
    EventType.LEADER_AND_ISR_SENT: LEADER_AND_ISR,
    EventType.UPDATE_METADATA_SENT: UPDATE_METADATA,
    EventType.STOP_REPLICA_SENT: STOP_REPLICA,
}
_BATCH_SENT: Final = EventType.REQUEST_BATCH_SENT
_DECISIONS: Final = (EventType.PARTITION_STATE_CHANGE, EventType.ISR_SHRUNK_BY_CONTROLLER)
_OTHER_STEPS: Final = (
    EventType.REPLICA_STATE_CHANGE,
    EventType.PARTITION_STATE_CHANGE_FAILED,
    EventType.REPLICA_STATE_CHANGE_FAILED,
)
#: What a broker logs of a request, with the request's kind.
_OF_BROKER: Final = {
    EventType.LEADER_AND_ISR_RECEIVED: LEADER_AND_ISR,
    EventType.LEADER_AND_ISR_HANDLED: LEADER_AND_ISR,
    EventType.LEADER_AND_ISR_IGNORED: LEADER_AND_ISR,
    EventType.LEADER_AND_ISR_FAILED: LEADER_AND_ISR,
    EventType.BECOME_LEADER_STARTED: LEADER_AND_ISR,
    EventType.BECOME_LEADER_COMPLETED: LEADER_AND_ISR,
    EventType.BECOME_LEADER_SKIPPED: LEADER_AND_ISR,
    EventType.BECOME_LEADER_FAILED: LEADER_AND_ISR,
    EventType.BECOME_FOLLOWER_STARTED: LEADER_AND_ISR,
    EventType.BECOME_FOLLOWER_COMPLETED: LEADER_AND_ISR,
    EventType.BECOME_FOLLOWER_SKIPPED: LEADER_AND_ISR,
    EventType.BECOME_FOLLOWER_FAILED: LEADER_AND_ISR,
    EventType.TOPIC_ID_ASSIGNED: LEADER_AND_ISR,
    EventType.TOPIC_ID_REMOVED: LEADER_AND_ISR,
    EventType.METADATA_CACHED: UPDATE_METADATA,
    EventType.METADATA_DELETED: UPDATE_METADATA,
    EventType.METADATA_BATCH: UPDATE_METADATA,
    EventType.UPDATE_METADATA_IGNORED: UPDATE_METADATA,
    EventType.STOP_REPLICA_RECEIVED: STOP_REPLICA,
    EventType.STOP_REPLICA_IGNORED: STOP_REPLICA,
    EventType.STOP_REPLICA_HANDLED: STOP_REPLICA,
}
_RECEIVED: Final = (EventType.LEADER_AND_ISR_RECEIVED, EventType.STOP_REPLICA_RECEIVED)
_CACHED: Final = (EventType.METADATA_CACHED, EventType.METADATA_DELETED)
_STARTED: Final = (EventType.BECOME_LEADER_STARTED, EventType.BECOME_FOLLOWER_STARTED)
_COMPLETED: Final = (EventType.BECOME_LEADER_COMPLETED, EventType.BECOME_FOLLOWER_COMPLETED)
_FAILED: Final = (EventType.LEADER_AND_ISR_FAILED, EventType.BECOME_LEADER_FAILED, EventType.BECOME_FOLLOWER_FAILED)
_SKIPPED: Final = (
    EventType.BECOME_LEADER_SKIPPED,
    EventType.BECOME_FOLLOWER_SKIPPED,
    EventType.TOPIC_ID_ASSIGNED,
    EventType.TOPIC_ID_REMOVED,
)
_IGNORED: Final = (EventType.LEADER_AND_ISR_IGNORED, EventType.UPDATE_METADATA_IGNORED, EventType.STOP_REPLICA_IGNORED)
_APPLIED: Final = (
    *_COMPLETED,
    *_CACHED,
    EventType.METADATA_BATCH,
    EventType.LEADER_AND_ISR_HANDLED,
    EventType.STOP_REPLICA_HANDLED,
)

_FILE_ORDER: Final = ("file_start", "file_id", "time_order", "byte_offset", "event_id")
#: Columns of what names the logs whose lines are not in order: they are put in order by their times.
UNORDERED_COLUMNS: Final = "cluster_id string, unordered_broker_id int"


def received_requests(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    """One row per request that a broker's lines tell of: who sent it, when it was received and applied, how it went.

    ``received_ref`` is the id of its first record; ``marks`` are its lines, as ``(place, content, at)``; ``position``
    is where, in the broker's files, it was first acted upon (inside of the lock that orders requests); NULL where it
    was not. From Kafka 2.6 the lines of level INFO name no controller epoch: it is that of the next request of the same
    controller that does, since an UpdateMetadata follows each LeaderAndIsr in its batch; ``stated_epoch`` is what the
    request's own lines name.
    """
    lines = _broker_lines(state_changes, files, unordered)
    connection = Window.partitionBy("cluster_id", "to_broker_id", "controller_id").orderBy(*_FILE_ORDER)
    before = {name: F.lag(name).over(connection) for name in ("api", "correlation_id", "at")}
    is_first = (
        before["api"].isNull()
        | (F.col("api") != before["api"])
        | (F.col("correlation_id") != before["correlation_id"])
        | (F.col("at") - before["at"] > SAME_REQUEST_US)
    )
    runs = lines.withColumn("is_first", is_first).withColumn(
        "run", F.last(F.when(F.col("is_first"), F.col("record_id")), ignorenulls=True).over(connection)
    )
    grouped = runs.groupBy("cluster_id", "to_broker_id", "controller_id", "run").agg(*_of_run())
    return _with_epochs(_whole(grouped))


def _broker_lines(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    api = F.create_map(*(F.lit(x) for pair in _OF_BROKER.items() for x in pair))[F.col("event_type")]
    batch = F.coalesce(
        int_field("n_partitions"),
        int_field("n_added") + int_field("n_deleted"),
    )
    is_known = F.col("event_type").isin(*_OF_BROKER) & F.col("correlation_id").isNotNull()
    lines = state_changes.where(is_known & F.col("controller_id").isNotNull())
    is_line = F.col("event_type").isin(*_RECEIVED, *_CACHED) & F.col("topic").isNotNull()
    is_batch = (
        F.col("event_type").isin(*_RECEIVED, EventType.METADATA_BATCH) & batch.isNotNull() & F.col("topic").isNull()
    )
    return (
        _in_file_order(lines, files, speaker(), unordered)
        .select(
            "cluster_id",
            speaker().alias("to_broker_id"),
            "controller_id",
            F.coalesce("controller_epoch", int_field("request_controller_epoch")).alias("epoch"),
            int_field("known_controller_epoch").alias("known_epoch"),
            api.alias("api"),
            "correlation_id",
            "event_type",
            F.col("topic").isNull().alias("is_whole"),
            F.when(is_batch, batch).alias("batch"),
            F.unix_micros("corrected_time").alias("at"),
            "record_id",
            F.when(is_line, line_mark()).when(is_batch, batch_mark(batch)).alias("mark"),
            *_FILE_ORDER,
        )
        .where("to_broker_id IS NOT NULL")
    )


def _of_run() -> list[Column]:
    event = F.col("event_type")

    def many(*events: str) -> Column:
        return F.count(F.when(event.isin(*events), 1)).cast("int")

    is_refusal = event.isin(*_IGNORED) & F.col("is_whole")
    # "received" and a refusal may be printed outside of the lock, or change nothing
    acts = ~is_refusal & ~event.isin(*_RECEIVED)
    return [
        F.first("api").alias("api"),
        F.first("correlation_id").alias("correlation_id"),
        F.max("epoch").alias("controller_epoch"),
        F.min("at").alias("received_at"),
        F.min(F.struct(*_FILE_ORDER)).alias("begin"),
        F.min(F.when(acts, F.struct(*_FILE_ORDER))).alias("position"),
        F.max(F.when(event.isin(*_APPLIED), F.struct("at", "record_id"))).alias("applied"),
        F.max("batch").alias("batch"),
        F.count(F.when(event.isin(*_RECEIVED, *_CACHED) & ~F.col("is_whole"), 1)).cast("int").alias("lines"),
        many(*_RECEIVED).alias("received_lines"),
        many(*_STARTED).alias("started"),
        many(*_COMPLETED).alias("completed"),
        many(*_APPLIED).alias("applied_lines"),
        many(*_FAILED).alias("failed"),
        F.count(F.when(event.isin(*_IGNORED) & ~F.col("is_whole"), 1)).cast("int").alias("ignored"),
        many(*_SKIPPED).alias("skipped"),
        F.max(F.when(is_refusal, F.col("known_epoch"))).alias("known_epoch"),
        F.coalesce(F.bool_or(is_refusal), F.lit(False)).alias("is_refused"),
        F.collect_list("mark").alias("marks"),
    ]


def _whole(runs: DataFrame) -> DataFrame:
    """Runs made whole: one that lacks the line which opens a request belongs to the one before of the same id.

    The lines of a request stand together but for a retry of the controller that is received while the first try is
    still being handled.
    """
    order = Window.partitionBy("cluster_id", "to_broker_id", "controller_id", "api", "correlation_id").orderBy("begin")
    opens = (F.col("api") != LEADER_AND_ISR) | (F.col("received_lines") > 0) | F.col("is_refused")
    is_part = ~opens & F.lag("run").over(order).isNotNull()
    numbered = runs.withColumn("is_part", is_part).withColumn(
        "received_ref", F.last(F.when(~F.col("is_part"), F.col("run")), ignorenulls=True).over(order)
    )
    sums = ("lines", "received_lines", "started", "completed", "applied_lines", "failed", "ignored", "skipped")
    return numbered.groupBy("cluster_id", "to_broker_id", "controller_id", "api", "correlation_id", "received_ref").agg(
        F.max("controller_epoch").alias("controller_epoch"),
        F.min("received_at").alias("received_at"),
        F.min("begin").alias("begin"),
        F.min("position").alias("position"),
        F.max("applied").alias("applied"),
        F.max("batch").alias("batch"),
        *(F.sum(name).cast("int").alias(name) for name in sums),
        F.max("known_epoch").alias("known_epoch"),
        F.bool_or("is_refused").alias("is_refused"),
        F.flatten(F.collect_list("marks")).alias("marks"),
    )


def _with_epochs(requests: DataFrame) -> DataFrame:
    connection = Window.partitionBy("cluster_id", "to_broker_id", "controller_id")
    forwards, backwards = connection.orderBy("begin"), connection.orderBy(F.col("begin").desc())
    epoch = F.coalesce(
        F.last("controller_epoch", ignorenulls=True).over(backwards),
        F.last("controller_epoch", ignorenulls=True).over(forwards),
    )
    return requests.withColumns({"stated_epoch": F.col("controller_epoch"), "controller_epoch": epoch})


def sent_requests(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    """One row per stretch of lines in which a controller sends requests of one kind to one set of brokers.

    From 0.9 to 2.5 several UpdateMetadata requests may stand in one stretch: nothing tells them apart on this side.
    ``sent_at`` is its last line, printed just before the request is queued; ``decided_at`` the last decision between
    the batch before and this one.
    """
    lines = _controller_lines(state_changes, files, unordered)
    log = Window.partitionBy("cluster_id", "controller_id").orderBy(*_FILE_ORDER)
    names = ("api", "to_broker_ids", "correlation_id", "controller_epoch", "event_type", "at")
    before = {name: F.lag(name).over(log) for name in names}
    follows = before["api"].isNotNull() & (F.col("at") - before["at"] <= SAME_BATCH_US)
    gap = F.when(F.col("correlation_id").isNull(), SAME_BATCH_US).otherwise(SAME_REQUEST_US)
    same = (
        before["api"].isNotNull()
        & (F.col("at") - before["at"] <= gap)
        & (F.col("api") == before["api"])
        & (F.col("to_broker_ids") == before["to_broker_ids"])
        & F.col("correlation_id").eqNullSafe(before["correlation_id"])
        & (F.col("controller_epoch") == before["controller_epoch"])
        & (before["event_type"] != _BATCH_SENT)
    )
    is_sent = F.col("api").isNotNull()
    place = F.struct(*_FILE_ORDER)
    earlier = log.rowsBetween(Window.unboundedPreceding, -1)
    made = F.struct(place.alias("place"), "at")
    steps = lines.withColumns(
        {
            "is_first": is_sent & ~F.coalesce(same, F.lit(False)),
            "is_block": is_sent & ~F.coalesce(follows, F.lit(False)),
            "decision": F.last(F.when(F.col("is_decision"), made), ignorenulls=True).over(log),
            "sent_before": F.last(F.when(is_sent, place), ignorenulls=True).over(earlier),
        }
    )
    is_fresh = F.col("sent_before").isNull() | (F.col("decision.place") > F.col("sent_before"))
    decided = F.struct(F.when(is_fresh, F.col("decision.at")).alias("at"))
    runs = steps.withColumns(
        {
            "sent_ref": F.last(F.when(F.col("is_first"), F.col("record_id")), ignorenulls=True).over(log),
            "decided": F.last(F.when(F.col("is_block"), decided), ignorenulls=True).over(log),
        }
    )
    return (
        runs.where(is_sent)
        .groupBy("cluster_id", "controller_id", _request_key().alias("key"))
        .agg(
            F.min("sent_ref").alias("sent_ref"),
            F.first("api").alias("api"),
            F.first("controller_epoch").alias("controller_epoch"),
            F.first("to_broker_ids").alias("to_broker_ids"),
            F.first("correlation_id").alias("correlation_id"),
            F.max("at").alias("sent_at"),
            F.max("decided.at").alias("decided_at"),
            F.max("batch").alias("batch"),
            F.count(F.when(F.col("event_type") != _BATCH_SENT, 1)).cast("int").alias("lines"),
            F.collect_list("mark").alias("line_marks"),
        )
        # up to 0.8.2 the lines print the request's correlation id, and need no content to be told apart
        .withColumn(
            "marks",
            F.when(F.col("correlation_id").isNotNull(), F.array(correlation_mark(F.col("sent_at")))).otherwise(
                F.col("line_marks")
            ),
        )
        .drop("key", "line_marks")
    )


def _request_key() -> Column:
    """What the lines of one stretch share; up to 0.8.2, of one request, wherever they stand."""
    by_id = F.concat_ws("|", "api", "controller_epoch", F.col("to_broker_ids").cast("string"), "correlation_id")
    return F.when(F.col("correlation_id").isNotNull(), by_id).otherwise(F.col("sent_ref"))


def _controller_lines(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    kinds = F.create_map(*(F.lit(x) for pair in _SENT.items() for x in pair))[F.col("event_type")]
    api = F.when(F.col("event_type") == _BATCH_SENT, text_field("api")).otherwise(kinds)
    batch = F.coalesce(
        int_field("n_partitions"),
        int_field("n_replicas"),
        int_field("n_become_leader") + int_field("n_become_follower"),
    )
    is_batch = F.col("event_type") == _BATCH_SENT
    of_controller = F.col("controller_id").isNotNull() & F.col("controller_epoch").isNotNull()
    lines = state_changes.where(
        F.col("event_type").isin(*_SENT, _BATCH_SENT, *_DECISIONS, *_OTHER_STEPS)
        & of_controller
        & text_field("broker_id").isNull()
    )
    return _in_file_order(lines, files, F.col("controller_id"), unordered).select(
        "cluster_id",
        "controller_id",
        "controller_epoch",
        api.alias("api"),
        F.when(api.isNotNull(), F.sort_array(F.coalesce("to_broker_ids", F.array().cast("array<int>")))).alias(
            "to_broker_ids"
        ),
        "correlation_id",
        "event_type",
        (F.col("event_type").isin(*_DECISIONS) & F.col("leader").isNotNull()).alias("is_decision"),
        F.when(is_batch, batch).alias("batch"),
        F.unix_micros("corrected_time").alias("at"),
        "record_id",
        F.when(is_batch, batch_mark(batch)).otherwise(line_mark()).alias("mark"),
        *_FILE_ORDER,
    )


def _in_file_order(lines: DataFrame, files: DataFrame, speaker: Column, unordered: DataFrame) -> DataFrame:
    """Lines with the begin of their file, by which the files of one broker follow each other; where the lines of a log
    are not in order, with their time, which then counts before their place."""
    starts = files.groupBy("file_id").agg(F.min("first_event_time").alias("file_start"))
    of_unordered = ["cluster_id", "unordered_broker_id"]
    known = F.broadcast(unordered.withColumn("is_unordered", F.lit(True)))
    in_time = F.when(F.col("is_unordered"), F.unix_micros("corrected_time")).otherwise(0)
    return (
        lines.join(F.broadcast(starts), "file_id", "left")
        .withColumn("unordered_broker_id", speaker)
        .join(known, of_unordered, "left")
        .withColumn("time_order", in_time)
        .drop("unordered_broker_id", "is_unordered")
    )
