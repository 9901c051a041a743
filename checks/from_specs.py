"""The checks that follow from a table's declaration: columns, nullability, vocabularies, constraints, key, intervals.

A table gets one pass over its rows. A timeline's pass walks each key's intervals in their order, which also finds
doubled keys; any other table's counts the distinct ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from checks.catalog import CRITICAL, Check, Pass
from ingest.lake.tables import Column, TableSpec
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
    return Check(
        spec.full_name,
        "schema",
        CRITICAL,
        "columns, types and NOT NULL are as the table declares them",
        broken=f"is not: {declared}",
    )


def row_pass(spec: TableSpec) -> Pass:
    """Everything that one row, or one row and those before it in its timeline, can show."""
    checks = [
        *(_not_null(spec, column) for column in spec.columns if not column.nullable),
        *(_vocabulary(spec, column) for column in spec.columns if column.vocabulary),
        *(_elements(spec, column) for column in spec.columns if column.type.startswith("array<")),
        *(_constraint(spec, name, condition) for name, condition in spec.constraints.items()),
    ]
    if "evidence" in spec.column_names:
        checks.append(
            Check(
                spec.full_name,
                "evidence_not_empty",
                CRITICAL,
                "every row names the bronze records it comes from",
                "coalesce(size(evidence), 0) <= 0",
                shows=("evidence",),
            )
        )
    cases = f"SELECT * FROM {{{spec.name}}}"
    if is_timeline(spec):
        checks += _interval_checks(spec)
        cases = _in_order(spec)
    elif spec.key:
        checks.append(_unique_key(spec))
    return Pass(spec.full_name, spec.schema, (spec.full_name,), cases, spec.key, tuple(checks))


def _unique_key(spec: TableSpec) -> Check:
    key = ", ".join(spec.key)
    return Check(
        spec.full_name, "unique_key", CRITICAL, f"no two rows share ({key})", f"repeats ({key})", unique=spec.key
    )


def _not_null(spec: TableSpec, column: Column) -> Check:
    return Check(
        spec.full_name,
        f"{column.name}_not_null",
        CRITICAL,
        f"{column.name} is never NULL",
        f"{column.name} IS NULL",
        not_null=column.name,
    )


def _vocabulary(spec: TableSpec, column: Column) -> Check:
    words = literals(column.vocabulary)
    return Check(
        spec.full_name,
        f"{column.name}_vocabulary",
        CRITICAL,
        f"{column.name} is one of {words}",
        f"{column.name} NOT IN ({words})",
        f"{column.name} IS NOT NULL",
        (column.name,),
    )


def _elements(spec: TableSpec, column: Column) -> Check:
    return Check(
        spec.full_name,
        f"{column.name}_elements_not_null",
        CRITICAL,
        f"no element of {column.name} is NULL",
        f"exists({column.name}, element -> element IS NULL)",
        f"{column.name} IS NOT NULL",
        (column.name,),
    )


def _constraint(spec: TableSpec, name: str, condition: str) -> Check:
    named = tuple(c.name for c in spec.columns if c.name in condition and c.name not in spec.key)
    return Check(spec.full_name, name, CRITICAL, f"every row satisfies: {condition}", f"NOT ({condition})", shows=named)


def _in_order(spec: TableSpec) -> str:
    """Each interval with what came before it in its timeline: the row before, the latest end, the open ones."""
    timeline = ", ".join(name for name in spec.key if name != "sequence")
    wanted = ["sequence", "valid_from", "valid_to", "inferred_from"]
    wanted += [name for name in ("state",) if name in spec.column_names]
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


def _interval_checks(spec: TableSpec) -> list[Check]:
    table, interval = spec.full_name, ("valid_from", "valid_to", "_previous")
    timeline = ", ".join(name for name in spec.key if name != "sequence")
    checks = [
        Check(
            table,
            "unique_key",
            CRITICAL,
            f"no two rows share ({', '.join(spec.key)})",
            "_previous.sequence = sequence",
            shows=interval,
        ),
        Check(
            table,
            "sequence_consecutive",
            CRITICAL,
            f"sequence counts the intervals of one ({timeline}) from 0",
            "sequence <> _position",
            shows=(*interval, "_position"),
        ),
        Check(
            table,
            "intervals_do_not_overlap",
            CRITICAL,
            f"intervals of one ({timeline}) do not overlap",
            "_latest_end > valid_from",
            shows=(*interval, "_latest_end"),
        ),
        Check(
            table,
            "one_open_interval",
            CRITICAL,
            f"at most one interval of one ({timeline}) is open",
            "valid_to IS NULL AND _open_before > 0",
            "valid_to IS NULL",
            interval,
        ),
    ]
    allowed = ALLOWED_GAPS.get(table)
    if allowed is not None:
        checks.append(
            Check(
                table,
                "intervals_are_contiguous",
                CRITICAL,
                "an interval begins where the one before it ended, but after a deletion or a gap that a row marks",
                f"_previous.valid_to < valid_from AND NOT coalesce({allowed}, false)",
                "_previous IS NOT NULL",
                interval,
            )
        )
    return checks
