"""docs/controller-model.md says what the code says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconstruct.model import states, versions
from reconstruct.model.versions import KafkaVersion

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "controller-model.md").read_text(encoding="utf-8")
TABLES = {
    "Partition states": (states.VALID_PREVIOUS_PARTITION_STATES, states.VALID_PREVIOUS_PARTITION_STATES_0_8_0),
    "Replica states": (
        states.VALID_PREVIOUS_REPLICA_STATES,
        states.VALID_PREVIOUS_REPLICA_STATES_0_8_1,
        states.VALID_PREVIOUS_REPLICA_STATES_0_8_0,
    ),
}


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = PAGE.split(f"## {heading}\n", 1)[1]
    lines = section[section.index("\n|") + 1 :].split("\n\n", 1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("heading", TABLES)
def test_the_transitions_are_those_of_the_dictionaries(heading: str) -> None:
    columns: list[Mapping[str, set[str]]] = [{} for _ in TABLES[heading]]
    for target, *cells in rows(heading):
        for column, cell in zip(columns, cells, strict=True):
            column[target.strip("`")] = set(re.findall(r"`(\w+)`", cell))  # type: ignore[index]
    for column, table in zip(columns, TABLES[heading], strict=True):
        assert {target: found for target, found in column.items() if found} == {
            str(target): {str(state) for state in previous} for target, previous in table.items()
        }


def test_every_gate_is_listed_with_its_release() -> None:
    listed = {
        name.strip("`"): KafkaVersion.parse(release) for release, name, _ in rows("What changed, release by release")
    }
    gates = {
        name: value
        for name, value in vars(versions).items()
        if isinstance(value, KafkaVersion) and name.endswith(("_SINCE", "_UNTIL"))
    }
    assert listed == gates


def test_every_case_named_exists() -> None:
    tests = [*Path(__file__).parent.glob("test_*.py"), ROOT / "tests/unit/reconstruct/test_elections.py"]
    written = {name for path in tests for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)}
    named = re.findall(r"^\| `(test[A-Z]\w+)` \| `(test_\w+)` \|", PAGE, re.MULTILINE)
    assert {ours for _, ours in named} <= written
    assert len({theirs for theirs, _ in named}) == len(named)
    counts = {name: int(count) for name, count in re.findall(r"^### (\w+): (\d+) of \d+", PAGE, re.MULTILINE)}
    assert counts["PartitionStateMachineTest"] == 22
    assert counts["ReplicaStateMachineTest"] == 45
    assert sum(counts.values()) == len(named)


def test_every_module_is_introduced() -> None:
    modules = {path.stem for path in (ROOT / "reconstruct/model/controller").glob("*.py")} - {"__init__"}
    introduced = set(re.findall(r"`(\w+)`", PAGE.split("## Partition states")[0]))
    assert modules <= introduced
