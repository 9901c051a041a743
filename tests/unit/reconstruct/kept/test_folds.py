"""A key is folded where its evidence or an answer is another than what was kept of it, and only there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import KIND, SAYS, TABLE, EvidenceRow, Row, evidence_row, row_of, value_of
from reconstruct.kept.folds import Fold, KeptKey, for_each_key, settled_by

KEY = {"cluster_id": "c", "topic": "t"}


def told(number: int) -> EvidenceRow:
    """A row of evidence, as Spark hands it over."""
    return evidence_row(
        {**KEY, SAYS: json.dumps({"number": number}), "evidence_hash_1": 71 * number, "evidence_hash_2": -number}
    )


def kept_of(kept: KeptKey) -> EvidenceRow:
    """What was kept, as a row beside the evidence: without hashes."""
    says = json.dumps(row_of(kept) | {KIND: KeptKey.__name__})
    return evidence_row({**KEY, SAYS: says, "evidence_hash_1": None, "evidence_hash_2": None})


def in_order(rows: Sequence[Row], view: ClusterView) -> Iterator[dict[str, Any]]:
    """The numbers, and since when broker 1 ran."""
    yield {TABLE: "t", "numbers": sorted(row["number"] for row in rows), "starts": view.process_starts.get(1)}


def folded(rows: Sequence[EvidenceRow], view: ClusterView, **how: Any) -> list[dict[str, Any]]:
    step = Fold("numbers", tuple(KEY), (), in_order, ClusterView, judges=False, **how)
    return [dict(row) for row in for_each_key(step, {"c": view})(rows)]


STARTED = ClusterView("c", process_starts={1: ((5, "r"),), 2: ()})


@pytest.fixture
def kept() -> EvidenceRow:
    rows = folded([told(1), told(2)], STARTED)
    assert rows[:-1] == [{TABLE: "t", "numbers": [1, 2], "starts": ((5, "r"),)}]
    assert rows[-1][TABLE] == "kept.folded_keys"
    return kept_of(value_of(KeptKey, {name: value for name, value in rows[-1].items() if name != TABLE}))


def test_nothing_is_said_of_a_key_that_is_as_it_was(kept: EvidenceRow) -> None:
    assert folded([told(2), kept, told(1)], STARTED) == []
    # what it did not ask for may be another
    assert folded([told(1), told(2), kept], ClusterView("c", process_starts={1: ((5, "r"),), 2: ((9, "s"),)})) == []


@pytest.mark.parametrize("numbers", [(1,), (1, 3), (1, 2, 2), (1, 2, 3)])
def test_a_key_of_other_evidence_is_folded_without_what_was_kept(kept: EvidenceRow, numbers: tuple[int, ...]) -> None:
    rows = folded([kept, *map(told, numbers)], STARTED)
    assert [row.get("numbers") for row in rows] == [sorted(numbers), None]
    assert rows == folded([*map(told, numbers)], STARTED)


def test_a_key_that_would_be_answered_otherwise_is_folded(kept: EvidenceRow) -> None:
    rows = folded([told(1), kept, told(2)], ClusterView("c", process_starts={1: ((6, "r"),)}))
    assert [row.get("starts") for row in rows] == [((6, "r"),), None]


def test_a_key_without_any_evidence_is_gone(kept: EvidenceRow) -> None:
    assert folded([kept], STARTED) == [{TABLE: "gone"}]


def over_by(rows: Sequence[Row]) -> int | None:
    """What has a third number is over by 7."""
    return 7 if any(row["number"] == 3 for row in rows) else None


@pytest.mark.parametrize(
    ("numbers", "starts", "told_of", "is_kept"),
    [
        ((1, 3), ((5, "r"), (9, "s")), ((5, "r"), (9, "s")), True),
        ((1, 3), ((5, "r"), (9, "s"), (10, "t")), ((5, "r"), (9, "s")), True),  # of what is later it is told no more
        ((1, 2), ((5, "r"), (9, "s")), ((5, "r"), (9, "s")), False),
        ((1, 3), ((5, "r"),), ((5, "r"),), False),  # the first start after it is still to come
    ],
)
def test_a_key_that_is_over_is_folded_once_whatever_comes_later(numbers, starts, told_of, is_kept) -> None:
    first, kept = folded(list(map(told, numbers)), ClusterView("c", process_starts={1: starts}), over_by=over_by)
    assert first["starts"] == told_of
    kept = kept_of(value_of(KeptKey, {name: value for name, value in kept.items() if name != TABLE}))
    later = ClusterView("c", process_starts={1: (*starts, (11, "t"))}, tenures=(Tenure(2, 2, 10, None, ()),))
    assert (folded([*map(told, numbers), kept], later, over_by=over_by) == []) is is_kept
    # what was before is something else
    other = ClusterView("c", process_starts={1: ((6, "r"),)})
    assert folded([*map(told, numbers), kept], other, over_by=over_by) != []


def test_a_key_is_over_at_a_full_hour_a_quarter_of_an_hour_after_its_last_instant() -> None:
    minute = 60_000_000
    assert settled_by(0) == 60 * minute
    assert settled_by(45 * minute - 1) == 60 * minute
    assert settled_by(45 * minute) == 120 * minute
