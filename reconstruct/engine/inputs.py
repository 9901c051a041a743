"""What the steps of one run share: clocks, corrected records, incarnations; made once, kept while the run lasts."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import BROKER_CONFIGS, INGESTED_FILES, LOG_RECORDS
from ingest.lake.tables.silver import CONTROLLER_EVENTS, REPLICATION_EVENTS, STATE_CHANGE_EVENTS, ZNODE_CHANGES
from reconstruct.clocks.spark.step import as_printed, clocks_of, is_any_corrected, with_corrected_time
from reconstruct.cluster.spark.evidence import gather
from reconstruct.cluster.spark.incarnations import topic_incarnations
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.engine.staging import Staging
from reconstruct.offsets.spark.messages import offset_statements
from reconstruct.partitions.spark.evidence import partition_evidence


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


def cluster_histories(lake: Lake) -> list[ClusterHistory]:
    """Every cluster's own timelines and view, from the typed events and znodes of the lake."""
    facts = gather(
        lake.read(STATE_CHANGE_EVENTS),
        lake.read(CONTROLLER_EVENTS),
        lake.read(REPLICATION_EVENTS),
        lake.read(ZNODE_CHANGES),
        lake.read(BROKER_CONFIGS),
        lake.read(INGESTED_FILES),
    )
    return [ClusterHistory(cluster_id, facts[cluster_id]) for cluster_id in sorted(facts)]


def evidence_of_partitions(lake: Lake, incarnations: DataFrame) -> DataFrame:
    """The evidence of every partition incarnation, from the typed events and znodes of the lake."""
    return partition_evidence(
        lake.read(STATE_CHANGE_EVENTS),
        lake.read(REPLICATION_EVENTS),
        lake.read(CONTROLLER_EVENTS),
        lake.read(ZNODE_CHANGES),
        incarnations,
    )
