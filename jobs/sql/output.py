"""Rows of a query as a table, CSV or JSON, written as they come, never all in memory."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

from dashboards.words import markdown
from jobs.session.printable import printable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

#: Instants in every format: UTC, microseconds.
TIMESTAMP_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
_JSON_OPTIONS: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": TIMESTAMP_FORMAT,
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
#: What spreadsheets begin a formula with, or skip before one.
_FORMULA: Final = re.compile(r"\s*[=+\-@|\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
#: Rows that a table's column widths are taken from; later rows may be wider and are printed whole all the same.
_SAMPLED_ROWS: Final = 200
#: Nobody reads further down on a screen; a file or another program gets every row.
_ROWS_ON_TERMINAL: Final = 1_000


def write_json(rows: DataFrame, out: TextIO) -> int:
    """One array of objects, one object a line, with every column, nulls included; the number of rows."""
    count = 0
    for text in json_objects(rows):
        out.write(",\n" if count else "[\n")
        out.write(json_printable(text))
        count += 1
    out.write("\n]\n" if count else "[]\n")
    return count


def json_objects(rows: DataFrame) -> Iterator[str]:
    """Each row as an object of JSON, made by Spark, as they come."""
    from pyspark.sql import functions as F

    names = unique_names(rows.columns)
    renamed = rows.toDF(*names)
    objects = renamed.select(F.to_json(F.struct(*(_column(name) for name in names)), _JSON_OPTIONS).alias("row"))
    return (text for (text,) in objects.toLocalIterator(prefetchPartitions=True))


def json_printable(text: str) -> str:
    r"""JSON of the same meaning, with its escapes for all that is no visible character.

    >>> json_printable('{"a": "\u202e\x9b"}')
    '{"a": "\\u202e\\u009b"}'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)


class _OnTerminal:
    """What is written to a terminal, as :func:`printable` shows it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(printable(text, kept="\n"))


def write_csv(rows: DataFrame, out: TextIO) -> int:
    """A header and the rows; null is an empty field, arrays and maps are JSON; the number of rows.

    Text that a spreadsheet would take for a formula has a quote before it (:func:`no_formula`). A file gets all other
    text as it is, a terminal escapes for what it would obey."""
    writer = csv.writer(_OnTerminal(out) if out.isatty() else out, lineterminator="\n")
    writer.writerow(map(no_formula, rows.columns))
    is_number = [_is_number(field.dataType) for field in rows.schema.fields]
    count = 0
    for row in _as_text(rows):
        cells = zip(row, is_number, strict=True)
        writer.writerow("" if value is None else value if number else no_formula(value) for value, number in cells)
        count += 1
    return count


def no_formula(text: str) -> str:
    """The text with a quote before what a spreadsheet would run; a number of any kind is none of that.

    >>> no_formula("=HYPERLINK(A1)"), no_formula("-1"), no_formula("a=b")
    ("'=HYPERLINK(A1)", '-1', 'a=b')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def write_table(rows: DataFrame, out: TextIO) -> int:
    """Columns side by side for people; the number of rows. A terminal gets the first :data:`_ROWS_ON_TERMINAL`, and the
    sentence that there are more."""
    columns = [printable(name) for name in rows.columns]
    to_right = [_is_number(field.dataType) for field in rows.schema.fields]
    lines = (tuple("NULL" if value is None else printable(value) for value in row) for row in _as_text(rows))
    sample = list(itertools.islice(lines, _SAMPLED_ROWS))
    widths = [max(len(cell) for cell in cells) for cells in zip(columns, *sample, strict=True)]

    def write_line(cells: Sequence[str]) -> None:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, to_right, strict=True)
        )
        out.write("  ".join(padded).rstrip() + "\n")

    write_line(columns)
    write_line(["-" * width for width in widths])
    count = 0
    for line in itertools.chain(sample, lines):
        if count == _ROWS_ON_TERMINAL and out.isatty():
            out.write(f"... there are more than {count:,} rows: `> FILE` and `| less` get all, `--format csv` as CSV\n")
            break
        write_line(line)
        count += 1
    return count


def write_markdown(rows: DataFrame, out: TextIO) -> int:
    """A table of Markdown, text as text; the number of rows."""
    out.write(
        "| "
        + " | ".join(printable(name).replace("|", "\\|") for name in rows.columns)
        + " |\n|"
        + " --- |" * len(rows.columns)
        + "\n"
    )
    count = 0
    for row in _as_text(rows):
        out.write("| " + " | ".join("" if value is None else markdown(printable(value)) for value in row) + " |\n")
        count += 1
    return count


WRITERS: Final[Mapping[str, Callable[[Any, TextIO], int]]] = {
    "table": write_table,
    "csv": write_csv,
    "json": write_json,
    "markdown": write_markdown,
}


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, a second ``id`` as ``id_2``: an object of JSON has each name once.

    >>> unique_names(["id", "id", "n"])
    ['id', 'id_2', 'n']
    """
    taken: set[str] = set()
    result = []
    for name in names:
        unique, number = name, 1
        while unique in taken or (number > 1 and unique in names):
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique)
        result.append(unique)
    return result


def _as_text(rows: DataFrame) -> Iterator[tuple[str | None, ...]]:
    """Every value as text or None, made by Spark."""
    names = [f"c{number}" for number in range(len(rows.columns))]
    renamed = rows.toDF(*names)
    columns = [_text(name, field.dataType) for name, field in zip(names, rows.schema.fields, strict=True)]
    return (tuple(row) for row in renamed.select(*columns).toLocalIterator(prefetchPartitions=True))


def _text(name: str, kind: DataType) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.TimestampType):
        return F.date_format(_column(name), TIMESTAMP_FORMAT).alias(name)
    if isinstance(kind, T.ArrayType | T.MapType | T.StructType | T.VariantType):
        return F.to_json(_column(name), _JSON_OPTIONS).alias(name)
    return _column(name).cast("string").alias(name)


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _is_number(kind: DataType) -> bool:
    from pyspark.sql import types as T

    return isinstance(kind, T.NumericType)
