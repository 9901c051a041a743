"""The same files, in another order, under other names, twice, or beside other clusters: the rows are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ingest.lake.delta import Lake
from tests.support.captures.lake import Given, Sources
from tests.support.lakes.captures import REORDERED, CaptureLake, RunAgain, derived_rows
from tests.support.lakes.damaged import DamagedLake


def differing(
    before: Mapping[str, list[str]], after: Mapping[str, list[str]], without: str = ""
) -> dict[str, tuple[list[str], list[str]]]:
    """By table, up to three rows that only one side holds, a column left out of both."""
    found = {}
    for table, texts in before.items():
        here, there = (_without(without, rows) for rows in (texts, after[table]))
        gone, new = set(here) - set(there), set(there) - set(here)
        if gone or new or len(here) != len(there):
            found[table] = (sorted(gone)[:3], sorted(new)[:3])
    return found


def _without(column: str, texts: list[str]) -> list[str]:
    rows = [json.loads(text) for text in texts]
    return [json.dumps({name: value for name, value in row.items() if name != column}) for row in rows]


def of_clusters(capture_lake: CaptureLake, lake: Lake) -> dict[str, list[str]]:
    return derived_rows(lake, [capture_lake.clusters[Given(Sources.ALL, name)] for name in REORDERED])


def test_another_order_under_other_names_gives_the_same_rows(capture_lake: CaptureLake, run_again: RunAgain) -> None:
    before = of_clusters(capture_lake, capture_lake.lake)
    assert before["silver.leader_and_isr_timeline"]
    assert differing(before, run_again.rows, without="source_file") == {}


def test_running_twice_and_beside_other_clusters_changes_no_row(
    capture_lake: CaptureLake, run_again: RunAgain, damaged_lake: DamagedLake
) -> None:
    assert differing(run_again.rows, of_clusters(capture_lake, damaged_lake.lake)) == {}
