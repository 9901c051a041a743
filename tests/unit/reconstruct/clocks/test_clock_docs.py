"""docs/clocks.md names the columns that the tables have."""

from __future__ import annotations

import re

from ingest.lake.tables.quality import CLOCK_VERDICTS, EVIDENCE_COVERAGE
from tests import ROOT

PAGE = (ROOT / "docs" / "clocks.md").read_text(encoding="utf-8")


def test_every_column_of_a_clock_is_explained_under_its_name() -> None:
    columns = {column.name for column in EVIDENCE_COVERAGE.columns if column.name.startswith("clock_")}
    assert set(re.findall(r"`(clock_\w+)`", PAGE)) == columns


def test_every_verdict_is_explained() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE.split("| verdict |")[1], re.MULTILINE) == list(CLOCK_VERDICTS)
