"""Cluster-wide facts, gathered by Spark and small: elections, registrations, process starts, versions, settings.

Their number grows with what happened to the cluster, not with its partitions: they are collected, made into timelines
by pure functions, and given to every partition's fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.plans import collect_all, in_order, union
from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.broker_settings import BrokerSetting
from ingest.shapes.event_types import EventType
from reconstruct.cluster.brokers import StartStep, process_starts
from reconstruct.cluster.episodes.procedures import NAMED_FIELDS, PROCEDURE_EVENTS
from reconstruct.cluster.evidence import BrokerFact, ClusterFacts, ControllerFact, ProcedureLine, TakeOverLine
from reconstruct.cluster.settings import EVERY_BROKER, SettingChange
from reconstruct.cluster.spans import LiveView, leave_out
from reconstruct.cluster.spark.controller_lines import (
    controller_acts,
    is_election,
    process_start_lines,
)
from reconstruct.cluster.spark.log_spans import as_log_spans
from reconstruct.cluster.spark.statements import stated_ids
from reconstruct.cluster.take_overs import TAKE_OVER_EVENTS
from reconstruct.engine.folds import select_columns
from reconstruct.engine.rows import columns_of, value_of
from reconstruct.events.spark.fields import ints_field, text_field
from reconstruct.model.states import PartitionState
from reconstruct.model.znode_paths import (
    BROKER_CONFIG_PATTERN,
    BROKER_PATTERN,
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    TOPIC_CONFIG_PATTERN,
)

#: controller.log events that say a broker came, went, or was listed, with the field that names the brokers.
_BROKER_EVENTS: Final = (
    (EventType.BROKER_CHANGE, "added_broker_ids", "up"),
    (EventType.BROKER_CHANGE, "deleted_broker_ids", "down"),
    (EventType.BROKER_CHANGE, "bounced_broker_ids", "down"),
    (EventType.BROKER_CHANGE, "bounced_broker_ids", "up"),
    (EventType.BROKER_STARTED, "added_broker_ids", "up"),
    (EventType.BROKER_FAILED, "deleted_broker_ids", "down"),
    (EventType.CONTROLLED_SHUTDOWN_REQUESTED, "shutting_down_broker_ids", "shutdown_requested"),
)
#: controller.log events that list all live brokers, in ``live_broker_ids``.
_LIVE_LISTS: Final = (EventType.BROKER_CHANGE, EventType.BROKERS_ACTIVE)
_CONTROLLER_COLUMNS: Final = columns_of(ControllerFact)
_BROKER_COLUMNS: Final = columns_of(BrokerFact)
_TOLD: Final = ("cluster_id", "corrected_time", "record_id")
_SETTINGS: Final = tuple(BrokerSetting)


def gather(
    state_changes: DataFrame,
    controller_events: DataFrame,
    replication_events: DataFrame,
    znodes: DataFrame,
    configs: DataFrame,
    files: DataFrame,
    minutes: DataFrame,
    spans: DataFrame,
) -> dict[str, ClusterFacts]:
    """By cluster id; every cluster that any table names has an entry. ``minutes`` are those of
    :func:`~reconstruct.cluster.spark.controller_lines.controller_minutes`, ``spans`` those of
    :func:`~reconstruct.cluster.spark.log_spans.log_spans`."""
    facts: dict[str, ClusterFacts] = {}

    def of(row: Row) -> ClusterFacts:
        return facts.setdefault(str(row["cluster_id"]), ClusterFacts())

    versions, shapes, controllers, brokers, lists, started, settings, own, logs, did = collect_all(
        [
            files.select("cluster_id", "kafka_version").distinct(),
            state_changes.where("shape_id IS NOT NULL").select("cluster_id", "shape_id").distinct(),
            _controller_facts(minutes, controller_events, replication_events, files, znodes),
            _broker_facts(controller_events, znodes),
            _live_lists(controller_events),
            _start_lines(replication_events),
            _settings(znodes),
            _own_settings(replication_events, configs),
            spans,
            _controller_lines(controller_events),
        ]
    )
    for row in versions:
        cluster = of(row)
        if row["kafka_version"] is not None:
            cluster.stated_versions.append(row["kafka_version"])
    for row in shapes:
        of(row).shapes.add(row["shape_id"])
    for row in controllers:
        of(row).controllers.append(value_of(ControllerFact, row.asDict()))
    for row in brokers:
        of(row).brokers.append(value_of(BrokerFact, row.asDict()))
    for row in in_order(lists, "cluster_id", "at", "is_ignored", "record_id"):
        if row["ignored"] is not None:
            ignored = frozenset(broker_id for broker_id in row["ignored"] if broker_id is not None)
            leave_out(of(row).live_views, row["controller_id"], row["at"], ignored)
            continue
        of(row).brokers.extend(_from_list(row, {b.broker_id for b in of(row).brokers}))
        live, added = (frozenset(one for one in row[name] or () if one is not None) for name in ("live", "added"))
        of(row).live_views.append(LiveView(row["at"], row["controller_id"], live, row["record_id"], added))
    for row, span in as_log_spans(logs):
        of(row).log_spans.append((row["broker_id"], span))
    for row in did:
        if row["controller_event"] in TAKE_OVER_EVENTS:
            of(row).take_over_lines.append(value_of(TakeOverLine, row.asDict()))
        else:
            of(row).procedure_lines.append(value_of(ProcedureLine, row.asDict()))
    for row in (row for row in logs if row["jumps_back"]):
        jumps = of(row).set_back
        jumps[row["broker_id"]] = max(row["most_back_us"], jumps.get(row["broker_id"], 0))
        if row["far_jumps_back"]:
            of(row).controllers.append(ControllerFact("set_back", 0, "", log_file=row["source_file"]))
    start_lines: dict[str, list[tuple[int, int, StartStep, str]]] = {}
    for row in started:
        line = (row["broker_id"], row["at"], StartStep(row["step"]), row["record_id"])
        start_lines.setdefault(str(row["cluster_id"]), []).append(line)
    for cluster_id, lines in start_lines.items():
        facts.setdefault(cluster_id, ClusterFacts()).process_starts = process_starts(lines)
    for row in in_order(settings, "cluster_id", "at"):
        change = SettingChange(row["at"], row["min_isr"], row["unclean"], bool(row["is_first"]))
        if row["topic"] is None:
            of(row).broker_settings.setdefault(row["broker_id"], []).append(change)
        else:
            of(row).topic_settings.setdefault(row["topic"], []).append(change)
    for row in own:
        read, broker_id = of(row).own_settings, row["broker_id"]
        if row["at"] is None:
            read.files[broker_id] = {name.value: sorted(row[name.name]) for name in _SETTINGS}
        else:
            printed = {name.value: row[name.name][0] for name in _SETTINGS if row[name.name]}
            read.printed.setdefault(broker_id, []).append((row["at"], printed))
    return facts


def _at(column: str) -> Column:
    return F.unix_micros(column).alias("at")


def _controller_facts(
    minutes: DataFrame,
    controller_events: DataFrame,
    replication_events: DataFrame,
    files: DataFrame,
    znodes: DataFrame,
) -> DataFrame:
    written = znodes.where("change = 'written'")
    by_line: dict[str, Column | str] = {"at": F.unix_micros("corrected_time"), "evidence_id": "record_id"}
    by_znode: dict[str, Column | str] = {"at": F.unix_micros("changed_at"), "evidence_id": "evidence[0]"}
    epoch = F.col("data").try_cast("int")
    named = F.coalesce(F.get_json_object("data", "$.brokerid"), F.col("data")).try_cast("int")
    by_speaker = by_line | {"controller_id": F.coalesce("controller_id", "broker_id")}
    of_file: dict[str, Column | str] = {"log_file": "source_file"}
    by_act = of_file | {name: name for name in ("at", "evidence_id", "controller_id", "epoch", "level_floor")}
    by_start = of_file | {name: name for name in ("at", "evidence_id")} | {"controller_id": "speaker_id"}
    by_statement = {name: name for name in ("at", "evidence_id", "stated_cluster_id")} | {"controller_id": "broker_id"}
    resigned = controller_events.where(F.col("event_type") == EventType.CONTROLLER_RESIGNED)
    facts: tuple[tuple[str, DataFrame, Mapping[str, Column | str]], ...] = (
        ("znode_epoch", written.where(F.col("path") == CONTROLLER_EPOCH_PATH), by_znode | {"epoch": epoch}),
        ("znode_controller", written.where(F.col("path") == CONTROLLER_PATH), by_znode | {"controller_id": named}),
        ("resigned", resigned, by_speaker),
        ("elected", controller_events.where(is_election()), by_speaker | of_file | {"epoch": "controller_epoch"}),
        ("acted", controller_acts(minutes), by_act),
        ("cluster_id", stated_ids(replication_events, files), by_statement),
        ("started", process_start_lines(replication_events), by_start),
    )
    return union(
        select_columns(rows, ("cluster_id",), _CONTROLLER_COLUMNS, kind=F.lit(kind), **given)
        for kind, rows, given in facts
    )


def _broker_facts(controller_events: DataFrame, znodes: DataFrame) -> DataFrame:
    registered = (
        znodes.where(F.col("path").rlike(BROKER_PATTERN))
        .groupBy("cluster_id", "path", "czxid", "change")
        .agg(
            F.unix_micros(F.min("changed_at")).alias("at"),
            F.unix_micros(F.min("changed_at_upper")).alias("at_upper"),
            F.min_by(F.col("evidence")[0], F.col("changed_at")).alias("evidence_id"),
        )
    )
    facts = [
        select_columns(
            registered,
            ("cluster_id",),
            _BROKER_COLUMNS,
            broker_id=F.regexp_extract("path", BROKER_PATTERN, 1).try_cast("int"),
            kind="CASE WHEN change = 'written' THEN 'registered' ELSE 'unregistered' END",
            **{name: name for name in ("at", "evidence_id", "czxid", "at_upper")},
        )
    ]
    lists = F.array(
        *(
            F.struct(F.lit(kind).alias("kind"), F.when(F.col("event_type") == of_type, ints_field(name)).alias("ids"))
            for of_type, name, kind in _BROKER_EVENTS
        )
    )
    changes = controller_events.where(F.col("event_type").isin(*dict.fromkeys(kind for kind, _, _ in _BROKER_EVENTS)))
    each = changes.select(*_TOLD, _speaker(), F.inline(lists)).select("*", F.explode("ids").alias("id"))
    facts.append(_told(each.where("id IS NOT NULL"), F.col("kind"), broker_id="id"))
    epochs = controller_events.where(F.col("event_type") == EventType.BROKER_EPOCHS)
    entry = F.explode(F.split(text_field("broker_epochs"), ",")).alias("entry")
    parts = epochs.select(*_TOLD, _speaker(), entry).withColumn("parts", F.split("entry", ":"))
    listed = parts.where(F.size("parts") == 2)
    broker_id, epoch = F.col("parts")[0].try_cast("int"), F.col("parts")[1].try_cast("bigint")
    facts.append(_told(listed, F.lit("epoch_listed"), broker_id=broker_id, czxid=epoch))
    return union(facts).where("broker_id IS NOT NULL")


def _told(lines: DataFrame, kind: Column, **given: Column | str) -> DataFrame:
    """Facts about brokers that lines of controllers tell."""
    by_line: dict[str, Column | str] = {
        "at": F.unix_micros("corrected_time"),
        "evidence_id": "record_id",
        "controller_id": "speaker_id",
    }
    return select_columns(lines, ("cluster_id",), _BROKER_COLUMNS, kind=kind, **by_line, **given)


def _speaker() -> Column:
    return F.coalesce("controller_id", "broker_id").alias("speaker_id")


def _live_lists(controller_events: DataFrame) -> DataFrame:
    listed = ints_field("live_broker_ids")
    is_ignored = F.col("event_type") == EventType.BROKER_REGISTRATION_IGNORED
    return (
        controller_events.where(F.col("event_type").isin(*_LIVE_LISTS, EventType.BROKER_REGISTRATION_IGNORED))
        .where(listed.isNotNull() | is_ignored)
        .select(
            "cluster_id",
            _at("corrected_time"),
            "record_id",
            F.coalesce("controller_id", "broker_id").alias("controller_id"),
            listed.alias("live"),
            ints_field("added_broker_ids").alias("added"),
            F.when(is_ignored, ints_field("ignored_broker_ids")).alias("ignored"),
        )
        .withColumn("is_ignored", F.col("ignored").isNotNull())
    )


def _controller_lines(controller_events: DataFrame) -> DataFrame:
    """Of take-overs, resignations and procedures; a record that lists partitions has a row for each."""
    told = (*TAKE_OVER_EVENTS, *PROCEDURE_EVENTS)
    lines = controller_events.where(F.col("event_type").isin(*told)).withColumn(
        "speaker_id", F.coalesce("controller_id", "broker_id")
    )
    is_procedure = F.col("event_type").isin(*PROCEDURE_EVENTS)
    named = F.map_filter("fields", lambda name, _: name.isin(*NAMED_FIELDS))
    is_listing = F.col("event_type") == EventType.PARTITION_STATE_MACHINE_STARTED
    one = {name: F.first(name).alias(name) for name in ("file_id", "byte_offset", "event_type", "controller_epoch")}
    return (
        lines.where("speaker_id IS NOT NULL")
        .groupBy("cluster_id", "record_id")
        .agg(
            F.first("speaker_id").alias("controller_id"),
            one["event_type"].alias("controller_event"),
            F.first(F.unix_micros("corrected_time")).alias("at"),
            one["file_id"].alias("log_place"),
            one["byte_offset"].alias("line"),
            one["controller_epoch"],
            F.first(text_field("step")).alias("step"),
            F.first(ints_field("live_broker_ids")).alias("found_brokers"),
            F.max(F.when(is_listing, F.lit(0))).alias("is_listing"),
            F.count(F.when(is_listing, F.col("topic"))).alias("listed"),
            F.count_if(is_listing & (text_field("state") == PartitionState.OFFLINE.value)).alias("offline"),
            F.first("log_level").alias("log_level"),
            F.array_sort(F.collect_set(F.when(is_procedure, F.concat("topic", F.lit("-"), "partition_id")))).alias(
                "partitions"
            ),
            F.first(F.when(is_procedure, F.map_entries(named))).alias("named"),
        )
        .select(
            "cluster_id",
            F.col("record_id").alias("evidence_id"),
            "controller_id",
            "controller_event",
            "at",
            "log_place",
            "line",
            "controller_epoch",
            "step",
            "found_brokers",
            (F.col("is_listing") + F.col("listed")).alias("found_partitions_count"),
            (F.col("is_listing") + F.col("offline")).alias("found_offline_count"),
            "log_level",
            "partitions",
            "named",
        )
    )


def _start_lines(events: DataFrame) -> DataFrame:
    """The lines that tell of the start of a process, each with its :class:`StartStep`."""
    event, leaves_shutdown = F.col("event_type"), text_field("from_state") == "SHUTDOWN"
    told = {
        EventType.CONTROLLER_SERVER_CHANGED: (text_field("step") == "starting", StartStep.CONTROLLER_STARTING),
        EventType.BROKER_STATE_CHANGED: (leaves_shutdown, StartStep.BROKER_LEAVES_SHUTDOWN),
        EventType.BROKER_SERVER_STARTING: (F.lit(True), StartStep.BROKER_STARTING),
    }
    step = F.coalesce(*(F.when((event == of_type) & if_, step.value) for of_type, (if_, step) in told.items()))
    of_starts = events.where(event.isin(*told))
    return of_starts.select("cluster_id", "broker_id", _at("corrected_time"), step.alias("step"), "record_id").where(
        "step IS NOT NULL AND broker_id IS NOT NULL"
    )


def _from_list(row: Row, known: set[int]) -> Iterable[BrokerFact]:
    """A list of the live brokers says of each known broker that it is live, or is not."""
    live = {broker_id for broker_id in row["live"] or () if broker_id is not None}
    for broker_id in sorted(live | known):
        kind = "live" if broker_id in live else "absent"
        yield BrokerFact(broker_id, kind, row["at"], row["record_id"], controller_id=row["controller_id"])


def _settings(znodes: DataFrame) -> DataFrame:
    """What znodes of topics and brokers set, a row for each write; NULL where they do not."""
    config = F.from_json(F.get_json_object("data", "$.config"), "map<string,string>")
    written = znodes.where("change = 'written'").select(
        "cluster_id",
        F.nullif(F.regexp_extract("path", TOPIC_CONFIG_PATTERN, 1), F.lit("")).alias("topic"),
        F.nullif(F.regexp_extract("path", BROKER_CONFIG_PATTERN, 1), F.lit("")).alias("of_broker"),
        F.unix_micros("changed_at").alias("at"),
        (F.col("version") == 0).alias("is_first"),
        config[BrokerSetting.MIN_ISR.value].try_cast("int").alias("min_isr"),
        config[BrokerSetting.UNCLEAN.value].try_cast("boolean").alias("unclean"),
    )
    is_one = F.col("of_broker").rlike("^[0-9]")
    return (
        written.where("topic IS NOT NULL OR of_broker IS NOT NULL")
        .withColumn("broker_id", F.when(is_one, F.col("of_broker").try_cast("int")).otherwise(F.lit(EVERY_BROKER)))
        .where("broker_id IS NOT NULL")
    )


def _own_settings(replication_events: DataFrame, configs: DataFrame) -> DataFrame:
    """What brokers' own configurations set: a row for each line that prints some, and one without ``at`` for the copies
    of its server.properties; of each setting the values, none where it is not named."""
    printed = replication_events.where(
        (F.col("event_type") == EventType.BROKER_CONFIGURED) & F.col("broker_id").isNotNull()
    ).select(
        "cluster_id",
        "broker_id",
        _at("corrected_time"),
        *(F.array_compact(F.array(text_field(name.value))).alias(name.name) for name in _SETTINGS),
    )
    of_key = F.col("config_key")
    copies = (
        configs.where(f"source_kind = '{SourceKind.SERVER_PROPERTIES}' AND broker_id IS NOT NULL")
        .groupBy("cluster_id", "broker_id")
        .agg(
            *(
                F.collect_set(F.when(of_key == name.value, F.trim("config_value"))).alias(name.name)
                for name in _SETTINGS
            )
        )
    )
    return printed.unionByName(copies, allowMissingColumns=True)
