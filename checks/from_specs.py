"""The checks that follow from a table's declaration: columns, nullability, vocabularies, constraints, key, intervals.

A table gets one pass over its rows. A timeline's pass walks each key's intervals in their order, which also finds
doubled keys; any other table's counts the distinct ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from checks.catalog import Check, Pass
from ingest.lake.tables import TableSpec
from ingest.lake.tables.spec import literals

#: No instant of a log comes after it; stands for the end of an open interval where ends are compared.
_FOREVER: Final = "TIMESTAMP'9999-12-31 00:00:00'"

#: States after which the partition or replica is gone: nothing need be known of it until it is created again.
_GONE: Final = ("NonExistentPartition", "NonExistentReplica", "ReplicaDeletionSuccessful")
_MARKED_GAP: Final = (
    "inferred_from IN ('log_gap', 'retention_boundary') OR coalesce(_previous.inferred_from = 'conflict_closed', false)"
)
_AFTER_DELETION: Final = f"_previous.state IN ({literals(_GONE)}) OR {_MARKED_GAP}"

#: Timelines whose intervals must touch within one incarnation, and where they need not: after a deletion, and where
#: the rows themselves say that evidence is missing. A partition created again starts at leader epoch 0.
ALLOWED_GAPS: Final[Mapping[str, str]] = {
    "silver.partition_state_timeline": _AFTER_DELETION,
    "silver.replica_state_timeline": _AFTER_DELETION,
    "silver.leader_and_isr_timeline": f"leader_epoch = 0 OR {_MARKED_GAP}",
    "silver.assignment_timeline": _MARKED_GAP,
}


def is_timeline(spec: TableSpec) -> bool:
    """Whether the table's rows are numbered intervals ``[valid_from, valid_to)``."""
    return "sequence" in spec.key and {"valid_from", "valid_to"} <= set(spec.column_names)


def schema_check(spec: TableSpec) -> Check:
    """The table's columns, their types and their nullability against the declaration; a case is a column."""
    declared = ", ".join(f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in spec.columns)
    explanation = "columns, types and NOT NULL are as the table declares them"
    return Check(spec.full_name, "schema", explanation, broken=f"is not: {declared}")


def row_pass(spec: TableSpec) -> Pass:
    """Everything that one row, or one row and those before it in its timeline, can show."""
    cases = _in_order(spec) if is_timeline(spec) else f"SELECT * FROM {{{spec.name}}}"
    return Pass(spec.full_name, cases, spec.schema, spec.key, tuple(_row_checks(spec)))


def _row_checks(spec: TableSpec) -> Iterator[Check]:
    check, key = partial(Check, spec.full_name), ", ".join(spec.key)
    for column in spec.columns:
        name, shown = column.name, (column.name,)
        is_given = f"{name} IS NOT NULL"
        if not column.nullable:
            yield check(f"{name}_not_null", f"{name} is never NULL", f"{name} IS NULL", not_null=name)
        if column.vocabulary:
            words = literals(column.vocabulary)
            yield check(f"{name}_vocabulary", f"{name} is one of {words}", f"{name} NOT IN ({words})", is_given, shown)
        if column.type.startswith("array<"):
            has_null = f"exists({name}, element -> element IS NULL)"
            yield check(f"{name}_elements_not_null", f"no element of {name} is NULL", has_null, is_given, shown)
    for name, condition in spec.constraints.items():
        named = tuple(c.name for c in spec.columns if c.name in condition and c.name not in spec.key)
        yield check(name, f"every row satisfies: {condition}", f"NOT ({condition})", shows=named)
    if "evidence" in spec.column_names:
        promise = "every row names the bronze records it comes from"
        yield check("evidence_not_empty", promise, "coalesce(size(evidence), 0) <= 0", shows=("evidence",))
    if is_timeline(spec):
        yield from _interval_checks(spec)
    elif spec.key:
        yield check("unique_key", f"no two rows share ({key})", f"repeats ({key})", unique=spec.key)


def _in_order(spec: TableSpec) -> str:
    """Each interval with what came before it in its timeline: the row before, the latest end, the open ones."""
    timeline = ", ".join(name for name in spec.key if name != "sequence")
    wanted = ("sequence", "valid_from", "valid_to", "inferred_from", "state")
    previous = ", ".join(f"'{name}', {name}" for name in wanted if name in spec.column_names)
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    ordered = f"PARTITION BY {timeline} ORDER BY sequence, valid_from, valid_to"
    return (
        f"SELECT *, lag(named_struct({previous})) OVER ({ordered}) AS _previous,"
        f" row_number() OVER ({ordered}) - 1 AS _position,"
        f" max(coalesce(valid_to, {_FOREVER})) OVER ({ordered} {before}) AS _latest_end,"
        f" coalesce(count_if(valid_to IS NULL) OVER ({ordered} {before}), 0) AS _open_before"
        f" FROM {{{spec.name}}}"
    )


def _interval_checks(spec: TableSpec) -> Iterator[Check]:
    check, shown = partial(Check, spec.full_name), ("valid_from", "valid_to", "_previous")
    timeline = ", ".join(name for name in spec.key if name != "sequence")
    promise = f"no two rows share ({', '.join(spec.key)})"
    yield check("unique_key", promise, "_previous.sequence = sequence", shows=shown)
    promise = f"sequence counts the intervals of one ({timeline}) from 0"
    yield check("sequence_consecutive", promise, "sequence <> _position", shows=(*shown, "_position"))
    promise = f"intervals of one ({timeline}) do not overlap"
    yield check("intervals_do_not_overlap", promise, "_latest_end > valid_from", shows=(*shown, "_latest_end"))
    promise, is_open = f"at most one interval of one ({timeline}) is open", "valid_to IS NULL"
    yield check("one_open_interval", promise, f"{is_open} AND _open_before > 0", is_open, shown)
    if allowed := ALLOWED_GAPS.get(spec.full_name):
        promise = "an interval begins where the one before it ended, but after a deletion or a gap that a row marks"
        is_gap = f"_previous.valid_to < valid_from AND NOT coalesce({allowed}, false)"
        yield check("intervals_are_contiguous", promise, is_gap, "_previous IS NOT NULL", shown)
