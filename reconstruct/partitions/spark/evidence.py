"""All evidence of partitions as rows in one shape: that of :class:`reconstruct.partitions.evidence.Evidence`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.tables.silver import PARTITION_KEY
from ingest.shapes.event_types import EventType
from reconstruct.events.spark.placing import with_incarnation
from reconstruct.events.spark.step import ints
from reconstruct.model.znode_paths import (
    DELETE_TOPIC_PATTERN,
    PARTITION_STATE_PATTERN,
    REASSIGN_PARTITIONS_PATH,
    TOPIC_PATTERN,
)
from reconstruct.partitions import evidence as kinds

#: Column: Spark type, in the order of the fields of ``Evidence``.
EVIDENCE_COLUMNS: Final = {
    "evidence_id": "string",
    "kind": "string",
    "at": "bigint",
    "at_upper": "bigint",
    "file": "string",
    "offset": "bigint",
    "source_kind": "string",
    "log_level": "string",
    "shape_id": "string",
    "broker_id": "int",
    "controller_id": "int",
    "controller_epoch": "int",
    "state_controller_epoch": "int",
    "replica_id": "int",
    "from_state": "string",
    "to_state": "string",
    "leader": "int",
    "leader_epoch": "int",
    "isr": "array<int>",
    "old_isr": "array<int>",
    "partition_epoch": "int",
    "leader_recovery_state": "int",
    "replicas": "array<int>",
    "adding_replicas": "array<int>",
    "removing_replicas": "array<int>",
    "is_new": "boolean",
    "is_delete": "boolean",
    "correlation_id": "int",
    "to_broker_ids": "array<int>",
    "role": "string",
    "cause": "string",
    "known_controller_epoch": "int",
    "known_leader_epoch": "int",
}
#: Column beside the evidence: when the next incarnation of the topic began, µs; NULL for the last.
INCARNATION_END: Final = "incarnation_end"
#: Column beside the evidence: whether the topic has no other incarnation.
IS_ONLY_INCARNATION: Final = "is_only_incarnation"

#: State-change events that the fold uses; the others stay in silver.state_change_events.
STATE_CHANGE_KINDS: Final = (
    EventType.PARTITION_STATE_CHANGE,
    EventType.PARTITION_STATE_CHANGE_FAILED,
    EventType.REPLICA_STATE_CHANGE,
    EventType.REPLICA_STATE_CHANGE_FAILED,
    EventType.ISR_SHRUNK_BY_CONTROLLER,
    EventType.REASSIGNMENT_LEADER_AND_ISR_SENT,
    EventType.LEADER_AND_ISR_SENT,
    EventType.UPDATE_METADATA_SENT,
    EventType.LEADER_AND_ISR_RECEIVED,
    EventType.LEADER_AND_ISR_IGNORED,
    EventType.LEADER_AND_ISR_FAILED,
    EventType.METADATA_CACHED,
    EventType.METADATA_DELETED,
    EventType.LEADER_EPOCH_STARTED,
    EventType.BECOME_LEADER_STARTED,
    EventType.BECOME_LEADER_COMPLETED,
    EventType.BECOME_LEADER_SKIPPED,
    EventType.BECOME_LEADER_FAILED,
    EventType.BECOME_FOLLOWER_STARTED,
    EventType.BECOME_FOLLOWER_COMPLETED,
    EventType.BECOME_FOLLOWER_SKIPPED,
    EventType.BECOME_FOLLOWER_FAILED,
    EventType.STOP_REPLICA_SENT,
    EventType.STOP_REPLICA_RECEIVED,
    EventType.STOP_REPLICA_HANDLED,
    EventType.STOP_REPLICA_IGNORED,
)
REPLICATION_KINDS: Final = (
    EventType.ISR_SHRINK_PROPOSED,
    EventType.ISR_EXPAND_PROPOSED,
    EventType.ISR_UPDATE_COMMITTED,
    EventType.ISR_UPDATE_FAILED,
    EventType.LEADER_EPOCH_STARTED,
)
#: Events of controller.log, and what the fold calls them where server.log has another event of that name.
CONTROLLER_KINDS: Final = (
    EventType.ISR_SHRUNK_BY_CONTROLLER,
    EventType.ISR_UPDATE_COMMITTED,
    EventType.REASSIGNMENT_ISR_CHANGE,
    EventType.REASSIGNMENT_ASSIGNMENT_UPDATED,
    EventType.UNCLEAN_LEADER_SELECTED,
    EventType.STOP_REPLICA_SENT,
    EventType.REASSIGNMENT_STARTED,
    EventType.REASSIGNMENT_COMPLETED,
    EventType.TOPIC_DELETION_RESPONSE,
)
_RENAMED: Final = {("controller_log", EventType.ISR_UPDATE_COMMITTED): "isr_update_committed_for_leader"}


def partition_evidence(
    state_changes: DataFrame,
    replication_events: DataFrame,
    controller_events: DataFrame,
    znodes: DataFrame,
    incarnations: DataFrame,
) -> DataFrame:
    """One row per (partition incarnation, fact): the key and :data:`EVIDENCE_COLUMNS`."""
    logged = [
        _from_events(state_changes.where(F.col("event_type").isin(*STATE_CHANGE_KINDS)), "state_change_log"),
        _from_events(replication_events.where(F.col("event_type").isin(*REPLICATION_KINDS)), "server_log"),
        _from_events(controller_events.where(F.col("event_type").isin(*CONTROLLER_KINDS)), "controller_log"),
    ]
    placed = with_incarnation(_from_znodes(znodes), incarnations, F.col("at")).select(*PARTITION_KEY, *EVIDENCE_COLUMNS)
    # what concerns a whole topic concerns each of its partitions
    partitions = logged[0]
    for part in (*logged[1:], placed.where("partition_id IS NOT NULL")):
        partitions = partitions.unionByName(part)
    everyone = partitions.select(*PARTITION_KEY).distinct()
    of_topic = placed.where("partition_id IS NULL").drop("partition_id")
    every = partitions.unionByName(
        of_topic.join(everyone, list(PARTITION_KEY[:3]), "inner").select(*PARTITION_KEY, *EVIDENCE_COLUMNS)
    )
    ends = incarnations.select(
        *PARTITION_KEY[:3],
        F.when(~F.col("is_last"), F.unix_micros("ends_at")).alias(INCARNATION_END),
        (F.count("*").over(Window.partitionBy("cluster_id", "topic")) == 1).alias(IS_ONLY_INCARNATION),
    )
    return every.join(F.broadcast(ends), list(PARTITION_KEY[:3]), "left")


def _select(rows: DataFrame, given: dict[str, Column]) -> DataFrame:
    """The key and every evidence column; those not given are NULL."""
    columns = [given.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in EVIDENCE_COLUMNS.items()]
    return rows.select(*(name for name in PARTITION_KEY if name in rows.columns), *columns)


def _from_events(events: DataFrame, source_kind: str) -> DataFrame:
    named = events.where("topic IS NOT NULL AND partition_id IS NOT NULL AND topic_incarnation IS NOT NULL")
    renamed = {
        "evidence_id": F.col("record_id"),
        "kind": _kind(source_kind),
        "at": F.unix_micros("corrected_time"),
        "file": F.col("file_id"),
        "offset": F.col("byte_offset"),
        "source_kind": F.lit(source_kind),
        "role": F.col("fields")["role"],
        # who speaks, where the message says so: one file may hold the logs of several brokers
        "broker_id": F.coalesce(F.col("fields")["broker_id"].try_cast("int"), F.col("broker_id")),
        "known_leader_epoch": F.col("fields")["current_leader_epoch"].try_cast("int"),
    }
    fields = F.col("fields")
    numbers = {
        "controller_id",
        "controller_epoch",
        "state_controller_epoch",
        "replica_id",
        "leader",
        "leader_epoch",
        "partition_epoch",
        "leader_recovery_state",
        "correlation_id",
    }
    lists = {"isr", "replicas", "adding_replicas", "removing_replicas"}
    requested = {"leader_epoch": "request_leader_epoch", "controller_epoch": "request_controller_epoch"}
    own = {}
    for name in EVIDENCE_COLUMNS:
        if name in renamed:
            continue
        if name in events.columns:
            own[name] = F.col(name)
        elif name in numbers or name.startswith("known_"):
            own[name] = fields[name].try_cast("int")
        elif name in lists:
            own[name] = ints(name)
        elif name == "is_delete":
            own[name] = fields["delete"].try_cast("boolean")
        elif name == "to_broker_ids":
            own[name] = F.coalesce(ints("to_broker_ids"), ints("to_broker_id"))
        if name in requested:
            own[name] = F.coalesce(own[name], fields[requested[name]].try_cast("int"))
    return _select(named, {**own, **renamed})


def _kind(source_kind: str) -> Column:
    kind = F.col("event_type")
    for (source, event_type), name in _RENAMED.items():
        if source == source_kind:
            kind = F.when(F.col("event_type") == event_type, name).otherwise(kind)
    return kind


def _from_znodes(znodes: DataFrame) -> DataFrame:
    """States, assignments, deletions and requests, by topic and (where they name one) partition."""
    common = {
        "evidence_id": F.col("evidence")[0],
        "at": F.unix_micros("changed_at"),
        "at_upper": F.unix_micros("changed_at_upper"),
        "file": F.lit("znode"),
        "offset": F.col("mzxid"),
        "source_kind": F.lit("znode"),
    }
    ids = "array<int>"
    written = znodes.where("change = 'written' AND data IS NOT NULL")
    states = written.where(F.col("path").rlike(PARTITION_STATE_PATTERN)).select(
        "*",
        F.regexp_extract("path", PARTITION_STATE_PATTERN, 1).alias("topic"),
        F.regexp_extract("path", PARTITION_STATE_PATTERN, 2).cast("int").alias("partition_id"),
        F.from_json(
            "data",
            "controller_epoch int, leader int, leader_epoch int, isr array<int>, leader_recovery_state int",
        ).alias("state"),
    )
    state = {
        "kind": F.lit(kinds.ZNODE_STATE),
        "leader": F.col("state.leader"),
        "leader_epoch": F.col("state.leader_epoch"),
        "isr": F.col("state.isr"),
        "state_controller_epoch": F.col("state.controller_epoch"),
        "leader_recovery_state": F.col("state.leader_recovery_state"),
        "partition_epoch": F.col("version"),
    }
    topics = written.where(F.col("path").rlike(TOPIC_PATTERN)).withColumn(
        "topic", F.regexp_extract("path", TOPIC_PATTERN, 1)
    )
    by_partition = "map<string,array<int>>"
    maps = f"partitions {by_partition}, adding_replicas {by_partition}, removing_replicas {by_partition}"
    assigned = topics.withColumn("parsed", F.from_json("data", maps)).select(
        "*", F.explode("parsed.partitions").alias("partition", "replicas")
    )
    assignment = {
        "kind": F.lit(kinds.ZNODE_ASSIGNMENT),
        "partition_epoch": F.col("version"),  # of the topic's znode
        "replicas": F.col("replicas"),
        "adding_replicas": F.when(
            F.col("parsed.adding_replicas").isNotNull(),
            F.coalesce(F.col("parsed.adding_replicas")[F.col("partition")], F.array().cast(ids)),
        ),
        "removing_replicas": F.when(
            F.col("parsed.removing_replicas").isNotNull(),
            F.coalesce(F.col("parsed.removing_replicas")[F.col("partition")], F.array().cast(ids)),
        ),
    }
    reassigned = _listed_partitions(written, REASSIGN_PARTITIONS_PATH)
    gone = znodes.where("change = 'deleted'")
    done = _reassignments_done(written, gone)
    topics_gone = gone.where(F.col("path").rlike(TOPIC_PATTERN)).withColumn(
        "topic", F.regexp_extract("path", TOPIC_PATTERN, 1)
    )
    requested = znodes.where((F.col("change") == "written") & F.col("path").rlike(DELETE_TOPIC_PATTERN)).withColumn(
        "topic", F.regexp_extract("path", DELETE_TOPIC_PATTERN, 1)
    )
    parts = [
        _plain(states, {**common, **state}, F.col("partition_id")),
        _plain(assigned, {**common, **assignment}, F.col("partition").cast("int")),
        _plain(reassigned, {**common, "kind": F.lit(kinds.ZNODE_REASSIGNMENT)}, F.col("partition_id")),
        _plain(done, {**common, "kind": F.lit(kinds.ZNODE_REASSIGNMENT_DONE)}, F.col("partition_id")),
        _plain(topics_gone, {**common, "kind": F.lit(kinds.ZNODE_TOPIC_DELETED)}, F.lit(None).cast("int")),
        _plain(requested, {**common, "kind": F.lit(kinds.ZNODE_DELETION_REQUESTED)}, F.lit(None).cast("int")),
    ]
    result = parts[0]
    for part in parts[1:]:
        result = result.unionByName(part)
    return result


def _plain(rows: DataFrame, given: dict[str, Column], partition_id: Column) -> DataFrame:
    columns = [given.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in EVIDENCE_COLUMNS.items()]
    return rows.select("cluster_id", "topic", partition_id.alias("partition_id"), *columns)


def _listed_partitions(written: DataFrame, path: str) -> DataFrame:
    """One row for each partition that a write to an /admin znode lists."""
    schema = "partitions array<struct<topic:string,partition:int,replicas:array<int>>>"
    return (
        written.where(F.col("path") == path)
        .withColumn("listed", F.explode(F.from_json("data", schema)["partitions"]))
        .withColumns({"topic": F.col("listed.topic"), "partition_id": F.col("listed.partition")})
    )


def _reassignments_done(written: DataFrame, gone: DataFrame) -> DataFrame:
    """For each partition once listed: the later writes that no longer list it, and the deletion of the znode."""
    path = REASSIGN_PARTITIONS_PATH
    listed = _listed_partitions(written, path)
    ever = listed.groupBy("cluster_id", "topic", "partition_id").agg(F.min("mzxid").alias("since"))
    later = written.where(F.col("path") == path).unionByName(gone.where(F.col("path") == path))
    still = listed.select("cluster_id", "topic", "partition_id", "mzxid").distinct()
    without = later.join(ever, "cluster_id").where(
        (F.col("mzxid") > F.col("since")) | ((F.col("mzxid") == F.col("since")) & (F.col("change") == "deleted"))
    )
    absent = without.where("change = 'written'").join(
        still, ["cluster_id", "topic", "partition_id", "mzxid"], "left_anti"
    )
    return absent.unionByName(without.where("change = 'deleted'"), allowMissingColumns=True)
