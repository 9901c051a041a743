"""The rows of gold.controller_procedures: what each procedure of a controller led to, counted by Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from ingest.lake.local_frames import local_frame
from ingest.lake.plans import collect_all, union
from ingest.lake.tables.controllers import CONTROLLER_PROCEDURES
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.shapes.event_types import EventType
from reconstruct.cluster.episodes.procedures import (
    MAY_ELECT,
    ElectionWindow,
    Procedure,
    election_windows,
    reigning_windows,
)
from reconstruct.cluster.spark.episodes import FOREVER_US, UNDONE, ProcedureKey, ToldLines
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.engine.rows import numbered, table_row
from reconstruct.engine.windows import STRETCH, Windows, time_windows
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import PartitionState

#: Rules that hold a controller against the model: of its elections, and of its transitions, requests and steps.
_OF_ELECTIONS: Final = ("R07", "R09")
_OF_STEPS: Final = ("R13", "R14", "R15", "R16")
#: Windows that are of no kind of election.
_ANY: Final = "any"
_WINDOW: Final = (
    "w_cluster_id string, w_controller_id int, w_kind string, since_us bigint, until_us bigint, procedure_number int,"
    " w_partition string"
)
#: The effects of a procedure, and which one stands where two are of one instant.
_EFFECTS: Final = ("election", "failed_election", "request", "answer", "completion")
#: Columns that are counted as they are.
_COUNTS: Final = (
    "elections_count",
    "unclean_count",
    "transitions_count",
    "requests_count",
    "requests_not_applied_count",
    "judged_count",
    "as_decided_count",
)


def controller_procedures(
    histories: Sequence[ClusterHistory],
    told: ToldLines,
    state_changes: DataFrame,
    elections: DataFrame,
    unavailable: DataFrame,
    requests: DataFrame,
    divergences: DataFrame,
) -> list[dict[str, Any]]:
    """Of the rows of gold of these names, and of ``silver.state_change_events``: transitions, and tries that failed."""
    done = _elections(elections, divergences)
    for effects in (_failed_tries(state_changes), _transitions(state_changes), _requests(requests)):
        done = done.unionByName(effects, True)
    at = F.col("at_us")
    windows = _windows(histories, state_changes)
    named = windows.frame.where("w_partition IS NOT NULL").select(
        F.col("w_cluster_id").alias("cluster_id"), F.col("w_partition").alias("named"), F.col("w_kind").alias("kind")
    )
    own_name = F.concat("topic", F.lit("-"), "partition_id").alias("named")
    done = done.select("*", own_name).join(
        F.broadcast(named.distinct().withColumn("is_named", F.lit(True))), ["cluster_id", "named", "kind"], "left"
    )
    of_procedure = done.join(
        windows.frame,
        (F.col("cluster_id") == F.col("w_cluster_id"))
        & (F.col("controller_id") == F.col("w_controller_id"))
        & (F.col("kind") == F.col("w_kind"))
        & F.when(F.col("is_named"), F.col("named")).eqNullSafe(F.col("w_partition"))
        & F.when(F.col("is_named").isNull(), windows.stretches.holding(at)).eqNullSafe(F.col(STRETCH))
        & (at >= F.col("since_us"))
        & (at < F.col("until_us")),
    )
    is_election, is_request = F.col("effect") == "election", F.col("effect") == "request"
    partition = F.when(F.col("effect").isin("election", "failed_election"), F.struct("topic", "partition_id"))
    counted = of_procedure.groupBy("cluster_id", "procedure_number").agg(
        F.count_if(is_election).alias("elections_count"),
        F.count_if(F.col("is_unclean")).alias("unclean_count"),
        F.size(F.collect_set(partition)).alias("tried"),
        F.min(F.when(is_election, at)).alias("first_us"),
        F.percentile(F.when(is_election, at), 0.5).cast("bigint").alias("median_us"),
        F.max(F.when(is_election, at)).alias("last_us"),
        F.max(F.when(F.col("effect") == "failed_election", at)).alias("failed_us"),
        F.count_if(F.col("effect") == "transition").alias("transitions_count"),
        F.count_if(is_request).alias("requests_count"),
        F.count_if(F.col("is_undone")).alias("requests_not_applied_count"),
        F.max(F.when(is_request, at)).alias("sent_us"),
        F.max("answered_us").alias("answered_us"),
        F.count_if(F.col("is_judged")).alias("judged_count"),
        F.count_if(F.col("is_judged") & F.col("is_as_decided")).alias("as_decided_count"),
        F.flatten(F.collect_list("finding_ids")).alias("finding_ids"),
    )
    steps = divergences.where(F.col("rule_id").isin(*_OF_STEPS)).select(
        "cluster_id", F.unix_micros("detected_at").alias("at_us"), F.col("divergence_id").alias("finding_id")
    )
    offline = unavailable.where("kind = 'offline'").select(
        "cluster_id", F.unix_micros("valid_from").alias("at_us"), F.unix_micros("valid_to").alias("end_us")
    )
    in_turn = _during(steps.unionByName(offline, True), _reigning(histories, state_changes)).agg(
        F.count_if(F.col("finding_id").isNull()).alias("went_offline_count"),
        F.collect_set("finding_id").alias("finding_ids"),
    )
    effects_of, beside = (_by_procedure(rows) for rows in collect_all([counted, in_turn]))
    left = _by_procedure(_left_offline(histories, offline, effects_of).collect())
    return [row for history in histories for row in _rows(history, told, effects_of, beside, left)]


def _by_procedure(rows: Iterable[Row]) -> dict[ProcedureKey, dict[str, Any]]:
    return {(row["cluster_id"], row["procedure_number"]): row.asDict() for row in rows}


def _left_offline(
    histories: Sequence[ClusterHistory], offline: DataFrame, effects: Mapping[ProcedureKey, Mapping[str, Any]]
) -> DataFrame:
    """How many partitions had no leader at the last effect of each procedure that may elect one of such a partition:
    those that lost theirs until then, without those that had one again."""
    ends = [
        (history.cluster_id, number, _instant(effects.get((history.cluster_id, number), {}), one, since, _end(until)))
        for history in histories
        for number, since, until in reigning_windows(history.tenures, _spans(history.procedures), history.procedures)
        for one in history.procedures[number : number + 1]
        if _may_lead_again(one)
    ]
    instants = local_frame(offline.sparkSession, "cluster_id string, procedure_number int, at_us bigint", ends)
    begun = offline.select("cluster_id", "at_us", F.lit(1).alias("step"))
    ended = offline.where("end_us IS NOT NULL").select(
        "cluster_id", F.col("end_us").alias("at_us"), F.lit(-1).alias("step")
    )
    steps = union([begun, ended, instants])
    until_then = Window.partitionBy("cluster_id").orderBy("at_us", F.col("step").isNull())
    return (
        steps.withColumn("left_offline_count", F.coalesce(F.sum("step").over(until_then), F.lit(0)))
        .where("procedure_number IS NOT NULL")
        .select("cluster_id", "procedure_number", "left_offline_count")
    )


def _instant(row: Mapping[str, Any], one: Procedure, since: int, until: int) -> int:
    at, _ = _last_effect(row, one)
    return since if at is None else max(since, min(at, until))


def _may_lead_again(one: Procedure) -> bool:
    return ElectionKind.OFFLINE_PARTITION in MAY_ELECT[one.procedure]


def _last_effect(row: Mapping[str, Any], one: Procedure) -> tuple[int | None, str | None]:
    """When it was, and what; of two of one instant the first of :data:`_EFFECTS`."""
    told = [row.get(name) for name in ("last_us", "failed_us", "sent_us", "answered_us")]
    known = [(at, -place) for place, at in enumerate((*told, one.completed_at)) if at is not None]
    at, place = max(known, default=(None, 0))
    return at, None if at is None else _EFFECTS[-place]


def _elections(elections: DataFrame, divergences: DataFrame) -> DataFrame:
    """Each with the findings of the rules that hold it against the model's."""
    found = (
        divergences.where(F.col("rule_id").isin(*_OF_ELECTIONS))
        .groupBy(*PARTITION_KEY, F.col("detected_at").alias("elected_at"))
        .agg(F.collect_set("divergence_id").alias("finding_ids"))
    )
    is_judged = F.col("is_exact") & (F.size("allowed_leaders") > 0)
    return elections.join(found, [*PARTITION_KEY, "elected_at"], "left").select(
        "cluster_id",
        "controller_id",
        F.col("election_kind").alias("kind"),
        F.unix_micros("elected_at").alias("at_us"),
        F.lit("election").alias("effect"),
        "topic",
        "partition_id",
        F.coalesce("is_unclean", F.lit(False)).alias("is_unclean"),
        is_judged.alias("is_judged"),
        F.array_contains("allowed_leaders", F.col("observed_leader")).alias("is_as_decided"),
        "finding_ids",
    )


def _failed_tries(state_changes: DataFrame) -> DataFrame:
    """A partition that no leader could be elected of; what kind of election that was, as far as its state tells."""
    kinds: Column = F.lit(_ANY)
    for state, kind in (
        (PartitionState.OFFLINE.value, ElectionKind.OFFLINE_PARTITION.value),
        (PartitionState.NEW.value, "new_partition"),
    ):
        kinds = F.when(F.col("from_state") == state, kind).otherwise(kinds)
    is_try = (F.col("event_type") == EventType.PARTITION_STATE_CHANGE_FAILED) & (
        F.col("to_state") == PartitionState.ONLINE.value
    )
    return state_changes.where(is_try & F.col("topic").isNotNull()).select(
        "cluster_id",
        F.coalesce("controller_id", "broker_id").alias("controller_id"),
        kinds.alias("kind"),
        F.unix_micros("corrected_time").alias("at_us"),
        F.lit("failed_election").alias("effect"),
        "topic",
        "partition_id",
    )


def _transitions(state_changes: DataFrame) -> DataFrame:
    """Each partition or replica that a controller moved."""
    moves = (EventType.PARTITION_STATE_CHANGE, EventType.REPLICA_STATE_CHANGE)
    return state_changes.where(F.col("event_type").isin(*moves)).select(
        "cluster_id",
        F.coalesce("controller_id", "broker_id").alias("controller_id"),
        F.lit(_ANY).alias("kind"),
        F.unix_micros("corrected_time").alias("at_us"),
        F.lit("transition").alias("effect"),
        "topic",
        "partition_id",
    )


def _requests(requests: DataFrame) -> DataFrame:
    return requests.where("sent_at IS NOT NULL").select(
        "cluster_id",
        "controller_id",
        F.lit(_ANY).alias("kind"),
        F.unix_micros("sent_at").alias("at_us"),
        F.lit("request").alias("effect"),
        F.unix_micros("acknowledged_at").alias("answered_us"),
        F.col("outcome").isin(*UNDONE).alias("is_undone"),
    )


def _windows(histories: Sequence[ClusterHistory], beside: DataFrame) -> Windows:
    """From when until when what a controller did, by kind of election or any other, is of which procedure."""
    rows: list[tuple[Any, ...]] = []
    for history in histories:
        found = history.procedures
        every = [ElectionWindow(number, _ANY, since, until) for number, since, until in _spans(found)]
        rows += [
            (
                *(history.cluster_id, found[one.number].controller_id, one.kind),
                *(one.since, _end(one.until), one.number, one.partition),
            )
            for one in (*every, *election_windows(found))
        ]
    # of one partition there are few
    return _time_windows(beside, [row for row in rows if row[-1] is None], [row for row in rows if row[-1] is not None])


def _reigning(histories: Sequence[ClusterHistory], beside: DataFrame) -> Windows:
    """The windows of procedures while their controller was the cluster's: until its next procedure."""
    rows = [
        (history.cluster_id, history.procedures[number].controller_id, _ANY, since, _end(until), number, None)
        for history in histories
        for number, since, until in reigning_windows(history.tenures, _spans(history.procedures), history.procedures)
    ]
    return _time_windows(beside, rows)


def _time_windows(
    beside: DataFrame, rows: Collection[tuple[Any, ...]], untimed: Collection[tuple[Any, ...]] = ()
) -> Windows:
    return time_windows(beside.sparkSession, _WINDOW, rows, since="since_us", until="until_us", untimed=untimed)


def _during(rows: DataFrame, windows: Windows) -> Any:
    """Rows of ``cluster_id`` and ``at_us``, grouped by the procedure in whose window they fall."""
    at = F.col("at_us")
    return rows.join(
        windows.frame,
        (F.col("cluster_id") == F.col("w_cluster_id"))
        & (windows.stretches.holding(at) == F.col(STRETCH))
        & (at >= F.col("since_us"))
        & (at < F.col("until_us")),
    ).groupBy("cluster_id", "procedure_number")


def _end(until: int | None) -> int:
    return FOREVER_US if until is None else until


def _rows(
    history: ClusterHistory,
    told: ToldLines,
    effects: Mapping[ProcedureKey, Mapping[str, Any]],
    beside: Mapping[ProcedureKey, Mapping[str, Any]],
    left: Mapping[ProcedureKey, Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    found = history.procedures
    turns = {number for number, _, _ in reigning_windows(history.tenures, _spans(found), found)}
    logged = {
        (span.tenure.controller_id, span.tenure.controller_epoch)
        for span in history.tenures
        if span.tenure.level_floor is not None
    }
    for sequence, (number, one) in numbered(
        enumerate(found), lambda pair: (pair[1].controller_id, pair[1].controller_epoch)
    ):
        key = history.cluster_id, number
        row = effects.get(key, dict.fromkeys(_COUNTS, 0))
        others = beside.get(key, {})
        last_at, last_effect = _last_effect(row, one)
        is_logged = (one.controller_id, one.controller_epoch) in logged
        is_left_known = number in turns and _may_lead_again(one)
        yield table_row(
            CONTROLLER_PROCEDURES,
            one,
            cluster_id=history.cluster_id,
            sequence=sequence,
            until_at=one.until,
            last_effect_at=last_at,
            last_effect=last_effect,
            took_ms=_ms(one, last_at),
            tried_partitions_count=row.get("tried", 0) if is_logged else None,
            went_offline_count=others.get("went_offline_count", 0) if number in turns else None,
            left_offline_count=left.get(key, {}).get("left_offline_count", 0) if is_left_known else None,
            first_elected_ms=_ms(one, row.get("first_us")),
            median_elected_ms=_ms(one, row.get("median_us")),
            last_elected_ms=_ms(one, row.get("last_us")),
            last_acknowledged_at=row.get("answered_us"),
            finding_ids=sorted({*(row.get("finding_ids") or ()), *others.get("finding_ids", ())}),
            trouble=told.trouble(told.of_procedures.get(key, {})),
            **{name: row[name] for name in _COUNTS},
        )


def _spans(found: Sequence[Procedure]) -> list[tuple[int, int, int | None]]:
    return [(number, one.began_at, one.until) for number, one in enumerate(found)]


def _ms(one: Procedure, at: int | None) -> int | None:
    return None if at is None else (at - one.began_at) // 1000
