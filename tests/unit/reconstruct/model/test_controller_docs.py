"""docs/controller-model.md says what the code says."""

from __future__ import annotations

import re

from reconstruct.model import versions
from reconstruct.model.versions import KafkaVersion
from tests import ROOT
from tests.oracles import versions as oracle_versions

PAGE = (ROOT / "docs" / "controller-model.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = PAGE.split(f"## {heading}\n", 1)[1]
    lines = section[section.index("\n|") + 1 :].split("\n\n", 1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_gate_is_listed_with_its_release() -> None:
    listed = {
        name.strip("`"): KafkaVersion.parse(release) for release, name, _ in rows("What changed, release by release")
    }
    gates = {
        name: value
        for name, value in {**vars(versions), **vars(oracle_versions)}.items()
        if isinstance(value, KafkaVersion) and name.endswith(("_SINCE", "_UNTIL"))
    }
    assert listed == gates


def test_every_case_named_exists() -> None:
    tests = (ROOT / "tests/unit/reconstruct/model").rglob("test_*.py")
    written = {name for path in tests for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)}
    named = re.findall(r"^\| `(test[A-Z]\w+)` \| `(test_\w+)` \|", PAGE, re.MULTILINE)
    assert {ours for _, ours in named} <= written
    assert len({theirs for theirs, _ in named}) == len(named)
    counts = {name: int(count) for name, count in re.findall(r"^### (\w+): (\d+) of \d+", PAGE, re.MULTILINE)}
    assert counts["PartitionStateMachineTest"] == 22
    assert counts["ReplicaStateMachineTest"] == 45
    assert sum(counts.values()) == len(named)


def test_every_module_is_introduced() -> None:
    rooms = (ROOT / "reconstruct/model/controller", ROOT / "tests/oracles/controller")
    modules = {path.stem for room in rooms for path in room.glob("*.py")} - {"__init__"}
    introduced = set(re.findall(r"`(\w+)`", PAGE.split("## Partition states")[0]))
    assert modules <= introduced
