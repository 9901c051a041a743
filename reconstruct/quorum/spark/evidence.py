"""What tells of a quorum beside its control records, as rows of :class:`QuorumFact`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.shapes.event_types import EventType
from reconstruct.engine.folds import select_evidence
from reconstruct.engine.rows import columns_of
from reconstruct.events.spark.fields import boolean_field, int_field, ints_field, long_field, text_field
from reconstruct.quorum.evidence import QuorumFact, QuorumFactKind

_KEY: Final = ("cluster_id",)
_COLUMNS: Final = columns_of(QuorumFact)
_NAMING: Final = (EventType.QUORUM_LEADER_CHANGED, EventType.QUORUM_CONTROLLER_RENOUNCED)


def quorum_evidence(
    replication_events: DataFrame,
    controller_events: DataFrame,
    descriptions: DataFrame,
    quorum_states: DataFrame,
    records: DataFrame,
) -> DataFrame:
    """By ``cluster_id``; of each cluster that has a metadata log (``records``) a row without a kind, too."""
    return union(
        [
            _lines(replication_events),
            _lines(controller_events),
            _descriptions(descriptions),
            _states(quorum_states),
            select_evidence(records.select("cluster_id").distinct(), _KEY, _COLUMNS, at="0"),
        ]
    )


def _lines(events: DataFrame) -> DataFrame:
    """What nodes print. Of a change of state the line before it is written down says nothing that the one behind does
    not."""
    event, step, always = F.col("event_type"), text_field("step"), F.lit(True)
    told = {
        EventType.QUORUM_STATE_CHANGED: (step == "completed", QuorumFactKind.STATE),
        EventType.RAFT_CLIENT_SHUTDOWN: (step == "beginning", QuorumFactKind.STOPPING),
        EventType.QUORUM_ELECTION: (text_field("reason") == "fetch_timeout", QuorumFactKind.DOUBTED),
        EventType.QUORUM_MAJORITY_LOST: (always, QuorumFactKind.MAJORITY_LOST),
        EventType.QUORUM_CONTROLLER_FAILED: (always, QuorumFactKind.FAILED),
        EventType.QUORUM_CONTROLLER_ACTIVE: (always, QuorumFactKind.ACTIVE),
        **dict.fromkeys(_NAMING, (always, QuorumFactKind.NAMED)),
        EventType.QUORUM_HIGH_WATERMARK: (always, QuorumFactKind.HIGH_WATERMARK),
    }
    kind = F.coalesce(*(F.when((event == of_type) & if_, kind.value) for of_type, (if_, kind) in told.items()))
    node = F.coalesce(int_field("broker_id"), int_field("controller_id"), "broker_id")
    # "(none)" is no number; a controller that goes on leading names itself by none
    is_still_leader = text_field("cur_claim_epoch").isNotNull() & text_field("new_leader_name").isNull()
    named = F.coalesce(int_field("quorum_leader"), int_field("new_leader_name"))
    of_quorums = events.where(event.isin(*told)).withColumn("quorum_kind", kind)
    return select_evidence(
        of_quorums.where("quorum_kind IS NOT NULL AND corrected_time IS NOT NULL"),
        _KEY,
        _COLUMNS,
        kind="quorum_kind",
        at=F.unix_micros("corrected_time"),
        evidence_id="record_id",
        source=F.lit("node_log"),
        node_id=node,
        epoch=F.coalesce(int_field("quorum_epoch"), int_field("new_leader_epoch"), int_field("new_epoch")),
        leader_id=F.when((event == EventType.QUORUM_LEADER_CHANGED) & is_still_leader, node).otherwise(named),
        voters=ints_field("quorum_voters"),
        high_watermark=F.coalesce(long_field("metadata_high_watermark"), long_field("metadata_offset")),
        state=text_field("quorum_state"),
        is_first=boolean_field("is_first_state"),
        previous_epoch=int_field("previous_quorum_epoch"),
    )


def _descriptions(descriptions: DataFrame) -> DataFrame:
    """The first of equal answers that follow one another, and in it the highest high watermark of all of them."""
    in_order = Window.partitionBy("cluster_id").orderBy("sent_at", "record_id")
    told = descriptions.where("description_type = 'quorum' AND quorum_leader >= 0").select(
        "cluster_id",
        "sent_at",
        "record_id",
        "quorum_epoch",
        "quorum_leader",
        "quorum_high_watermark",
        _ids("voters"),
        _ids("observers"),
    )
    answer = F.struct("quorum_epoch", "quorum_leader", "voters", "observers")
    runs = (
        told.withColumn("begins", (~answer.eqNullSafe(F.lag(answer).over(in_order))).cast("int"))
        .withColumn("run", F.sum("begins").over(in_order))
        .groupBy("cluster_id", "run", "quorum_epoch", "quorum_leader", "voters", "observers")
        .agg(
            F.min("sent_at").alias("sent_at"),
            F.min_by("record_id", F.struct("sent_at", "record_id")).alias("record_id"),
            F.max("quorum_high_watermark").alias("high_watermark"),
        )
    )
    return select_evidence(
        runs,
        _KEY,
        _COLUMNS,
        kind=F.lit(QuorumFactKind.DESCRIBED.value),
        at=F.unix_micros("sent_at"),
        evidence_id="record_id",
        source=F.lit("description"),
        epoch="quorum_epoch",
        leader_id="quorum_leader",
        voters="voters",
        observers="observers",
        high_watermark="high_watermark",
    )


def _ids(replicas: str) -> Column:
    return F.array_sort(F.transform(replicas, lambda one: one["replica_id"])).alias(replicas)


def _states(quorum_states: DataFrame) -> DataFrame:
    """The files that say of which leader their node knew; the time is that of the copy."""
    known = quorum_states.withColumn("at", F.coalesce("captured_at", "captured_at_upper"))
    return select_evidence(
        known.where("leader_id IS NOT NULL AND at IS NOT NULL"),
        _KEY,
        _COLUMNS,
        kind=F.lit(QuorumFactKind.NAMED.value),
        at=F.unix_micros("at"),
        evidence_id="record_id",
        source=F.lit("quorum_state"),
        node_id="broker_id",
        epoch="leader_epoch",
        leader_id="leader_id",
        voters="voter_ids",
    )
