"""Since when each finding is there, and which of them later evidence refuted: ``gold.finding_history``.

A finding's id is a hash of its evidence, so a run that finds it again gives it the same. One that is no longer found is
withdrawn: its row stays, with the reason. Runs are counted by what they found new in bronze, so that the same evidence
gives the same rows, but for those of runs that saw less.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, OfClusters
from ingest.lake.tables.bronze import INGESTED_FILES
from ingest.lake.tables.gold import FINDING_HISTORY
from reconstruct.engine.staging import Staging
from reconstruct.kept.last_run import LastRun

_KEY: Final = ("cluster_id", "divergence_id")
#: What a finding is about: of the same subject the same rule may find something else.
_SUBJECT: Final = (
    *("cluster_id", "rule_id", "divergence_type", "topic", "topic_incarnation", "partition_id"),
    *("broker_id", "replica_id"),
)
#: Findings that stand no longer, by which name they are staged.
_GONE: Final = "findings_gone"
#: So many of the files that came since are named.
_NAMED: Final = 3


def finding_history(lake: Lake, stage: Staging, found: DataFrame, last: LastRun) -> DataFrame:
    """Rows of ``gold.finding_history`` after a run that ``found`` these rows of ``gold.divergences``."""
    now = _standing(found, last.next_number)
    if not lake.rows_count(FINDING_HISTORY):
        return now
    before = lake.read(FINDING_HISTORY)
    first = before.select(*_KEY, F.col("first_seen_run").alias("before_run"))
    again = now.join(first, list(_KEY), "left").withColumn("first_seen_run", F.coalesce("before_run", "first_seen_run"))
    gone = before.join(found.select(*_KEY), list(_KEY), "left_anti")
    fresh = stage.keep(gone.where("withdrawn_run IS NULL"), _GONE)
    withdrawn = gone.where("withdrawn_run IS NOT NULL")
    if stage.rows_count(_GONE):
        withdrawn = withdrawn.unionByName(_withdrawn(fresh, found, _new_files(lake, last), last.next_number))
    columns = FINDING_HISTORY.column_names
    return stage.keep(again.select(*columns).unionByName(withdrawn.select(*columns)), "finding_history")


def write_history(lake: Lake, history: DataFrame, run: int) -> None:
    """Replace the lake's rows. What stood of clusters that were left as they were, stands in this run too."""
    if isinstance(lake, OfClusters):
        stands = F.when(F.col("withdrawn_run").isNull(), F.lit(run)).otherwise(F.col("last_seen_run"))
        others = lake.others(FINDING_HISTORY).withColumn("last_seen_run", stands)
        lake, history = lake.whole, history.unionByName(others.select(*history.columns))
    lake.overwrite(history, FINDING_HISTORY)


def _standing(found: DataFrame, run: int) -> DataFrame:
    nothing = F.lit(None)
    made: dict[str, Column] = {
        "records": F.col("evidence"),
        "first_seen_run": F.lit(run),
        "last_seen_run": F.lit(run),
        "withdrawn_run": nothing.cast("int"),
        "withdrawn_because": nothing.cast("string"),
        "replaced_by": nothing.cast("string"),
    }
    return found.select(*(made.get(name, F.col(name)).alias(name) for name in FINDING_HISTORY.column_names))


def _withdrawn(gone: DataFrame, found: DataFrame, files: DataFrame, run: int) -> DataFrame:
    """Findings that are there no longer, with why: what the same rule says now, and the files that made the difference,
    those before all that cover its time."""
    successors = found.groupBy(*(F.col(name).alias(f"s_{name}") for name in _SUBJECT)).agg(
        F.min("divergence_id").alias("successor")
    )
    is_same = reduce(and_, (F.col(name).eqNullSafe(F.col(f"s_{name}")) for name in _SUBJECT))
    named = gone.join(successors, is_same, "left").drop(*(f"s_{name}" for name in _SUBJECT))
    of_runs = _with_files(named, files)
    says = F.when(
        F.col("successor").isNotNull(),
        F.concat(F.lit("of the same subject rule "), "rule_id", F.lit(" now finds "), "successor"),
    ).otherwise(F.concat(F.lit("rule "), "rule_id", F.lit(" is kept there, or cannot judge it")))
    since = F.when(
        F.size("files") > 0,
        F.concat(F.lit("with "), F.concat_ws(", ", F.slice("files", 1, _NAMED)), _others(), F.lit(": ")),
    ).otherwise(F.lit(""))
    made: dict[str, Column] = {
        "withdrawn_run": F.lit(run),
        "withdrawn_because": F.concat(since, says),
        "replaced_by": F.col("successor"),
    }
    return of_runs.withColumns(made).select(*FINDING_HISTORY.column_names)


def _others() -> Column:
    more = F.size("files") - _NAMED
    return F.when(more > 0, F.concat(F.lit(" and "), more.cast("string"), F.lit(" more"))).otherwise(F.lit(""))


def _with_files(gone: DataFrame, files: DataFrame) -> DataFrame:
    """With ``files``: the names of the cluster's new ones; where any of them covers the finding's time, of those."""
    covers = F.col("detected_at").between(F.col("first_event_time"), F.col("last_event_time"))
    by_finding = (
        gone.select(*_KEY, "detected_at")
        .join(files, "cluster_id")
        .groupBy(*_KEY)
        .agg(
            F.sort_array(F.collect_set("source_file")).alias("all_files"),
            F.sort_array(F.collect_set(F.when(covers, F.col("source_file")))).alias("covering"),
        )
    )
    chosen = F.when(F.size("covering") > 0, F.col("covering")).otherwise(F.coalesce("all_files", F.array()))
    return gone.join(by_finding, list(_KEY), "left").withColumn("files", chosen).drop("all_files", "covering")


def _new_files(lake: Lake, last: LastRun) -> DataFrame:
    """The files that came, or grew, since the last run."""
    files = lake.read(INGESTED_FILES).where("status = 'ingested'")
    is_new = F.unix_micros("ingested_at") > F.lit(last.evidence_until_us or 0)
    return files.where(is_new).select("cluster_id", "source_file", "first_event_time", "last_event_time")
