"""Requests of controllers to brokers, from decision to answer, out of ``silver.state_change_events``.

The lines of both sides are grouped into requests (:mod:`reconstruct.requests.spark.lines`) and tied together
(:mod:`reconstruct.requests.spark.matching`): by correlation id up to 0.8.2, whose sending lines print it; later, when
the send thread assigns it, by what the lines of each partition say, or the number of partitions where only that is
printed. Answers are tied by correlation id. What is judged of a request is in
:mod:`reconstruct.requests.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ingest.lake.local_frames import local_frame
from ingest.lake.tables.kept import MATCHED_REQUESTS
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import columns_of
from reconstruct.events.spark.fields import int_field, text_field
from reconstruct.requests.evidence import LEADER_AND_ISR, UPDATE_METADATA, Request
from reconstruct.requests.spark.bursts import slot_of, with_bursts
from reconstruct.requests.spark.connections import with_failed_connections
from reconstruct.requests.spark.lines import LINE_COUNTS, UNORDERED_COLUMNS, received_requests, sent_requests
from reconstruct.requests.spark.matching import (
    CLOCK_SLACK_US,
    UNDER_WAY_US,
    connection_of,
    correlation_mark,
    match_marks,
    tie,
)

_CONNECTION: Final = ("cluster_id", "controller_id", "controller_epoch", "to_broker_id")
_PEER: Final = ("cluster_id", "controller_id", "to_broker_id", "api", "burst")

_TYPES: Final = columns_of(Request)
#: The fields of a request; instants are µs.
REQUEST_COLUMNS: Final = tuple(_TYPES)
#: What the controller's lines say of a request, and what the broker's do.
_OF_SENDING: Final = ("decided_at", "sent_at", "sent_ref", "lacking_sent")
_OF_RECEIPT: Final = (
    "received_at",
    "received_ref",
    "applied_at",
    "applied_ref",
    "known_epoch",
    "is_refused",
    "accepts",
    "lacking_received",
    "is_counted",
)
#: By which the requests that one broker's process accepted are put in order.
_OF_ORDER: Final = ("stated_epoch", "begin", "acted_upon")
#: What either side says, with the type.
_FACTS: Final = {
    **{name: _TYPES[name] for name in ("partitions", *_OF_SENDING, *_OF_RECEIPT, *LINE_COUNTS)},
    **{column.name: column.type for column in MATCHED_REQUESTS.columns if column.name in _OF_ORDER},
}


def matched_requests(state_changes: DataFrame, files: DataFrame, unordered: DataFrame) -> DataFrame:
    """One row per request, as the lines of one burst of a controller tell of it: rows of ``kept.matched_requests``.
    Those of another controller, or burst, make no difference.

    ``files`` is ``bronze.ingested_files``, for the order of a broker's files, ``unordered`` :func:`unordered_logs`.
    The lines are shuffled three times: by broker, by controller, and by connection and partition; what follows is a row
    per request.
    """
    lines = with_bursts(state_changes)
    received = received_requests(lines, files, unordered)
    to_each = F.explode("to_broker_ids").alias("to_broker_id")
    sent = sent_requests(lines, files, unordered).select("*", to_each).where("to_broker_id IS NOT NULL")
    requests = _requests(match_marks(_marks_of(sent, received)))
    slot = slot_of(F.coalesce("received_at", "acknowledged_at", "sent_at"))
    whole = _with_late_sendings(_with_answers(requests, _answers(lines)))
    return whole.withColumn("time_slot", slot).drop("burst")


def controller_requests(matched: DataFrame, failed: DataFrame, clusters: Mapping[str, ClusterView]) -> DataFrame:
    """One row per request, :data:`REQUEST_COLUMNS`: :func:`matched_requests`, with what came before and after each.

    ``failed`` are :func:`~reconstruct.requests.spark.connections.failed_connections`; ``clusters`` say when a broker's
    process started.
    """
    whole = _with_accepted_before(matched, clusters)
    return with_failed_connections(_numbered(whole), failed).select(*REQUEST_COLUMNS)


def unordered_logs(spark: SparkSession, clusters: Mapping[str, ClusterView]) -> DataFrame:
    """The logs whose lines are not in order, :data:`UNORDERED_COLUMNS`."""
    rows = [
        (cluster_id, broker_id)
        for cluster_id, view in sorted(clusters.items())
        for broker_id in sorted(view.logs)
        if not view.keeps_order(broker_id)
    ]
    return local_frame(spark, UNORDERED_COLUMNS, rows)


def _marks_of(sent: DataFrame, received: DataFrame) -> DataFrame:
    """The marks of both sides; what is known of a request stands in the first of its marks."""
    connection = connection_of(*_CONNECTION, "api", "burst")
    of_sending = {
        "partitions": F.coalesce("batch", "lines"),
        **{name: F.col(name) for name in _OF_SENDING},
    }
    of_receipt = {
        "partitions": F.coalesce("batch", F.nullif("lines", F.lit(0))),
        **{name: F.col(name) for name in (*_OF_RECEIPT, *LINE_COUNTS, *_OF_ORDER)},
    }
    sending = F.struct(F.col("mark.at").alias("sent_at"), "decided_at", "sent_ref", "lacking_sent")

    def exploded(
        requests: DataFrame, is_receipt: bool, ref: Column, carried: Column, given: dict[str, Column]
    ) -> DataFrame:
        return (
            requests.withColumns({"connection": connection, "ref": ref, "facts": _facts(given)})
            .select("*", F.posexplode("marks").alias("number", "mark"))
            .select(
                "connection",
                "mark.*",
                F.lit(is_receipt).alias("is_receipt"),
                "ref",
                carried.alias("carried"),
                F.when(F.col("number") == 0, F.col("facts")).alias("facts"),
            )
        )

    numbered = received.withColumns(
        {
            "marks": F.concat("marks", F.array(correlation_mark(F.col("received_at")))),
            "applied_at": F.col("applied.at"),
            "applied_ref": F.col("applied.record_id"),
            "acted_upon": F.coalesce("position", "begin"),
            "accepts": F.col("position").isNotNull() & F.col("stated_epoch").isNotNull(),
        }
    )
    nothing = F.lit(None).cast("struct<sent_at:bigint,decided_at:bigint,sent_ref:string,lacking_sent:int>")
    return exploded(sent, False, _sent_ref(), sending, of_sending).unionByName(
        exploded(numbered, True, F.col("received_ref"), nothing, of_receipt)
    )


def _facts(given: dict[str, Column]) -> Column:
    """What one side knows of a request; the other side's columns are NULL."""
    columns = (given.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in _FACTS.items())
    return F.struct(*_CONNECTION, "api", "burst", "correlation_id", *columns)


def _requests(matched: DataFrame) -> DataFrame:
    """Received requests with what was found of their sending, and sent ones that nobody received."""
    carried = F.col("carried")
    return (
        matched.where("is_receipt OR NOT is_matched")
        .select("facts.*", "carried", "is_receipt", "is_repeated")
        .withColumns(
            {name: F.when(F.col("is_receipt"), carried[name]).otherwise(F.col(name)) for name in _OF_SENDING}
            | {"is_repeated": F.col("is_receipt") & F.coalesce("is_repeated", F.lit(False))}
        )
        .drop("carried", "is_receipt")
    )


def _sent_ref() -> Column:
    return F.concat_ws("|", "sent_ref", F.col("to_broker_id").cast("string"))


def _answers(state_changes: DataFrame) -> DataFrame:
    return (
        state_changes.where(
            "event_type = 'response_received' AND correlation_id IS NOT NULL AND fields['api'] IS NOT NULL"
        )
        .select(
            "cluster_id",
            "controller_id",
            "burst",
            "controller_epoch",
            int_field("to_broker_id").alias("to_broker_id"),
            text_field("api").alias("api"),
            "correlation_id",
            int_field("response_error").alias("response_error"),
            F.unix_micros("corrected_time").alias("acknowledged_at"),
            F.col("record_id").alias("acknowledged_ref"),
        )
        .dropDuplicates(["acknowledged_ref"])
    )


def _with_answers(requests: DataFrame, answers: DataFrame) -> DataFrame:
    """Requests with their answers; an answer whose request left no line is a row of its own.

    A connection has one request in flight: an answer belongs to the request of its correlation id just before it, ids
    beginning anew, and no later than that can be under way. It prints the epoch that its controller has by then: 0
    where it has resigned.
    """
    given = ("acknowledged_at", "acknowledged_ref", "response_error")
    at = F.coalesce(F.col("acknowledged_at") + CLOCK_SLACK_US, "received_at", "sent_at")
    rows = requests.unionByName(answers, allowMissingColumns=True).withColumn(
        "line",
        F.struct(F.col("acknowledged_at").isNotNull().alias("is_answer"), at.alias("at"), "controller_epoch", *given),
    )
    of_id = Window.partitionBy(connection_of(*_PEER, "correlation_id")).orderBy("line.at", "line.is_answer", _ref())
    numbered = F.col("correlation_id").isNotNull()

    def fits(answer: Column, asked: Column) -> Column:
        epoch = answer["controller_epoch"]
        is_one = epoch.isNull() | (epoch == 0) | (epoch == asked["controller_epoch"])
        is_near = answer["at"] - asked["at"] <= UNDER_WAY_US
        return F.coalesce(numbered & answer["is_answer"] & ~asked["is_answer"] & is_one & is_near, F.lit(False))

    neighbours = rows.withColumns({"then": F.lead("line").over(of_id), "first": F.lag("line").over(of_id)})
    answered = fits(F.col("then"), F.col("line"))
    return (
        neighbours.where(~fits(F.col("line"), F.col("first")))
        .withColumns({name: F.when(answered, F.col("then")[name]).otherwise(F.col(name)) for name in given})
        .drop("line", "then", "first")
    )


def _with_late_sendings(requests: DataFrame) -> DataFrame:
    """What was sent and found no receipt, tied by its order to what was received and found no sending: a request
    refused as a whole, which shows no contents; one with a line that was bent or cut; an answer whose request left no
    line at its broker, as that of an UpdateMetadata without partitions (2.6 and later)."""
    is_lost = F.col("received_at").isNull() & F.col("acknowledged_at").isNull() & F.col("correlation_id").isNull()
    is_unsent = F.col("sent_at").isNull() & ~F.coalesce("is_repeated", F.lit(False))
    is_empty = (F.col("api") == UPDATE_METADATA) & F.when(is_unsent, F.col("received_at").isNull()).otherwise(
        F.col("partitions") == 0
    )
    given = (*_OF_SENDING, "partitions")
    tied = tie(
        requests,
        [connection_of(*_PEER, "controller_epoch", is_empty)],
        F.when(is_unsent, True).when(is_lost, False),
        F.coalesce("received_at", "acknowledged_at", "sent_at"),
        _ref(),
        F.when(is_lost & ~is_unsent, F.struct(*given)),
    ).where(~(is_lost & F.col("is_tied")))
    return tied.withColumns({name: F.coalesce(F.col(name), F.col("partner")[name]) for name in given}).drop(
        "partner", "is_tied"
    )


def _ref() -> Column:
    return F.coalesce("received_ref", "acknowledged_ref", _sent_ref())


def _numbered(requests: DataFrame) -> DataFrame:
    """The order of each connection's requests, and what came after each: small, one row per request."""
    begin = F.coalesce("sent_at", "received_at", "acknowledged_at")
    ref = F.coalesce("sent_ref", "received_ref", "acknowledged_ref")
    connection = Window.partitionBy(*_CONNECTION)
    backwards = connection.orderBy(begin.desc()).rangeBetween(Window.unboundedPreceding, -1)
    earlier = connection.orderBy("received_at").rangeBetween(Window.unboundedPreceding, -1)
    kinds = Window.partitionBy(*_CONNECTION, "api").orderBy(begin, ref, "received_ref", "acknowledged_ref")
    before = F.col("accepted_before")
    sent, received = F.col("sent_at"), F.col("received_at")
    is_lost = received.isNull() & F.col("acknowledged_at").isNull()
    next_received = F.min(F.when(received.isNotNull(), F.struct(received, sent.isNull().alias("is_unsent"))))
    last_sent = F.max(F.when(sent.isNotNull(), F.struct(sent, is_lost.alias("is_lost"))))
    forwards = connection.orderBy(begin).rangeBetween(Window.unboundedPreceding, -1)
    counts = {name: F.coalesce(name, F.lit(0)) for name in (*LINE_COUNTS, "lacking_sent", "lacking_received")}
    flags = {name: F.coalesce(name, F.lit(False)) for name in ("is_refused", "is_repeated", "accepts", "is_counted")}
    return requests.withColumns(
        {
            "sent_before": F.max(F.when(received.isNotNull(), sent)).over(earlier),
            "next_received_at": next_received.over(backwards)["received_at"],
            "is_next_unsent": F.coalesce(next_received.over(backwards)["is_unsent"], F.lit(False)),
            "is_lost_before": F.coalesce(last_sent.over(forwards)["is_lost"], F.lit(False)),
            "next_acknowledged_at": F.min("acknowledged_at").over(backwards),
            "next_applied_at": F.min(F.when(F.col("api") == LEADER_AND_ISR, F.col("applied_at"))).over(backwards),
            "sequence": F.row_number().over(kinds) - 1,
            "accepted_epoch_before": before["epoch"],
            "accepted_at_before": before["at"],
            "accepted_ref_before": before["ref"],
            **counts,
            **flags,
        }
    )


def _with_accepted_before(requests: DataFrame, clusters: Mapping[str, ClusterView]) -> DataFrame:
    """Each received request with the highest controller epoch that its broker's process had accepted before."""
    columns = "cluster_id string, to_broker_id int, starts array<bigint>"
    starts = local_frame(requests.sparkSession, columns, _process_starts(clusters))
    lived = requests.join(F.broadcast(starts), ["cluster_id", "to_broker_id"], "left").withColumn(
        "life", F.coalesce(F.size(F.filter("starts", lambda start: start <= F.col("received_at"))), F.lit(0))
    )
    process = Window.partitionBy("cluster_id", "to_broker_id", "life").orderBy("acted_upon", "begin")
    accepted = F.struct(
        F.col("stated_epoch").alias("epoch"), F.col("received_at").alias("at"), F.col("received_ref").alias("ref")
    )
    before = F.max(F.when(F.col("accepts"), accepted)).over(process.rowsBetween(Window.unboundedPreceding, -1))
    of_received = F.when(F.col("received_at").isNotNull(), before)
    return lived.withColumn("accepted_before", of_received).drop("starts", "life")


def _process_starts(clusters: Mapping[str, ClusterView]) -> Iterable[tuple[str, int, list[int]]]:
    for cluster_id, view in sorted(clusters.items()):
        for broker_id, starts in sorted(view.process_starts.items()):
            yield cluster_id, broker_id, [at for at, _ in starts]
