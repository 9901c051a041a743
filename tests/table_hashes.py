"""Hashes of every table's rows: what a change that must change no row is held against.

``make table-hashes`` unpacks all captures, runs ``ingest``, ``reconstruct`` and ``check`` over them into one lake, and
prints a line for each table: a hash of its rows in any order, their number, the table. With ``--lake DIR`` an existing
lake is hashed instead. Our own clock and random run ids are left out; ``--without COLUMN`` leaves out more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

#: What two runs over the same input do not share.
OF_THE_RUN: Final = ("ingested_at", "run_at", "run_id")
_DIGITS: Final = 15


def table_hash(rows: Any, without: Sequence[str] = ()) -> tuple[str, int]:
    """A hash of a DataFrame's rows that their order does not change, and how many there are."""
    return table_hashes({"": rows}, without)[""]


def table_hashes(tables: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, tuple[str, int]]:
    """The hash and the number of rows of each table, by name, in one query: planning fifty takes most of their time.
    Of a table that is known to hold no row None may be given."""
    from pyspark.sql import functions as F

    from ingest.lake.plans import union

    numbers = [
        _numbers(rows, without).select(F.lit(name).alias("name"), "number")
        for name, rows in tables.items()
        if rows is not None
    ]
    if not numbers:
        return dict.fromkeys(tables, (f"{0:032x}", 0))
    sums = union(numbers).groupBy("name").agg(F.sum("number").alias("total"), F.count("*").alias("n"))
    found = {row["name"]: (f"{int(row['total'] or 0):032x}", row["n"]) for row in sums.collect()}
    return {name: found.get(name, (f"{0:032x}", 0)) for name in tables}


def _numbers(rows: Any, without: Sequence[str]) -> Any:
    from pyspark.sql import functions as F

    columns = [F.col(f"`{name}`") for name in sorted(rows.columns) if name not in (*OF_THE_RUN, *without)]
    text = F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})
    number = F.conv(F.substring(F.sha2(text, 256), 1, _DIGITS), 16, 10).cast("decimal(38,0)")
    return rows.select(number.alias("number"))


def lake_hashes(spark: Any, lake: Path, without: Sequence[str] = ()) -> dict[str, tuple[str, int]]:
    """Those of every table below the lake's folder (:func:`tables_of`)."""
    from ingest.lake.delta import Lake
    from ingest.lake.tables import TABLES

    names = [f"{table.parent.name}.{table.name}" for table in tables_of(lake)]
    return table_hashes(rows_of_tables(Lake(spark, str(lake)), [TABLES[name] for name in names]), without)


def rows_of_tables(lake: Any, specs: Iterable[Any]) -> dict[str, Any]:
    """By name the rows of each table as they are now, None of one that holds none, which Delta's log says."""
    pinned = lake.pinned()
    return {spec.full_name: pinned.read(spec) if pinned.rows_count(spec) else None for spec in specs}


def tables_of(lake: Path) -> list[Path]:
    """Every table below the lake's folder but those of what a run keeps for the next, sorted."""
    return sorted(log.parent for log in lake.glob("*/*/_delta_log") if log.parent.parent.name != "kept")


def write_lake(folder: Path) -> Path:
    """The lake of all captures, the truth included, below ``folder``."""
    from jobs.cli import main
    from tests.support.captures.packed import capture_names, unpack

    sources = folder / "captures"
    for name in capture_names():
        unpack(name, sources)
    lake = folder / "lake"
    for command in (["ingest", str(sources)], ["reconstruct"], ["check"]):
        code = main([*command, "--lake", str(lake)])
        if code not in (0, 3):
            raise SystemExit(f"{command[0]} ended with exit code {code}")
    return lake


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="print a hash of each table's rows")
    parser.add_argument("--lake", type=Path, help="a lake that exists (default: one made of all captures)")
    parser.add_argument("--work", type=Path, help="where to make that lake (default: a temporary folder)")
    parser.add_argument("--without", action="append", default=[], metavar="COLUMN", help="leave this column out")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        lake = options.lake or write_lake(options.work or Path(temporary))
        from jobs.session.session import build_session

        spark = build_session("table-hashes")
        try:
            for name, (found, count) in lake_hashes(spark, lake, options.without).items():
                print(f"{found} {count:>8} {name}")
        finally:
            spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
