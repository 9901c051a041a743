"""Cluster-wide timelines as rows, and the view of the cluster that every partition's fold is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ingest.lake.tables import TableSpec
from ingest.lake.tables.silver import BROKER_LIVENESS_TIMELINE, CONTROLLER_EPOCH_TIMELINE
from reconstruct.cluster.bounces import judge_bounces
from reconstruct.cluster.brokers import RegistrationSpan, broker_registrations
from reconstruct.cluster.controllers import TenureSpan, controller_tenures, judge_controller_epochs
from reconstruct.cluster.spark.evidence import ClusterFacts
from reconstruct.cluster.view import ClusterView, LogSpan
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.rules_version import MODEL_VERSION
from reconstruct.time.instants import to_datetime


class ClusterHistory:
    """The cluster-wide timelines of one cluster, its view, and the verdicts on it."""

    def __init__(self, cluster_id: str, facts: ClusterFacts) -> None:
        self.cluster_id = cluster_id
        self.tenures: Sequence[TenureSpan] = controller_tenures(facts.controllers)
        self.registrations: Mapping[int, Sequence[RegistrationSpan]] = broker_registrations(facts.brokers)
        self.verdicts = Verdicts()
        judge_controller_epochs(facts.controllers, self.tenures, self.verdicts)
        starts: dict[int, list[tuple[int, str]]] = {}
        for broker_id, at, record_id in sorted(facts.process_starts):
            starts.setdefault(broker_id, []).append((at, record_id))
        asked: dict[int, list[tuple[int, str]]] = {}
        for fact in sorted(facts.brokers, key=lambda fact: (fact.at, fact.evidence_id)):
            if fact.kind == "shutdown_requested":
                asked.setdefault(fact.broker_id, []).append((fact.at, fact.evidence_id))
        logs: dict[int, list[LogSpan]] = {}
        for broker_id, span in facts.log_spans:
            logs.setdefault(broker_id, []).append(span)
        self.view = ClusterView(
            cluster_id=cluster_id,
            version=facts.version,
            tenures=tuple(span.tenure for span in self.tenures),
            liveness={b: tuple(s.interval for s in spans) for b, spans in self.registrations.items()},
            min_insync_replicas=facts.topic_min_isr,
            broker_min_insync_replicas=facts.broker_min_isr,
            unclean_election=facts.topic_unclean,
            broker_unclean_election=facts.unclean_election,
            process_starts={broker_id: tuple(at) for broker_id, at in starts.items()},
            shutdown_requests={broker_id: tuple(at) for broker_id, at in asked.items()},
            logs={broker_id: tuple(spans) for broker_id, spans in logs.items()},
            live_views=tuple(facts.live_views),
        )
        judge_bounces(self.registrations, facts.brokers, self.view, self.verdicts)

    def tenure_rows(self) -> list[dict[str, Any]]:
        """Rows of silver.controller_epoch_timeline."""
        rows = []
        seen: dict[tuple[int, int], int] = {}
        for span in self.tenures:
            tenure = span.tenure
            key = (tenure.controller_epoch, tenure.controller_id)
            seen[key] = sequence = seen.get(key, -1) + 1
            rows.append(
                {
                    "cluster_id": self.cluster_id,
                    "controller_id": tenure.controller_id,
                    "controller_epoch": tenure.controller_epoch,
                    "sequence": sequence,
                    "valid_from": to_datetime(tenure.start),
                    "valid_to": None if tenure.end is None else to_datetime(max(tenure.start, tenure.end)),
                    "end_reason": span.end_reason,
                    "evidence": list(tenure.evidence),
                    "inferred_from": span.inferred_from,
                    "model_version": MODEL_VERSION,
                }
            )
        return rows

    def liveness_rows(self) -> list[dict[str, Any]]:
        """Rows of silver.broker_liveness_timeline."""
        return [
            {
                "cluster_id": self.cluster_id,
                "broker_id": broker_id,
                "sequence": sequence,
                "valid_from": to_datetime(span.interval.start),
                "valid_to": None if span.interval.end is None else to_datetime(span.interval.end),
                "end_reason": span.interval.value.end_reason,
                "ended_before": None if span.ended_before is None else to_datetime(span.ended_before),
                "evidence": list(span.interval.evidence),
                "inferred_from": span.interval.inferred_from,
                "model_version": MODEL_VERSION,
            }
            for broker_id, spans in self.registrations.items()
            for sequence, span in enumerate(spans)
        ]


def cluster_rows(spark: SparkSession, histories: Sequence[ClusterHistory]) -> list[tuple[TableSpec, DataFrame]]:
    """DataFrames of both cluster-wide timelines."""
    tenures = [row for history in histories for row in history.tenure_rows()]
    liveness = [row for history in histories for row in history.liveness_rows()]
    return [
        (CONTROLLER_EPOCH_TIMELINE, spark.createDataFrame(tenures, CONTROLLER_EPOCH_TIMELINE.struct)),
        (BROKER_LIVENESS_TIMELINE, spark.createDataFrame(liveness, BROKER_LIVENESS_TIMELINE.struct)),
    ]
