"""What all steps of a run start from: clocks, records with corrected times, and incarnations of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.plans import collect_all, differing, only, union
from ingest.lake.tables import bronze as b
from ingest.lake.tables.events import METADATA_CHANGES, ZNODE_CHANGES
from ingest.lake.tables.kept import (
    CLOCK_MARKS,
    CLOCK_PAIRS,
    CLOCKS,
    CONTROLLER_MINUTES,
    FILE_JUMPS,
    GENERATIONS,
    KEY_RECORDS,
    OFFSET_STATEMENTS,
    TOPIC_NAMINGS,
)
from reconstruct.clocks.spark.evidence import causal_pairs, tied, written_marks
from reconstruct.clocks.spark.step import as_printed, clocks_of, correcting, is_any_corrected, with_corrected_time
from reconstruct.cluster.spark.incarnations import acted_minutes, cluster_generations, topic_incarnations, topic_namings
from reconstruct.engine.staging import Staging
from reconstruct.events.spark.line_order import jumps_of_files
from reconstruct.kept.record_rows import OfRecords, RecordRows, Records
from reconstruct.log_records import key_records
from reconstruct.metadata_log.migration import Migration
from reconstruct.metadata_log.spark.migration import before_take_over
from reconstruct.offsets.spark.messages import offset_statements
from reconstruct.time.instants import HOUR_US

#: Before any record.
_NEVER: Final = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Inputs:
    """``records``: ``bronze.log_records`` with ``corrected_time``, ``key_records`` those that are looked for among
    them; ``jumps``: the logs whose times jump back; ``statements``: what the records say of offsets; ``minutes``: in
    which controllers acted. ``are_clocks_the_same``: times were corrected so at the last run."""

    clocks: DataFrame
    records: Records
    key_records: DataFrame
    jumps: DataFrame
    incarnations: DataFrame
    statements: DataFrame
    minutes: DataFrame
    are_clocks_the_same: bool


def shared_inputs(
    lake: Lake,
    stage: Staging,
    rows: RecordRows,
    marks: DataFrame,
    counts: DataFrame,
    of_clusters: Mapping[str, Migration],
) -> Inputs:
    """The inputs of a run, once ``silver.znode_changes`` and ``silver.metadata_changes`` are written; ``marks`` bound
    the clocks, ``counts`` are rows of ``kept.record_counts``, ``of_clusters`` are those that left ZooKeeper."""
    znodes, metadata = lake.read(ZNODE_CHANGES), lake.read(METADATA_CHANGES)
    clocks = stage.keep(clocks_of(clock_pairs(lake, rows, marks, of_clusters), counts), "clocks")
    are_clocks_the_same = rows.is_the_same(CLOCKS, clocks, correcting)
    is_any = is_any_corrected(clocks)
    records = rows.records(b.LOG_RECORDS).then(
        lambda printed: with_corrected_time(printed, clocks) if is_any else as_printed(printed)
    )
    of_records = (
        OfRecords(FILE_JUMPS, jumps_of_files),
        OfRecords(OFFSET_STATEMENTS, offset_statements),
        OfRecords(CONTROLLER_MINUTES, acted_minutes, is_read_once=True),
        OfRecords(KEY_RECORDS, key_records),
    )
    jumps, statements, minutes, key = rows.keep(of_records, records, are_others_the_same=are_clocks_the_same)
    generations = cluster_generations(key, minutes, znodes, lake.read(b.INGESTED_FILES), jumps)
    generations = stage.keep(generations, "generations") if rows.is_kept else generations
    of_generations = OfRecords(TOPIC_NAMINGS, lambda some: topic_namings(some, generations), is_read_once=True)
    are_the_same = are_generations_the_same(rows, generations, counts, clocks) and are_clocks_the_same
    (namings,) = rows.keep([of_generations], records, are_others_the_same=are_the_same)
    incarnations = stage.keep(topic_incarnations(namings, znodes, metadata), "incarnations")
    return Inputs(clocks, records, key, jumps, incarnations, statements, minutes, are_clocks_the_same)


def are_generations_the_same(rows: RecordRows, generations: DataFrame, counts: DataFrame, clocks: DataFrame) -> bool:
    """Whether what files that did not change say is said of the same clusters, though one may have been created again
    since; ``counts`` say until when these files go, ``clocks`` by how much that is corrected at the most."""

    def begun(spans: Sequence[Row]) -> list[tuple[str, int]]:
        return [(span.cluster_id, span.begins_us) for span in spans if span.begins_us <= until()]

    until = cache(lambda: _latest(rows.of_others(counts), clocks))
    return rows.is_the_same(GENERATIONS, generations, begun)


def _latest(counts: DataFrame, clocks: DataFrame) -> int:
    """The latest instant that any of these records may be of, by a corrected clock, µs."""
    hours, corrections = counts.agg(F.max("hour")), clocks.agg(F.max(F.abs("correction_us")))
    ((hour,),), ((most_us,),) = collect_all([hours, corrections])
    return _NEVER if hour is None else int(hour) + HOUR_US + int(most_us or 0)


def clock_pairs(lake: Lake, rows: RecordRows, marks: DataFrame, of_clusters: Mapping[str, Migration]) -> DataFrame:
    """The pairs that marks make, of log records and of what was written: of a lake that is not small those of marks
    that came or went are made anew."""

    def written(znodes: DataFrame, metadata: DataFrame) -> DataFrame:
        return written_marks(before_take_over(znodes, of_clusters), metadata)

    now = written(lake.read(ZNODE_CHANGES), lake.read(METADATA_CHANGES))
    sides = tied(union([marks, now]))
    if not rows.is_kept:
        return causal_pairs(sides)
    changed = rows.differing(CLOCK_MARKS)
    if changed is not None and rows.is_any_written(ZNODE_CHANGES, METADATA_CHANGES):
        then = rows.as_they_were(ZNODE_CHANGES, METADATA_CHANGES)
        # where a cluster has both it may have left ZooKeeper, and when may have been known otherwise
        if then is None or of_clusters or not only(then[0], then[1].select("cluster_id")).isEmpty():
            changed = None
        else:
            changed = union([changed, differing(written(*then), now)])
    if changed is None:
        lake.overwrite(causal_pairs(sides), CLOCK_PAIRS)
    else:
        rows.replace_keys(CLOCK_PAIRS, causal_pairs, sides, tied(changed).select("cluster_id", "tie"))
    return lake.read(CLOCK_PAIRS)
