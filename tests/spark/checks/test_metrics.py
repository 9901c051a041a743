"""Metrics over a lake made by hand, whose shares are known; thresholds that are crossed; two runs and their trend."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import functions as F

from checks.metrics.measure import Measured, measure_metrics
from checks.metrics.passes import METRICS
from checks.metrics.thresholds import Thresholds, parse_thresholds
from checks.pipeline import run_checks, write_data_docs
from checks.registry import Registry
from checks.results import CheckReport, CheckResult
from checks.tables import tables_of
from dashboards.questions.question import questions
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from ingest.lake.tables.quality import CHECK_RESULTS, RUN_METRICS
from jobs.ask.answer import rows_of
from jobs.sql.names import LakeNames
from tests.support.lakes.rows import START, append, at

THRESHOLDS = """
[trend]
max_fall_ratio = 0.15

[metrics.rejected_records_ratio]
warning = 0.05    # equal to what state-change logs have: holds
critical = 0.2    # less than what snapshots have: breaks

[metrics.elections_with_inputs_explained_ratio]
warning = 0.85

[metrics.typed_state_changes_by_version_ratio]
warning = false
critical = false
"""


def minutes(count: float) -> datetime:
    """So many minutes after ten o'clock."""
    return START + timedelta(minutes=count)


def records(broker: int | None, kind: str, typed: int, other: int) -> list[dict[str, Any]]:
    shapes = ["a-shape"] * typed + [None] * other
    return [
        {"record_id": f"{broker}-{kind}-{n}", "broker_id": broker, "source_kind": kind, "shape_id": shape}
        for n, shape in enumerate(shapes)
    ]


def file(name: str, kind: str, read: int, rejected: int, broker: int | None, version: str | None) -> dict[str, Any]:
    return {
        "file_id": name,
        "source_kind": kind,
        "compression": "none",
        "status": "ingested",
        "broker_id": broker,
        "kafka_version": version,
        "records_read_count": read,
        "records_rejected_count": rejected,
        "records_kept_count": read - rejected,
    }


def state(leader: int, epoch: int, isr: list[int], controller_epoch: int) -> str:
    values = {"leader": leader, "leader_epoch": epoch, "isr": isr, "controller_epoch": controller_epoch, "version": 1}
    return json.dumps(values)


def in_snapshot(record: str, round_at: float, partition: int, data: str | None, **values: Any) -> dict[str, Any]:
    """A znode as a snapshot shows it; ``round_at`` in seconds."""
    return {
        "record_id": record,
        "file_id": "z1",
        "captured_at": at(round_at),
        "data": data,
        "path": f"/brokers/topics/orders/partitions/{partition}/state",
    } | values


def interval(sequence: int, start: float, end: float | None, **values: Any) -> dict[str, Any]:
    return {
        "topic": "orders",
        "topic_incarnation": "i1",
        "partition_id": 0,
        "sequence": sequence,
        "evidence": ["r"],
        "valid_from": at(start),
        "valid_to": None if end is None else at(end),
    } | values


def election(sequence: int, kind: str, is_exact: bool, allowed: list[int], leader: int) -> dict[str, Any]:
    return {
        "topic": "orders",
        "topic_incarnation": "i1",
        "partition_id": 0,
        "sequence": sequence,
        "election_kind": kind,
        "leader_epoch": sequence,
        "is_exact": is_exact,
        "allowed_leaders": allowed,
        "observed_leader": leader,
    }


def covers(
    broker: int, kind: str, begin: float, end: float, coverage: str = "covered", **values: Any
) -> dict[str, Any]:
    """A row of quality.evidence_coverage; the times in minutes."""
    return {
        "broker_id": broker,
        "source_kind": kind,
        "source_file": f"{kind} {begin}",
        "coverage": coverage,
        "valid_from": minutes(begin),
        "valid_to": minutes(end),
    } | values


def clock(broker: int, begin: float, lower: int | None, upper: int | None) -> dict[str, Any]:
    return covers(broker, "clock", begin, begin + 1, clock_offset_lower_ms=lower, clock_offset_upper_ms=upper)


def measured(run: str, minute: float, metric: str, subject: str, value: float, cluster: str = "c") -> dict[str, Any]:
    return {
        "run_id": run,
        "run_at": minutes(minute),
        "metric": metric,
        "subject": subject,
        "value": value,
        "cluster_id": cluster,
    }


ROWS: dict[str, list[dict[str, Any]]] = {
    "bronze.log_records": [
        *records(1, "state_change_log", typed=6, other=2),
        *records(1, "server_log", typed=0, other=2),
        *records(2, "server_log", typed=1, other=3),
        *records(3, "controller_log", typed=1, other=0),
        *records(None, "server_log", typed=0, other=1),
    ],
    "bronze.ingested_files": [
        file("f1", "state_change_log", 10, 1, 1, None),
        file("f2", "state_change_log", 10, 0, 1, "3.9.1"),
        file("f3", "server_log", 0, 0, 3, "3.9.1"),
        file("f4", "controller_log", 5, 0, 3, "3.8.0"),
        file("f5", "znode_snapshot", 4, 1, None, None),
    ],
    "bronze.znode_snapshots": [
        in_snapshot("in another order", 0, 0, state(1, 0, [2, 1], 1)),
        in_snapshot("written while the round went on", 10, 0, state(2, 1, [2], 7), mtime=at(12)),
        in_snapshot("of a partition not replayed", 10, 1, state(2, 1, [2], 7)),
        in_snapshot("replayed too late", 0, 0, state(2, 1, [2], 7)),
        in_snapshot("by another controller", 0, 0, state(1, 0, [1, 2], 2)),
        in_snapshot("no state", 0, 0, "{"),
        in_snapshot("nothing", 0, 0, None),
        in_snapshot("no partition", 0, 0, state(1, 0, [1, 2], 1), path="/brokers/topics/orders"),
        in_snapshot("by ZooKeeper", 20, 0, state(2, 1, [2], 3), file_id="z2", snapshot_zxid=5),
    ],
    "silver.leader_and_isr_timeline": [
        interval(0, 0, 12, leader=1, leader_epoch=0, isr=[1, 2], controller_epoch=1),
        interval(1, 12, None, leader=2, leader_epoch=1, isr=[2]),
    ],
    "silver.partition_state_timeline": [
        interval(0, 0, 1, state="NewPartition"),
        interval(1, 1, 5, state="OnlinePartition"),
        interval(2, 5, None, state="OfflinePartition", inferred_from="unlogged_transition"),
    ],
    "silver.assignment_timeline": [interval(0, 0, None, replicas=[1, 2], inferred_from="znode_snapshot")],
    "silver.broker_liveness_timeline": [{"broker_id": 3, "sequence": 0, "valid_from": at(0), "evidence": ["r"]}],
    "gold.leader_elections": [
        election(0, "new_partition", True, [1], 1),
        election(1, "offline_partition", True, [1], 3),
        election(2, "preferred_replica", False, [1], 1),
        election(3, "unknown", False, [1, 2], 2),
        election(4, "unknown", False, [2], 2),
        election(5, "unknown", False, [], 1),
    ],
    "quality.evidence_coverage": [
        covers(1, "server_log", 30, 90),
        covers(1, "state_change_log", 60, 150),
        covers(2, "server_log", 30, 45),
        covers(2, "server_log", 45, 135, coverage="gap"),
        covers(2, "server_log", 135, 150),
        covers(-1, "znode_snapshot", 0, 600),
        covers(2, "replication_offset_checkpoint", 0, 600),
        clock(1, 30, -2, 2),
        clock(1, 31, 0, 10),
        clock(2, 30, 5, 5),
        clock(2, 31, 5, None),
        clock(3, 30, None, None),
    ],
    "quality.run_metrics": [
        measured("reconstructed", 9, "rule_kept_count", "R02", 4.0),
        *(
            measured(run, minute, metric, subject, value, cluster)
            for minute, run in enumerate(("one", "two", "three"))
            for metric, subject, value, cluster in (
                ("rejected_records_ratio", "znode_snapshot", (0.0, 0.0, 0.05)[minute], "c"),
                ("elections_with_inputs_explained_ratio", "", 0.85, "c"),
                ("broker_live_hours_logged_ratio", "2", 1.0, "another"),
            )
        ),
        measured("two", 1, "typed_state_changes_by_version_ratio", "3.9.1", 1.0),
        measured("three", 2, "typed_state_changes_by_version_ratio", "3.9.1", 1.0),
    ],
}

#: What the rows above come to. Of replica states, of a file without records, of an unbounded clock there is no share.
EXPECTED = {
    ("typed_records_by_version_ratio", "3.9.1"): 6 / 10,
    ("typed_records_by_version_ratio", "3.8.0,3.9.1"): 1.0,
    ("typed_records_by_version_ratio", "unknown"): 1 / 5,
    ("typed_state_changes_by_version_ratio", "3.9.1"): 6 / 8,
    ("rejected_records_ratio", "state_change_log"): 1 / 20,
    ("rejected_records_ratio", "controller_log"): 0.0,
    ("rejected_records_ratio", "znode_snapshot"): 1 / 4,
    ("observed_transitions_ratio", "silver.partition_state_timeline"): 2 / 3,
    ("observed_transitions_ratio", "silver.leader_and_isr_timeline"): 1.0,
    ("observed_transitions_ratio", "silver.assignment_timeline"): 0.0,
    ("snapshots_replayed_ratio", "capture"): 2 / 5,
    ("snapshots_replayed_ratio", "zookeeper"): 1.0,
    ("elections_with_inputs_explained_ratio", ""): 4 / 5,
    ("elections_of_known_kind_ratio", ""): 3 / 6,
    ("elections_exact_ratio", ""): 2 / 6,
    ("broker_live_hours_logged_ratio", "1"): 1.0,
    ("broker_live_hours_logged_ratio", "2"): 1.0,
    ("broker_live_hours_logged_ratio", "3"): 0.0,
    ("clock_bounds_width_ms", "1"): 10.0,
    ("clock_bounds_width_ms", "2"): 0.0,
    ("clock_bounded_ratio", "1"): 1.0,
    ("clock_bounded_ratio", "2"): 1 / 2,
    ("clock_bounded_ratio", "3"): 0.0,
}
HOURS = {
    f"{broker} 2026-11-21T{hour}": share
    for broker, shares in ((1, (1.0, 1.0, 1.0)), (2, (0.5, 0.0, 0.5)), (3, (0.0, 0.0, 0.0)))
    for hour, share in zip((10, 11, 12), shares, strict=True)
}


class TwoRuns(NamedTuple):
    lake: Lake
    strict: CheckReport  # with THRESHOLDS
    usual: CheckReport  # after it, with the defaults

    def values(self, report: CheckReport) -> dict[tuple[str, str], float]:
        rows = self.lake.read(RUN_METRICS).where(F.col("run_id") == report.run_id).collect()
        assert {row["cluster_id"] for row in rows} == {"c"}
        assert {row["run_at"].timestamp() for row in rows} == {report.run_at.timestamp()}
        found = {(row["metric"], row["subject"]): row["value"] for row in rows}
        assert len(found) == len(rows), "the key of quality.run_metrics"
        return found


def results(report: CheckReport) -> dict[str, CheckResult]:
    prefix = f"{RUN_METRICS.full_name}."
    return {r.check_id.removeprefix(prefix): r for r in report.results if r.check_id.startswith(prefix)}


def examples(result: CheckResult) -> list[dict[str, Any]]:
    return json.loads(result.examples or "[]")


@pytest.fixture(scope="module")
def runs(spark, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> TwoRuns:
    folder = tmp_path_factory.mktemp("metrics") / "lake"
    shutil.copytree(empty_lake_dir, folder)
    lake = Lake(spark, str(folder))
    for name, rows in ROWS.items():
        append(lake, TABLES[name], [{"cluster_id": "c"} | row for row in rows])
    with pytest.MonkeyPatch.context() as patched:
        # checks of tables are judged in test_checks.py
        patched.setattr("checks.pipeline.registry", lambda: Registry((), ()))
        strict = run_checks(lake, progress=lambda _: None, thresholds=parse_thresholds(THRESHOLDS, METRICS))
        return TwoRuns(lake, strict, run_checks(lake, progress=lambda _: None))


def test_every_metric_has_its_true_value(runs: TwoRuns) -> None:
    found = {key: value for key, value in runs.values(runs.strict).items() if key[0] in METRICS}
    assert found == {key: pytest.approx(value) for key, value in EXPECTED.items()}
    assert {metric for metric, _ in EXPECTED} == set(METRICS)


def test_coverage_is_written_per_broker_and_hour(runs: TwoRuns) -> None:
    found = {s: v for (metric, s), v in runs.values(runs.strict).items() if metric == "broker_hour_covered_ratio"}
    assert found == {subject: pytest.approx(value) for subject, value in HOURS.items()}


def test_a_second_run_adds_its_own_values(runs: TwoRuns) -> None:
    assert runs.usual.run_id != runs.strict.run_id
    assert runs.values(runs.usual) == runs.values(runs.strict)


def test_the_saved_question_tells_the_values_of_each_run(runs: TwoRuns) -> None:
    question = questions()["quality-by-run"]
    LakeNames(runs.lake.spark, runs.lake.root).name((question.sql,))
    rows = rows_of(runs.lake.spark, question, dict.fromkeys(question.parameters)).collect()
    for report in (runs.strict, runs.usual):
        of_run = [row for row in rows if row.run_at.timestamp() == report.run_at.timestamp()]
        assert {(row.metric, row.subject): row.value for row in of_run} == runs.values(report)
    earlier = ROWS[RUN_METRICS.full_name]
    assert len(rows) == len(earlier) + len(runs.values(runs.strict)) + len(runs.values(runs.usual))


def test_the_saved_question_tells_what_was_missing_in_the_last_run_of_the_day(runs: TwoRuns) -> None:
    question = questions()["quality-by-day"]
    LakeNames(runs.lake.spark, runs.lake.root).name((question.sql,))
    rows = rows_of(runs.lake.spark, question, dict.fromkeys(question.parameters)).collect()
    last = max(row.run_at for row in rows)
    missing = {(row.quality, row.worst_subject): row.missing_share for row in rows if row.run_at == last}
    values = runs.values(runs.usual)
    rejected = max(
        (value, subject) for (metric, subject), value in values.items() if metric == "rejected_records_ratio"
    )
    inferred = min((value, subject) for (metric, subject), value in values.items() if "observed_transitions" in metric)
    explained = values["elections_with_inputs_explained_ratio", ""]
    assert missing["rejected_records", rejected[1]] == pytest.approx(rejected[0])
    assert missing["inferred_intervals", inferred[1]] == pytest.approx(1 - inferred[0])
    assert missing["unexplained_elections", ""] == pytest.approx(1 - explained)
    assert len({row.quality for row in rows}) == 6


def test_a_critical_threshold_fails_the_gate_and_a_warning_does_not(runs: TwoRuns) -> None:
    found = results(runs.strict)
    critical = found["rejected_records_ratio_critical"]
    assert (critical.severity, critical.verdict, critical.checked_count, critical.broken_count) == (
        "critical",
        "broken",
        3,
        1,
    )
    (gate,) = (sentence for sentence in runs.strict.failed_gates if sentence.startswith(RUN_METRICS.full_name))
    assert gate.startswith("quality.run_metrics: rejected_records_ratio_critical is broken by 1 of 3 (")
    assert '"subject": "znode_snapshot", "value": 0.25, "threshold": 0.2' in gate
    warned = found["elections_with_inputs_explained_ratio_warning"]
    assert (warned.severity, warned.verdict) == ("warning", "broken")
    assert found["rejected_records_ratio_warning"].broken_count == 1, "a value that equals its threshold holds"
    assert not {
        name for name in found if name.startswith("typed_state_changes_by_version_ratio") and "trend" not in name
    }


def test_the_defaults_warn_and_fail_no_gate(runs: TwoRuns) -> None:
    assert not [sentence for sentence in runs.usual.failed_gates if sentence.startswith(RUN_METRICS.full_name)]
    warned = {name for name, r in results(runs.usual).items() if r.verdict == "broken" and name.endswith("_warning")}
    assert warned == {
        "typed_state_changes_by_version_ratio_warning",
        "rejected_records_ratio_warning",
        "snapshots_replayed_ratio_warning",
        "broker_live_hours_logged_ratio_warning",
    }


def test_a_fall_against_earlier_runs_is_a_warning_that_tells_them(runs: TwoRuns) -> None:
    fallen = results(runs.strict)["rejected_records_ratio_trend"]
    assert (fallen.severity, fallen.verdict, fallen.checked_count, fallen.broken_count) == ("warning", "broken", 1, 1)
    assert examples(fallen) == [
        {"cluster_id": "c", "subject": "znode_snapshot", "value": 0.25, "median": 0.0, "earlier": [0.05, 0.0, 0.0]}
    ]
    sentence = "cluster c, znode_snapshot: 0.25, against a median of 0 of 3 earlier runs (0.05, 0, 0)"
    assert fallen.explanation.endswith(sentence)
    steady = results(runs.strict)["elections_with_inputs_explained_ratio_trend"]
    assert (steady.verdict, steady.checked_count) == ("kept", 1), "0.8 after 0.85"


def test_a_trend_needs_three_earlier_runs_of_the_same_cluster(runs: TwoRuns) -> None:
    first, second = (results(report)["typed_state_changes_by_version_ratio_trend"] for report in runs[1:])
    assert (first.verdict, first.checked_count) == ("kept", 0)
    assert (second.verdict, second.checked_count, second.broken_count) == ("broken", 1, 1)
    assert examples(second)[0]["earlier"] == [0.75, 1.0, 1.0]
    hours = results(runs.usual)["broker_live_hours_logged_ratio_trend"]
    assert (hours.verdict, hours.checked_count) == ("kept", 0)


def test_results_are_kept_with_a_fingerprint_of_the_thresholds(runs: TwoRuns) -> None:
    assert runs.strict.rules_fingerprint != runs.usual.rules_fingerprint
    kept = runs.lake.read(CHECK_RESULTS).where("table_name = 'quality.run_metrics'").collect()
    assert len(kept) == len(results(runs.strict)) + len(results(runs.usual))


def test_data_docs_have_a_page_of_the_metrics(runs: TwoRuns, tmp_path: Path) -> None:
    index = write_data_docs(runs.strict, str(tmp_path), lambda _: None)
    (page,) = Path(index).parent.rglob("validations/**/*quality.run_metrics*.html")
    text = page.read_text(encoding="utf-8")
    assert "rejected_records_ratio_critical" in text
    assert "against a median of 0 of 3 earlier runs" in text


def test_the_verdicts_that_reconstruct_counted_are_still_found(runs: TwoRuns) -> None:
    rules = {r.check_id: r for r in runs.usual.results}
    assert (rules["R02"].verdict, rules["R02"].checked_count) == ("kept", 4)


def metrics_of(lake: Lake) -> Measured:
    with tables_of(lake) as tables:
        return measure_metrics(lake, tables, "run", START)


def test_a_table_of_another_shape_leaves_out_what_reads_it(lake: Lake) -> None:
    spec = TABLES["gold.leader_elections"]
    append(lake, TABLES["bronze.ingested_files"], [{"cluster_id": "c"} | file("f", "server_log", 4, 1, 1, None)])
    shutil.rmtree(lake.path(spec))
    lake.spark.createDataFrame([("c",)], "cluster_id string").write.format("delta").save(lake.path(spec))
    found = metrics_of(lake)
    assert found.unmeasured == {"elections"}
    assert [(value.metric, value.value) for value in found.values] == [("rejected_records_ratio", 0.25)]


def test_a_lake_without_rows_has_no_metric(lake: Lake) -> None:
    found = metrics_of(lake)
    assert (found.values, found.unmeasured) == ((), frozenset())
    assert lake.read(RUN_METRICS).count() == 0


def test_a_line_of_a_wrong_year_does_not_give_a_million_hours(lake: Lake) -> None:
    rows = [covers(1, "server_log", -60 * 24 * 365 * 50, 0), covers(2, "server_log", 0, 30)]
    append(lake, TABLES["quality.evidence_coverage"], [{"cluster_id": "c"} | row for row in rows])
    found = {(v.metric, v.subject): v.value for v in metrics_of(lake).values}
    assert lake.read(RUN_METRICS).where("metric = 'broker_hour_covered_ratio'").count() == 2 * 366 * 24
    assert found["broker_live_hours_logged_ratio", "1"] == 1.0
    assert found["broker_live_hours_logged_ratio", "2"] == 1.0, "nothing tells that it lived in the others"


def test_thresholds_that_are_not_given_are_the_defaults() -> None:
    assert parse_thresholds("", METRICS) == Thresholds()
