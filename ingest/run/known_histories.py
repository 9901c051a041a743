"""Which marks of the metadata logs of a run the lake's have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.files.attribution import Attributed
from ingest.files.metadata_marks import IDS, PLACE_MARK
from ingest.lake.delta import Lake
from ingest.lake.plans import union
from ingest.lake.tables.bronze import METADATA_RECORDS, METADATA_SNAPSHOTS
from ingest.run.accounting import text_frame


class KnownHistories:
    """The marks of the lake's metadata logs, asked for where the files of a run have any that no earlier run had."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._held: dict[str, frozenset[str]] = {}

    def of(self, owners: Sequence[Attributed]) -> Mapping[str, frozenset[str]]:
        """By cluster of the lake that has a metadata log: those of the files' marks that it has."""
        logs = [owner.file.marks for owner in owners if owner.file.marks]
        held: frozenset[str] = frozenset().union(*self._held.values())
        if any(marks.isdisjoint(held) for marks in logs):
            self._held = _held_by(self._lake, sorted(frozenset().union(*logs)))
        return self._held

    def take(self, owners: Sequence[Attributed]) -> None:
        """What the run brings into the lake."""
        for owner in owners:
            if owner.file.marks:
                self._held[owner.cluster_id] = self._held.get(owner.cluster_id, frozenset()) | owner.file.marks


def _held_by(lake: Lake, marks: Sequence[str]) -> dict[str, frozenset[str]]:
    if not (lake.rows_count(METADATA_RECORDS) or lake.rows_count(METADATA_SNAPSHOTS)):
        return {}
    held = _marks(lake.read(METADATA_RECORDS), lake.read(METADATA_SNAPSHOTS))
    wanted = text_frame(lake.spark, ["mark"], [[mark] for mark in marks]).withColumn("is_wanted", F.lit(True))
    rows = (
        held.join(F.broadcast(wanted), "mark", "left")
        .select("cluster_id", F.when(F.col("is_wanted"), F.col("mark")).alias("mark"))
        .distinct()
        .collect()
    )
    return {
        cluster: frozenset(row["mark"] for row in rows if row["cluster_id"] == cluster and row["mark"] is not None)
        for cluster in sorted({row["cluster_id"] for row in rows})
    }


def _marks(records: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Of each cluster: the batches of its logs, the last one before each snapshot, and the ids in both."""
    batches = (
        records.where("batch_offset IS NOT NULL")
        .groupBy("cluster_id", "file_id", "batch_offset", "leader_epoch", "appended_at")
        .agg(F.max("last_offset").alias("last_offset"))
        .select(
            "cluster_id",
            F.format_string(PLACE_MARK, "last_offset", "leader_epoch", F.unix_millis("appended_at")).alias("mark"),
        )
    )
    contained = F.get_json_object("fields", "$.lastContainedLogTimestamp").try_cast("bigint")
    ends = snapshots.where(contained.isNotNull() & F.col("snapshot_end_offset").isNotNull()).select(
        "cluster_id",
        F.format_string(PLACE_MARK, F.col("snapshot_end_offset") - 1, "snapshot_epoch", contained).alias("mark"),
    )
    ids = [rows.select("cluster_id", _id().alias("mark")).where("mark IS NOT NULL") for rows in (records, snapshots)]
    return union([batches, ends, *ids])


def _id() -> Column:
    return F.coalesce(
        *(
            F.when(F.col("record_type") == record_type, F.get_json_object("fields", f"$.{name}"))
            for record_type, name in IDS.items()
        )
    )
