"""A sound lake passes; in a lake damaged on purpose, each damage is reported by the check made for it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T

from checks.catalog import CRITICAL, Check, Pass
from checks.measure import measure, measure_passes
from checks.metrics.judge import metric_checks
from checks.metrics.passes import METRIC_PASSES
from checks.metrics.thresholds import Thresholds
from checks.pipeline import run_checks
from checks.registry import Registry, registry
from checks.results import CheckReport
from checks.tables import tables_of
from ingest.lake.delta import Lake, LakeError
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables.quality import CHECK_RESULTS
from reconstruct.rule_book import RULES
from tests.support.lakes.rows import frame_of

Rows = dict[str, list[dict[str, Any]]]
START = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
_EMPTY: Mapping[str, Any] = {
    "string": "",
    "int": 0,
    "bigint": 0,
    "double": 0.0,
    "boolean": False,
    "timestamp": START,
    "array<int>": [],
    "array<string>": [],
    "map<string,string>": {},
}


def at(seconds: int | None) -> datetime | None:
    return None if seconds is None else START + timedelta(seconds=seconds)


def of(partition_id: int, sequence: int, start: int, end: int | None, **values: Any) -> dict[str, Any]:
    """An interval of one partition of the topic ``orders``."""
    return {
        "topic": "orders",
        "topic_incarnation": "i1",
        "partition_id": partition_id,
        "sequence": sequence,
        "valid_from": at(start),
        "valid_to": at(end),
        "evidence": ["r1"],
    } | values


def read_from(kind: str, file_id: str, *record_ids: str, **values: Any) -> list[dict[str, Any]]:
    return [{"record_id": i, "file_id": file_id, "source_kind": kind} | values for i in record_ids]


def file(file_id: str, kind: str, read: int, kept: int, rejected: int = 0) -> dict[str, Any]:
    return {
        "file_id": file_id,
        "source_kind": kind,
        "cluster_source": "stated",
        "compression": "none",
        "status": "ingested",
        "records_read_count": read,
        "records_kept_count": kept,
        "records_rejected_count": rejected,
    }


def sound() -> Rows:
    """A small history in which every check has something to judge, the allowed gaps included."""
    return {
        "bronze.ingested_files": [file("f1", "state_change_log", 3, 2, 1), file("f2", "server_properties", 2, 2)],
        "bronze.log_records": read_from(
            "state_change_log", "f1", "r1", "r2", event_type="unrecognised", shape_id="a-shape"
        ),
        "bronze.rejected_records": read_from("state_change_log", "f1", "r3"),
        "bronze.broker_configs": read_from("server_properties", "f2", "r4", "r5"),
        "silver.state_change_events": [
            {"event_id": f"{r}:{n}", "record_id": r, "evidence": [r]} for r, n in (("r1", 0), ("r1", 1), ("r2", 0))
        ],
        "silver.partition_state_timeline": [
            of(0, 0, 0, 1, state="NewPartition"),
            of(0, 1, 1, 1, state="OnlinePartition"),
            of(0, 2, 1, 5, state="NonExistentPartition"),
            of(0, 3, 7, None, state="NewPartition"),  # created again: nothing is known from 5 to 7
        ],
        "silver.replica_state_timeline": [
            of(0, 0, 0, 1, replica_id=1, state="NewReplica"),
            of(0, 1, 3, None, replica_id=1, state="OnlineReplica", inferred_from="log_gap"),
        ],
        "silver.leader_and_isr_timeline": [
            of(0, 0, 0, 1, leader=1, leader_epoch=0, isr=[1, 2]),
            of(0, 1, 1, None, leader=2, leader_epoch=1, isr=[2]),
        ],
        "silver.assignment_timeline": [of(0, 0, 0, None, replicas=[1, 2])],
        "silver.replica_role_timeline": [
            of(0, 0, 0, None, broker_id=1, view="replica_manager", role="leader"),
            of(0, 0, 0, None, broker_id=1, view="metadata_cache", role="cached"),
        ],
        "silver.broker_liveness_timeline": [
            {"broker_id": 1, "sequence": n, "valid_from": at(a), "valid_to": at(b), "evidence": ["r5"]}
            for n, a, b in ((0, 0, 2), (1, 9, None))
        ],
        "silver.controller_epoch_timeline": [
            {"controller_id": 1, "controller_epoch": 1, "sequence": 0, "valid_from": at(0), "evidence": ["r2"]}
        ],
        "gold.availability_intervals": [of(0, 0, 1, 2, kind="offline"), of(0, 1, 4, None, kind="offline")],
        "gold.divergences": [
            {"divergence_id": "d1", "rule_id": "R01", "severity": "error", "evidence": ["r1", "r2"]},
            {"divergence_id": "d2", "rule_id": "R01", "severity": "warning", "evidence": ["r3"]},
        ],
        "quality.run_metrics": [
            {"run_id": "one", "metric": f"rule_{verdict}_count", "subject": rule, "value": value, "run_at": at(run_at)}
            for rule, verdict, value, run_at in (("R02", "kept", 4.0, 9), ("R01", "kept", 7.0, 9))
        ]
        + [{"run_id": "earlier", "metric": "rule_kept_count", "subject": "R04", "value": 9.0, "run_at": at(1)}],
    }


def copied(record_id: str, kind: str, name: str, **values: Any) -> dict[str, Any]:
    """A file of the directory ``orders-0``, read whole."""
    (row,) = read_from(kind, f"f-{record_id}", record_id, file_kind=kind, file_name=name, is_read=True)
    return row | {"source_file": f"data/orders-0/{name}", "directory": "orders-0", "topic": "orders"} | values


#: Damage: the rows added to the sound lake, and how many cases break each check that must report it.
DAMAGES: tuple[tuple[str, Rows, dict[str, int]], ...] = (
    (
        "a record twice",
        {
            "bronze.ingested_files": [file("f3", "meta_properties", 2, 2)],
            "bronze.broker_configs": read_from("meta_properties", "f3", "twice", "twice"),
        },
        {"bronze.broker_configs.unique_key": 1},
    ),
    (
        "a file that lost a record after it was counted",
        {
            "bronze.ingested_files": [file("f4", "znode_snapshot", 2, 2)],
            "bronze.znode_snapshots": read_from("znode_snapshot", "f4", "z1"),
        },
        {"bronze.ingested_files.read_is_kept_and_rejected": 1},
    ),
    (
        "a file whose counts do not add up",
        {"bronze.ingested_files": [file("f5", "znode_snapshot", 3, 1)]},
        {"bronze.ingested_files.kept_and_rejected": 1, "bronze.ingested_files.read_is_kept_and_rejected": 1},
    ),
    (
        "a rejected record that is gone",
        {"bronze.ingested_files": [file("f6", "server_log", 1, 0, 1)]},
        {
            "bronze.ingested_files.rejected_rows_are_there": 1,
            "bronze.ingested_files.read_is_kept_and_rejected": 1,
        },
    ),
    (
        "an index that names what its segment does not hold",
        {
            "bronze.ingested_files": [
                file(f"f-{name}", kind, 1, 1)
                for name, kind in (
                    ("s1", "log_segment"),
                    ("s2", "log_segment"),
                    ("x1", "offset_index"),
                    ("x2", "offset_index"),
                )
            ],
            "bronze.log_segments": [
                copied("s1", "log_segment", "00.log", next_offset=10, valid_bytes=100),
                copied(
                    "x1", "offset_index", "00.index", last_indexed_offset=9, last_indexed_position=90, entries_count=2
                ),
                copied("s2", "log_segment", "10.log", next_offset=20, valid_bytes=100),
                copied(
                    "x2", "offset_index", "10.index", last_indexed_offset=19, last_indexed_position=100, entries_count=1
                ),
            ],
        },
        {"bronze.log_segments.indexes_point_into_their_segment": 1},
    ),
    (
        "rows of a file that nobody took",
        {"bronze.offset_checkpoints": read_from("replication_offset_checkpoint", "nobody", "o1", "o2")},
        {"bronze.ingested_files.rows_have_a_file": 1},
    ),
    (
        "a record without event",
        {
            "bronze.ingested_files": [file("f7", "state_change_log", 1, 1)],
            "bronze.log_records": read_from("state_change_log", "f7", "lost"),
        },
        {"silver.state_change_events.no_record_lost": 1},
    ),
    (
        "NULL where none may be",
        {"silver.controller_epoch_timeline": [{"controller_id": None, "controller_epoch": 2, "evidence": ["r1"]}]},
        {"silver.controller_epoch_timeline.controller_id_not_null": 1},
    ),
    (
        "a word outside the vocabulary",
        {"silver.replica_state_timeline": [of(1, 0, 0, None, replica_id=1, state="SleepingReplica")]},
        {"silver.replica_state_timeline.state_vocabulary": 1},
    ),
    (
        "overlapping intervals",
        {
            "silver.leader_and_isr_timeline": [
                of(2, 0, 0, 5, leader=1, leader_epoch=0, isr=[1]),
                of(2, 1, 5, 6, leader=1, leader_epoch=1, isr=[1]),
                of(2, 2, 4, 7, leader=1, leader_epoch=2, isr=[1]),
            ]
        },
        {"silver.leader_and_isr_timeline.intervals_do_not_overlap": 1},
    ),
    (
        "two open intervals",
        {"silver.assignment_timeline": [of(0, 1, 3, None, replicas=[1])]},
        {
            "silver.assignment_timeline.one_open_interval": 1,
            "silver.assignment_timeline.intervals_do_not_overlap": 1,
        },
    ),
    (
        "a hole that nothing marks",
        {
            "silver.partition_state_timeline": [
                of(3, 0, 0, 1, state="NewPartition"),
                of(3, 1, 2, None, state="OnlinePartition"),
            ]
        },
        {"silver.partition_state_timeline.intervals_are_contiguous": 1},
    ),
    (
        "an interval missing from the numbering",
        {
            "silver.replica_role_timeline": [
                of(4, n, n, n + 1, broker_id=1, view="replica_manager", role="follower") for n in (0, 1, 3)
            ]
        },
        {"silver.replica_role_timeline.sequence_consecutive": 1},
    ),
    (
        "two rows of one key",
        {
            "silver.broker_liveness_timeline": [
                {"broker_id": 7, "sequence": 0, "valid_from": at(0), "valid_to": at(0), "evidence": ["r5"]}
            ]
            * 2
        },
        {
            "silver.broker_liveness_timeline.unique_key": 1,
            "silver.broker_liveness_timeline.sequence_consecutive": 1,
        },
    ),
    (
        "an interval that ends before it begins",
        {"gold.availability_intervals": [of(5, 0, 3, 2, kind="deleting")]},
        {"gold.availability_intervals.interval_order": 1},
    ),
    (
        "evidence that is not in bronze",
        {"gold.divergences": [{"divergence_id": "d3", "rule_id": "R99", "severity": "info", "evidence": ["r1", "no"]}]},
        {"gold.divergences.evidence_exists": 1},
    ),
    (
        "an ISR with a NULL in it",
        {"silver.leader_and_isr_timeline": [of(7, 0, 0, None, leader=1, leader_epoch=0, isr=[1, None])]},
        {"silver.leader_and_isr_timeline.isr_elements_not_null": 1},
    ),
    (
        "a row without evidence",
        {"silver.offset_observations": [{"observation_id": "x", "offset_kind": "recovery_point", "evidence": []}]},
        {"silver.offset_observations.evidence_not_empty": 1},
    ),
    (
        "an assigned partition that no other timeline knows",
        {"silver.assignment_timeline": [of(6, 0, 0, None, replicas=[1])]},
        {
            f"silver.{timeline}.knows_every_assigned_partition": 1
            for timeline in ("partition_state_timeline", "leader_and_isr_timeline")
        },
    ),
)


def nullable(spec: TableSpec) -> T.StructType:
    return T.StructType([T.StructField(field.name, field.dataType) for field in spec.struct.fields])


def write(lake: Lake, rows_of: Rows, unguarded: Iterable[str] = ()) -> None:
    """Write the tables; the unguarded ones without Delta's constraints, which would refuse damaged rows."""
    for name, rows in rows_of.items():
        spec = TABLES[name]
        empty = {c.name: None if c.nullable else _EMPTY[c.type] for c in spec.columns}
        frame = frame_of(lake, spec, [empty | {"cluster_id": "c"} | row for row in rows])
        if name in unguarded:
            shutil.rmtree(lake.path(spec))
            frame.write.format("delta").save(lake.path(spec))
        else:
            lake.append(frame, spec)


def silent(_: str) -> None:
    """Progress that nobody watches."""


@pytest.fixture(scope="module")
def damaged(spark, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    """The report over a lake that has every damage at once."""
    folder = tmp_path_factory.mktemp("damaged") / "lake"
    shutil.copytree(empty_lake_dir, folder)
    rows_of = sound()
    for _, added, _ in DAMAGES:
        for name, rows in added.items():
            rows_of.setdefault(name, []).extend(rows)
    lake = Lake(spark, str(folder))
    write(lake, rows_of, unguarded={name for _, added, _ in DAMAGES for name in added})
    return run_checks(lake, progress=silent)


def test_a_sound_lake_passes_and_its_results_are_kept(lake: Lake) -> None:
    write(lake, sound())
    progress: list[str] = []
    report = run_checks(lake, progress=progress.append)

    assert report.failed_gates == ()
    broken = [r.check_id for r in report.results if r.verdict == "broken"]
    assert broken == ["quality.run_metrics.rejected_records_ratio_warning", "R01"], "one record of three is rejected"
    assert progress
    counts = {r.check_id: r.checked_count for r in report.results}
    assert counts["silver.partition_state_timeline.intervals_are_contiguous"] == 3
    assert counts["silver.state_change_events.no_record_lost"] == 2
    assert counts["gold.divergences.evidence_exists"] == 3
    assert counts["silver.leader_and_isr_timeline.leader_not_null"] == 2

    kept = lake.read(CHECK_RESULTS).collect()
    of_metrics = {each.check.check_id for each in metric_checks(METRIC_PASSES, Thresholds())}
    assert {row["check_id"] for row in kept} == {c.check_id for c in registry().checks} | of_metrics | set(RULES)
    assert len(kept) == len(report.results)
    assert {row["run_id"] for row in kept} == {report.run_id}
    assert {row["rules_fingerprint"] for row in kept} == {report.rules_fingerprint}


def test_a_rule_is_a_result_and_no_gate(damaged: CheckReport) -> None:
    rules = {r.check_id: r for r in damaged.results if r.check_id in RULES}
    assert set(rules) == set(RULES)
    assert {r.severity for r in rules.values()} == {"info"}
    assert (rules["R01"].verdict, rules["R01"].checked_count, rules["R01"].broken_count) == ("broken", 9, 2)
    assert "1 of severity error, 1 of severity warning" in rules["R01"].explanation
    assert [e["divergence_id"] for e in json.loads(rules["R01"].examples or "")] == ["d1", "d2"]
    assert (rules["R02"].verdict, rules["R02"].checked_count, rules["R02"].examples) == ("kept", 4, None)
    assert rules["R04"].verdict == "cannot_be_judged", "only an earlier run judged it"
    assert not any("R01" in sentence for sentence in damaged.failed_gates)


@pytest.mark.parametrize("expected", [d[2] for d in DAMAGES], ids=[d[0] for d in DAMAGES])
def test_a_damage_is_reported(damaged: CheckReport, expected: dict[str, int]) -> None:
    results = {r.check_id: r for r in damaged.results}
    for check_id in expected:
        result = results[check_id]
        assert result.verdict == "broken"
        assert result.broken_count == sum(counts.get(check_id, 0) for _, _, counts in DAMAGES)
        assert len(json.loads(result.examples or "")) == result.broken_count
        table, _, name = check_id.rpartition(".")
        begin = f"{table}: {name} is broken by {result.broken_count} of "
        named = [sentence for sentence in damaged.failed_gates if sentence.startswith(begin)]
        assert len(named) == (1 if result.severity == CRITICAL else 0)


def test_an_example_of_a_record_that_became_no_event_shows_its_line(damaged: CheckReport) -> None:
    lost = next(r for r in damaged.results if r.check_id == "silver.state_change_events.no_record_lost")
    (example,) = json.loads(lost.examples or "")
    assert list(example) == ["record_id", "cluster_id", "source_file", "source_line", "message"]
    assert (example["record_id"], example["cluster_id"]) == ("lost", "c")


def test_cases_of_which_hashes_are_alike_are_doubled_only_where_all_is_the_same(lake: Lake) -> None:
    check = Check("gold.divergences", "unique_key", "no two share (a, b)", "repeats (a, b)", unique=("a", "b"))

    def doubled(rows: str) -> tuple[int | None, int | None, tuple[str, ...]]:
        each = Pass("pairs", f"SELECT * FROM VALUES {rows} AS pairs(a, b)", "gold", ("a", "b"), (check,))
        with tables_of(lake) as tables:
            (found,) = measure_passes(tables, [each])
        return found.checked_count, found.broken_count, found.examples

    # NULL is no part of a hash
    assert doubled("('x', NULL), (NULL, 'x'), ('y', 'z')") == (3, 0, ())
    assert doubled("('x', NULL), (NULL, 'x'), ('x', NULL)") == (3, 1, ('{"a":"x","b":null,"copies":2}',))


def test_nothing_else_is_reported(damaged: CheckReport) -> None:
    of_tables = [r for r in damaged.results if r.check_id not in RULES and r.table_name != "quality.run_metrics"]
    broken = {r.check_id for r in of_tables if r.verdict == "broken"}
    expected = {check_id for _, _, counts in DAMAGES for check_id in counts}
    unguarded = {f"{name}.schema" for _, added, _ in DAMAGES for name in added}
    assert broken == expected | unguarded, "the tables written without NOT NULL have another schema"


def test_a_table_of_another_shape_fails_its_schema_check_and_is_not_judged(lake: Lake) -> None:
    spec = TABLES["silver.znode_changes"]
    frame = lake.spark.createDataFrame([], T.StructType([f for f in nullable(spec).fields if f.name != "data"]))
    shutil.rmtree(lake.path(spec))
    frame.write.format("delta").save(lake.path(spec))
    checks = registry()
    few = Registry(
        tuple(c for c in checks.schema_checks if c.table == spec.full_name),
        tuple(p for p in checks.passes if p.reads == (spec.full_name,)),
    )
    with tables_of(lake) as tables:
        found = {m.check.name: m for m in measure(tables, few)}
    assert {"column": "data", "found": "nothing", "declared": "string"} in map(json.loads, found.pop("schema").examples)
    assert found
    assert all(m.broken_count is None for m in found.values())


@pytest.mark.parametrize("rows", [[], sound()["gold.divergences"]], ids=["no row", "rows"])
def test_a_table_is_opened_with_the_rows_and_the_schema_that_delta_has(lake: Lake, rows: list[dict[str, Any]]) -> None:
    spec = TABLES["gold.divergences"]
    if rows:
        write(lake, {spec.full_name: rows})
    opened, frame = tables_of(lake)[spec.full_name], lake.read(spec)
    assert [(f.name, f.dataType, f.nullable) for f in opened.schema] == [
        (f.name, f.dataType, f.nullable) for f in frame.schema
    ]
    assert not all(field.nullable for field in opened.schema)
    assert sorted(opened.rows.collect()) == sorted(frame.collect())
    assert len(rows) == opened.rows.count()


def views(lake: Lake) -> set[str]:
    return {row["viewName"] for row in lake.spark.sql("SHOW VIEWS").collect()}


def test_a_table_has_a_name_in_sql_for_as_long_as_it_is_asked_for(lake: Lake) -> None:
    spec = TABLES["gold.divergences"]
    before = views(lake)
    with tables_of(lake) as tables:
        assert tables[spec.full_name] is tables[spec.full_name]
        asked = "SELECT count(*) AS times FROM {divergences}"
        assert [tables.answer(asked).collect() for _ in range(2)] == [[(0,)], [(0,)]]
        (name,) = views(lake) - before
        assert name.endswith("_divergences")
    assert views(lake) == before


@pytest.mark.parametrize("by", ["driver", "tasks", "Spark"])
def test_most_damages_are_refused_as_they_are_written(lake: Lake, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the declared constraints stop at the door: the checks are for what came in another way."""
    if by == "Spark":
        monkeypatch.setattr("ingest.lake.delta.direct_folder", lambda *_: None)
    elif by == "tasks":
        monkeypatch.setattr("ingest.lake.direct._is_local", lambda _: False)
    for damage in ("NULL where none may be", "a word outside the vocabulary", "a file whose counts do not add up"):
        added = next(rows for name, rows, _ in DAMAGES if name == damage)
        with pytest.raises(Exception) as refused:  # noqa: PT011
            write(lake, added)
        words = r"DELTA_(VIOLATE_CONSTRAINT|NOT_NULL)" if by == "Spark" else "RowError"
        assert re.search(words, f"{refused.type.__name__}: {refused.value}")


def test_a_lake_without_tables_is_refused_in_a_sentence(spark, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"has no table .*: run ingest and reconstruct first"):
        run_checks(Lake(spark, str(tmp_path)), progress=silent)
