"""The steps of a run, each from tables to tables, and what they hand to each other. What they do is in the rooms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, OfClusters, side_by_side
from ingest.lake.tables import TableSpec
from ingest.lake.tables import bronze as b
from ingest.lake.tables import silver as s
from ingest.lake.tables.controllers import CONTROLLER_EPISODES, CONTROLLER_PROCEDURES
from ingest.lake.tables.events import (
    CONTROLLER_EVENTS,
    METADATA_CHANGES,
    OFFSET_OBSERVATIONS,
    REPLICATION_EVENTS,
    STATE_CHANGE_EVENTS,
    ZNODE_CHANGES,
)
from ingest.lake.tables.gold import (
    AVAILABILITY_INTERVALS,
    DIVERGENCES,
    FINDING_HISTORY,
    LEADER_ELECTIONS,
    PROPAGATION_DELAYS,
)
from ingest.lake.tables.incidents import INCIDENT_EVENTS, INCIDENTS
from ingest.lake.tables.kept import (
    CLOCK_MARKS,
    FILE_CONTROLLERS,
    LOG_SPANS,
    MATCHED_REQUESTS,
    OFFSET_STATEMENTS,
    RECORD_COUNTS,
    UNORDERED_LOGS,
    UNRECOGNISED_MESSAGES,
)
from ingest.lake.tables.quality import EVIDENCE_COVERAGE, RUN_METRICS, UNRECOGNISED_TEMPLATES
from ingest.lake.tables.quorum import QUORUM_TIMELINE
from reconstruct.checkpoints.spark.step import checkpoint_findings
from reconstruct.clocks.spark.step import marks_of
from reconstruct.cluster.spark.episodes import controller_episodes
from reconstruct.cluster.spark.incarnations import are_placed_alike, incarnation_rows
from reconstruct.cluster.spark.life_signs import KeptSigns, told_lines
from reconstruct.cluster.spark.log_spans import log_lines, log_spans
from reconstruct.cluster.spark.procedures import controller_procedures
from reconstruct.cluster.spark.statements import stated_ids
from reconstruct.cluster.spark.step import ClusterHistory, cluster_histories, cluster_rows
from reconstruct.cluster.view import ClusterView
from reconstruct.coverage.spark.step import evidence_coverage
from reconstruct.engine.folds import local_rows, rows_of
from reconstruct.engine.judgement import Judgement
from reconstruct.engine.publication import Audit, Publication, Refused
from reconstruct.engine.rows import TABLE
from reconstruct.engine.second_look import DATED_TABLES, second_look
from reconstruct.engine.staging import Staging
from reconstruct.events.spark.step import controller_events, replication_events, state_change_events
from reconstruct.events.spark.unrecognised import unrecognised_messages, unrecognised_templates
from reconstruct.events.spark.znode_transactions import logged_changes
from reconstruct.events.spark.znodes import znode_changes
from reconstruct.incidents.spark.effects import EFFECT_TABLES, effects
from reconstruct.incidents.spark.step import incidents
from reconstruct.inputs import Inputs, shared_inputs
from reconstruct.kept.finding_history import finding_history, write_history
from reconstruct.kept.folds import Fold, Folded, KeptFolds, Sources
from reconstruct.kept.last_run import LastRun
from reconstruct.kept.record_rows import OfRecords, RecordRows
from reconstruct.log_records import record_counts
from reconstruct.metadata_log.evidence import ClusterLog
from reconstruct.metadata_log.migration import Migration
from reconstruct.metadata_log.spark.migration import before_take_over, migrated_topics, migrations
from reconstruct.metadata_log.spark.step import metadata_histories, other_changes, topic_changes
from reconstruct.offsets.spark.context import OffsetContext, offset_contexts
from reconstruct.offsets.spark.evidence import evidence_sources as offset_sources
from reconstruct.offsets.spark.evidence import offset_evidence
from reconstruct.offsets.spark.evidence import placed_evidence as placed_offset_evidence
from reconstruct.offsets.spark.observations import offset_observations
from reconstruct.offsets.spark.records_at_risk import RISK_FOLD, risk_evidence
from reconstruct.offsets.spark.step import OFFSET_FOLD, with_losses
from reconstruct.partitions.spark.evidence import evidence_sources as partition_sources
from reconstruct.partitions.spark.evidence import partition_evidence
from reconstruct.partitions.spark.evidence import placed_evidence as placed_partition_evidence
from reconstruct.partitions.spark.step import PARTITION_FOLD
from reconstruct.quorum.spark.evidence import quorum_evidence
from reconstruct.quorum.spark.step import quorum_timelines
from reconstruct.requests.spark.bursts import of_slots, slotted, whole_bursts
from reconstruct.requests.spark.connections import failed_connections
from reconstruct.requests.spark.evidence import controller_requests, matched_requests, unordered_logs
from reconstruct.requests.spark.step import counted_requests, judged_requests, lossy_logs, with_logs_known
from reconstruct.rule_book import RULES


class Run:
    """One run: the lake it reads and writes, what its steps found, and what a step leaves for those after it."""

    clock_marks: DataFrame
    record_counts: DataFrame
    inputs: Inputs
    metadata_logs: dict[str, ClusterLog]
    migrations: dict[str, Migration]
    partition_sources: Sources
    histories: Sequence[ClusterHistory]
    requests: DataFrame
    contexts: dict[str, OffsetContext]
    partitions: Folded
    offsets: Folded

    def __init__(
        self,
        lake: Lake,
        stage: Staging,
        run_id: str,
        audit: Audit,
        last: LastRun,
        evidence: Mapping[str, int],
        *,
        full: bool,
    ) -> None:
        """``evidence``: the versions of bronze's tables."""
        self.lake, self.stage, self.run_id, self.audit, self.last = lake, stage, run_id, audit, last
        is_any_known = not isinstance(lake, OfClusters) or not lake.cluster_ids.isdisjoint(last.clusters)
        self.is_kept = last.is_kept and is_any_known and not full
        self._unchanged = {name for name, version in evidence.items() if version == last.evidence.get(name)}
        self.folds = KeptFolds(lake, stage, self.is_kept)
        self.record_rows = RecordRows(lake, stage, last.evidence if self.is_kept else None)
        self.judgement, self.gold = Judgement(lake, stage), Publication(lake)
        self.refused = Refused()

    def read(self, *specs: TableSpec) -> list[DataFrame]:
        """Tables of the lake as they are by now."""
        return [self.lake.read(spec) for spec in specs]

    def is_unchanged(self, *specs: TableSpec) -> bool:
        """Whether these tables of bronze are those that the last run read, and what it made of them is kept."""
        return self.is_kept and self._unchanged.issuperset(spec.full_name for spec in specs)

    def differing_records(self, *specs: TableSpec, made: Callable[..., DataFrame]) -> Callable[[], DataFrame | None]:
        """Of tables that are made of records: what is another than at the last run, but for topics of which the
        incarnations are others."""
        return partial(
            self.record_rows.differing, *specs, made=made, are_others_the_same=self.inputs.are_clocks_the_same
        )

    @property
    def views(self) -> dict[str, ClusterView]:
        """Each cluster as it is known by now, by its id."""
        return {history.cluster_id: history.view for history in self.histories}

    def fold(self, step: Fold[Any], sources: Sources, facts: Mapping[str, Any]) -> Folded:
        """Do a fold for the keys that need it; write its tables of silver, offer those of gold, take its verdicts."""
        folded = self.folds.run(step, sources, facts)
        gold = [spec for spec in step.tables if spec.schema == "gold"]
        if not folded.is_any_new:
            self.gold.leave(gold)
        else:
            folded.write([spec for spec in step.tables if spec not in gold])
            offered = [(spec, folded.rows(spec), folded.rows_now(spec)) for spec in gold]
            self.gold.offer_together(offered, partial(folded.write, gold))
        if step.judges:
            self.judgement.take(folded.judged)
        return folded


def write_znode_changes(run: Run) -> None:
    """``silver.znode_changes``, by which everything else is placed."""
    if run.is_unchanged(b.ZNODE_SNAPSHOTS, b.ZNODE_TRANSACTIONS):
        return
    snapshots, transactions = run.read(b.ZNODE_SNAPSHOTS, b.ZNODE_TRANSACTIONS)
    logged = run.stage.keep(logged_changes(transactions, snapshots), "logged_changes")
    run.lake.overwrite(znode_changes(snapshots, transactions, logged), ZNODE_CHANGES)


def write_metadata_changes(run: Run) -> None:
    """``silver.metadata_changes``: what ``silver.znode_changes`` is to a cluster of ZooKeeper."""
    histories, rows = metadata_histories(run.lake, run.stage)
    changes = other_changes(run.lake, histories)
    if histories:
        of_topics = run.judgement.keep(topic_changes(rows, histories), "metadata_changes")
        changes = changes.unionByName(rows_of(of_topics, METADATA_CHANGES))
        run.judgement.add({cluster_id: history.replayed.verdicts for cluster_id, history in histories.items()})
    run.metadata_logs = {cluster_id: history.log.of_quorum for cluster_id, history in histories.items()}
    if not run.is_unchanged(b.METADATA_RECORDS, b.METADATA_SNAPSHOTS):
        run.lake.overwrite(changes, METADATA_CHANGES)
    run.migrations = {}
    if histories:
        _judge_migrations(run)


def _judge_migrations(run: Run) -> None:
    """Whether ZooKeeper and the metadata log held the same where a quorum's controller took over from ZooKeeper's."""
    znodes, changes = run.read(ZNODE_CHANGES, METADATA_CHANGES)
    run.migrations = migrations(znodes, run.metadata_logs)
    if run.migrations:
        run.judgement.keep(migrated_topics(znodes, changes, run.migrations), "migrated_topics")


def go_through_records(run: Run) -> None:
    """Of the records as they were printed: what bounds the clocks, how many each log has of which hour, and the
    messages that no shape knows."""
    wanted = (
        OfRecords(CLOCK_MARKS, marks_of, is_read_once=True),
        OfRecords(RECORD_COUNTS, record_counts),
        OfRecords(UNRECOGNISED_MESSAGES, unrecognised_messages, is_read_once=True),
    )
    rows = run.record_rows
    run.clock_marks, run.record_counts, messages = rows.keep(wanted, rows.records(b.LOG_RECORDS))
    run.lake.overwrite(unrecognised_templates(messages, *run.read(b.INGESTED_FILES)), UNRECOGNISED_TEMPLATES)


def share_inputs(run: Run) -> None:
    """Clocks, corrected records and incarnations: made once, for all steps."""
    run.inputs = shared_inputs(run.lake, run.stage, run.record_rows, run.clock_marks, run.record_counts, run.migrations)


def write_events(run: Run) -> None:
    """The typed events, and the observations of offsets."""
    records, incarnations = run.inputs.records, run.inputs.incarnations
    checkpoints, lineages, segments, probes = run.read(
        b.OFFSET_CHECKPOINTS, b.LEADER_EPOCH_CHECKPOINTS, b.LOG_SEGMENTS, b.OFFSET_PROBES
    )
    observed = offset_observations(checkpoints, lineages, segments, incarnations, run.inputs.statements, probes)
    typed = (
        (STATE_CHANGE_EVENTS, state_change_events),
        (CONTROLLER_EVENTS, controller_events),
        (REPLICATION_EVENTS, replication_events),
    )
    *placed, before = run.read(*(spec for spec, _ in typed), s.TOPIC_INCARNATIONS)
    held = partial(run.stage.keep_or_hold, name="other_incarnations")
    are_the_same = (
        run.record_rows.is_any_kept
        and run.inputs.are_clocks_the_same
        and are_placed_alike(placed, incarnations, before, held)
    )

    wanted = [OfRecords(spec, partial(events, incarnations=incarnations)) for spec, events in typed]
    others = ((s.TOPIC_INCARNATIONS, incarnation_rows(incarnations)), (OFFSET_OBSERVATIONS, observed))
    write_typed = partial(run.record_rows.write, wanted, records, are_others_the_same=are_the_same)
    side_by_side(lambda write: write(), (write_typed, partial(run.lake.overwrite_all, others)))


def write_coverage(run: Run) -> None:
    """What the evidence covers."""
    files, missed = run.read(b.INGESTED_FILES, b.CAPTURE_GAPS)
    run.lake.overwrite(evidence_coverage(files, run.inputs.clocks, run.inputs.jumps, missed), EVIDENCE_COVERAGE)


def write_cluster_timelines(run: Run) -> None:
    """Controllers and brokers of each cluster, and the view of it that every partition is given."""
    rows = run.record_rows
    lines = rows.records(STATE_CHANGE_EVENTS, REPLICATION_EVENTS, made=log_lines)
    wanted = [OfRecords(LOG_SPANS, log_spans, is_read_once=True)]
    (spans,) = rows.keep(wanted, lines, are_others_the_same=run.inputs.are_clocks_the_same)
    changed = run.differing_records(STATE_CHANGE_EVENTS, CONTROLLER_EVENTS, REPLICATION_EVENTS, made=told_lines)
    signs = KeptSigns(run.lake, changed) if rows.is_kept else None
    run.histories = cluster_histories(run.lake, run.inputs.minutes, spans, signs)
    run.lake.overwrite_all(cluster_rows(run.lake.spark, run.histories))
    run.judgement.add({history.cluster_id: history.verdicts for history in run.histories})


def write_quorum_timelines(run: Run) -> None:
    """Who led each KRaft cluster's quorum when, with which voters."""
    evidence = quorum_evidence(
        *run.read(REPLICATION_EVENTS, CONTROLLER_EVENTS, b.CLUSTER_DESCRIPTIONS, b.QUORUM_STATES, b.METADATA_RECORDS)
    )
    run.lake.overwrite(quorum_timelines(evidence, run.metadata_logs), QUORUM_TIMELINE)


def match_requests(run: Run) -> None:
    """The controllers' requests with what brokers did of them; which logs they prove to lack lines, for the clusters'
    views."""
    controllers, replication, files = run.read(CONTROLLER_EVENTS, REPLICATION_EVENTS, b.INGESTED_FILES)
    unordered = unordered_logs(run.lake.spark, run.views)
    are_alike = run.record_rows.is_the_same(UNORDERED_LOGS, unordered) and run.inputs.are_clocks_the_same
    matched = run.record_rows.keep_of_keys(
        MATCHED_REQUESTS,
        lambda some: matched_requests(some, files, unordered),
        run.record_rows.records(STATE_CHANGE_EVENTS, made=slotted),
        FILE_CONTROLLERS,
        whole=whole_bursts,
        of_keys=of_slots,
        are_others_the_same=are_alike,
    )
    failed = failed_connections(controllers, replication)
    run.requests = run.stage.keep(controller_requests(matched, failed, run.views), "controller_requests")
    lossy = lossy_logs(run.requests, run.views)
    counted = counted_requests(run.requests, lossy)
    for history in run.histories:
        history.view = with_logs_known(history.view, lossy, counted)


def judge_requests(run: Run) -> None:
    """How requests spread, and what the rules say of them."""
    judged = run.judgement.keep(judged_requests(run.requests, run.views), "judged_requests")
    run.gold.offer(PROPAGATION_DELAYS, rows_of(judged, PROPAGATION_DELAYS))


def gather_partition_evidence(run: Run) -> None:
    """What all that is known of each partition is made of."""
    changes, replication, controllers, znodes, metadata = run.read(
        STATE_CHANGE_EVENTS, REPLICATION_EVENTS, CONTROLLER_EVENTS, ZNODE_CHANGES, METADATA_CHANGES
    )
    znodes = before_take_over(znodes, run.migrations)
    beside = (controllers, znodes, metadata, run.inputs.incarnations)
    records = run.differing_records(
        STATE_CHANGE_EVENTS, REPLICATION_EVENTS, CONTROLLER_EVENTS, made=placed_partition_evidence
    )
    evidence = partial(partition_evidence, changes, replication, *beside)
    run.partition_sources = run.folds.planned(Sources(evidence, partial(partition_sources, *beside), records))


def fold_each_partition(run: Run) -> None:
    """The timelines of every partition, its elections, and what the rules say of them."""
    run.partitions = run.fold(PARTITION_FOLD, run.partition_sources, run.views)


def gather_offset_contexts(run: Run) -> None:
    """What the offsets of each cluster are judged beside."""
    events, snapshots, files = run.read(REPLICATION_EVENTS, b.ZNODE_SNAPSHOTS, b.INGESTED_FILES)
    run.contexts = offset_contexts(run.views, events, snapshots, files, run.inputs.clocks)


def bound_offsets(run: Run) -> None:
    """What is proven of each replica's offsets, and what elections lost."""
    observations, events, files, segments, decided = run.read(
        OFFSET_OBSERVATIONS, REPLICATION_EVENTS, b.INGESTED_FILES, b.LOG_SEGMENTS, s.LEADER_AND_ISR_TIMELINE
    )
    incarnations = run.inputs.incarnations
    given = (observations, files, run.inputs.statements, incarnations, events, segments, decided)
    beside = (observations, files, incarnations, segments)
    records = run.differing_records(OFFSET_STATEMENTS, REPLICATION_EVENTS, made=placed_offset_evidence)
    sources = Sources(
        partial(offset_evidence, *given), partial(offset_sources, *beside), records, folds=[run.partitions]
    )
    run.offsets = run.fold(OFFSET_FOLD, sources, run.contexts)


def judge_checkpoints(run: Run) -> None:
    """The checkpoint files of each broker, and what damage to them did."""
    files, rejected, events = run.read(b.INGESTED_FILES, b.REJECTED_RECORDS, REPLICATION_EVENTS)
    observations, assigned, offsets = run.read(OFFSET_OBSERVATIONS, s.ASSIGNMENT_TIMELINE, s.REPLICA_OFFSET_TIMELINE)
    judged = checkpoint_findings(
        files, rejected, observations, events, run.inputs.key_records, assigned, offsets, run.contexts
    )
    run.judgement.keep(judged, "checkpoint_findings")


def weigh_risks(run: Run) -> None:
    """What the death of each leader would cost."""
    offsets, decided, assigned = run.read(s.REPLICA_OFFSET_TIMELINE, s.LEADER_AND_ISR_TIMELINE, s.ASSIGNMENT_TIMELINE)
    evidence = partial(risk_evidence, offsets, decided, assigned)
    run.fold(RISK_FOLD, Sources(evidence, folds=[run.partitions, run.offsets]), run.views)


def publish_gold(run: Run) -> None:
    """All findings of all steps, and gold as a whole, if its audit finds nothing."""
    found = run.judgement.findings({rule.rule_id: rule.source for rule in RULES.values()})
    # the second look reads them four times
    found = run.stage.keep(with_losses(found, run.offsets.judged), "found")
    dated = run.read(*DATED_TABLES)
    files, replication, znodes, transactions = run.read(
        b.INGESTED_FILES, REPLICATION_EVENTS, ZNODE_CHANGES, b.ZNODE_TRANSACTIONS
    )
    stated = stated_ids(replication, files)
    beside = (run.record_counts, run.inputs.key_records, files, replication, znodes, transactions, stated)
    looked = second_look(found, dated, *beside)
    divergences = run.stage.keep(looked, "findings")
    run.gold.offer(DIVERGENCES, divergences)
    history = finding_history(run.lake, run.stage, divergences, run.last)
    run.gold.offer(FINDING_HISTORY, history, partial(write_history, run=run.last.next_number))
    side_by_side(lambda offer: offer(run), (_offer_incidents, _offer_controllers))
    run.refused = run.gold.publish(run.audit, run.views.keys())


def _offer_incidents(run: Run) -> None:
    """Each absence of a broker and what followed from it."""
    found = effects(*(run.gold.read(spec) for spec in EFFECT_TABLES))
    happened = run.stage.keep(incidents(found, run.histories, run.stage), "incidents")
    specs = (INCIDENTS, INCIDENT_EVENTS)
    write = partial(run.lake.overwrite_parts, happened, TABLE, specs)
    run.gold.offer_together([(spec, rows_of(happened, spec), None) for spec in specs], write)


def _offer_controllers(run: Run) -> None:
    """What each controller did, as a whole and procedure by procedure, and which findings are of it."""
    controllers, changes = run.read(CONTROLLER_EVENTS, STATE_CHANGE_EVENTS)
    elections, unavailable, requests, divergences = (
        run.gold.read(spec) for spec in (LEADER_ELECTIONS, AVAILABILITY_INTERVALS, PROPAGATION_DELAYS, DIVERGENCES)
    )
    episodes, told = controller_episodes(run.histories, controllers, elections, unavailable, requests)
    found = controller_procedures(run.histories, told, changes, elections, unavailable, requests, divergences)
    for spec, rows in ((CONTROLLER_EPISODES, episodes), (CONTROLLER_PROCEDURES, found)):
        run.gold.offer(spec, local_rows(run.lake.spark, spec, rows))


def keep_folds(run: Run) -> None:
    """What is kept of each key, and what was judged of it. Where gold was refused, the next run makes all anew."""
    if not run.refused.problems:
        run.folds.write()
        run.record_rows.forget()


def append_metrics(run: Run) -> None:
    """Verdicts by rule and the share of records typed, by cluster: what a trend is drawn from."""
    share = F.sum("typed_count") / F.sum("records_count")
    typed = run.record_counts.groupBy("cluster_id", "source_kind").agg(share.alias("share")).collect()
    # verdicts belong to the findings beside them
    counts = {key: times for key, times in run.judgement.counts().items() if key[0] not in run.refused.clusters}
    rows = [
        (cluster_id, f"rule_{verdict}_count", rule_id, float(times))
        for (cluster_id, rule_id, verdict), times in sorted(counts.items())
    ]
    rows += [(row["cluster_id"], "typed_records_ratio", row["source_kind"], row["share"]) for row in typed]
    names, of_run = ("cluster_id", "metric", "subject", "value"), {"run_id": run.run_id, "run_at": datetime.now(UTC)}
    run.lake.append_known([of_run | dict(zip(names, row, strict=True)) for row in rows], RUN_METRICS)
