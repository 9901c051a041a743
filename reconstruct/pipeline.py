"""Bronze to silver to gold: the one function that the jobs call, and the steps that it takes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from ingest.lake.changes import changed_clusters
from ingest.lake.delta import Lake, OfClusters, PinnedLake, side_by_side
from ingest.lake.maintenance import put_tiny_files_together
from ingest.lake.tables import TABLES
from ingest.lake.tables.gold import DIVERGENCES, PROPAGATION_DELAYS, RECORDS_AT_RISK
from ingest.lake.tables.kept import KEPT_TABLES
from reconstruct import steps
from reconstruct.engine.publication import Audit, no_audit
from reconstruct.engine.staging import staging
from reconstruct.kept.last_run import LastRun, bronze_versions, last_run, note
from reconstruct.offsets.spark.step import OFFSET_TABLES
from reconstruct.partitions.spark.step import FOLDED_TABLES
from reconstruct.steps import Run

#: What a run does, in this order; each step reads of the lake what those before it wrote. Those of one line need
#: nothing of each other and run side by side.
STEPS: Final[tuple[tuple[str, tuple[Callable[[Run], None], ...]], ...]] = (
    (
        "writes to znodes; marks of clocks; unknown messages",
        (steps.write_znode_changes, steps.go_through_records),
    ),
    ("the metadata log", (steps.write_metadata_changes,)),
    ("clocks of the brokers, topics and their incarnations", (steps.share_inputs,)),
    ("typed events; coverage", (steps.write_events, steps.write_coverage)),
    (
        "controllers and brokers; quorums; evidence of each partition",
        (steps.write_cluster_timelines, steps.write_quorum_timelines, steps.gather_partition_evidence),
    ),
    ("requests of the controllers", (steps.match_requests,)),
    (
        "timelines and findings of each partition; of requests",
        (steps.fold_each_partition, steps.gather_offset_contexts, steps.judge_requests),
    ),
    ("offsets of each replica", (steps.bound_offsets,)),
    ("checkpoint files of each broker; records at risk", (steps.judge_checkpoints, steps.weigh_risks)),
    ("audit and publication", (steps.publish_gold,)),
    ("what the next run goes on from; metrics of the run", (steps.keep_folds, steps.append_metrics)),
)
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ReconstructReport:
    """Rows of each table made, findings by severity, and what the clusters' versions were taken to be.

    ``refused`` says why gold was not published of ``clusters_refused``, a sentence each; their rows and findings are
    then those of before.
    ``how``, in which two reports of the same evidence may differ, says what of it was made anew.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    clusters_refused: tuple[str, ...] = ()
    how: str = field(default="", compare=False)


def reconstruct(lake: Lake, *, progress: Progress, audit: Audit = no_audit, full: bool = False) -> ReconstructReport:
    """Bring silver and gold in line with bronze. The same bronze gives the same rows, however often it grew in between.

    What nothing new concerns is left as it is, clusters of which nothing is new as a whole; with ``full`` everything is
    made anew, and so it is where another program made it or a run was cut off. Gold is published only if ``audit``
    finds nothing in it; see :mod:`reconstruct.engine.publication`.
    """
    evidence = bronze_versions(lake)
    last = last_run(lake, evidence)
    if last.is_nothing_new and not full and last.report is not None:
        how = f"nothing is new since run {last.number}"
        progress(how)
        return replace(ReconstructReport(**last.report, how=how), refused=(), clusters_refused=())
    for renewed in lake.ensure((*TABLES.values(), *KEPT_TABLES), renews=True):
        progress(renewed)
    lake = PinnedLake(lake)
    evidence = bronze_versions(lake)
    run_id = uuid.uuid4().hex
    with staging(lake, run_id) as stage:
        concerned = lake if full else _of_what_is_new(lake, last, evidence)
        run = Run(concerned, stage, run_id, audit, last, evidence, full=full)
        for name, together in STEPS:
            progress(name)
            side_by_side(lambda step: step(run), together)
    put_tiny_files_together(lake, [*(spec for spec in TABLES.values() if spec.schema != "bronze"), *KEPT_TABLES])
    made = (*FOLDED_TABLES, DIVERGENCES, *OFFSET_TABLES, PROPAGATION_DELAYS, RECORDS_AT_RISK)
    severities = lake.read(DIVERGENCES).groupBy("severity").count().collect()
    report = ReconstructReport(
        rows={spec.full_name: lake.rows_count(spec) for spec in made},
        findings={row["severity"]: row["count"] for row in severities},
        versions=_versions_left(run) | {cluster_id: str(view.version) for cluster_id, view in run.views.items()},
        refused=run.refused.problems,
        clusters_refused=tuple(sorted(run.refused.clusters)),
        how=_how(run),
    )
    if len(run.refused.clusters) < max(1, len(run.views)):
        note(lake, last.next_number, evidence, _as_kept(report))
    return report


def _of_what_is_new(lake: Lake, last: LastRun, evidence: Mapping[str, int]) -> Lake:
    """The lake, or those of its clusters that something new concerns, where it is known that no other's rows would be
    others."""
    changed = changed_clusters(lake, last.evidence, evidence) if last.is_kept else None
    return lake if changed is None or last.clusters <= changed else OfClusters(lake, changed)


def _versions_left(run: Run) -> dict[str, str]:
    """Of the clusters that were left as they were."""
    if not isinstance(run.lake, OfClusters) or run.last.report is None:
        return {}
    return {name: version for name, version in run.last.report["versions"].items() if name not in run.lake.cluster_ids}


def _as_kept(report: ReconstructReport) -> dict[str, Any]:
    return {field.name: getattr(report, field.name) for field in fields(report) if field.compare}


def _how(run: Run) -> str:
    counts = ", ".join(f"{count} of {name.replace('_', ' ')}" for name, count in run.folds.told.items())
    clusters_left = len(_versions_left(run))
    left = f"; clusters left as they were: {clusters_left}" if clusters_left else ""
    if not run.is_kept:
        return f"everything was made anew{left}"
    return f"folds made again: {counts or 'all'}{left}"
