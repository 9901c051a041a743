"""What the steps of one run share: clocks, corrected records, incarnations; made once, kept while the run lasts."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import LOG_RECORDS
from ingest.lake.tables.silver import ZNODE_CHANGES
from reconstruct.clocks.spark.step import as_printed, clocks_of, is_any_corrected, with_corrected_time
from reconstruct.cluster.spark.incarnations import topic_incarnations
from reconstruct.engine.staging import Staging
from reconstruct.offsets.spark.messages import offset_statements


@dataclass(frozen=True, slots=True)
class Inputs:
    """``records``: ``bronze.log_records`` with ``corrected_time``; ``statements``: what they say of offsets."""

    clocks: DataFrame
    records: DataFrame
    incarnations: DataFrame
    statements: DataFrame


def shared_inputs(lake: Lake, stage: Staging) -> Inputs:
    """The inputs of a run, once ``silver.znode_changes`` is written."""
    printed, znodes = lake.read(LOG_RECORDS), lake.read(ZNODE_CHANGES)
    clocks = stage.keep(clocks_of(printed, znodes), "clocks")
    records = with_corrected_time(printed, clocks) if is_any_corrected(clocks) else as_printed(printed)
    return Inputs(
        clocks,
        records,
        stage.keep(topic_incarnations(records, znodes), "incarnations"),
        stage.keep(offset_statements(records), "offset_statements"),
    )
