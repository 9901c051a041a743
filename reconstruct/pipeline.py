"""Bronze to silver to gold: the one function that the jobs call."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.delta import Lake
from ingest.tables.bronze import (
    BROKER_CONFIGS,
    INGESTED_FILES,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_RECORDS,
    LOG_SEGMENTS,
    OFFSET_CHECKPOINTS,
    OFFSET_PROBES,
    ZNODE_SNAPSHOTS,
    ZNODE_TRANSACTIONS,
)
from ingest.tables.gold import DIVERGENCES
from ingest.tables.quality import EVIDENCE_COVERAGE, RUN_METRICS, UNRECOGNISED_TEMPLATES
from ingest.tables.silver import (
    CONTROLLER_EVENTS,
    LEADER_AND_ISR_TIMELINE,
    OFFSET_OBSERVATIONS,
    REPLICATION_EVENTS,
    STATE_CHANGE_EVENTS,
    TOPIC_INCARNATIONS,
    ZNODE_CHANGES,
)
from reconstruct.inputs import Inputs, cluster_histories, evidence_of_partitions, shared_inputs
from reconstruct.silver.cluster_rows import ClusterHistory, cluster_rows
from reconstruct.silver.coverage import evidence_coverage
from reconstruct.silver.events import controller_events, replication_events, state_change_events
from reconstruct.silver.incarnations import incarnation_rows
from reconstruct.silver.offset_context import offset_contexts
from reconstruct.silver.offset_evidence_rows import offset_evidence
from reconstruct.silver.offset_job import OFFSET_TABLES, fold_offsets
from reconstruct.silver.offsets import offset_sightings
from reconstruct.silver.partition_job import FOLDED_TABLES, VERDICTS, finding_row, fold_partitions, rows_of
from reconstruct.silver.unrecognised import unrecognised_templates
from reconstruct.silver.znodes import znode_changes


@dataclass(frozen=True)
class ReconstructReport:
    """Rows of each table made, findings by severity, and what the clusters' versions were taken to be."""

    rows: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def reconstruct(lake: Lake, *, full: bool, progress: Callable[[str], None]) -> ReconstructReport:
    """Rebuild silver and gold from bronze. The same bronze gives the same rows.

    Every run rebuilds all of it for now; ``full`` says that the caller wants it even where nothing is new.
    """
    del full
    lake.ensure()
    run_id = uuid.uuid4().hex

    progress("writes to znodes")
    lake.overwrite(znode_changes(lake.read(ZNODE_SNAPSHOTS), lake.read(ZNODE_TRANSACTIONS)), ZNODE_CHANGES)

    progress("clocks of the brokers, topics and their incarnations")
    with shared_inputs(lake) as inputs:
        progress("typed events")
        sightings = _sightings(lake, inputs)
        lake.overwrite_all(
            [
                (TOPIC_INCARNATIONS, incarnation_rows(inputs.incarnations)),
                (STATE_CHANGE_EVENTS, state_change_events(inputs.records, inputs.incarnations)),
                (CONTROLLER_EVENTS, controller_events(inputs.records, inputs.incarnations)),
                (REPLICATION_EVENTS, replication_events(inputs.records, inputs.incarnations)),
                (OFFSET_OBSERVATIONS, sightings.select(*OFFSET_OBSERVATIONS.column_names)),
            ]
        )
        progress("controllers and brokers")
        histories = cluster_histories(lake)
        lake.overwrite_all(cluster_rows(lake.spark, histories))
        counts = _partition_timelines(lake, inputs, histories, progress)
        _offset_timelines(lake, sightings, inputs, histories, progress)

        progress("coverage")
        files = lake.read(INGESTED_FILES)
        lake.overwrite_all(
            [
                (EVIDENCE_COVERAGE, evidence_coverage(files, inputs.clocks)),
                (UNRECOGNISED_TEMPLATES, unrecognised_templates(lake.read(LOG_RECORDS), files)),
            ]
        )
    _append_metrics(lake, run_id, histories, counts)
    rows = {spec.full_name: lake.read(spec).count() for spec in (*FOLDED_TABLES, *OFFSET_TABLES)}
    severities = lake.read(DIVERGENCES).groupBy("severity").count().collect()
    return ReconstructReport(
        rows=rows,
        findings={row["severity"]: row["count"] for row in severities},
        versions={history.cluster_id: str(history.view.version) for history in histories},
    )


def _sightings(lake: Lake, inputs: Inputs) -> DataFrame:
    checkpoints, lineages = lake.read(OFFSET_CHECKPOINTS), lake.read(LEADER_EPOCH_CHECKPOINTS)
    return offset_sightings(
        checkpoints, lineages, lake.read(LOG_SEGMENTS), inputs.incarnations, inputs.said, lake.read(OFFSET_PROBES)
    )


def _partition_timelines(
    lake: Lake, inputs: Inputs, histories: list[ClusterHistory], progress: Callable[[str], None]
) -> Counter[tuple[str, str, str]]:
    """Write the folded tables; return how often each (cluster, rule, verdict) occurred."""
    progress("timelines and findings of each partition")
    evidence = evidence_of_partitions(lake, inputs.incarnations)
    folded = fold_partitions(evidence, {h.cluster_id: h.view for h in histories})
    folded = folded.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        # the first action runs the fold, once; the writes after it read what it left in memory
        judged = (
            folded.where(F.col("table_name") == VERDICTS)
            .groupBy("cluster_id", "rule", "verdict")
            .agg(F.sum("times").alias("times"))
            .collect()
        )
        tables = [(spec, rows_of(folded, spec)) for spec in FOLDED_TABLES if spec is not DIVERGENCES]
        findings = rows_of(folded, DIVERGENCES).unionByName(_cluster_findings(lake, histories))
        lake.overwrite_all([*tables, (DIVERGENCES, findings)])
    finally:
        folded.unpersist()
    counts = Counter({(row["cluster_id"], row["rule"], row["verdict"]): row["times"] for row in judged})
    for history in histories:
        for (rule_id, verdict), times in history.verdicts.counts.items():
            counts[history.cluster_id, rule_id, verdict] += times
    return counts


def _offset_timelines(
    lake: Lake,
    sightings: DataFrame,
    inputs: Inputs,
    histories: list[ClusterHistory],
    progress: Callable[[str], None],
) -> None:
    """Write what is proven of each replica's offsets, and what elections lost."""
    progress("offsets of each replica")
    contexts = offset_contexts(
        {h.cluster_id: h.view for h in histories},
        lake.read(REPLICATION_EVENTS),
        lake.read(ZNODE_SNAPSHOTS),
        lake.read(BROKER_CONFIGS),
    )
    evidence = offset_evidence(
        sightings, lake.read(INGESTED_FILES), inputs.said, inputs.incarnations, lake.read(LEADER_AND_ISR_TIMELINE)
    )
    folded = fold_offsets(evidence, contexts).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        for spec in OFFSET_TABLES:  # one after the other: the first runs the fold, the second reads what it left
            lake.overwrite(rows_of(folded, spec), spec)
    finally:
        folded.unpersist()


def _cluster_findings(lake: Lake, histories: list[ClusterHistory]) -> DataFrame:
    nothing = dict.fromkeys(DIVERGENCES.column_names)
    rows = [
        {**nothing, **finding_row(finding), "cluster_id": history.cluster_id}
        for history in histories
        for finding in history.verdicts.findings
    ]
    return lake.spark.createDataFrame(rows, DIVERGENCES.struct)


def _append_metrics(
    lake: Lake, run_id: str, histories: list[ClusterHistory], counts: Counter[tuple[str, str, str]]
) -> None:
    """Verdicts by rule and the share of records typed, by cluster: what a trend is drawn from."""
    typed = (
        lake.read(LOG_RECORDS)
        .groupBy("cluster_id", "source_kind")
        .agg(F.avg(F.col("shape_id").isNotNull().cast("double")).alias("share"))
        .collect()
    )
    rows = [
        (run_id, cluster_id, f"rule_{verdict}_count", rule_id, float(times))
        for (cluster_id, rule_id, verdict), times in sorted(counts.items())
    ]
    rows += [(run_id, row["cluster_id"], "typed_records_ratio", row["source_kind"], row["share"]) for row in typed]
    names = "run_id string, cluster_id string, metric string, subject string, value double"
    frame = lake.spark.createDataFrame(rows, names).withColumn("run_at", F.current_timestamp())
    lake.append(frame, RUN_METRICS)
