"""What controllers logged of connections to brokers that failed, beside the requests that nobody received."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.shapes.event_types import EventType
from reconstruct.cluster.evidence import UNREACHABLE
from reconstruct.events.spark.fields import int_field
from reconstruct.requests.timeline import FAILED_WITHIN_US

#: So many lines are kept as evidence.
_LINES_KEPT: Final = 3
_CONNECTION: Final = ("cluster_id", "controller_id", "to_broker_id")


def failed_connections(controller_events: DataFrame, replication_events: DataFrame) -> DataFrame:
    """The lines of controllers that say that they could not connect, or send, to a broker: of controller.log, and since
    1.0, where the network client speaks, of server.log. Columns: connection, ``at`` in µs, ``ref``."""
    from_own = controller_events.where(F.col("event_type") == EventType.CONTROLLER_REQUEST_NOT_SENT)
    from_server = replication_events.where(F.col("event_type").isin(*UNREACHABLE)).withColumn(
        "controller_id", int_field("controller_id")
    )
    both = [
        lines.select(
            "cluster_id",
            "controller_id",
            int_field("to_broker_id").alias("to_broker_id"),
            F.unix_micros("corrected_time").alias("at"),
            F.col("record_id").alias("ref"),
        ).where("controller_id IS NOT NULL AND to_broker_id IS NOT NULL")
        for lines in (from_own, from_server)
    ]
    return both[0].unionByName(both[1]).dropDuplicates(["ref"])


def with_failed_connections(requests: DataFrame, failed: DataFrame) -> DataFrame:
    """The requests with ``unconnected_lines`` and ``unconnected_refs``: of those that were sent and not received, the
    lines of ``failed`` (:func:`failed_connections`) within :data:`FAILED_WITHIN_US` of the sending.

    Joined by stretches of that length, a line being of its own and of the one before: what one row holds is bounded.
    """
    stretch = F.floor(F.col("at") / FAILED_WITHIN_US)
    of_stretch = (
        failed.select(*_CONNECTION, F.struct("at", "ref").alias("failure"), F.explode(F.array(stretch, stretch - 1)))
        .withColumnRenamed("col", "stretch")
        .groupBy(*_CONNECTION, "stretch")
        .agg(F.sort_array(F.collect_list("failure")).alias("failures"))
    )
    is_lost = F.col("received_at").isNull() & F.col("acknowledged_at").isNull()
    until = F.col("sent_at") + FAILED_WITHIN_US
    near = F.filter("failures", lambda failure: failure["at"].between(F.col("sent_at"), until))
    first = F.transform(F.slice("failures", 1, _LINES_KEPT), lambda failure: failure["ref"])
    return (
        requests.withColumn("stretch", F.when(is_lost, F.floor(F.col("sent_at") / FAILED_WITHIN_US)))
        .join(of_stretch, [*_CONNECTION, "stretch"], "left")
        .withColumn("failures", near)
        .withColumns(
            {
                "unconnected_lines": F.when(F.col("failures").isNotNull(), F.size("failures")).otherwise(0),
                "unconnected_refs": first,
            }
        )
        .drop("stretch", "failures")
    )
