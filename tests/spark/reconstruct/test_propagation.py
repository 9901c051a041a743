"""Requests of controllers on Spark: lines of three eras tied together, bent, and judged; all stories in one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.bronze import INGESTED_FILES, LOG_RECORDS
from ingest.lake.tables.gold import DIVERGENCES, PROPAGATION_DELAYS
from ingest.shapes import match
from reconstruct.cluster.spans import CountedRequests, LogSpan, Registration, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.folds import rows_of
from reconstruct.engine.rows import VERDICTS
from reconstruct.events.spark.step import controller_events, replication_events, state_change_events
from reconstruct.model.versions import VersionRange, v
from reconstruct.requests.spark.bursts import of_slots, slotted, whole_bursts
from reconstruct.requests.spark.connections import failed_connections
from reconstruct.requests.spark.evidence import controller_requests, matched_requests, unordered_logs
from reconstruct.requests.spark.step import counted_requests, judged_requests, lossy_logs, with_logs_known
from reconstruct.time.instants import to_micros
from reconstruct.time.intervals import Interval
from tests.support.files.request_stories import STORIES
from tests.support.incarnations import logged_incarnations

BEGIN: Final = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
BEGIN_US: Final = to_micros(BEGIN)
S: Final = 1_000_000


LOGGERS: Final = {
    "state_change_log": "state.change.logger",
    "controller_log": "kafka.controller.RequestSendThread",
    "server_log": "org.apache.kafka.clients.NetworkClient",
}


def view(name: str) -> ClusterView:
    spans = (LogSpan(BEGIN_US, BEGIN_US + 3_600 * S, "INFO" if "INFO" in name else "TRACE"),)
    known = ClusterView(
        name,
        version=VersionRange.exactly(v(1, 1, 1)),
        tenures=(
            Tenure(3, 3, BEGIN_US, BEGIN_US + 30 * S, ("third",), "TRACE"),
            Tenure(1, 4, BEGIN_US + 30 * S, None, ("fourth",), "TRACE"),
        ),
        liveness={b: (Interval(BEGIN_US, None, Registration(), ()),) for b in (1, 2, 3)},
        process_starts={b: ((BEGIN_US, f"start-{b}"),) for b in (1, 2, 3)},
        logs=dict.fromkeys((1, 2), spans),
    )
    again = {2: ((BEGIN_US, "start-2"), (BEGIN_US + 75 * S, "again"))}
    return replace(known, process_starts=again) if "restarted" in name else known


def records(spark: Any) -> tuple[Any, Any]:
    rows, files = [], {}
    for name, story in STORIES.items():
        for number, said in enumerate(sorted(story, key=lambda said: (said.broker_id, said.at_ms))):
            found = match(said.source_kind, LOGGERS[said.source_kind], said.text)
            assert found is not None, said.text
            file_id = f"{name}/{said.broker_id}/{said.source_kind}"
            files[file_id] = name
            rows.append(
                dict.fromkeys(LOG_RECORDS.column_names)
                | {
                    "record_id": f"{name}|{said.name}|{said.at_ms}|{number}",
                    "cluster_id": name,
                    "file_id": file_id,
                    "broker_id": said.broker_id,
                    "source_kind": said.source_kind,
                    "source_file": file_id,
                    "source_line": number,
                    "byte_offset": number,
                    "byte_length": 1,
                    "message": said.text,
                    "event_time": BEGIN + timedelta(milliseconds=said.at_ms),
                    "event_time_text": "t",
                    "log_level": said.level,
                    "shape_id": found.shape_id,
                    "event_type": found.event_type,
                    "fields": dict(found.fields),
                }
            )
    ingested = [{"file_id": file_id, "first_event_time": BEGIN} for file_id in files]
    schema = [field for field in INGESTED_FILES.struct.fields if field.name in ("file_id", "first_event_time")]
    return (
        spark.createDataFrame(rows, LOG_RECORDS.struct).withColumn("corrected_time", F.col("event_time")),
        spark.createDataFrame(ingested, type(INGESTED_FILES.struct)(schema)),
    )


@dataclass(frozen=True)
class Judged:
    delays: dict[str, list[Any]]
    findings: dict[str, list[Any]]
    verdicts: dict[tuple[str, str, str], int]
    lossy: dict[str, dict[int, tuple[str, ...]]]
    counted: dict[str, dict[int, tuple[CountedRequests, ...]]]


@pytest.fixture(scope="module")
def judged(spark: Any) -> Judged:
    logged, files = records(spark)
    incarnations = logged_incarnations(logged)
    views = {name: view(name) for name in STORIES}
    failed = failed_connections(controller_events(logged, incarnations), replication_events(logged, incarnations))
    changes = state_change_events(logged, incarnations)
    matched = matched_requests(changes, files, unordered_logs(spark, views))
    requests = controller_requests(matched, failed, views).persist()
    lossy, counted = lossy_logs(requests, views), counted_requests(requests, {})
    rows = judged_requests(
        requests, {name: with_logs_known(known, lossy, {}) for name, known in views.items()}
    ).persist()
    by_cluster: list[dict[str, list[Any]]] = []
    for spec in (PROPAGATION_DELAYS, DIVERGENCES):
        found: dict[str, list[Any]] = {name: [] for name in STORIES}
        for row in rows_of(rows, spec).collect():
            found[row["cluster_id"]].append(row)
        by_cluster.append(found)
    counts = rows.where(F.col("table_name") == VERDICTS).groupBy("cluster_id", "rule", "verdict").agg(F.sum("times"))
    verdicts = {(row[0], row[1], row[2]): row[3] for row in counts.collect()}
    requests.unpersist()
    rows.unpersist()
    return Judged(by_cluster[0], by_cluster[1], verdicts, lossy, counted)


def told(judged: Judged, name: str) -> list[tuple[Any, ...]]:
    rows = sorted(judged.delays[name], key=lambda row: (row["request_kind"], row["sequence"]))
    columns = ("request_kind", "correlation_id", "sent_to_received_ms", "decided_to_applied_ms", "outcome")
    return [tuple(row[column] for column in columns) for row in rows]


def by_kind(judged: Judged, name: str) -> list[Any]:
    return sorted(judged.delays[name], key=lambda row: (row["request_kind"], row["received_at"]))


def found(judged: Judged, name: str) -> list[tuple[str, str, str]]:
    return sorted((row["rule_id"], row["divergence_type"], row["severity"]) for row in judged.findings[name])


@pytest.mark.parametrize("era", ["0.8", "1.1", "3.9", "3.9 at INFO"])
def test_each_era_ties_what_was_sent_to_what_was_received(judged: Judged, era: str) -> None:
    second = {"0.8": 10}.get(era, 11)
    assert told(judged, era) == [
        ("LeaderAndIsr", 10, 4, 8, "applied"),
        ("LeaderAndIsr", 12, 4, 8, "applied"),
        ("UpdateMetadata", second, 8, 10, "applied"),
        ("UpdateMetadata", second + 2, 8, 10, "applied"),
    ]
    assert all(row["controller_epoch"] == 4 and row["partitions_count"] == 1 for row in judged.delays[era])
    answered = [row["acknowledged_at"] is not None for row in judged.delays[era]]
    assert answered == [era != "3.9 at INFO"] * 4
    assert found(judged, era) == []
    assert judged.verdicts[era, "R23", "kept"] == 4


def test_each_step_of_a_request_is_evidence(judged: Judged) -> None:
    first = min(judged.delays["3.9"], key=lambda row: (row["request_kind"], row["sequence"]))
    assert [record.split("|")[1] for record in first["evidence"]] == ["sent", "handling", "finished", "answered"]


def test_a_request_that_was_not_received_is_found(judged: Judged) -> None:
    assert found(judged, "not received") == [("R23", "request_not_received", "warning")]
    assert told(judged, "not received")[0] == ("LeaderAndIsr", None, None, None, "not_received")


def test_the_controller_s_own_lines_about_the_connection_are_evidence(judged: Judged) -> None:
    assert found(judged, "not connected") == found(judged, "not received")
    (finding,) = judged.findings["not connected"]
    lines = [record.split("|")[:3] for record in finding["evidence"] if "|sent|" not in record]
    assert [int(at) for _, _, at in lines] == [60_100, 60_300, 60_400]
    assert "own log says 5 times within 10 s that it could not connect or send" in finding["explanation"]
    assert "own log says" not in judged.findings["not received"][0]["explanation"]


@pytest.mark.parametrize(("name", "rows"), [("never sent", 4), ("never sent, 0.8", 4)])
def test_a_request_that_was_never_sent_is_found(judged: Judged, name: str, rows: int) -> None:
    assert found(judged, name) == [("R23", "request_never_sent", "warning")]
    assert len(judged.delays[name]) == rows


def test_a_line_that_only_says_something_else_is_no_missing_request(judged: Judged) -> None:
    assert found(judged, "other content") == []
    assert told(judged, "other content") == told(judged, "1.1")


@pytest.mark.parametrize(
    ("name", "shown_by"), [("not handled", "the request was answered"), ("not handled, of no answers", "was applied")]
)
def test_a_request_that_was_not_handled_is_found(judged: Judged, name: str, shown_by: str) -> None:
    assert found(judged, name) == [("R23", "request_not_handled", "warning")]
    assert shown_by in judged.findings[name][0]["explanation"]


def test_a_request_that_was_not_answered_is_found(judged: Judged) -> None:
    assert found(judged, "not answered") == [("R23", "request_not_answered", "info")]


def test_what_arrives_late_is_measured(judged: Judged) -> None:
    assert ("UpdateMetadata", 11, 4_008, 4_010, "applied") in told(judged, "late")
    assert found(judged, "late") == []


def test_requests_of_one_stretch_are_told_apart_by_their_receipts(judged: Judged) -> None:
    metadata = [row for row in told(judged, "one stretch") if row[0] == "UpdateMetadata"]
    assert [(row[1], row[2]) for row in metadata] == [(13, 8), (15, 8)]


def test_a_request_that_is_sent_again_accuses_nobody(judged: Judged) -> None:
    assert found(judged, "sent again") == []
    leader_and_isr = [row for row in judged.delays["sent again"] if row["request_kind"] == "LeaderAndIsr"]
    assert sorted((row["correlation_id"], row["sent_at"] is not None) for row in leader_and_isr) == [
        (10, False),
        (11, True),
        (13, True),
    ]


@pytest.mark.parametrize("name", ["hung", "hung for longer than a burst"])
def test_a_broker_that_hung_is_accused_of_nothing_and_nor_is_its_controller(judged: Judged, name: str) -> None:
    assert found(judged, name) == []
    told_of = sorted(
        (row["sent_at"] is not None, row["received_at"] is not None, row["outcome"]) for row in judged.delays[name]
    )
    assert told_of == [(False, True, "applied")] * 2 + [(True, False, "unknown")] * 2 + [(True, True, "applied")] * 2
    assert judged.verdicts[name, "R23", "cannot_be_judged"] == 4


def test_what_a_broker_that_hung_received_again_and_again_accuses_nobody(judged: Judged) -> None:
    assert found(judged, "received again while it hung") == []
    received = [row["correlation_id"] for row in by_kind(judged, "received again while it hung") if row["received_at"]]
    assert received == [10, 11, 12, 13]


def test_what_threads_received_at_once_are_as_many_requests_as_ids(judged: Judged) -> None:
    assert found(judged, "received by threads at once") == []
    requests = [row for row in told(judged, "received by threads at once") if row[0] == "LeaderAndIsr"]
    outcomes = {10: "applied", 11: "ignored_stale", 12: "ignored_stale", 14: "applied"}
    assert sorted((row[1], row[4]) for row in requests) == sorted(outcomes.items())


def test_the_same_words_are_tied_to_their_own_sending(judged: Judged) -> None:
    def delays(name: str) -> list[tuple[int, int | None]]:
        story = f"the same words again{name}"
        assert found(judged, story) == []
        return [(row["correlation_id"], row["sent_to_received_ms"]) for row in by_kind(judged, story)]

    assert delays("") == [(10, 4), (12, 4), (11, 8), (13, 8)]
    assert delays(", received twice") == [(10, 4), (12, None), (14, 24), (11, 8), (13, None), (15, 28)]
    assert delays(", their sending lost") == [(10, 4), (12, None), (11, 8), (13, None)]


def test_a_request_that_was_not_received_is_none_of_its_words_later(judged: Judged) -> None:
    assert found(judged, "the same words again, not received before") == [("R23", "request_not_received", "warning")]


def test_what_is_long_before_or_after_is_of_another_request(judged: Judged) -> None:
    answered = sorted(
        (row["received_at"] is not None, row["acknowledged_at"] is not None) for row in judged.delays["answered later"]
    )
    assert answered == [(False, True), (True, False)]
    assert {row["decided_at"] for row in judged.delays["decided long before"]} == {None}
    epochs = sorted(
        (row["received_at"].minute, row["correlation_id"], row["controller_epoch"])
        for row in judged.delays["epoch unknown at INFO"]
        if row["received_at"] is not None
    )
    assert epochs == [(1, 10, None), (21, 10, 5), (21, 11, 5)]
    assert found(judged, "answered later") == [("R23", "request_not_answered", "info")]
    assert found(judged, "decided long before") == found(judged, "epoch unknown at INFO") == []


def test_each_burst_of_lines_is_matched_as_it_is_beside_all_others(spark: Any) -> None:
    logged, files = records(spark)
    some = [name for name in STORIES if name.startswith(("the same words", "answered later", "in another burst"))]
    logged = logged.where(F.col("cluster_id").isin(some))
    changes = slotted(state_change_events(logged, logged_incarnations(logged))).persist()
    slots = changes.select("cluster_id", "controller_id", "time_slot").distinct()
    first, last = slots.agg(F.min("time_slot"), F.max("time_slot")).collect()[0]
    assert last > first + 1
    late, early = whole_bursts(slots.where(f"time_slot = {last}"), slots), slots.where(f"time_slot < {last}")
    assert {row["time_slot"] for row in late.collect()} == {last}
    # as lines of three clusters, matched in one go
    few = late.collect()
    assert of_slots(changes, late, few).count() == of_slots(changes, late, None).count() > 0
    parts = {"all": changes, "late": of_slots(changes, late, few), "early": of_slots(changes, early, early.collect())}
    named = [
        lines.withColumns({column: F.concat(F.lit(f"{name}: "), column) for column in ("cluster_id", "record_id")})
        for name, lines in parts.items()
    ]
    lines = union(named)
    lines = spark.createDataFrame(lines.collect(), lines.schema)  # a plan as long as theirs takes ten seconds more
    matched = matched_requests(lines, files, unordered_logs(spark, {}))
    found: dict[str, list[str]] = {name: [] for name in parts}
    for (text,) in matched.select(F.to_json(F.struct(*sorted(matched.columns)))).collect():
        (name,) = {name for name in parts if f"{name}: " in text}
        found[name].append(text.replace(f"{name}: ", ""))
    assert sorted(found["late"] + found["early"]) == sorted(found["all"])
    assert len(found["late"]) == 4
    assert len(found["early"]) > 20
    changes.unpersist()


def test_a_burst_is_whole_whichever_of_its_slots_is_asked_for_though_its_lines_are_gone(spark: Any) -> None:
    def slots(*rows: tuple[int | None, int]) -> Any:
        given = [("c", controller_id, slot) for controller_id, slot in rows]
        return spark.createDataFrame(given, "cluster_id string, controller_id int, time_slot bigint")

    every = slots((1, 7), (1, 8), (1, 8), (1, 9), (1, 11), (2, 9), (2, 10), (None, 9))

    def found(*rows: tuple[int | None, int]) -> list[tuple[int, int]]:
        return sorted((row[1], row[2]) for row in whole_bursts(slots(*rows), every).collect())

    assert found((1, 9)) == [(1, 7), (1, 8), (1, 9)]
    assert found((1, 11), (2, 9), (2, 10), (None, 9)) == [(1, 11), (2, 9), (2, 10)]
    assert found((3, 9)) == []


def test_correlation_ids_that_begin_anew_are_other_requests(judged: Judged) -> None:
    assert [(row[1], row[2]) for row in told(judged, "ids begin anew")] == [(10, 4), (10, 4), (11, 8), (11, 8)]
    assert found(judged, "ids begin anew") == []


@pytest.mark.parametrize("name", ["ids begin anew, of another epoch", "ids begin anew, of another epoch, unopened"])
def test_so_they_are_where_a_controller_is_elected_again(judged: Judged, name: str) -> None:
    assert "R12" not in {rule_id for rule_id, _, _ in found(judged, name)}
    requests = [row for row in judged.delays[name] if row["request_kind"] == "LeaderAndIsr"]
    assert sorted((row["controller_epoch"], row["correlation_id"]) for row in requests) == [(4, 10), (5, 10)]


def test_a_broker_that_accepts_an_old_controller_is_found(judged: Judged) -> None:
    assert ("R12", "accepted_stale_controller", "error") in found(judged, "old controller")
    assert found(judged, "old controller, restarted") == []


def test_a_refusal_is_recomputed(judged: Judged) -> None:
    assert found(judged, "refused") == []
    assert judged.verdicts["refused", "R21", "kept"] == 1
    assert "ignored_stale" in {row["outcome"] for row in judged.delays["refused"]}
    assert ("R21", "ignored_without_reason", "error") in found(judged, "refused wrongly")


def test_a_log_that_lacks_lines_again_and_again_is_lossy(judged: Judged) -> None:
    lossy = {name: set(brokers) for name, brokers in judged.lossy.items()}
    assert lossy == {"lossy": {2}, "fewer sent than counted": {1}, "fewer received than counted": {2}}


def test_requests_count_as_whole_where_each_line_is_there_once(judged: Judged) -> None:
    numbers = {name: [(run.first_id, run.last_id) for run in judged.counted[name][2]] for name in judged.counted}
    assert numbers["3.9"] == [(10, 13)]
    assert numbers["a line twice"] == [(11, 13)]
    assert not {"1.1", "next of another connection"} & set(numbers)


def test_no_two_rows_share_the_key(judged: Judged) -> None:
    keys = [tuple(row[name] for name in PROPAGATION_DELAYS.key) for rows in judged.delays.values() for row in rows]
    assert len(keys) == len(set(keys)) > 60
