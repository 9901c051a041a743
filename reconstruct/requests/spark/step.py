"""The requests of controllers judged on Spark: ``gold.propagation_delays``, findings, verdicts, and lossy logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import in_order
from ingest.lake.tables.gold import DIVERGENCES, PROPAGATION_DELAYS
from reconstruct.cluster.spans import CountedRequests
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.folds import map_rows, table_columns
from reconstruct.engine.rows import Row, count_rows, finding_row, table_row, value_of
from reconstruct.findings.rule import judge
from reconstruct.findings.verdicts import Verdicts
from reconstruct.requests.evidence import LEADER_AND_ISR, NEXT_WITHIN_US, REQUEST_KINDS, Request
from reconstruct.requests.lossy_logs import PROOFS_APART_US, MissingLines, lossy_brokers, missing_lines
from reconstruct.requests.rules.book import RULES
from reconstruct.requests.spark.evidence import REQUEST_COLUMNS
from reconstruct.requests.timeline import outcome_of

#: The steps between which delays are measured, by column.
DELAYS: Final = {
    "decided_to_sent_ms": ("decided_at", "sent_at"),
    "sent_to_received_ms": ("sent_at", "received_at"),
    "received_to_applied_ms": ("received_at", "applied_at"),
    "decided_to_applied_ms": ("decided_at", "applied_at"),
    "sent_to_acknowledged_ms": ("sent_at", "acknowledged_at"),
}
#: Of each connection, so many requests are looked at for proofs that a log lacks lines.
_PROOFS_KEPT: Final = 1000
#: What :func:`reconstruct.requests.lossy_logs.missing_lines` may take for a proof.
_MAY_PROVE: Final = (
    "completed > started OR (received_at IS NOT NULL AND sent_at IS NULL AND NOT is_repeated AND lines > 0)"
    " OR lacking_sent > 0 OR lacking_received > 0"
    " OR (received_at IS NULL AND sent_at IS NOT NULL AND acknowledged_at IS NOT NULL AND partitions > 0)"
)


def judged_requests(requests: DataFrame, clusters: Mapping[str, ClusterView]) -> DataFrame:
    """Rows of ``gold.propagation_delays`` and ``gold.divergences``, and verdicts, told apart by ``table_name``.

    ``requests`` are :func:`reconstruct.requests.spark.evidence.controller_requests`; select with
    :func:`reconstruct.engine.folds.rows_of`.
    """
    views = dict(clusters)
    columns = table_columns(PROPAGATION_DELAYS, DIVERGENCES)
    return map_rows(requests, columns, lambda rows: _judged_rows(rows, views))


def _judged_rows(rows: Iterable[Row], clusters: Mapping[str, ClusterView]) -> Iterator[dict[str, Any]]:
    counts: dict[str, Verdicts] = {}
    for request in (value_of(Request, row) for row in rows):
        cluster = _view_of(request, clusters)
        verdicts = counts.setdefault(request.cluster_id, Verdicts())
        judge(RULES, request, cluster, verdicts)
        yield delay_row(request, cluster)
        yield from (finding_row(finding, cluster_id=request.cluster_id) for finding in verdicts.findings)
        verdicts.findings.clear()
    for cluster_id, verdicts in sorted(counts.items()):
        yield from count_rows(verdicts, cluster_id=cluster_id)


def _view_of(request: Request, clusters: Mapping[str, ClusterView]) -> ClusterView:
    instants = (request.received_at, request.sent_at, request.acknowledged_at)
    at = next(instant for instant in instants if instant is not None)
    return (clusters.get(request.cluster_id) or ClusterView(request.cluster_id)).at_generation_of(at)


def delay_row(request: Request, cluster: ClusterView) -> dict[str, Any]:
    """The request as a row of ``gold.propagation_delays``."""
    return table_row(
        PROPAGATION_DELAYS,
        request,
        request_kind=REQUEST_KINDS[request.api],
        partitions_count=request.partitions,
        outcome=outcome_of(request, cluster),
        **{name: _delay(getattr(request, begin), getattr(request, end)) for name, (begin, end) in DELAYS.items()},
    )


def _delay(begin: int | None, end: int | None) -> int | None:
    """Milliseconds; NULL where an end is not known, or where two clocks put the later one first."""
    if begin is None or end is None or end < begin:
        return None
    return (end - begin) // 1000


def lossy_logs(requests: DataFrame, clusters: Mapping[str, ClusterView]) -> dict[str, dict[int, tuple[str, ...]]]:
    """By cluster, the brokers whose state-change log is proven to lack lines, with the records that prove it.

    What may be a proof is rare, and of each connection and ten seconds one is looked at: what is collected is small.
    """
    at = F.coalesce("received_at", "sent_at")
    connection = ("cluster_id", "controller_id", "controller_epoch", "to_broker_id")
    kept = (
        requests.where(_MAY_PROVE)
        .repartition(*connection)
        .groupBy(*connection, F.floor(at / PROOFS_APART_US).alias("stretch"))
        .agg(F.min(F.struct(at.alias("at"), "sequence", F.struct(*REQUEST_COLUMNS).alias("request"))).alias("first"))
        .groupBy(*connection)
        .agg(F.slice(F.sort_array(F.collect_list("first")), 1, _PROOFS_KEPT).alias("firsts"))
        .collect()
    )
    proofs: dict[str, list[MissingLines]] = {}
    for request in (value_of(Request, first["request"].asDict()) for row in kept for first in row["firsts"]):
        proofs.setdefault(request.cluster_id, []).extend(missing_lines(request, _view_of(request, clusters)))
    found = {cluster_id: lossy_brokers(of_cluster) for cluster_id, of_cluster in sorted(proofs.items())}
    return {cluster_id: brokers for cluster_id, brokers in found.items() if brokers}


def counted_requests(
    requests: DataFrame, lossy: Mapping[str, Mapping[int, tuple[str, ...]]]
) -> dict[str, dict[int, tuple[CountedRequests, ...]]]:
    """By cluster and broker: the longest stretches of requests whose correlation ids follow each other (that behind a
    LeaderAndIsr within :data:`NEXT_WITHIN_US`) and whose lines are all there, by their own counts. A log that lacks
    nothing has one for each tenure, and one more for each request that names no partition; ``lossy`` ones, which would
    have one for each gap and prove nothing, are left out."""
    connection = ("cluster_id", "to_broker_id", "controller_id", "controller_epoch")
    order = Window.partitionBy(*connection).orderBy("received_at", "correlation_id")
    left_out = [f"{broker_id} {cluster_id}" for cluster_id, brokers in lossy.items() for broker_id in brokers]
    received = requests.where(
        F.expr("received_at IS NOT NULL AND correlation_id IS NOT NULL AND controller_epoch IS NOT NULL")
        & ~F.concat_ws(" ", "to_broker_id", "cluster_id").isin(left_out)
    ).withColumn("is_sound", F.col("is_counted") & ~F.col("is_refused"))
    before = {name: F.lag(name).over(order) for name in ("is_sound", "correlation_id", "api", "received_at")}
    is_late = F.col("received_at") - before["received_at"] > NEXT_WITHIN_US
    is_next = (F.col("correlation_id") == before["correlation_id"] + 1) & ~((before["api"] == LEADER_AND_ISR) & is_late)
    follows = before["is_sound"] & is_next
    stretches = (
        received.withColumn("begins", (~F.coalesce(follows, F.lit(False))).cast("int"))
        .withColumn("stretch", F.sum("begins").over(order))
        .where("is_sound")
        .groupBy(*connection, "stretch")
        .agg(
            *(F.min(name).alias(f"first_{name}") for name in ("correlation_id", "received_at")),
            *(F.max(name).alias(f"last_{name}") for name in ("correlation_id", "received_at")),
        )
        .where("last_correlation_id > first_correlation_id")
    )
    found: dict[str, dict[int, list[CountedRequests]]] = {}
    for row in in_order(stretches.collect(), *connection, "first_received_at"):
        of_broker = found.setdefault(row["cluster_id"], {}).setdefault(row["to_broker_id"], [])
        ids = row["first_correlation_id"], row["last_correlation_id"]
        times = row["first_received_at"], row["last_received_at"]
        of_broker.append(CountedRequests(row["controller_id"], row["controller_epoch"], *ids, *times))
    return {cluster_id: {b: tuple(runs) for b, runs in brokers.items()} for cluster_id, brokers in found.items()}


def with_logs_known(
    view: ClusterView,
    lossy: Mapping[str, Mapping[int, tuple[str, ...]]],
    counted: Mapping[str, Mapping[int, tuple[CountedRequests, ...]]],
) -> ClusterView:
    """The view with the logs that prove nothing by what they do not say, and the requests that prove it."""
    return replace(
        view,
        lossy_logs=frozenset(lossy.get(view.cluster_id, {})),
        counted_requests=counted.get(view.cluster_id, {}),
    )
