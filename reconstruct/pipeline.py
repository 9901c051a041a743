"""Bronze to silver to gold: the one function that the jobs call, and the steps that it takes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables.gold import DIVERGENCES, PROPAGATION_DELAYS, RECORDS_AT_RISK
from reconstruct import steps
from reconstruct.engine.publication import Audit, no_audit
from reconstruct.engine.staging import staging
from reconstruct.offsets.spark.step import OFFSET_TABLES
from reconstruct.partitions.spark.step import FOLDED_TABLES
from reconstruct.steps import Run

#: What a run does, in this order; each step reads of the lake what those before it wrote.
STEPS: Final[tuple[tuple[str, Callable[[Run], None]], ...]] = (
    ("writes to znodes", steps.write_znode_changes),
    ("clocks of the brokers, topics and their incarnations", steps.share_inputs),
    ("typed events", steps.write_events),
    ("controllers and brokers", steps.write_cluster_timelines),
    ("requests of the controllers", steps.judge_requests),
    ("timelines and findings of each partition", steps.fold_each_partition),
    ("offsets of each replica", steps.bound_offsets),
    ("checkpoint files of each broker", steps.judge_checkpoints),
    ("records at risk", steps.weigh_risks),
    ("audit and publication", steps.publish_gold),
    ("coverage", steps.write_coverage),
    ("metrics of the run", steps.append_metrics),
)
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
    with staging(lake, run_id) as stage:
        run = Run(lake, stage, run_id, audit)
        for name, step in STEPS:
            progress(name)
            step(run)
    made = (*FOLDED_TABLES, *OFFSET_TABLES, PROPAGATION_DELAYS, RECORDS_AT_RISK)
    severities = lake.read(DIVERGENCES).groupBy("severity").count().collect()
    return ReconstructReport(
        rows={spec.full_name: lake.rows_count(spec) for spec in made},
        findings={row["severity"]: row["count"] for row in severities},
        versions={cluster_id: str(view.version) for cluster_id, view in run.views.items()},
        refused=run.refused,
    )
