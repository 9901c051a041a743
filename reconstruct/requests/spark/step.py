"""The requests of controllers judged on Spark: ``gold.propagation_delays``, findings, verdicts, and lossy logs.

The adapter turns rows into :class:`~reconstruct.requests.propagation.Request`, one by one, and asks the pure
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingest.lake.tables.gold import DIVERGENCES, PROPAGATION_DELAYS
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.rules_version import MODEL_VERSION
from reconstruct.partitions.spark.step import VERDICTS, WIDE_ARROW, WIDE_SCHEMA, finding_row
from reconstruct.requests.acceptance import judge_acceptance
from reconstruct.requests.lossy_logs import PROOFS_APART_US, MissingLines, lossy_brokers, missing_lines
from reconstruct.requests.propagation import REQUEST_KINDS, Request, judge_propagation, outcome_of
from reconstruct.requests.spark.evidence import REQUEST_COLUMNS
from reconstruct.time.instants import to_datetime

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
    " OR (received_at IS NULL AND sent_at IS NOT NULL AND acknowledged_at IS NOT NULL AND partitions > 0)"
)
_ARROW_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
}
_JUDGED_ARROW: Final = pa.unify_schemas(
    [WIDE_ARROW, pa.schema([(c.name, _ARROW_TYPES[c.type]) for c in PROPAGATION_DELAYS.columns])]
)
_KNOWN: Final = frozenset(WIDE_SCHEMA.fieldNames())
_JUDGED_SCHEMA: Final = T.StructType(
    [*WIDE_SCHEMA.fields, *(f for f in PROPAGATION_DELAYS.struct.fields if f.name not in _KNOWN)]
)
_JUDGED_NULLABLE: Final = T.StructType([T.StructField(f.name, f.dataType) for f in _JUDGED_SCHEMA.fields])


def judged_requests(requests: DataFrame, clusters: Mapping[str, ClusterView]) -> DataFrame:
    """Rows of ``gold.propagation_delays`` and ``gold.divergences``, and verdicts, told apart by ``table_name``.

    ``requests`` are :func:`reconstruct.requests.spark.evidence.controller_requests`; select with
    :func:`reconstruct.partitions.spark.step.rows_of`.
    """
    return requests.mapInArrow(_judge(dict(clusters)), _JUDGED_NULLABLE)


def _judge(
    clusters: Mapping[str, ClusterView],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts: dict[str, Verdicts] = {}
        for batch in batches:
            rows = []
            for request in map(_request, batch.to_pylist()):
                cluster = _view_of(request, clusters)
                verdicts = counts.setdefault(request.cluster_id, Verdicts())
                judge_propagation(request, cluster, verdicts)
                judge_acceptance(request, cluster, verdicts)
                rows.append(delay_row(request, cluster))
                findings = [{**finding_row(f), "cluster_id": request.cluster_id} for f in verdicts.findings]
                rows += [{"table_name": DIVERGENCES.full_name, **finding} for finding in findings]
                verdicts.findings.clear()
            yield pa.RecordBatch.from_pylist(rows, schema=_JUDGED_ARROW)
        yield pa.RecordBatch.from_pylist(
            [
                {"table_name": VERDICTS, "cluster_id": cluster_id, "rule": rule, "verdict": verdict, "times": times}
                for cluster_id, verdicts in sorted(counts.items())
                for (rule, verdict), times in sorted(verdicts.counts.items())
            ],
            schema=_JUDGED_ARROW,
        )

    return judge


def _request(row: Any) -> Request:
    return Request(**{name: row[name] for name in REQUEST_COLUMNS})


def _view_of(request: Request, clusters: Mapping[str, ClusterView]) -> ClusterView:
    instants = (request.received_at, request.sent_at, request.acknowledged_at)
    at = next(instant for instant in instants if instant is not None)
    return (clusters.get(request.cluster_id) or ClusterView(request.cluster_id)).at_generation_of(at)


def delay_row(request: Request, cluster: ClusterView) -> dict[str, Any]:
    """The request as a row of ``gold.propagation_delays``."""
    steps = ("decided_at", "sent_at", "received_at", "applied_at", "acknowledged_at")
    instants = {name: getattr(request, name) for name in steps}
    return {
        "table_name": PROPAGATION_DELAYS.full_name,
        "cluster_id": request.cluster_id,
        "controller_id": request.controller_id,
        "controller_epoch": request.controller_epoch,
        "to_broker_id": request.to_broker_id,
        "request_kind": REQUEST_KINDS[request.api],
        "sequence": request.sequence,
        "correlation_id": request.correlation_id,
        "partitions_count": request.partitions,
        **{name: None if at is None else to_datetime(at) for name, at in instants.items()},
        **{name: _delay(instants[begin], instants[end]) for name, (begin, end) in DELAYS.items()},
        "outcome": outcome_of(request, cluster),
        "evidence": list(request.evidence),
        "inferred_from": None,
        "model_version": MODEL_VERSION,
    }


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
    for request in (_request(first["request"]) for row in kept for first in row["firsts"]):
        proofs.setdefault(request.cluster_id, []).extend(missing_lines(request, _view_of(request, clusters)))
    found = {cluster_id: lossy_brokers(of_cluster) for cluster_id, of_cluster in sorted(proofs.items())}
    return {cluster_id: brokers for cluster_id, brokers in found.items() if brokers}


def with_lossy_logs(view: ClusterView, lossy: Mapping[str, Mapping[int, tuple[str, ...]]]) -> ClusterView:
    """The view, told which logs prove nothing by what they do not say."""
    return replace(view, lossy_logs=frozenset(lossy.get(view.cluster_id, {})))
