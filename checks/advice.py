"""What to do about a check that is broken, and whether it matters."""

from __future__ import annotations

from typing import Final

from checks.catalog import CRITICAL
from checks.metrics.passes import METRICS
from ingest.lake.tables.quality import RUN_METRICS

#: What each severity of a broken check means.
MATTERS: Final = {
    "critical": "These tables cannot be trusted.",
    "warning": "The tables are whole; less can be said from what was given.",
}
_REBUILD: Final = "ingest into a new lake and run again; if it fails again, please report this sentence"
_OF_WARNINGS: Final = {
    "indexes_point_into_their_segment": "copy each segment together with its index, or run Kafka's DumpLogSegments"
    " on it",
    "knows_every_assigned_partition": "its state was written before the logs begin, or they are missing: give earlier"
    " logs, or znodes",
}


def advice(check_id: str, severity: str) -> str:
    """What to do where the check is broken: a sentence without its full stop."""
    name = check_id.rpartition(".")[2]
    if check_id.startswith(f"{RUN_METRICS.full_name}."):
        metric = METRICS.get(name.rpartition("_")[0])
        if metric is not None:
            compared = "compare with earlier runs (quality.run_metrics): files may be missing, or others be among them"
            return metric.advice if metric.advice and not name.endswith("_trend") else compared
    return _REBUILD if severity == CRITICAL else _OF_WARNINGS.get(name, "look at the examples in the report")
