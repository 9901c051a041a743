"""When a cluster was created again in the same folders, seen before anything else is: what follows counts anew."""

from __future__ import annotations

from typing import Final

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reconstruct.cluster.generations import GenerationFact, generation_starts
from reconstruct.cluster.spark.evidence import ELECTED
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH

_SCHEMA: Final = "cluster_id string, begins_us bigint, ends_us bigint"
_FAR: Final = 2**62


def cluster_generations(records: DataFrame, znodes: DataFrame) -> DataFrame:
    """Grain: one row per (cluster, time it was created), with its half-open span in microseconds; no row for a
    cluster of which no election and no id is known."""
    elected = records.where(F.col("event_type").isin(*ELECTED) & F.col("fields")["controller_epoch"].isNotNull())
    stated = records.where("event_type = 'cluster_id' AND fields['cluster_id'] IS NOT NULL")
    epochs = znodes.where((F.col("path") == CONTROLLER_EPOCH_PATH) & (F.col("change") == "written"))
    no_id = F.lit(None).cast("string").alias("stated_cluster_id")
    no_epoch = F.lit(None).cast("int").alias("epoch")
    facts = (
        elected.select(
            "cluster_id",
            F.unix_micros("corrected_time").alias("at"),
            F.col("record_id").alias("evidence_id"),
            F.col("fields")["controller_epoch"].try_cast("int").alias("epoch"),
            no_id,
        )
        .unionByName(
            epochs.select(
                "cluster_id",
                F.unix_micros("changed_at").alias("at"),
                F.col("evidence")[0].alias("evidence_id"),
                F.col("data").try_cast("int").alias("epoch"),
                no_id,
            )
        )
        .unionByName(
            stated.select(
                "cluster_id",
                F.unix_micros("corrected_time").alias("at"),
                F.col("record_id").alias("evidence_id"),
                no_epoch,
                F.col("fields")["cluster_id"].alias("stated_cluster_id"),
            )
        )
    )
    return facts.groupBy("cluster_id").applyInPandas(_generations, _SCHEMA)


def _generations(facts: pd.DataFrame) -> pd.DataFrame:
    columns = (facts[name] for name in ("at", "evidence_id", "epoch", "stated_cluster_id"))
    known = [
        GenerationFact(int(at), str(evidence_id), None if pd.isna(epoch) else int(epoch), stated)
        for at, evidence_id, epoch, stated in zip(*columns, strict=True)
    ]
    begins = [-_FAR, *(start.at for start in generation_starts(known))]
    return pd.DataFrame(
        {"cluster_id": facts["cluster_id"].iloc[0], "begins_us": begins, "ends_us": [*begins[1:], _FAR]}
    )
