"""Bronze to silver to gold: the one function that the jobs call."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import (
    BROKER_CONFIGS,
    CAPTURE_GAPS,
    INGESTED_FILES,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_RECORDS,
    LOG_SEGMENTS,
    OFFSET_CHECKPOINTS,
    OFFSET_PROBES,
    REJECTED_RECORDS,
    ZNODE_SNAPSHOTS,
    ZNODE_TRANSACTIONS,
)
from ingest.lake.tables.gold import DIVERGENCES, PROPAGATION_DELAYS, RECORDS_AT_RISK
from ingest.lake.tables.quality import EVIDENCE_COVERAGE, RUN_METRICS, UNRECOGNISED_TEMPLATES
from ingest.lake.tables.silver import (
    ASSIGNMENT_TIMELINE,
    CONTROLLER_EVENTS,
    LEADER_AND_ISR_TIMELINE,
    OFFSET_OBSERVATIONS,
    REPLICA_OFFSET_TIMELINE,
    REPLICATION_EVENTS,
    STATE_CHANGE_EVENTS,
    TOPIC_INCARNATIONS,
    ZNODE_CHANGES,
)
from reconstruct.checkpoints.spark.step import checkpoint_findings
from reconstruct.cluster.spark.incarnations import incarnation_rows
from reconstruct.cluster.spark.step import ClusterHistory, cluster_histories, cluster_rows
from reconstruct.coverage.spark.step import evidence_coverage
from reconstruct.engine.folds import rows_of
from reconstruct.engine.judgement import Counts, Judgement
from reconstruct.engine.publication import Audit, Publication, no_audit
from reconstruct.engine.staging import Staging, staging
from reconstruct.events.spark.line_order import jumps_of_files
from reconstruct.events.spark.step import controller_events, replication_events, state_change_events
from reconstruct.events.spark.unrecognised import unrecognised_templates
from reconstruct.events.spark.znodes import znode_changes
from reconstruct.inputs import Inputs, shared_inputs
from reconstruct.offsets.spark.context import offset_contexts
from reconstruct.offsets.spark.evidence import offset_evidence
from reconstruct.offsets.spark.observations import offset_observations
from reconstruct.offsets.spark.records_at_risk import fold_risks
from reconstruct.offsets.spark.step import OFFSET_TABLES, fold_offsets
from reconstruct.partitions.spark.evidence import evidence_of_partitions
from reconstruct.partitions.spark.step import FOLDED_TABLES, fold_partitions
from reconstruct.requests.spark.evidence import controller_requests
from reconstruct.requests.spark.step import judged_requests, lossy_logs, with_lossy_logs
from reconstruct.rule_book import RULES

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ReconstructReport:
    """Rows of each table made, findings by severity, and what the clusters' versions were taken to be.

    ``refused`` says why gold was not published, a sentence each; the rows and findings are then those of before.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


def reconstruct(lake: Lake, *, progress: Progress, audit: Audit = no_audit) -> ReconstructReport:
    """Rebuild silver and gold from bronze. The same bronze gives the same rows.

    Every run rebuilds all of it. Gold is published only if ``audit`` finds nothing in it; see
    :mod:`reconstruct.engine.publication`.
    """
    lake.ensure()
    lake = PinnedLake(lake)
    run_id = uuid.uuid4().hex

    progress("writes to znodes")
    lake.overwrite(znode_changes(lake.read(ZNODE_SNAPSHOTS), lake.read(ZNODE_TRANSACTIONS)), ZNODE_CHANGES)

    progress("clocks of the brokers, topics and their incarnations")
    with staging(lake, run_id) as stage:
        inputs, judgement, gold = shared_inputs(lake, stage), Judgement(lake, stage), Publication(lake)
        progress("typed events")
        sightings = _typed_events(lake, inputs, stage)
        progress("controllers and brokers")
        histories = cluster_histories(lake)
        lake.overwrite_all(cluster_rows(lake.spark, histories))
        judgement.add({history.cluster_id: history.verdicts for history in histories})
        progress("requests of the controllers")
        _requests(lake, histories, judgement, gold, stage)
        progress("timelines and findings of each partition")
        _partition_timelines(lake, inputs, histories, judgement, gold)
        progress("offsets of each replica")
        _offset_timelines(lake, sightings, inputs, histories, judgement, gold, stage)
        gold.offer(DIVERGENCES, judgement.findings({rule.rule_id: rule.source for rule in RULES.values()}))
        refused = gold.publish(audit)

        progress("coverage")
        files = lake.read(INGESTED_FILES)
        lake.overwrite_all(
            [
                (
                    EVIDENCE_COVERAGE,
                    evidence_coverage(files, inputs.clocks, jumps_of_files(inputs.records), lake.read(CAPTURE_GAPS)),
                ),
                (UNRECOGNISED_TEMPLATES, unrecognised_templates(lake.read(LOG_RECORDS), files)),
            ]
        )
    # verdicts belong to the findings beside them
    _append_metrics(lake, run_id, {} if refused else judgement.counts)
    made = (*FOLDED_TABLES, *OFFSET_TABLES, PROPAGATION_DELAYS, RECORDS_AT_RISK)
    severities = lake.read(DIVERGENCES).groupBy("severity").count().collect()
    return ReconstructReport(
        rows={spec.full_name: lake.rows_count(spec) for spec in made},
        findings={row["severity"]: row["count"] for row in severities},
        versions={history.cluster_id: str(history.view.version) for history in histories},
        refused=refused,
    )


def _typed_events(lake: Lake, inputs: Inputs, stage: Staging) -> DataFrame:
    """Write the typed events and the sightings of offsets; return the latter as they are judged."""
    checkpoints, lineages = lake.read(OFFSET_CHECKPOINTS), lake.read(LEADER_EPOCH_CHECKPOINTS)
    segments, probes = lake.read(LOG_SEGMENTS), lake.read(OFFSET_PROBES)
    made = offset_observations(checkpoints, lineages, segments, inputs.incarnations, inputs.statements, probes)
    sightings = stage.keep(made, "offset_sightings")
    lake.overwrite_all(
        [
            (TOPIC_INCARNATIONS, incarnation_rows(inputs.incarnations)),
            (STATE_CHANGE_EVENTS, state_change_events(inputs.records, inputs.incarnations)),
            (CONTROLLER_EVENTS, controller_events(inputs.records, inputs.incarnations)),
            (REPLICATION_EVENTS, replication_events(inputs.records, inputs.incarnations)),
            (OFFSET_OBSERVATIONS, sightings.select(*OFFSET_OBSERVATIONS.column_names)),
        ]
    )
    return sightings


def _requests(
    lake: Lake, histories: list[ClusterHistory], judgement: Judgement, gold: Publication, stage: Staging
) -> None:
    """Offer how requests spread; tell the clusters' views which logs are proven to lack lines."""
    views = {history.cluster_id: history.view for history in histories}
    made = controller_requests(lake.read(STATE_CHANGE_EVENTS), lake.read(INGESTED_FILES), views)
    requests = stage.keep(made, "controller_requests")
    lossy = lossy_logs(requests, views)
    for history in histories:
        history.view = with_lossy_logs(history.view, lossy)
    views = {history.cluster_id: history.view for history in histories}
    judged = judgement.keep(judged_requests(requests, views), "judged_requests")
    gold.offer(PROPAGATION_DELAYS, rows_of(judged, PROPAGATION_DELAYS))


def _partition_timelines(
    lake: Lake, inputs: Inputs, histories: list[ClusterHistory], judgement: Judgement, gold: Publication
) -> None:
    """Write the folded tables of silver, offer those of gold."""
    evidence = evidence_of_partitions(lake, inputs.incarnations)
    views = {history.cluster_id: history.view for history in histories}
    folded = judgement.keep(fold_partitions(evidence, views), "partition_histories")
    _write_and_offer(lake, gold, folded, [spec for spec in FOLDED_TABLES if spec is not DIVERGENCES])


def _offset_timelines(
    lake: Lake,
    sightings: DataFrame,
    inputs: Inputs,
    histories: list[ClusterHistory],
    judgement: Judgement,
    gold: Publication,
    stage: Staging,
) -> None:
    """Write what is proven of each replica's offsets, what elections lost, and what a failure would lose."""
    views = {history.cluster_id: history.view for history in histories}
    files, events = lake.read(INGESTED_FILES), lake.read(REPLICATION_EVENTS)
    snapshots, configs = lake.read(ZNODE_SNAPSHOTS), lake.read(BROKER_CONFIGS)
    contexts = offset_contexts(views, events, snapshots, configs, inputs.clocks)
    decided = lake.read(LEADER_AND_ISR_TIMELINE)
    evidence = offset_evidence(sightings, files, inputs.statements, inputs.incarnations, decided, events)
    folded = judgement.keep(fold_offsets(evidence, contexts), "offset_histories")
    _write_and_offer(lake, gold, folded, OFFSET_TABLES)
    offsets, assignments = lake.read(REPLICA_OFFSET_TIMELINE), lake.read(ASSIGNMENT_TIMELINE)
    judgement.keep(
        checkpoint_findings(
            files, lake.read(REJECTED_RECORDS), sightings, events, inputs.records, assignments, offsets, contexts
        ),
        "checkpoint_findings",
    )
    gold.offer(RECORDS_AT_RISK, stage.keep(fold_risks(offsets, decided, assignments, views), "records_at_risk"))


def _write_and_offer(lake: Lake, gold: Publication, folded: DataFrame, specs: Sequence[TableSpec]) -> None:
    """Of the wide rows those of silver are written, those of gold offered."""
    lake.overwrite_all([(spec, rows_of(folded, spec)) for spec in specs if spec.schema != "gold"])
    for spec in specs:
        if spec.schema == "gold":
            gold.offer(spec, rows_of(folded, spec))


def _append_metrics(lake: Lake, run_id: str, counts: Counts) -> None:
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
