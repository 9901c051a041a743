"""The checks that follow from the table specs, without Spark."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from pyspark.sql import types as T

from checks.catalog import CRITICAL, INFO, WARNING, fingerprint
from checks.from_specs import ALLOWED_GAPS, is_timeline, row_pass, schema_check
from checks.gate import suite_of
from checks.measure import counts_sql, examples_sql, schema_problems
from checks.registry import CHECKED_TABLES, registry
from checks.relations import EVIDENCE_TABLES, RECORD_TABLES
from ingest.lake.tables import TABLES
from ingest.lake.tables.quality import CHECK_RESULTS
from reconstruct.rule_book import RULES
from tests.support.loops import for_each

TIMELINES = [spec for spec in CHECKED_TABLES if is_timeline(spec)]


def names(table: str) -> set[str]:
    return {check.name for check in registry().checks if check.table == table}


def test_every_table_but_those_of_quality_is_checked() -> None:
    assert {check.table for check in registry().checks} == {t for t in TABLES if not t.startswith("quality.")}


def test_a_check_has_an_id_of_its_own_and_a_severity_of_the_table() -> None:
    ids = [check.check_id for check in registry().checks] + list(RULES)
    assert len(ids) == len(set(ids))
    assert {check.severity for check in registry().checks} <= {CRITICAL, WARNING}
    assert {CRITICAL, WARNING, INFO} == set(CHECK_RESULTS.column("severity").vocabulary)


@for_each(spec=CHECKED_TABLES)
def test_a_declaration_gives_its_checks(spec) -> None:
    found = names(spec.full_name)
    assert "schema" in found
    assert {f"{c.name}_not_null" for c in spec.columns if not c.nullable} <= found
    assert {f"{c.name}_vocabulary" for c in spec.columns if c.vocabulary} <= found
    assert {f"{c.name}_elements_not_null" for c in spec.columns if c.type.startswith("array")} <= found
    assert set(spec.constraints) <= found
    assert ("unique_key" in found) == bool(spec.key)
    assert ({"evidence_not_empty", "evidence_exists"} <= found) == ("evidence" in spec.column_names)


@pytest.mark.parametrize("spec", TIMELINES, ids=lambda spec: spec.full_name)
def test_a_timeline_is_walked_once_and_gives_the_interval_checks(spec) -> None:
    found = names(spec.full_name)
    assert {"interval_order", "sequence_consecutive", "intervals_do_not_overlap", "one_open_interval"} <= found
    assert ("intervals_are_contiguous" in found) == (spec.full_name in ALLOWED_GAPS)
    assert not any(check.unique for check in row_pass(spec).checks), "doubled keys are neighbours in a timeline"


def test_the_timelines_are_those_of_the_design() -> None:
    assert {spec.full_name for spec in TIMELINES} == {
        "silver.controller_epoch_timeline",
        "silver.quorum_timeline",
        "silver.broker_liveness_timeline",
        "silver.partition_state_timeline",
        "silver.replica_state_timeline",
        "silver.leader_and_isr_timeline",
        "silver.assignment_timeline",
        "silver.replica_role_timeline",
        "silver.fetcher_timeline",
        "silver.replica_offset_timeline",
        "silver.log_segment_timeline",
        "gold.availability_intervals",
        "gold.isr_flapping",
        "gold.records_at_risk",
    }
    assert set(ALLOWED_GAPS) < {spec.full_name for spec in TIMELINES}


def test_conservation_and_evidence_are_checked_across_the_layers() -> None:
    ids = {check.check_id for check in registry().checks}
    assert {
        "bronze.ingested_files.read_is_kept_and_rejected",
        "bronze.ingested_files.rows_have_a_file",
        "silver.state_change_events.no_record_lost",
    } <= ids
    assert {spec.name for spec in RECORD_TABLES} == {
        "log_records",
        "znode_snapshots",
        "znode_transactions",
        "offset_checkpoints",
        "leader_epoch_checkpoints",
        "offset_probes",
        "cluster_descriptions",
        "capture_gaps",
        "log_segments",
        "broker_configs",
        "metadata_records",
        "metadata_snapshots",
        "quorum_states",
        "rejected_records",
    }
    assert {f"{spec.full_name}.evidence_exists" for spec in EVIDENCE_TABLES} <= ids


def test_a_pass_names_the_tables_that_its_query_reads() -> None:
    assert len({each.name for each in registry().passes}) == len(registry().passes)
    for each in registry().passes:
        assert each.stage in ("bronze", "silver", "gold", "across")
        assert set(re.findall(r"{(\w+)}", each.cases)) == {TABLES[name].name for name in each.reads}, each.name
    assert len({spec.name for spec in TABLES.values()}) == len(TABLES), "queries name tables without their schema"


def test_the_checks_of_a_pass_answer_together_and_each_says_nothing_where_it_does_not_apply() -> None:
    each = row_pass(TABLES["silver.assignment_timeline"])
    query = counts_sql({each: each.checks})
    assert query.count("IF(valid_to IS NULL, IF(valid_to IS NULL AND _open_before > 0, 2, 1), 0)") == 1
    assert query.count("GROUP BY pass, answers") == 1, "all answers to a case are one key"
    divergences = row_pass(TABLES["gold.divergences"])
    asked = [check for check in divergences.checks if check.unique]
    assert "0 AS pass, 1 AS place, xxhash64(cluster_id, divergence_id) AS hash" in counts_sql({divergences: asked})


def test_examples_come_in_the_order_of_the_key() -> None:
    each = row_pass(TABLES["gold.divergences"])
    by_name = {check.name: examples_sql(each, check) for check in each.checks}
    assert "struct(cluster_id, divergence_id, severity)" in by_name["severity_vocabulary"]
    assert by_name["severity_vocabulary"].endswith("ORDER BY cluster_id, divergence_id, example LIMIT 20")
    assert "GROUP BY cluster_id, divergence_id HAVING count(*) > 1" in by_name["unique_key"]
    assert by_name["unique_key"].endswith("ORDER BY cluster_id, divergence_id LIMIT 20")


def test_the_fingerprint_follows_what_decides_a_verdict_and_nothing_else() -> None:
    checks, passes = registry().checks, registry().passes
    before = fingerprint(checks, passes, RULES)
    assert before == fingerprint(reversed(checks), reversed(passes), reversed(list(RULES)))
    reworded = [dataclasses.replace(checks[0], explanation="other words"), *checks[1:]]
    assert before == fingerprint(reworded, passes, RULES)
    milder = [dataclasses.replace(checks[0], severity=WARNING), *checks[1:]]
    assert before != fingerprint(milder, passes, RULES)
    assert before != fingerprint(checks[1:], passes, RULES)
    assert before != fingerprint(checks, passes, [*RULES, "R99"])


def test_a_suite_has_an_expectation_per_check_with_its_severity() -> None:
    table = "silver.leader_and_isr_timeline"
    checks = [check for check in registry().checks if check.table == table]
    suite = suite_of(table, checks)
    assert suite.name == table
    assert {each.check_id: each.severity.value for each in suite.expectations} == {
        check.check_id: check.severity for check in checks
    }


SPEC = TABLES["gold.availability_intervals"]


def problems(struct: T.StructType) -> list[dict[str, str]]:
    return [json.loads(each) for each in schema_problems(struct, SPEC)]


def test_the_declared_schema_has_no_problem() -> None:
    assert problems(SPEC.struct) == []
    assert schema_check(SPEC).severity == CRITICAL


def test_a_missing_column_is_named() -> None:
    fields = [field for field in SPEC.struct.fields if field.name != "kind"]
    assert problems(T.StructType(fields)) == [{"column": "kind", "found": "nothing", "declared": "string"}]


def test_another_type_an_unknown_column_and_a_lost_not_null_are_named() -> None:
    fields = {field.name: field for field in SPEC.struct.fields}
    fields["sequence"] = T.StructField("sequence", T.LongType(), nullable=False)
    fields["kind"] = T.StructField("kind", T.StringType(), nullable=True)
    fields["mood"] = T.StructField("mood", T.StringType())
    assert problems(T.StructType(list(fields.values()))) == [
        {"column": "kind", "found": "NULL allowed", "declared": "NOT NULL"},
        {"column": "sequence", "found": "bigint", "declared_type": "int"},
        {"column": "mood", "found": "string", "declared": "nothing"},
    ]
