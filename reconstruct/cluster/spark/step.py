"""Cluster-wide timelines as rows, and the view of the cluster that every partition's fold is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from ingest.lake.delta import Lake
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import BROKER_CONFIGS, INGESTED_FILES, METADATA_RECORDS
from ingest.lake.tables.events import (
    CONTROLLER_EVENTS,
    METADATA_CHANGES,
    REPLICATION_EVENTS,
    STATE_CHANGE_EVENTS,
    ZNODE_CHANGES,
)
from ingest.lake.tables.silver import BROKER_LIVENESS_TIMELINE, CONTROLLER_EPOCH_TIMELINE
from reconstruct.cluster.brokers import RegistrationSpan, broker_registrations
from reconstruct.cluster.controllers import TenureSpan, controller_tenures, recreations
from reconstruct.cluster.departures import broker_departures
from reconstruct.cluster.ends import registration_ends
from reconstruct.cluster.episodes.procedures import procedures
from reconstruct.cluster.episodes.tenures import episodes
from reconstruct.cluster.evidence import ClusterFacts, ProcedureLine
from reconstruct.cluster.rules import RULES, ClusterCase
from reconstruct.cluster.spark.controller_lines import controller_minutes
from reconstruct.cluster.spark.evidence import gather
from reconstruct.cluster.spark.life_signs import KeptSigns, add_life_signs
from reconstruct.cluster.spark.log_spans import log_lines, log_spans
from reconstruct.cluster.spark.metadata_log import add_metadata_facts
from reconstruct.cluster.take_overs import line_windows, take_overs
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.folds import local_rows
from reconstruct.engine.rows import Value, numbered, table_row
from reconstruct.findings.rule import judge
from reconstruct.findings.verdicts import Verdicts

#: What :func:`cluster_histories` reads.
HISTORY_TABLES: Final = (
    STATE_CHANGE_EVENTS,
    CONTROLLER_EVENTS,
    REPLICATION_EVENTS,
    ZNODE_CHANGES,
    BROKER_CONFIGS,
    INGESTED_FILES,
    METADATA_CHANGES,
    METADATA_RECORDS,
)


class ClusterHistory:
    """The cluster-wide timelines of one cluster, its view, and the verdicts on it."""

    def __init__(self, cluster_id: str, facts: ClusterFacts) -> None:
        self.cluster_id = cluster_id
        self.tenures: Sequence[TenureSpan] = controller_tenures(facts.controllers)
        self.registrations: Mapping[int, Sequence[RegistrationSpan]] = broker_registrations(
            facts.brokers, facts.controllers, facts.process_starts
        )
        self.ends = registration_ends(facts, self.registrations)
        self.verdicts = Verdicts()
        asked = sorted((f.at, f.evidence_id, f.broker_id) for f in facts.brokers if f.kind == "shutdown_requested")
        self.view = ClusterView(
            cluster_id=cluster_id,
            version=facts.version,
            recreations=tuple(start.at for start in recreations(facts.controllers)),
            tenures=tuple(span.tenure for span in self.tenures),
            liveness={b: tuple(s.interval for s in spans) for b, spans in self.registrations.items()},
            departures=broker_departures(facts, self.registrations),
            configurations=facts.configurations,
            settings=facts.settings,
            process_starts=_by_broker(
                (broker_id, (at, record)) for broker_id, at, record in sorted(facts.process_starts)
            ),
            shutdown_requests=_by_broker((broker_id, (at, record)) for at, record, broker_id in asked),
            shutdown_controllers={
                f.evidence_id: f.controller_id
                for f in facts.brokers
                if f.kind == "shutdown_requested" and f.controller_id is not None
            },
            logs=_by_broker(facts.log_spans),
            set_back=facts.set_back,
            live_views=tuple(facts.live_views),
        )
        self.take_overs = take_overs(self.tenures, facts.take_over_lines)
        self.windows = line_windows(self.tenures)
        self.episodes = episodes(self.tenures, self.windows, self.registrations, facts.controllers, facts.brokers)
        self.procedures = procedures(*self._of_zookeeper(facts))
        case = ClusterCase(
            facts.controllers, facts.brokers, self.tenures, self.registrations, self.take_overs, self.view
        )
        judge(RULES, case, self.verdicts)

    def _of_zookeeper(
        self, facts: ClusterFacts
    ) -> tuple[list[TenureSpan], list[tuple[int, int]], Sequence[ProcedureLine]]:
        """The tenures of ZooKeeper's controllers, the windows of their lines, and the lines of procedures: none where
        all controllers known are a quorum's."""
        of_quorum = {(fact.controller_id, fact.epoch) for fact in facts.controllers if fact.is_of_quorum}
        own = [
            (span, window)
            for span, window in zip(self.tenures, self.windows, strict=True)
            if (span.tenure.controller_id, span.tenure.controller_epoch) not in of_quorum
        ]
        lines = facts.procedure_lines if own or not of_quorum else []
        return [span for span, _ in own], [window for _, window in own], lines

    def tenure_rows(self) -> Iterator[dict[str, Any]]:
        """Rows of silver.controller_epoch_timeline."""
        for sequence, span in numbered(self.tenures, lambda s: (s.tenure.controller_epoch, s.tenure.controller_id)):
            tenure = span.tenure
            end = None if tenure.end is None else max(tenure.start, tenure.end)
            given = {"cluster_id": self.cluster_id, "sequence": sequence, "valid_to": end}
            yield table_row(CONTROLLER_EPOCH_TIMELINE, span, tenure, **given)

    def liveness_rows(self) -> Iterator[dict[str, Any]]:
        """Rows of silver.broker_liveness_timeline."""
        for broker_id, spans in self.registrations.items():
            for sequence, (span, end) in enumerate(zip(spans, self.ends[broker_id], strict=True)):
                given = {"cluster_id": self.cluster_id, "broker_id": broker_id, "sequence": sequence}
                yield table_row(BROKER_LIVENESS_TIMELINE, span, span.interval, span.interval.value, end, **given)


def _by_broker(pairs: Iterable[tuple[int, Value]]) -> dict[int, tuple[Value, ...]]:
    found: dict[int, list[Value]] = {}
    for broker_id, value in pairs:
        found.setdefault(broker_id, []).append(value)
    return {broker_id: tuple(values) for broker_id, values in found.items()}


def cluster_rows(spark: SparkSession, histories: Sequence[ClusterHistory]) -> list[tuple[TableSpec, DataFrame]]:
    """DataFrames of both cluster-wide timelines."""
    tenures = (row for history in histories for row in history.tenure_rows())
    liveness = (row for history in histories for row in history.liveness_rows())
    return [
        (CONTROLLER_EPOCH_TIMELINE, local_rows(spark, CONTROLLER_EPOCH_TIMELINE, tenures)),
        (BROKER_LIVENESS_TIMELINE, local_rows(spark, BROKER_LIVENESS_TIMELINE, liveness)),
    ]


def cluster_histories(
    lake: Lake, minutes: DataFrame | None = None, spans: DataFrame | None = None, signs: KeptSigns | None = None
) -> list[ClusterHistory]:
    """Every cluster's own timelines and view, from the typed events, znodes and metadata changes of the lake;
    ``minutes`` and ``spans``: what :func:`~reconstruct.cluster.spark.controller_lines.controller_minutes` and
    :func:`~reconstruct.cluster.spark.log_spans.log_spans` make of them, where that is known; ``signs``: what the last
    run found of brokers' lives."""
    state_changes, controller_events, replication_events, znodes, configs, files, changes, records = map(
        lake.read, HISTORY_TABLES
    )
    facts = gather(
        state_changes,
        controller_events,
        replication_events,
        znodes,
        configs,
        files,
        controller_minutes(state_changes) if minutes is None else minutes,
        log_spans(log_lines(state_changes, replication_events)) if spans is None else spans,
    )
    add_metadata_facts(facts, changes, records)
    add_life_signs(facts, state_changes, controller_events, replication_events, znodes, signs)
    return [ClusterHistory(cluster_id, facts[cluster_id]) for cluster_id in sorted(facts)]
