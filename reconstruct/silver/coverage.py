"""What each source covers: the spans that evidence exists for, by broker and file."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.tables.quality import EVIDENCE_COVERAGE


def evidence_coverage(files: DataFrame) -> DataFrame:
    """``bronze.ingested_files`` as ``quality.evidence_coverage``: one row per file that says when it speaks of."""
    return (
        files.where("status = 'ingested' AND first_event_time IS NOT NULL")
        .withColumns(
            {
                "broker_id": F.coalesce("broker_id", F.lit(-1)),
                "coverage": F.lit("covered"),
                "valid_from": F.col("first_event_time"),
                "valid_to": F.col("last_event_time"),
                "records_count": F.col("records_kept_count"),
            }
        )
        .select(*EVIDENCE_COVERAGE.column_names)
    )
