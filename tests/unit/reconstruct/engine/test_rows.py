"""A dataclass declares the columns of its evidence; a table's row takes each column from the attribute of its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pytest

from ingest.lake.tables.shared import PARTITION_KEY
from ingest.lake.tables.silver import REPLICA_ROLE_TIMELINE
from reconstruct.engine.rows import (
    EvidenceRow,
    columns_of,
    numbered,
    row_of,
    table_row,
    table_rows,
    value_of,
    values_of,
)
from reconstruct.model.value_class import value_class
from reconstruct.partitions.roles import Role
from reconstruct.time.instants import to_datetime
from reconstruct.time.intervals import Interval


class Kind(StrEnum):
    UP = "up"


@dataclass(frozen=True, slots=True)
class Fact:
    kind: Kind
    at: int
    isr: tuple[int, ...] | None = None
    source: str = ""
    parts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Other:
    at: str


def test_fields_are_columns_but_those_that_no_column_holds() -> None:
    expected = {"kind": "string", "at": "bigint", "isr": "array<bigint>", "source": "string", "topic": "string"}
    assert columns_of(Fact, topic="string") == expected


def test_one_name_has_one_type() -> None:
    with pytest.raises(ValueError, match=r"Other\.at is string, elsewhere bigint"):
        columns_of(Fact, Other)


def test_a_row_becomes_a_value() -> None:
    row = {"kind": "up", "at": 5, "isr": [1, 2], "source": None, "more": 1}
    fact = value_of(Fact, row, parts=(("t", 0),))
    assert fact == Fact(Kind.UP, 5, (1, 2), "", (("t", 0),))
    assert isinstance(fact.kind, Kind)
    assert value_of(Fact, row | {"isr": None}).isr is None


def test_what_a_row_of_evidence_leaves_out_is_none_and_of_other_rows_the_default() -> None:
    @dataclass(frozen=True, slots=True)
    class Limited:
        at: int | None
        limit: int | None = 5
        name: str = "x"

    assert value_of(Limited, EvidenceRow(name="y")) == Limited(None, None, "y")
    assert value_of(Limited, EvidenceRow(name=None), at=1) == Limited(1, None, "x")
    assert value_of(Limited, {"at": 1}) == Limited(1, 5, "x")


def test_a_field_that_nothing_gives_or_nothing_has_is_refused() -> None:
    with pytest.raises(TypeError, match="Fact: at is no field of it, or has no value"):
        value_of(Fact, {"kind": "up"})
    with pytest.raises(TypeError, match="Fact: part is no field of it, or has no value"):
        value_of(Fact, {"kind": "up", "at": 5}, part=())


def test_a_default_may_be_made() -> None:
    @dataclass(frozen=True, slots=True)
    class Named:
        at: int
        named: Mapping[str, str] = field(default_factory=dict)

    for row in ({"at": 5}, {"at": 5, "named": None}, EvidenceRow(at=5)):
        assert value_of(Named, row) == Named(5)
    assert value_of(Named, {"at": 5, "named": {"topic": "t"}}) == Named(5, {"topic": "t"})


def test_fields_may_be_asked_for_by_name_alone() -> None:
    @dataclass(frozen=True, slots=True)
    class Named(Other):
        limit: int | None = 5

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ByName(Named):
        name: str

    assert value_of(ByName, {"at": "x", "name": "y"}) == ByName("x", name="y")


def test_a_fact_is_a_value_like_any_other() -> None:
    @value_class
    class Line:
        at: int
        isr: tuple[int, ...] | None = None

    one, other = (value_of(Line, EvidenceRow(at=5, isr=[1])) for _ in range(2))
    assert one == other == Line(5, (1,))
    assert {one: "told"}[other] == "told"
    assert not hasattr(one, "__dict__"), "slots"


def test_a_value_becomes_its_row_again() -> None:
    assert value_of(Fact, row_of(Fact(Kind.UP, 5, (1,)))) == Fact(Kind.UP, 5, (1,))


def test_rows_of_several_kinds_are_told_apart() -> None:
    rows = [{"row_kind": "Fact", "kind": "up", "at": 1}, {"row_kind": "Other", "at": "x"}]
    assert values_of(Other, rows) == [Other("x")]


def test_a_timeline_takes_its_columns_from_intervals_and_their_values() -> None:
    timeline = [
        Interval(1, 2, Role("leader", 1, 0, (1, 2)), ("e1",)),
        Interval(2, None, Role("none"), ("e2",), "log_gap"),
    ]
    first, last = table_rows(REPLICA_ROLE_TIMELINE, timeline, broker_id=3, view="metadata_cache")
    assert set(first) == {"table_name", *REPLICA_ROLE_TIMELINE.column_names} - set(PARTITION_KEY)
    assert (first["sequence"], first["broker_id"], first["leader"], first["isr"]) == (0, 3, 1, [1, 2])
    assert (first["valid_from"], first["valid_to"]) == (to_datetime(1), to_datetime(2))
    assert (last["valid_to"], last["isr"], last["inferred_from"], last["evidence"]) == (None, None, "log_gap", ["e2"])


def test_what_is_given_counts_before_attributes() -> None:
    assert table_row(REPLICA_ROLE_TIMELINE, Role("leader", 1), leader=2)["leader"] == 2


def test_each_table_and_each_class_has_columns_of_its_own() -> None:
    fewer = replace(REPLICA_ROLE_TIMELINE, columns=REPLICA_ROLE_TIMELINE.columns[:-1])
    of_role, of_other = (table_row(REPLICA_ROLE_TIMELINE, value) for value in (Role("leader", 1), Other("x")))
    assert (of_role["role"], of_other["role"]) == ("leader", None)
    assert set(of_role) - set(table_row(fewer, Role("leader", 1))) == {REPLICA_ROLE_TIMELINE.columns[-1].name}


def test_values_are_numbered_by_their_key() -> None:
    assert list(numbered("abaa", str)) == [(0, "a"), (0, "b"), (1, "a"), (2, "a")]
