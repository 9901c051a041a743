"""Which replicas leaders took out of the ISR and into it, by their own lines: rows beside those of offset evidence."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.silver import PARTITION_KEY
from ingest.shapes.event_types import EventType
from reconstruct.offsets.rules import IsrMoveKind

#: What a row is: an :class:`reconstruct.offsets.rules.IsrMove`.
ISR_MOVE: Final = "isr_move"
_SHRINK: Final = EventType.ISR_SHRINK_PROPOSED
_EXPAND: Final = EventType.ISR_EXPAND_PROPOSED


def with_isr_moves(evidence: DataFrame, replication_events: DataFrame) -> DataFrame:
    """``evidence`` of :func:`offset_evidence`, and one row per (ISR change that a leader asked for, replica moved).

    These are of ``silver.replication_events``; ``leader`` is the replica moved, ``offset`` its log end by the line.
    """
    return evidence.unionByName(_moves(replication_events), allowMissingColumns=True)


def _moves(replication_events: DataFrame) -> DataFrame:
    is_shrink = F.col("event_type") == _SHRINK
    changes = replication_events.where(
        F.col("event_type").isin(_SHRINK, _EXPAND)
        & F.col("topic_incarnation").isNotNull()
        & F.col("partition_id").isNotNull()
        & F.col("broker_id").isNotNull()
        & F.col("isr").isNotNull()
        & F.col("old_isr").isNotNull()
    )
    moved = F.when(is_shrink, F.array_except("old_isr", "isr")).otherwise(F.array_except("isr", "old_isr"))
    return changes.select("*", F.explode(moved).alias("member")).select(
        *PARTITION_KEY,
        F.lit(ISR_MOVE).alias("row_kind"),
        F.col("broker_id").alias("replica_id"),
        F.when(is_shrink, IsrMoveKind.LEFT.value).otherwise(IsrMoveKind.JOINED.value).alias("kind"),
        F.col("member").alias("leader"),
        _end_offset(F.col("member")).alias("offset"),
        F.unix_micros("corrected_time").alias("at"),
        F.col("record_id").alias("evidence_id"),
    )


def _end_offset(member: Column) -> Column:
    """Of the pairs ``replica:offset`` that the line lists; NULL where it lists none, or no offset (-1)."""
    own = F.concat(member.cast("string"), F.lit(":"))
    pairs = F.filter(F.split(F.col("fields")["out_of_sync"], ","), lambda pair: pair.startswith(own))
    offset = F.substring_index(F.get(pairs, F.lit(0)), ":", -1).try_cast("bigint")
    return F.when(offset >= 0, offset)
