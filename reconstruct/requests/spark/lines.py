"""Lines of state-change.log grouped into requests: what each controller sent, and what each broker received and did.

Each line that one side prints for a partition, or for a whole request, leaves a *mark*, by which
:mod:`reconstruct.requests.spark.matching` ties the two sides together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ingest.shapes.event_types import EventType
from reconstruct.events.spark.fields import int_field, speaker, text_field
from reconstruct.requests.evidence import APPLIED_STEPS, BROKER_LINES, LEADER_AND_ISR, SENT_LINES, UPDATE_METADATA, Step
from reconstruct.requests.spark.matching import UNDER_WAY_US, batch_mark, correlation_mark, line_mark

#: Lines of one connection that are further apart belong to two requests, though they print one correlation id: µs.
SAME_REQUEST_US: Final = 10_000_000
#: The lines of one batch of a controller follow each other faster than this, where no correlation id tells: µs.
SAME_BATCH_US: Final = 1_000_000

_BATCH_SENT: Final = EventType.REQUEST_BATCH_SENT
_DECISIONS: Final = (EventType.PARTITION_STATE_CHANGE, EventType.ISR_SHRUNK_BY_CONTROLLER)
_OTHER_STEPS: Final = (
    EventType.REPLICA_STATE_CHANGE,
    EventType.PARTITION_STATE_CHANGE_FAILED,
    EventType.REPLICA_STATE_CHANGE_FAILED,
)
_FILE_ORDER: Final = ("file_start", "file_id", "time_order", "byte_offset", "event_id")
_CONNECTION: Final = ("cluster_id", "to_broker_id", "controller_id", "burst")
#: How many lines of a broker say what of one request.
LINE_COUNTS: Final = (
    "lines",
    "received_lines",
    "started",
    "completed",
    "applied_lines",
    "failed",
    "ignored",
    "skipped",
)
#: Columns of what names the logs whose lines are not in order: they are put in order by their times.
UNORDERED_COLUMNS: Final = "cluster_id string, unordered_broker_id int"


def received_requests(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    """One row per request that a broker's lines tell of: who sent it, when it was received and applied, how it went.

    ``received_ref`` is the id of its first record; ``marks`` are its lines, as ``(place, content, at)``; ``position``
    is where, in the broker's files, it was first acted upon (inside of the lock that orders requests); NULL where it
    was not. From Kafka 2.6 the lines of level INFO name no controller epoch: it is that of the next request of the same
    controller that does, since an UpdateMetadata follows each LeaderAndIsr in its batch, or of the one before, no
    further off than :data:`~reconstruct.requests.spark.matching.UNDER_WAY_US`; ``stated_epoch`` is what the request's
    own lines name.
    """
    # as one number: all lines of a log share what names it, by which they are sorted first
    lines = _broker_lines(state_changes, files, unordered).withColumn("connection", F.xxhash64(*_CONNECTION))
    connection = Window.partitionBy("connection").orderBy(*_FILE_ORDER)
    before = {name: F.lag(name).over(connection) for name in ("api", "correlation_id", "at")}
    is_first = (
        before["api"].isNull()
        | (F.col("api") != before["api"])
        | (F.col("correlation_id") != before["correlation_id"])
        | (F.col("at") - before["at"] > SAME_REQUEST_US)
    )
    so_far = connection.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    runs = lines.withColumn("is_first", is_first).withColumn("number", F.count_if("is_first").over(so_far))
    return _with_epochs(_whole(runs.groupBy("connection", "number").agg(*_of_run())))


def _broker_lines(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    event, step = F.col("event_type"), F.col("step")
    is_whole = F.col("topic").isNull()
    # asked of few lines: a field is looked for among all of its line
    counted = F.coalesce(int_field("n_partitions"), F.try_add(int_field("n_added"), int_field("n_deleted")))
    batch, known_epoch = (F.when(is_whole, value) for value in (counted, int_field("known_controller_epoch")))
    lines = state_changes.where(
        event.isin(*BROKER_LINES) & F.col("correlation_id").isNotNull() & F.col("controller_id").isNotNull()
    ).withColumn("step", _by_event_type({event_type: step for event_type, (_, step) in BROKER_LINES.items()}))
    is_line = step.isin(Step.RECEIVED, Step.CACHED) & ~is_whole
    is_batch = ((step == Step.RECEIVED) | (event == EventType.METADATA_BATCH)) & batch.isNotNull()
    return (
        _in_file_order(lines, files, speaker(), unordered)
        .select(
            "cluster_id",
            speaker().alias("to_broker_id"),
            "controller_id",
            "burst",
            F.coalesce("controller_epoch", int_field("request_controller_epoch")).alias("epoch"),
            known_epoch.alias("known_epoch"),
            _by_event_type({event_type: api for event_type, (api, _) in BROKER_LINES.items()}).alias("api"),
            "correlation_id",
            "step",
            is_whole.alias("is_whole"),
            F.when(is_batch, batch).alias("batch"),
            F.unix_micros("corrected_time").alias("at"),
            "record_id",
            F.when(is_line, line_mark()).when(is_batch, batch_mark(batch)).alias("mark"),
            *_FILE_ORDER,
        )
        .where("to_broker_id IS NOT NULL")
    )


def _by_event_type(values: Mapping[EventType, str]) -> Column:
    return F.create_map(*(F.lit(text) for pair in values.items() for text in pair))[F.col("event_type")]


def _of_run() -> list[Column]:
    step, is_whole = F.col("step"), F.col("is_whole")
    is_refusal = (step == Step.IGNORED) & is_whole
    # "received" and a refusal may be printed outside of the lock, or change nothing
    acts = ~is_refusal & (step != Step.RECEIVED)
    counted = {
        "lines": step.isin(Step.RECEIVED, Step.CACHED) & ~is_whole,
        "received_lines": step == Step.RECEIVED,
        "applied_lines": step.isin(*APPLIED_STEPS),
        "ignored": (step == Step.IGNORED) & ~is_whole,
        **{one.value: step == one for one in (Step.STARTED, Step.COMPLETED, Step.FAILED, Step.SKIPPED)},
    }
    return [
        *(F.first(name).alias(name) for name in _CONNECTION),
        F.max(F.when(F.col("is_first"), F.col("record_id"))).alias("run"),
        F.first("api").alias("api"),
        F.first("correlation_id").alias("correlation_id"),
        F.max("epoch").alias("controller_epoch"),
        F.min("at").alias("received_at"),
        F.max("at").alias("ended_at"),
        F.min(F.struct(*_FILE_ORDER)).alias("begin"),
        F.min(F.when(acts, F.struct(*_FILE_ORDER))).alias("position"),
        F.max(F.when(step.isin(*APPLIED_STEPS), F.struct("at", "record_id"))).alias("applied"),
        F.max("batch").alias("batch"),
        *(F.count_if(condition).cast("int").alias(name) for name, condition in counted.items()),
        F.max(F.when(is_refusal, F.col("known_epoch"))).alias("known_epoch"),
        F.coalesce(F.bool_or(is_refusal), F.lit(False)).alias("is_refused"),
        F.collect_list("mark").alias("marks"),
    ]


def _whole(runs: DataFrame) -> DataFrame:
    """Runs made whole: one belongs to the request before of the same id where it lacks the line that opens a request,
    or names partitions that this has not named yet, soon after it.

    The lines of a request stand together but where its broker receives the next one: that it does before it waits for
    the lock under which it handles them, so that what a controller sent again and again while the broker hung is
    received, and refused, by as many threads at once.
    """
    request = (*_CONNECTION, "api", "correlation_id")
    order = Window.partitionBy(*request).orderBy("begin")
    opens = (F.col("api") != LEADER_AND_ISR) | (F.col("received_lines") > 0) | F.col("is_refused")
    is_one_of_several = F.lag("run").over(order).isNotNull() | F.lead("run").over(order).isNotNull()
    places = F.when(is_one_of_several, F.transform("marks", lambda mark: mark["place"])).otherwise(F.array())
    is_near = F.coalesce(F.col("received_at") - F.lag("ended_at").over(order) <= SAME_REQUEST_US, F.lit(False))
    # one elected again counts anew
    epoch = F.last("controller_epoch", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
    is_anew = F.coalesce(F.col("controller_epoch") != epoch, F.lit(False))
    piece = F.struct(
        (opens | is_anew).alias("opens"),
        places.cast("array<bigint>").alias("places"),
        (is_near & ~is_anew).alias("is_near"),
    )
    so_far = F.collect_list("piece").over(order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    none_yet = F.struct(F.array().cast("array<bigint>").alias("places"), F.lit(0).alias("number"))
    numbered = runs.withColumn("piece", piece).withColumn("number", F.aggregate(so_far, none_yet, _next)["number"])
    # else a log that was given twice counts for two; of structs Spark would compare each with each
    is_once = F.size(F.array_distinct(F.transform("marks", lambda mark: F.xxhash64(mark)))) == F.size("marks")
    whole = numbered.groupBy(*request, "number").agg(
        F.min_by("run", "begin").alias("received_ref"),
        *(F.min(name).alias(name) for name in ("received_at", "begin", "position")),
        *(F.max(name).alias(name) for name in ("controller_epoch", "applied", "batch", "known_epoch")),
        *(F.sum(name).cast("int").alias(name) for name in LINE_COUNTS),
        F.bool_or("is_refused").alias("is_refused"),
        F.flatten(F.collect_list("marks")).alias("marks"),
    )
    return whole.drop("number").withColumns(
        {
            "lacking_received": _lacking(F.col("batch")),
            "is_counted": F.coalesce((F.col("batch") == F.col("lines")) & is_once, F.lit(False)),
        }
    )


def _next(request: Column, run: Column) -> Column:
    """The request that a run is of, after those before it: which places it has named, and which it is of its id."""
    named, names = request["places"], run["places"]
    goes_on = run["is_near"] & (F.size(names) > 0) & ~F.arrays_overlap(named, names)
    is_another = run["opens"] & ~goes_on | (request["number"] == 0)
    places = F.when(is_another, names).otherwise(F.concat(named, names))
    return F.struct(places.alias("places"), (request["number"] + is_another.cast("int")).alias("number"))


def _lacking(counted: Column) -> Column:
    """How many lines fewer than a request's own count there are."""
    return F.greatest(counted - F.col("lines"), F.lit(0))


def _with_epochs(requests: DataFrame) -> DataFrame:
    connection = Window.partitionBy(*_CONNECTION)
    forwards, backwards = connection.orderBy("begin"), connection.orderBy(F.col("begin").desc())
    stated = F.when(F.col("controller_epoch").isNotNull(), F.struct("controller_epoch", "received_at"))

    def of_near(order: WindowSpec) -> Column:
        found = F.last(stated, ignorenulls=True).over(order)
        is_near = F.abs(found["received_at"] - F.col("received_at")) <= UNDER_WAY_US
        return F.when(is_near, found["controller_epoch"])

    epoch = F.coalesce(of_near(backwards), of_near(forwards))
    return requests.withColumns({"stated_epoch": F.col("controller_epoch"), "controller_epoch": epoch})


def sent_requests(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    """One row per stretch of lines in which a controller sends requests of one kind to one set of brokers.

    From 0.9 to 2.5 several UpdateMetadata requests may stand in one stretch: nothing tells them apart on this side.
    ``sent_at`` is its last line, printed just before the request is queued; ``decided_at`` the last decision between
    the batch before and this one, no longer ago than a request can be under way; ``lacking_sent`` how many lines fewer
    it has than its own count.
    """
    lines = _controller_lines(state_changes, files, unordered)
    log = Window.partitionBy("cluster_id", "controller_id", "burst").orderBy(*_FILE_ORDER)
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
    so_far, earlier = (log.rowsBetween(Window.unboundedPreceding, last) for last in (Window.currentRow, -1))
    made = F.struct(place.alias("place"), "at")
    steps = lines.withColumns(
        {
            "is_first": is_sent & ~F.coalesce(same, F.lit(False)),
            "is_block": is_sent & ~F.coalesce(follows, F.lit(False)),
            "decision": F.last(F.when(F.col("is_decision"), made), ignorenulls=True).over(so_far),
            "sent_before": F.last(F.when(is_sent, place), ignorenulls=True).over(earlier),
        }
    )
    is_fresh = F.col("sent_before").isNull() | (F.col("decision.place") > F.col("sent_before"))
    is_fresh &= F.col("at") - F.col("decision.at") <= UNDER_WAY_US
    decided = F.struct(F.when(is_fresh, F.col("decision.at")).alias("at"))
    runs = steps.withColumns(
        {
            "sent_ref": F.last(F.when(F.col("is_first"), F.col("record_id")), ignorenulls=True).over(so_far),
            "decided": F.last(F.when(F.col("is_block"), decided), ignorenulls=True).over(so_far),
        }
    )
    return (
        runs.where(is_sent)
        .groupBy("cluster_id", "controller_id", "burst", _request_key().alias("key"))
        .agg(
            F.min("sent_ref").alias("sent_ref"),
            *(F.first(name).alias(name) for name in ("api", "controller_epoch", "to_broker_ids", "correlation_id")),
            F.max("at").alias("sent_at"),
            F.max("decided.at").alias("decided_at"),
            F.max("batch").alias("batch"),
            F.max("counted_lines").alias("counted_lines"),
            F.count(F.when(F.col("event_type") != _BATCH_SENT, 1)).cast("int").alias("lines"),
            F.collect_list("mark").alias("line_marks"),
        )
        .withColumn("lacking_sent", _lacking(F.col("counted_lines")))
        # up to 0.8.2 the lines print the request's correlation id, and need no content to be told apart
        .withColumn(
            "marks",
            F.when(F.col("correlation_id").isNotNull(), F.array(correlation_mark(F.col("sent_at")))).otherwise(
                F.col("line_marks")
            ),
        )
        .drop("key", "line_marks", "counted_lines")
    )


def _request_key() -> Column:
    """What the lines of one stretch share; up to 0.8.2, of one request, wherever they stand."""
    by_id = F.concat_ws("|", "api", "controller_epoch", F.col("to_broker_ids").cast("string"), "correlation_id")
    return F.when(F.col("correlation_id").isNotNull(), by_id).otherwise(F.col("sent_ref"))


def _controller_lines(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    is_batch = F.col("event_type") == _BATCH_SENT
    api = F.when(is_batch, text_field("api")).otherwise(_by_event_type(SENT_LINES))
    n_lines = F.coalesce(
        int_field("n_partitions"), F.try_add(int_field("n_become_leader"), int_field("n_become_follower"))
    )
    batch = F.coalesce(n_lines, int_field("n_replicas"))
    of_controller = F.col("controller_id").isNotNull() & F.col("controller_epoch").isNotNull()
    lines = state_changes.where(
        F.col("event_type").isin(*SENT_LINES, _BATCH_SENT, *_DECISIONS, *_OTHER_STEPS)
        & of_controller
        & text_field("broker_id").isNull()
    )
    return _in_file_order(lines, files, F.col("controller_id"), unordered).select(
        "cluster_id",
        "controller_id",
        "burst",
        "controller_epoch",
        api.alias("api"),
        F.when(api.isNotNull(), F.sort_array(F.coalesce("to_broker_ids", F.array().cast("array<int>")))).alias(
            "to_broker_ids"
        ),
        "correlation_id",
        "event_type",
        (F.col("event_type").isin(*_DECISIONS) & F.col("leader").isNotNull()).alias("is_decision"),
        F.when(is_batch, batch).alias("batch"),
        # an UpdateMetadata has no other lines since it is counted; of brokers of an older protocol two counts follow
        # the lines of both, with deletion and without (n_replicas)
        F.when(is_batch & (api != UPDATE_METADATA), n_lines).alias("counted_lines"),
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
