"""The lake in Python, for notebooks and jobs: tables, saved questions and explanations.

    from kafka_state_replay import open_lake

    lake = open_lake("lake")
    lake.ask("incidents").toPandas()

What else is in this distribution (``ingest``, ``reconstruct``, ``checks``, ``dashboards``, ``jobs``) may change with
any version; this module keeps its names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.command.job import Common, UsageError, local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["OpenLake", "UsageError", "open_lake"]


def open_lake(path: str, spark: SparkSession | None = None) -> OpenLake:
    """The lake at a path, or URI, that Spark reaches; nothing is written to it. A path of this machine may be relative
    to where this process is. ``spark`` is a session that has Delta; without one the session of this process is taken,
    or a local one started. Its tables and views are named in that session as they are asked for. :class:`UsageError`
    where there is no lake."""
    return OpenLake(path, spark)


class OpenLake:
    """A lake that is read. Each method that gives rows gives a DataFrame, evaluated when it is collected.

    :class:`UsageError`, with a sentence, for a name, parameter or time that is none.
    """

    def __init__(self, path: str, spark: SparkSession | None = None) -> None:
        from jobs.session.session import build_session
        from jobs.sql.names import LakeNames

        self.spark = build_session() if spark is None else spark
        self.path = local_path(path, Common(path, master=self.spark.conf.get("spark.master", None)))
        self._names = LakeNames(self.spark, self.path)

    def tables(self) -> list[str]:
        """The tables and views, ``schema.name``."""
        from jobs.sql.catalog import RELATIONS

        return list(RELATIONS)

    def describe(self, name: str) -> str:
        """What one row of the table or view is, and what its columns mean."""
        from jobs.sql.catalog import description

        found = description(name)
        if found is None:
            raise UsageError(f"there is no table or view {name!r}: tables() names them")
        return found

    def table(self, name: str) -> DataFrame:
        """All rows of a table or view, ``schema.name``."""
        self.describe(name)
        self._names.name((name,))
        return self.spark.table(name)

    def sql(self, statement: str, **parameters: Any) -> DataFrame:
        """The rows of a statement over the tables and views, ``:name`` bound to the parameter of that name. It is this
        process's own Spark, and not guarded as the command ``sql`` is."""
        self._names.name((statement,))
        return self.spark.sql(statement, args=parameters or None)

    def questions(self) -> dict[str, str]:
        """The saved questions: name and title."""
        from dashboards.questions.question import questions

        return {name: question.title for name, question in questions().items()}

    def ask(self, question: str, **parameters: Any) -> DataFrame:
        """The answer to a saved question, its parameters by their names: ``cluster``, ``topic``, ``partition``,
        ``broker``, and times as ISO 8601, ``at``, ``from_`` and ``to``."""
        from jobs.ask.answer import rows_of
        from jobs.ask_job import bound_to, question_named

        found = question_named(question)
        given = {name.removesuffix("_"): value for name, value in parameters.items()}
        bound = bound_to(found, given)
        self._names.name((found.sql,))
        return rows_of(self.spark, found, bound)

    def explain(
        self,
        topic: str,
        partition: int,
        at: str,
        cluster: str | None = None,
        *,
        until: str | None = None,
        broker: int | None = None,
    ) -> str:
        """Why the controller decided of a partition as it did at a time (ISO 8601): inputs, rule, result, findings; of
        a broker only what changed its place."""
        from jobs import explain_job

        of_partition = (self.path, topic, partition, at, cluster)
        return self._explained(explain_job.Params.of(*of_partition, until=until, broker_id=broker))

    def incident(self, incident_id: str) -> str:
        """An incident's events in order, each with the lines that show it; of its id the first four digits will do."""
        from jobs import explain_job

        return self._explained(explain_job.IncidentParams(self.path, incident_id))

    def _explained(self, params: Any) -> str:
        from jobs.explain_job import explained

        text, problem = explained(self.spark, params)
        if problem:
            raise UsageError(problem)
        return text
