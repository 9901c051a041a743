"""Lakes that are older or newer than the program, or broken."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest.lake import delta
from ingest.lake.creation import create_table
from ingest.lake.delta import Lake, LakeError
from ingest.lake.pinned import newest_version
from ingest.lake.renewal import VERSION_PROPERTY, standing_of
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import LOG_RECORDS
from ingest.lake.tables.gold import FINDING_HISTORY, LEADER_ELECTIONS
from ingest.lake.tables.kept import KEPT_TABLES
from ingest.lake.tables.quality import RUN_METRICS
from ingest.lake.tables.spec import col
from jobs import cli
from reconstruct.kept.last_run import bronze_versions, note
from tests.support.lakes.rows import append


def older(spec: TableSpec, without: str) -> TableSpec:
    """The spec as an earlier version might have been: without a column, and with one that is no more."""
    columns = (*(column for column in spec.columns if column.name != without), col("of_before", "string", "No more."))
    return dataclasses.replace(spec, columns=columns, version=spec.version - 1, constraints={})


def newer(spec: TableSpec) -> TableSpec:
    return dataclasses.replace(spec, version=spec.version + 1)


def made_as(lake: Lake, spec: TableSpec, rows: list[dict[str, Any]]) -> None:
    """Make the table anew by another spec of its name, with rows."""
    shutil.rmtree(lake.path(spec))
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    create_table(lake.spark, lake.path(spec), spec, {VERSION_PROPERTY: str(spec.version)})
    append(lake, spec, rows)


def test_a_table_s_log_is_summed_up_after_as_many_commits_as_it_says_and_not_before(lake, monkeypatch):
    monkeypatch.setattr(delta, "COMMITS_PER_CHECKPOINT", 3)
    shutil.rmtree(lake.path(LEADER_ELECTIONS))
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    lake.ensure([LEADER_ELECTIONS])
    summed_up = []
    for number in range(4):
        append(lake, LEADER_ELECTIONS, [{"topic": f"t{number}", "evidence": ["r"]}])
        checkpoints = Path(lake.path(LEADER_ELECTIONS), "_delta_log").glob("*.checkpoint*.parquet")
        summed_up.append(sorted(int(path.name.partition(".")[0]) for path in checkpoints))
    assert summed_up == [[], [], [3], [3]]
    assert {row.topic for row in lake.read(LEADER_ELECTIONS).collect()} == {"t0", "t1", "t2", "t3"}


def is_as_declared(lake: Lake, spec: TableSpec) -> bool:
    return standing_of(spec, newest_version(lake.spark, lake.path(spec)).metadata).is_same


def test_the_tables_that_a_run_makes_are_made_anew_and_what_was_before_can_be_read(lake):
    made_as(lake, older(LEADER_ELECTIONS, "is_unclean"), [{"topic": "t", "of_before": "x", "evidence": ["r"]}])
    with pytest.raises(LakeError, match=r"gold.leader_elections of version .*: `reconstruct` brings the lake to it"):
        lake.ensure()
    (told,) = lake.ensure(renews=True)
    assert told.startswith("gold.leader_elections: from version ")
    assert told.endswith(", made anew from bronze")
    assert is_as_declared(lake, LEADER_ELECTIONS)
    assert lake.read(LEADER_ELECTIONS).columns == list(LEADER_ELECTIONS.column_names)
    assert lake.rows_count(LEADER_ELECTIONS) == 0
    assert lake.ensure(renews=True) == []
    append(lake, LEADER_ELECTIONS, [{"topic": "t", "is_unclean": True, "evidence": ["r"]}])
    assert [row.is_unclean for row in lake.read(LEADER_ELECTIONS).collect()] == [True]
    before = lake.spark.read.format("delta").option("versionAsOf", 1).load(lake.path(LEADER_ELECTIONS))
    assert [row.of_before for row in before.collect()] == ["x"]


@pytest.mark.parametrize(
    ("spec", "without"), [(RUN_METRICS, None), (FINDING_HISTORY, "replaced_by"), (LOG_RECORDS, "continuation")]
)
def test_what_only_sources_or_runs_can_give_keeps_its_rows(lake, spec, without):
    made_as(lake, older(spec, without or "none"), [{"of_before": "x"}, {"of_before": "y"}])
    (told,) = lake.ensure([spec], renews=True)
    assert told.endswith(", its rows kept")
    assert is_as_declared(lake, spec)
    rows = lake.read(spec).collect()
    assert len(rows) == 2
    assert without is None or [row[without] for row in rows] == [None, None]


def test_bronze_that_lacks_what_only_its_sources_have_is_left_alone(lake):
    made_as(lake, older(LOG_RECORDS, "file_id"), [{"message": "x"}])
    for renews in (False, True):
        with pytest.raises(LakeError, match=r"bronze.log_records of version .*, which needs the sources: give another"):
            lake.ensure(renews=renews)
    assert lake.rows_count(LOG_RECORDS) == 1


def test_a_lake_that_is_newer_is_refused_by_every_command_that_knows_what_a_row_means(lake, tmp_path, capsys):
    made_as(lake, newer(LEADER_ELECTIONS), [])
    (tmp_path / "a.log").write_text("nothing\n")
    for argv in (["reconstruct"], ["report", "--out", str(tmp_path / "r")], ["check"], ["ask", "elections"]):
        told = said(capsys, lake, *argv)
        assert "gold.leader_elections of version" in told
        assert "a newer program wrote it, use that; nothing was done" in told
    assert newest_version(lake.spark, lake.path(LEADER_ELECTIONS)).number == 0


def test_a_table_of_bronze_that_was_read_and_is_gone_is_not_made_anew_as_an_empty_one(lake, tmp_path, capsys):
    lake.ensure(KEPT_TABLES)
    shutil.rmtree(lake.path(LOG_RECORDS))  # before the first run: what an ingest that was killed may leave
    lake.ensure()
    note(lake, 1, bronze_versions(lake), {})
    shutil.rmtree(lake.path(LEADER_ELECTIONS))
    shutil.rmtree(lake.path(LOG_RECORDS))
    (tmp_path / "a.log").write_text("nothing\n")
    for argv in (["ingest", str(tmp_path / "a.log")], ["reconstruct"], ["check"]):
        told = said(capsys, lake, *argv)
        assert f"{lake.path(LOG_RECORDS)} is gone, which the last run read" in told
        assert "make the lake anew from its sources" in told
    assert not Path(lake.path(LOG_RECORDS)).exists()
    assert not Path(lake.path(LEADER_ELECTIONS)).exists()


def said(capsys: pytest.CaptureFixture[str], lake: Lake, *argv: str) -> str:
    """What a command that must fail says: one line, and no stack trace."""
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    capsys.readouterr()
    code = cli.main([*argv, "--lake", lake.root, "--quiet"])
    told = capsys.readouterr().err
    assert code in (1, 2), told
    assert told.count("\n") == 1, told
    assert "Traceback" not in told
    return told


def _log(lake: Lake, spec: TableSpec) -> Path:
    return Path(lake.path(spec)) / "_delta_log"


def _gone(log: Path) -> None:
    shutil.rmtree(log)


def _emptied(log: Path) -> None:
    for path in log.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _newest_cut(log: Path) -> None:
    _without_checksums(log)
    newest = max(log.glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-30])


def _newest_garbage(log: Path) -> None:
    _without_checksums(log)
    max(log.glob("*.json")).write_bytes(b"\x00\xff\x1b[31m\n")


def _middle_gone(log: Path) -> None:
    _without_checksums(log)
    sorted(log.glob("*.json"))[1].unlink()


def _first_gone(log: Path) -> None:
    _without_checksums(log)
    min(log.glob("*.json")).unlink()


def _without_checksums(log: Path) -> None:
    for path in log.glob("*.crc"):
        path.unlink()


@pytest.mark.parametrize("broken", [_gone, _emptied, _newest_cut, _newest_garbage, _middle_gone, _first_gone])
@pytest.mark.parametrize("spec", [LEADER_ELECTIONS, LOG_RECORDS])
def test_a_broken_delta_log_is_a_sentence_that_names_the_table_and_what_to_do(
    lake: Lake, capsys: pytest.CaptureFixture[str], tmp_path: Path, broken: Callable[[Path], None], spec: TableSpec
) -> None:
    for _ in range(3):
        append(lake, spec, [{}])
    broken(_log(lake, spec))
    remedy = "make the lake anew from its sources" if spec is LOG_RECORDS else "let `reconstruct` make it anew"
    commands = [["reconstruct"], ["report", "--out", str(tmp_path)], ["maintain"]]
    for argv in (*commands, ["sql", f"SELECT * FROM {spec.full_name}"]):
        told = said(capsys, lake, *argv)
        assert lake.path(spec) in told
        assert remedy in told, told
