"""What the documents promise to list, they list."""

from __future__ import annotations

import re
from pathlib import Path

from ingest.tables.silver import INFERRED_FROM

ROOT = Path(__file__).parents[2]


def test_every_type_of_finding_has_its_section() -> None:
    code = "".join(path.read_text() for path in sorted((ROOT / "reconstruct" / "history").glob("*.py")))
    used = set(re.findall(r'"R\d\d",\s+"(\w+)",', code)) | set(re.findall(r'rule,\s+"(\w+)",', code))
    used |= set(re.findall(r'else "R13",\s+"(\w+)",', code))
    sections = set(re.findall(r"^## (\w+) \(R", (ROOT / "docs" / "findings.md").read_text(), re.MULTILINE))
    assert used == sections
    assert len(used) > 5


def test_every_reason_to_infer_is_explained() -> None:
    page = (ROOT / "docs" / "timelines.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(INFERRED_FROM)
