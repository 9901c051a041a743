"""``register``: the lake's tables and views by name in the catalog that a team's Spark has: a Hive metastore, or Unity
Catalog. Nothing is copied: tables are external, at the lake's place."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import FAILED, Common, Job, RunReport, ShowProgress, UsageError, lake_of, require_lake
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_IMPLEMENTATION: Final = "spark.sql.catalogImplementation"


@dataclass(frozen=True)
class Params:
    """``catalog``: a catalog of the session (None: its own, the metastore). Schemas are named ``prefix`` and the lake's
    schema."""

    lake: str
    catalog: str | None = None
    prefix: str = ""
    has_views: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--catalog", metavar="NAME", help="a catalog of the session (default: its own, the metastore)")
    parser.add_argument("--prefix", metavar="TEXT", default="", help="before names of schemas: kafka_ gives kafka_gold")
    parser.add_argument("--no-views", dest="has_views", action="store_false", help="tables only")


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    for option, given in (("--catalog", options.catalog), ("--prefix", options.prefix)):
        if given and not _NAME.fullmatch(given):
            raise UsageError(f"{option} {given}: letters, digits and _ are allowed")
    return Params(common.lake, options.catalog, options.prefix, options.has_views)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    if params.catalog is None and spark.conf.get(_IMPLEMENTATION) != "hive":
        raise UsageError(
            "this session's catalog ends with it: start it by spark-submit --conf"
            f" {_IMPLEMENTATION}=hive with your metastore's settings, or name a catalog of its own (--catalog)"
        )
    return register(spark, params, progress)


def register(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Name the tables that the lake has, and the views over these. A name that is taken by another table stays, and is
    a problem."""
    from dashboards.views import QUESTION_VIEWS, QUESTIONS_SCHEMA, VIEWS
    from ingest.lake.tables import SCHEMAS, TABLES

    lake = lake_of(spark, params.lake)
    there = [spec for spec in TABLES.values() if lake.exists(spec)]
    if not there:
        raise UsageError(f"{params.lake} holds no table of a lake")
    names = {name: _named(name, params) for name in (*TABLES, *VIEWS, *QUESTION_VIEWS)}
    for schema in (*SCHEMAS, *([QUESTIONS_SCHEMA] if params.has_views else [])):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {_named(schema, params)}")
    taken = []
    for spec in there:
        progress(f"table {names[spec.full_name]}")
        if not _is_at(spark, names[spec.full_name], lake.path(spec)):
            taken.append(f"{names[spec.full_name]} is another table already: drop it, or give --prefix")
    views = []
    for view in (*VIEWS.values(), *QUESTION_VIEWS.values()) if params.has_views and not taken else ():
        if all(map(lake.exists, view.tables)):
            progress(f"view {names[view.full_name]}")
            spark.sql(f"CREATE OR REPLACE VIEW {names[view.full_name]} AS {_renamed(view.sql, names)}")
            views.append(view)
    told = f"{len(there) - len(taken)} tables and {len(views)} views named, as {_named('gold.incidents', params)}"
    return RunReport((told,), tuple(taken), FAILED if taken else 0)


def _named(name: str, params: Params) -> str:
    """``gold.incidents`` as it is named in the catalog."""
    return f"{params.catalog + '.' if params.catalog else ''}{params.prefix}{name}"


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    """The query with the lake's names as they are named in the catalog."""
    return re.sub(r"\b\w+\.\w+\b", lambda found: names.get(found[0], found[0]), sql)


def _is_at(spark: SparkSession, name: str, path: str) -> bool:
    """Whether the name is the table at that path: it is made so where there is none."""
    from ingest.lake.file_system import file_system_of

    files, of_path = file_system_of(spark, path)
    place = files.makeQualified(of_path).toString()
    if not spark.catalog.tableExists(name):
        quoted = place.replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"CREATE TABLE {name} USING DELTA LOCATION '{quoted}'")
        return True
    details: list[Any] = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()
    return [row["data_type"].rstrip("/") for row in details] == [place.rstrip("/")]


JOB: Final = Job(
    "register",
    "name the lake's tables and views in a Hive metastore or Unity Catalog, for other Spark programs",
    add_arguments,
    to_params,
    run,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
