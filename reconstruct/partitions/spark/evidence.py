"""All evidence of partitions as rows in one shape: that of :class:`reconstruct.partitions.evidence.Evidence`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.shapes.event_types import EventType
from reconstruct.engine.folds import select_evidence
from reconstruct.engine.rows import columns_of
from reconstruct.events.spark.fields import boolean_field, int_field, ints_field, speaker, text_field
from reconstruct.events.spark.placing import placed_events, with_incarnation
from reconstruct.kept.topics import ALL_TOPICS, Topics
from reconstruct.model.znode_paths import (
    DELETE_TOPIC_PATTERN,
    PARTITION_STATE_PATTERN,
    REASSIGN_PARTITIONS_PATH,
    TOPIC_PATTERN,
)
from reconstruct.partitions import evidence as kinds
from reconstruct.partitions.fetchers import FETCHER_EVENTS
from reconstruct.partitions.roles import ROLE_STEPS

#: The fields of ``Evidence``, name and Spark type.
EVIDENCE_COLUMNS: Final = columns_of(kinds.Evidence)
#: Column beside the evidence: when the next incarnation of the topic began, µs; NULL for the last.
INCARNATION_END: Final = "incarnation_end"
#: Column beside the evidence: whether the topic has no other incarnation.
IS_ONLY_INCARNATION: Final = "is_only_incarnation"

#: Column of evidence that its topic's incarnation has yet to be found for: its time, µs.
_PLACED_AT: Final = "placed_at"

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
    *ROLE_STEPS,
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
    *FETCHER_EVENTS,
)
#: Events of controller.log; where server.log has another event of that name, the fold calls them differently.
CONTROLLER_KINDS: Final = (
    EventType.ISR_SHRUNK_BY_CONTROLLER,
    EventType.ISR_UPDATE_COMMITTED,
    EventType.PARTITION_CHANGED,
    EventType.PARTITION_CREATED,
    EventType.REASSIGNMENT_ISR_CHANGE,
    EventType.REASSIGNMENT_ASSIGNMENT_UPDATED,
    EventType.UNCLEAN_LEADER_SELECTED,
    EventType.STOP_REPLICA_SENT,
    EventType.REASSIGNMENT_STARTED,
    EventType.REASSIGNMENT_COMPLETED,
    EventType.TOPIC_DELETION_RESPONSE,
)
#: Those that name topics, and concern each of their partitions.
TOPIC_KINDS: Final = (
    EventType.TOPIC_DELETION_REQUESTED,
    EventType.TOPIC_DELETION_QUEUED,
    EventType.TOPIC_DELETION_DISABLED,
    EventType.TOPIC_DELETION_COMPLETED,
)


def partition_evidence(
    state_changes: DataFrame,
    replication_events: DataFrame,
    controller_events: DataFrame,
    znodes: DataFrame,
    metadata: DataFrame,
    incarnations: DataFrame,
    topics: Topics = ALL_TOPICS,
) -> DataFrame:
    """Evidence, one row per (partition incarnation, fact): what it says are fields of ``Evidence``. Given are the typed
    events, writes to znodes and changes of the metadata log of the lake, or some of them."""
    used = _of_kinds(state_changes, replication_events, controller_events)
    logged = [_from_events(topics.of(events), source_kind) for source_kind, events in used.items()]
    written = topics.of(_partitions_in_znodes(znodes)).where("partition_id IS NOT NULL")
    of_incarnations = with_incarnation(written, incarnations, F.col(_PLACED_AT)).drop(_PLACED_AT)
    partitions = topics.once(union([*logged, _from_metadata(topics.of(metadata)), of_incarnations]), "of_partitions")
    # what concerns a whole topic concerns each of its partitions
    topic = list(PARTITION_KEY[:3])
    of_topics = topics.of(union([_topics_in_znodes(znodes), _of_topics(controller_events)]))
    of_topic = with_incarnation(of_topics, incarnations, F.col(_PLACED_AT)).drop(_PLACED_AT)
    every = partitions.unionByName(of_topic.join(partitions.select(*PARTITION_KEY).distinct(), topic, "inner"))
    ends = incarnations.select(
        *topic,
        F.when(~F.col("is_last"), F.unix_micros("ends_at")).alias(INCARNATION_END),
        (F.count("*").over(Window.partitionBy("cluster_id", "topic")) == 1).alias(IS_ONLY_INCARNATION),
    )
    return every.join(F.broadcast(ends), topic, "left")


def placed_evidence(state_changes: DataFrame, replication_events: DataFrame, controller_events: DataFrame) -> DataFrame:
    """Of the typed events that are evidence of a partition what places each: what it says stays as long as it is the
    same record."""
    return union(map(placed_events, _of_kinds(state_changes, replication_events, controller_events).values()))


def evidence_sources(
    controller_events: DataFrame, znodes: DataFrame, metadata: DataFrame, incarnations: DataFrame
) -> list[DataFrame]:
    """Rows by topic from which the evidence follows, beside :func:`placed_evidence`: they are few."""
    written = (_partitions_in_znodes(znodes), _topics_in_znodes(znodes), _of_topics(controller_events))
    return [*written, _from_metadata(metadata), incarnations]


def _of_kinds(
    state_changes: DataFrame, replication_events: DataFrame, controller_events: DataFrame
) -> dict[str, DataFrame]:
    """Of typed events those that the fold uses, by the kind of their log."""
    used = {
        SourceKind.STATE_CHANGE_LOG: (state_changes, STATE_CHANGE_KINDS),
        SourceKind.SERVER_LOG: (replication_events, REPLICATION_KINDS),
        SourceKind.CONTROLLER_LOG: (controller_events, CONTROLLER_KINDS),
    }
    return {log: events.where(F.col("event_type").isin(*kinds_of_log)) for log, (events, kinds_of_log) in used.items()}


def _from_events(events: DataFrame, source_kind: str) -> DataFrame:
    """Typed events: a column of theirs where they have it, else what the field of that name says."""
    # a copy that moves between the directories of one broker is no replica
    is_of_replica = F.coalesce(text_field("is_future"), F.lit("")) != "true"
    named = events.where("topic IS NOT NULL AND partition_id IS NOT NULL AND topic_incarnation IS NOT NULL").where(
        is_of_replica
    )
    decoders = {"bigint": int_field, "array<bigint>": ints_field, "boolean": boolean_field}
    given = {
        name: F.col(name) if name in events.columns else decoders[type_](name)
        for name, type_ in EVIDENCE_COLUMNS.items()
        if name in events.columns or type_ in decoders
    }
    if "to_broker_ids" not in events.columns:
        given["to_broker_ids"] = F.coalesce(ints_field("to_broker_ids"), ints_field("to_broker_id"))
    if "is_delete" not in events.columns:
        given["is_delete"] = boolean_field("delete")
    is_for_leader = F.lit(source_kind == SourceKind.CONTROLLER_LOG) & (
        F.col("event_type") == EventType.ISR_UPDATE_COMMITTED
    )
    # who speaks, where the message says so; the epochs of a request that was ignored are the request's
    given |= {
        "evidence_id": F.col("record_id"),
        "kind": F.when(is_for_leader, "isr_update_committed_for_leader").otherwise(F.col("event_type")),
        "at": F.unix_micros("corrected_time"),
        "file": F.col("file_id"),
        "offset": F.col("byte_offset"),
        "source_kind": F.lit(source_kind),
        "role": text_field("role"),
        "topic_id": text_field("topic_id"),
        "out_of_sync": text_field("out_of_sync"),
        "logged_at": F.when(text_field("out_of_sync").isNotNull(), F.unix_micros("event_time")),
        "broker_id": speaker(),
        "known_leader_epoch": int_field("current_leader_epoch"),
        "leader_epoch": F.coalesce(given["leader_epoch"], int_field("request_leader_epoch")),
        "controller_epoch": F.coalesce(given["controller_epoch"], int_field("request_controller_epoch")),
    }
    return select_evidence(named, PARTITION_KEY, EVIDENCE_COLUMNS, **given)


def _of_topics(controller_events: DataFrame) -> DataFrame:
    """What the controller logs of topics, by topic."""
    named = F.split(F.coalesce("topic", text_field("topics")), ",")
    lines = controller_events.where(F.col("event_type").isin(*TOPIC_KINDS)).withColumn("topic", F.explode(named))
    return select_evidence(
        lines.withColumn(_PLACED_AT, F.unix_micros("corrected_time")),
        ("cluster_id", "topic", _PLACED_AT),
        EVIDENCE_COLUMNS,
        evidence_id=F.col("record_id"),
        kind=F.col("event_type"),
        at=F.col(_PLACED_AT),
        file=F.col("file_id"),
        offset=F.col("byte_offset"),
        source_kind=F.lit(SourceKind.CONTROLLER_LOG),
        log_level=F.col("log_level"),
        shape_id=F.col("shape_id"),
        broker_id=speaker(),
    )


def _partitions_in_znodes(znodes: DataFrame) -> DataFrame:
    """States, assignments and reassignments, by topic and partition; what names no number of a partition has NULL."""
    ids = "array<int>"
    written = znodes.where("change = 'written' AND data IS NOT NULL")
    states = written.where(F.col("path").rlike(PARTITION_STATE_PATTERN)).select(
        "*",
        F.regexp_extract("path", PARTITION_STATE_PATTERN, 1).alias("topic"),
        F.regexp_extract("path", PARTITION_STATE_PATTERN, 2).alias("partition_id"),
        F.from_json(
            "data",
            "controller_epoch int, leader int, leader_epoch int, isr array<int>, leader_recovery_state int",
        ).alias("state"),
    )
    state = {
        "leader": F.col("state.leader"),
        "leader_epoch": F.col("state.leader_epoch"),
        "isr": F.col("state.isr"),
        "state_controller_epoch": F.col("state.controller_epoch"),
        "leader_recovery_state": F.col("state.leader_recovery_state"),
        "partition_epoch": F.col("version"),
    }
    by_partition = "map<string,array<int>>"
    maps = f"partitions {by_partition}, adding_replicas {by_partition}, removing_replicas {by_partition}"
    assigned = (
        _of_topic_s_znode(written, TOPIC_PATTERN)
        .withColumn("parsed", F.from_json("data", maps))
        .select("*", F.explode("parsed.partitions").alias("partition_id", "replicas"))
    )
    assignment = {
        "partition_epoch": F.col("version"),  # of the topic's znode
        "replicas": F.col("replicas"),
        "adding_replicas": F.when(
            F.col("parsed.adding_replicas").isNotNull(),
            F.coalesce(F.col("parsed.adding_replicas")[F.col("partition_id")], F.array().cast(ids)),
        ),
        "removing_replicas": F.when(
            F.col("parsed.removing_replicas").isNotNull(),
            F.coalesce(F.col("parsed.removing_replicas")[F.col("partition_id")], F.array().cast(ids)),
        ),
    }
    return union(
        [
            _in_znodes(states, kinds.ZNODE_STATE, **state),
            _in_znodes(assigned, kinds.ZNODE_ASSIGNMENT, **assignment),
            *_reassigned(znodes),
        ]
    )


def _reassigned(znodes: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Of the znode of reassignments: the partitions that a write lists; and those that the write before it listed and
    it does not, or that were listed when it was deleted. A controller writes the rest of its list again for each
    partition that is done: only two writes at a time are held."""
    of_path = znodes.where(F.col("path") == REASSIGN_PARTITIONS_PATH)
    writes = of_path.where("change = 'deleted' OR change = 'written' AND data IS NOT NULL")
    in_order = Window.partitionBy("cluster_id").orderBy("mzxid", F.col("change") == "deleted")
    one = "struct<topic:string,partition:int>"
    targets = F.from_json("data", "partitions array<struct<topic:string,partition:int,replicas:array<int>>>")
    # as text: of structs Spark compares each with each, and there is a write for each of them
    named = F.transform(F.from_json("data", f"partitions array<{one}>")["partitions"], lambda each: F.to_json(each))
    listed = F.when(F.col("change") == "written", named)
    gone = F.array_except(F.lag("listed").over(in_order), F.coalesce("listed", F.array().cast("array<string>")))
    left = F.transform(gone, lambda text: F.from_json(text, one))
    with_both = writes.withColumn("listed", listed).withColumn("left", left)
    targeted = with_both.withColumn("targets", F.when(F.col("change") == "written", targets["partitions"]))
    under_way, done = (
        rows.withColumn("one", F.explode(name)).withColumns(
            {"topic": F.col("one.topic"), "partition_id": F.col("one.partition")}
        )
        for rows, name in ((targeted, "targets"), (with_both, "left"))
    )
    topics = _of_topic_s_znode(znodes.where("change = 'written'"), TOPIC_PATTERN)
    newest = topics.groupBy("cluster_id", "topic").agg(F.max_by("last_shown_at", "mzxid").alias("topic_shown_at"))
    stands = F.when(
        F.col("last_shown_at").isNotNull() & F.col("topic_shown_at").isNotNull(),
        F.unix_micros(F.least("last_shown_at", "topic_shown_at")) - F.unix_micros("first_shown_at"),
    )
    asked = under_way.join(newest, ["cluster_id", "topic"], "left")
    return (
        _in_znodes(asked, kinds.ZNODE_REASSIGNMENT, replicas=F.col("one.replicas"), stood_us=stands),
        _in_znodes(done, kinds.ZNODE_REASSIGNMENT_DONE),
    )


def _topics_in_znodes(znodes: DataFrame) -> DataFrame:
    """Deletions and requests for them, by topic."""
    gone, written = (znodes.where(F.col("change") == change) for change in ("deleted", "written"))
    return union(
        [
            _in_znodes(_of_topic_s_znode(gone, TOPIC_PATTERN), kinds.ZNODE_TOPIC_DELETED),
            _in_znodes(_of_topic_s_znode(written, DELETE_TOPIC_PATTERN), kinds.ZNODE_DELETION_REQUESTED),
        ]
    )


def _of_topic_s_znode(writes: DataFrame, pattern: str) -> DataFrame:
    return writes.where(F.col("path").rlike(pattern)).withColumn("topic", F.regexp_extract("path", pattern, 1))


def _from_metadata(metadata: DataFrame) -> DataFrame:
    """What each record of the metadata log made of a partition; the topic's id is its incarnation."""
    state = F.from_json(
        "state",
        "leader int, leader_epoch int, isr array<int>, partition_epoch int, leader_recovery_state int,"
        " replicas array<int>, adding_replicas array<int>, removing_replicas array<int>, elr array<int>,"
        " last_known_elr array<int>, directories array<string>",
    )
    rows = metadata.where("subject_kind = 'partition'").withColumns(
        {"topic_incarnation": F.col("subject"), "now": state}
    )
    names = ("leader", "leader_epoch", "isr", "partition_epoch", "leader_recovery_state", "replicas")
    others = ("adding_replicas", "removing_replicas", "elr", "last_known_elr", "directories")
    given = {name: F.col(f"now.{name}") for name in (*names, *others)}
    is_there = F.col("state").isNotNull()
    return select_evidence(
        rows,
        PARTITION_KEY,
        EVIDENCE_COLUMNS,
        evidence_id=F.col("evidence")[0],
        kind=F.when(is_there, kinds.METADATA_PARTITION).otherwise(kinds.METADATA_PARTITION_REMOVED),
        at=F.unix_micros("changed_at"),
        file=F.lit(SourceKind.METADATA_LOG),
        offset=F.col("offset"),
        source_kind=F.lit(SourceKind.METADATA_LOG),
        controller_epoch=F.col("leader_epoch"),
        state_controller_epoch=F.col("leader_epoch"),
        inferred_from=F.col("inferred_from"),
        **given,
    )


def _in_znodes(rows: DataFrame, kind: str, /, **given: Column) -> DataFrame:
    """Evidence of one kind from writes to znodes, by topic and, where the rows have one, by partition."""
    named = {"partition_id": F.col("partition_id").try_cast("int")} if "partition_id" in rows.columns else {}
    beside = {_PLACED_AT: F.unix_micros("changed_at")} | named
    return select_evidence(
        rows.withColumns(beside),
        ("cluster_id", "topic", *beside),
        EVIDENCE_COLUMNS,
        evidence_id=F.col("evidence")[0],
        kind=F.lit(kind),
        at=F.col(_PLACED_AT),
        at_upper=F.unix_micros("changed_at_upper"),
        file=F.lit("znode"),
        offset=F.col("mzxid"),
        source_kind=F.lit("znode"),
        **given,
    )
