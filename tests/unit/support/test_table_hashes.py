"""Which tables the command hashes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table_hashes import main, tables_of


def test_every_table_of_a_lake_is_found_and_nothing_else(tmp_path: Path) -> None:
    for table in ("silver/b", "gold/a"):
        (tmp_path / table / "_delta_log").mkdir(parents=True)
    (tmp_path / "silver" / "no table").mkdir()
    assert [table.relative_to(tmp_path).as_posix() for table in tables_of(tmp_path)] == ["gold/a", "silver/b"]


def test_an_option_that_is_unknown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--columns", "number"])
    assert refused.value.code == 2
    assert "--columns" in capsys.readouterr().err
