"""Findings keep the run that found them first; one that is found no longer is withdrawn, with the reason."""

from __future__ import annotations

from typing import Any

from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import INGESTED_FILES
from ingest.lake.tables.gold import DIVERGENCES, FINDING_HISTORY
from reconstruct.engine.folds import local_rows
from reconstruct.engine.staging import staging
from reconstruct.kept.finding_history import finding_history
from reconstruct.kept.last_run import LastRun
from tests.support.lakes.rows import at

FINDING = {
    **{"cluster_id": "c", "topic": "orders", "topic_incarnation": "1", "rule_id": "R08", "severity": "warning"},
    **{"divergence_type": "unclean_election", "detected_at": at(5), "observed": "3", "explanation": "So it was."},
    "evidence": ["r1"],
}
FILE = {"cluster_id": "c", "file_id": "f", "broker_id": 1, "source_kind": "server_log", "status": "ingested"}


def found(spark: Any, *subjects: tuple[str, int]) -> Any:
    """Rows of gold.divergences, each an id and the partition it is about."""
    rows = [{**FINDING, "divergence_id": name, "partition_id": partition} for name, partition in subjects]
    return local_rows(spark, DIVERGENCES, rows)


def test_findings_are_withdrawn_with_the_reason_and_may_come_back(spark: Any, lake: Lake) -> None:
    def history(run: LastRun, *subjects: tuple[str, int]) -> dict[str, tuple[Any, ...]]:
        with staging(lake, f"run-{run.number}") as stage:
            lake.overwrite(finding_history(lake, stage, found(spark, *subjects), run), FINDING_HISTORY)
        return {
            row["divergence_id"]: (
                row["first_seen_run"],
                row["last_seen_run"],
                row["withdrawn_run"],
                row["replaced_by"],
            )
            for row in lake.read(FINDING_HISTORY).collect()
        }

    stands = (None, None)
    assert history(LastRun(), ("a", 0), ("b", 1)) == {"a": (1, 1, *stands), "b": (1, 1, *stands)}
    new = [
        {"source_file": "broker-1/server.log", "first_event_time": at(0), "last_event_time": at(9)},
        {"source_file": "broker-1/later.log", "first_event_time": at(8), "last_event_time": at(9)},
    ]
    rows = [{**dict.fromkeys(INGESTED_FILES.column_names), **FILE, **file} for file in new]
    made = local_rows(spark, INGESTED_FILES, [{**row, "ingested_at": at(60)} for row in rows])
    # as much of the table as is asked for: the others are not NULL
    read = lake.read
    lake.read = lambda spec: made if spec is INGESTED_FILES else read(spec)  # type: ignore[method-assign]
    second = history(LastRun(1, evidence_until_us=0), ("b", 1), ("c", 0))
    assert second == {"a": (1, 1, 2, "c"), "b": (1, 2, *stands), "c": (2, 2, *stands)}
    third = history(LastRun(2, evidence_until_us=0), ("a", 0))
    assert third == {"a": (1, 3, *stands), "b": (1, 2, 3, None), "c": (2, 2, 3, "a")}
    why = {row["divergence_id"]: row["withdrawn_because"] for row in read(FINDING_HISTORY).collect()}
    assert why == {
        "a": None,
        "b": "with broker-1/server.log: rule R08 is kept there, or cannot judge it",
        "c": "with broker-1/server.log: of the same subject rule R08 now finds a",
    }
