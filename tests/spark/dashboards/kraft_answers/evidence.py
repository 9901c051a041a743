"""Questions of ``dashboards/questions/evidence``."""

from __future__ import annotations

from tests.spark.dashboards.kraft_answers.asked import Asked, of


@of("cache-beliefs")
def cache_beliefs(ask: Asked) -> None:
    assert ask("cache-beliefs") == []


@of("clocks")
def clocks(ask: Asked) -> None:
    rows = ask("clocks")
    # all ran on one machine, whose clock the records have too
    assert {(row.clock_verdict, row.clock_reference) for row in rows} == {("agrees", -1)}
    assert {row.broker_id for row in rows} == {1, 2, 3, 101, 102, 103}
    assert all(row.clock_offset_lower_ms <= 0 <= row.clock_offset_upper_ms for row in rows)


@of("findings")
def findings(ask: Asked) -> None:
    rows = ask("findings")
    found = {(row.rule_id, row.topic, row.partition_id) for row in rows if row.severity != "info"}
    assert found == {(rule, "ledger", number) for rule in ("R08", "R35") for number in (0, 1)}


@of("migration")
def migration(ask: Asked) -> None:
    assert ask("migration") == []  # tests/spark/reconstruct/test_migration.py has one


@of("trust")
def trust(ask: Asked) -> None:
    kinds = {(row.source_kind, row.broker_id) for row in ask("trust") if row.coverage == "covered"}
    assert {("metadata_log", node) for node in (1, 2, 3, 101, 102, 103)} <= kinds
