"""The answer to a saved question: its rows, and below them what the evidence leaves open."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from jobs.command.job import RunReport, ShowProgress
from jobs.session.progress import silent
from jobs.sql.names import LakeNames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dashboards.questions.question import Question

_EVIDENCE: Final = "evidence"
#: Of so many clusters it is said what cannot be said of them; of more, which option asks for it.
_MOST_CLUSTERS: Final = 3


def rows_of(spark: SparkSession, question: Question, given: Mapping[str, Any]) -> DataFrame:
    """The question's rows. ``given`` has a value, or None, for each of its parameters, times as aware datetimes; they
    are bound by Spark and never become text of the query. The lake's tables must be named in the session."""
    return spark.sql(question.sql, args=dict(given))


def answer(
    spark: SparkSession,
    lake_root: str,
    question: Question,
    given: Mapping[str, Any],
    *,
    style: str = "table",
    with_evidence: bool = False,
    progress: ShowProgress = silent,
) -> RunReport:
    """Print the rows to standard output; the report says where there are none, and what cannot be said."""
    from jobs.sql.output import WRITERS

    progress("naming the lake's tables")
    LakeNames(spark, lake_root).name((question.sql,))
    progress(question.title)
    rows = rows_of(spark, question, given)
    if not with_evidence and _EVIDENCE in rows.columns:
        rows = rows.drop(_EVIDENCE)
    count = WRITERS[style](rows, sys.stdout)
    sys.stdout.flush()
    progress("what cannot be said")
    nothing = () if count else ("no row: nothing of the kind is in what was given",)
    return RunReport(problems=(*nothing, *left_open(spark, lake_root, question, given.get("cluster"))))


def left_open(spark: SparkSession, lake_root: str, question: Question, cluster: str | None) -> Iterator[str]:
    """What is missing in the evidence of the clusters that the question may be about, a sentence each."""
    from pyspark.sql import functions as F

    from dashboards.sections.coverage import files, limits
    from dashboards.source import Limits, Source
    from ingest.lake.delta import Lake
    from ingest.lake.tables import bronze
    from reconstruct.coverage.questions import QUESTIONS

    source = Source(Lake(spark, lake_root), Limits())
    every = source.all(bronze.INGESTED_FILES).groupBy("cluster_id").agg(F.expr("any(status = 'ingested') AS is_read"))
    found = [row for row in every.orderBy("cluster_id").limit(1000).collect() if cluster in (None, row["cluster_id"])]
    clusters = [row["cluster_id"] for row in found if row["is_read"]] or [row["cluster_id"] for row in found]
    if cluster is not None and not clusters:
        yield f"no file of the lake is of a cluster {cluster!r}"
        return
    if len(clusters) > _MOST_CLUSTERS:
        yield f"the lake holds {len(clusters)} clusters: --cluster ID asks of one, and says what is not known of it"
        return
    source = Source(source.lake, source.limits, tuple(clusters))
    totals, data = files.totals(source), limits.gather(source)
    about = {QUESTIONS[number] for number in question.numbers if number in QUESTIONS}
    for name in clusters:
        brokers = sorted(broker for broker in totals[name].brokers if broker is not None and broker >= 0)
        view = limits.cannot_be_said(data.get(name, limits.EvidenceLimits()), brokers, totals[name].versions)
        prefix = f"{name}: " if len(clusters) > 1 else ""
        for sentence in view.sentences:
            if about.intersection(sentence.questions):
                yield f"{prefix}left open: {re.sub(r'[.]$', '', sentence.text)}"
