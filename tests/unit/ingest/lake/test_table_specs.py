"""Tables are declared whole, and docs/tables.md says what they are."""

from __future__ import annotations

import pytest

from ingest.lake.tables import SCHEMAS, TABLES
from ingest.lake.tables.gold import FINDING_HISTORY
from jobs.docs.__main__ import main
from jobs.docs.pages import PAGES, page
from tests import ROOT
from tests.support.loops import for_each

SPECS = TABLES.values()

#: The columns that people and programs outside rely on: they may grow, not change.
CONTRACT = {
    "silver.state_change_events": "event_type event_time log_level broker_id controller_id controller_epoch replica_id"
    " from_state to_state leader leader_epoch isr partition_epoch correlation_id source_file source_line",
    "silver.leader_and_isr_timeline": "leader leader_epoch isr controller_epoch partition_epoch leader_recovery_state"
    " valid_from valid_to written_by",
    "silver.partition_state_timeline": "state valid_from valid_to controller_epoch",
    "silver.replica_state_timeline": "replica_id state valid_from valid_to controller_epoch",
    "silver.offset_observations": "replica_id offset_kind offset leader_epoch observed_at observed_at_upper source",
    "silver.controller_epoch_timeline": "controller_id controller_epoch valid_from valid_to",
    "silver.broker_liveness_timeline": "broker_id valid_from valid_to end_reason",
    "gold.divergences": "divergence_id rule_id divergence_type severity detected_at broker_id expected observed"
    " explanation known_issue",
    "gold.availability_intervals": "kind valid_from valid_to opened_by closed_by",
}
PARTITION_KEY = ("topic", "topic_incarnation", "partition_id")


@pytest.mark.parametrize("name", PAGES)
def test_the_document_is_up_to_date(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page(name), "run make docs"


@pytest.mark.parametrize("name", PAGES)
def test_check_tells_a_stale_document_from_a_fresh_one(name, tmp_path, capsys):
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    (tmp_path / name).write_text("stale", encoding="utf-8")
    assert main(["--check", str(tmp_path)]) == 1
    assert f"{name} is not what is declared: run make docs" in capsys.readouterr().err


def test_an_arrow_that_not_all_releases_have_says_which_do():
    drawn = page("transitions.md")
    assert "OfflineReplica --> ReplicaDeletionIneligible: since 2.3\n" in drawn
    assert "OfflineReplica --> NonExistentReplica: 0.8.0\n" in drawn
    assert "OfflineReplica --> ReplicaDeletionStarted: since 0.8.1\n" in drawn
    assert "NonExistentPartition --> NewPartition\n" in drawn


@for_each(spec=SPECS)
def test_a_table_says_its_grain_its_key_and_every_column(spec):
    assert spec.schema in SCHEMAS
    assert spec.grain.startswith("one row per ")
    assert spec.key
    assert [column.name for column in spec.columns if not column.comment.endswith(".")] == []
    assert [name for name in spec.column_names if name != name.lower()] == []


@for_each(spec=SPECS)
def test_a_timeline_has_both_ends_and_says_what_was_inferred(spec):
    if spec.name.endswith("_timeline"):
        assert {"valid_from", "valid_to", "sequence", "inferred_from"} <= set(spec.column_names)
        assert not spec.column("valid_from").nullable
        assert spec.column("valid_to").nullable


@for_each(spec=SPECS)
def test_silver_and_gold_say_where_a_row_comes_from(spec):
    # the history of findings outlives their evidence
    if spec.schema in ("silver", "gold") and spec is not FINDING_HISTORY:
        assert {"cluster_id", "evidence", "inferred_from", "model_version"} <= set(spec.column_names)
        assert spec.column("evidence").type == "array<string>"
        if "partition_id" in spec.column_names:
            assert set(PARTITION_KEY) <= set(spec.column_names)
            assert spec.column("partition_id").type == "int"


@pytest.mark.parametrize("name", sorted(CONTRACT))
def test_the_contract_columns_are_there(name):
    assert set(CONTRACT[name].split()) - set(TABLES[name].column_names) == set()


@for_each(spec=SPECS)
def test_only_bronze_and_quality_hold_our_own_clock(spec):
    if spec.schema in ("silver", "gold"):
        assert {"ingested_at", "run_at"} & set(spec.column_names) == set()
