"""The names of a lake's tables and views in a session: those that statements mean, as naming one takes a quarter of a
second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from dashboards.views import (
    DEFAULT_SCHEMA,
    QUESTION_FUNCTIONS,
    QUESTION_VIEWS,
    QUESTIONS_SCHEMA,
    VIEWS,
    View,
    name_views,
)
from ingest.lake.delta import Lake
from ingest.lake.tables import SCHEMAS, TABLES, TableSpec
from jobs.command.job import PROGRAM, UsageError
from reconstruct.kept.last_run import published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Words of statements that list tables, or whose tables are named only while they run.
_ANY_TABLE: Final = re.compile(r"\b(show|identifier|execute|schema|database|namespace)\b")
#: Words of statements that are about a table itself, which a view of a version of it has not.
_OF_TABLES: Final = re.compile(r"\A\W*(?:show|describe|desc)\b|\b(?:version|timestamp|system_\w+)\s+as\s+of\b")
#: Where a session may be that asks for tables as they are whenever it asks.
_IN_ANY: Final = (DEFAULT_SCHEMA, *SCHEMAS, QUESTIONS_SCHEMA)
_OF_QUESTIONS: Final = {**QUESTION_VIEWS, **QUESTION_FUNCTIONS}


class LakeNames:
    """What of one lake SQL can name, as the last run that had ended left it; ``live``: as it is whenever it is asked.
    The lake must hold a table; :class:`UsageError` where it holds none."""

    def __init__(self, spark: SparkSession, root: str, *, live: bool = False) -> None:
        lake = Lake(spark, root)
        if not any(map(lake.exists, TABLES.values())):
            raise UsageError(f"{root} holds no table of a lake: run `{PROGRAM} ingest PATH` first, or give --lake DIR")
        self._spark, self._lake, self._is_live = spark, lake if live else published(lake), live
        #: By name the version of the table that was the newest then; None where it does not matter.
        self._named: dict[str, int | None] = {}
        self._as_tables: set[str] = set()

    def name(self, statements: Sequence[str] | None = None) -> None:
        """Name the tables and views that the statements may mean, without any all; nothing is made in the lake.

        Tables that the last run wrote are views of what it left, but where a statement asks about tables themselves. A
        view of a table that was written since, if only by its upkeep, is made anew: the files it reads may be gone.
        """
        are_tables = self._is_live or any(_OF_TABLES.search(statement.lower()) for statement in statements or ())
        named = self._named.keys() & self._as_tables if are_tables else self._named.keys()
        meant = meant_by(statements)
        views = [one for one in meant if isinstance(one, View) and all(map(self._lake.exists, one.tables))]
        tables = [one for one in meant if not isinstance(one, View)] + [spec for view in views for spec in view.tables]
        versions = {spec.full_name: None if are_tables else self._lake.newest_version(spec) for spec in tables}
        wanted = {
            spec.full_name: spec
            for spec in tables
            if spec.full_name not in named or self._named[spec.full_name] != versions[spec.full_name]
        }
        self._lake.register(wanted.values(), stays=not are_tables)
        if any(view in _OF_QUESTIONS.values() for view in views):
            self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {QUESTIONS_SCHEMA}")
        new = [view for view in views if view.full_name not in named]
        name_views(self._spark, new, _IN_ANY if self._is_live else (DEFAULT_SCHEMA,))
        self._named |= versions | dict.fromkeys(view.full_name for view in new)
        done = {*wanted, *(view.full_name for view in new)}
        self._as_tables = self._as_tables | done if are_tables else self._as_tables - wanted.keys()


def meant_by(statements: Iterable[str] | None) -> list[TableSpec | View]:
    """The tables and views that the statements name; all of them where one may list tables, or make a name while it
    runs. A question's view has a name that a table may have, too: it takes its schema."""
    every: list[TableSpec | View] = [*TABLES.values(), *VIEWS.values()]
    if statements is None:
        return [*every, *_OF_QUESTIONS.values()]
    text = " ".join(statements).lower().replace("`", "")
    asked = [one for name, one in _OF_QUESTIONS.items() if name in text]
    of_asked = {view.full_name for one in asked for view in one.views}
    named = [one for one in every if one.name in text or one.full_name in of_asked]
    if _ANY_TABLE.search(text):
        return [*every, *(_OF_QUESTIONS.values() if QUESTIONS_SCHEMA in text else ())]
    return [*named, *asked]
