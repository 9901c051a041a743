"""When a cluster was created again in the same folders, seen before anything else is: what follows counts anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconstruct.cluster.generations import GenerationFact, generation_starts
from reconstruct.cluster.spark.evidence import ELECTED
from reconstruct.engine.folds import fold, select_evidence, union
from reconstruct.engine.rows import Row
from reconstruct.events.spark.fields import int_field, text_field
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH

_COLUMNS: Final = {"cluster_id": "string", "begins_us": "bigint", "ends_us": "bigint"}
#: A :class:`GenerationFact`, in the order of its fields.
_FACT_COLUMNS: Final = {"at": "bigint", "evidence_id": "string", "epoch": "int", "stated_cluster_id": "string"}
_FAR: Final = 2**62


def cluster_generations(records: DataFrame, znodes: DataFrame) -> DataFrame:
    """Grain: one row per (cluster, time it was created), with its half-open span in microseconds; no row for a
    cluster of which no election and no id is known."""
    elected = records.where(F.col("event_type").isin(*ELECTED) & text_field("controller_epoch").isNotNull())
    stated = records.where("event_type = 'cluster_id' AND fields['cluster_id'] IS NOT NULL")
    epochs = znodes.where((F.col("path") == CONTROLLER_EPOCH_PATH) & (F.col("change") == "written"))
    by_lines: dict[str, Column | str] = {"at": F.unix_micros("corrected_time"), "evidence_id": "record_id"}
    by_znodes: dict[str, Column | str] = {"at": F.unix_micros("changed_at"), "evidence_id": "evidence[0]"}
    facts = [
        _fact(elected, epoch=int_field("controller_epoch"), **by_lines),
        _fact(epochs, epoch=F.col("data").try_cast("int"), **by_znodes),
        _fact(stated, stated_cluster_id=text_field("cluster_id"), **by_lines),
    ]
    return fold(union(facts), ("cluster_id",), _COLUMNS, _generations)


def _fact(rows: DataFrame, **given: Column | str) -> DataFrame:
    return select_evidence(rows, ("cluster_id",), _FACT_COLUMNS, **given)


def _generations(rows: Sequence[Row]) -> Iterator[dict[str, int]]:
    facts = [GenerationFact(*(row[name] for name in _FACT_COLUMNS)) for row in rows]
    begins = [-_FAR, *(start.at for start in generation_starts(facts)), _FAR]
    for start, end in pairwise(begins):
        yield {"begins_us": start, "ends_us": end}
