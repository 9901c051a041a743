"""Which clusters' rows changed since, and what of a table is theirs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable

from ingest.lake.changes import changed_clusters
from ingest.lake.delta import Lake, OfClusters
from ingest.lake.tables.quality import CHECK_RESULTS, RUN_METRICS
from reconstruct.kept.last_run import versions

#: A name is whatever a user gives.
ODD = "it's \\ here"


def rows(spark: Any, **subjects: str) -> Any:
    given = [("r", cluster.replace("odd", ODD), "m", subject, 0.5) for cluster, subject in subjects.items()]
    names = "run_id string, cluster_id string, metric string, subject string, value double"
    frame = spark.createDataFrame(given, names)
    return frame.selectExpr("*", "TIMESTAMP '2026-11-21T01:02:03Z' AS run_at")


def now(lake: Lake) -> dict[str, int]:
    return versions(lake, (RUN_METRICS, CHECK_RESULTS))


def held(lake: Lake) -> list[tuple[str, str]]:
    return sorted((row["cluster_id"], row["subject"]) for row in lake.read(RUN_METRICS).collect())


def test_clusters_whose_rows_came_or_went_have_changed_and_no_other(spark: Any, lake: Lake) -> None:
    lake.append(rows(spark, a="first"), RUN_METRICS)
    lake.append(rows(spark, b="first", odd="first"), RUN_METRICS)
    before = now(lake)
    assert changed_clusters(lake, before, before) == frozenset()
    lake.append(rows(spark, b="second"), RUN_METRICS)
    assert changed_clusters(lake, before, now(lake)) == {"b"}
    assert changed_clusters(lake, {}, now(lake)) == {"a", "b", ODD}
    between = now(lake)
    lake.delete(RUN_METRICS, "cluster_id = 'a'")
    assert changed_clusters(lake, between, now(lake)) == {"a"}
    assert changed_clusters(lake, before, now(lake)) == {"a", "b"}


def test_upkeep_changes_no_cluster(spark: Any, lake: Lake) -> None:
    for cluster in ("a", "b"):
        lake.append(rows(spark, **{cluster: "first"}), RUN_METRICS)
    before = now(lake)
    DeltaTable.forPath(spark, lake.path(RUN_METRICS)).optimize().executeCompaction()
    assert now(lake) != before
    assert changed_clusters(lake, before, now(lake)) == frozenset()


def test_it_cannot_be_told_where_a_commit_or_a_file_is_gone(spark: Any, lake: Lake) -> None:
    lake.append(rows(spark, a="first"), RUN_METRICS)
    before, folder = now(lake), Path(lake.path(RUN_METRICS))
    known = set(folder.glob("*.parquet"))
    lake.append(rows(spark, b="first", c="first").coalesce(1), RUN_METRICS)
    after = now(lake)
    (new,) = set(folder.glob("*.parquet")) - known
    new.rename(new.with_suffix(".gone"))
    assert changed_clusters(lake, before, after) is None
    new.with_suffix(".gone").rename(new)
    assert changed_clusters(lake, before, after) == {"b", "c"}
    commit = folder / "_delta_log" / f"{after[RUN_METRICS.full_name]:020d}.json"
    said = commit.read_text(encoding="utf-8")
    for cut in (said[:-20], None):
        commit.unlink() if cut is None else commit.write_text(cut, encoding="utf-8")
        assert changed_clusters(lake, before, after) is None


def test_of_a_file_whose_rows_are_all_of_one_cluster_the_log_says_which(spark: Any, lake: Lake) -> None:
    before, folder = now(lake), Path(lake.path(RUN_METRICS))
    lake.append(rows(spark, b="first"), RUN_METRICS)
    after = now(lake)
    for file in folder.glob("*.parquet"):
        file.unlink()
    assert changed_clusters(lake, before, after) == {"b"}


@pytest.mark.parametrize("rewritten_bytes", [0, 1 << 20])
def test_clusters_are_replaced_beside_the_others(
    spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch, rewritten_bytes: int
) -> None:
    """By all rows written anew, as of small tables, and by a predicate, as of large ones."""
    monkeypatch.setattr(Lake, "REWRITTEN_BYTES", rewritten_bytes)
    lake.append(rows(spark, a="first", b="first", odd="first"), RUN_METRICS)
    theirs = OfClusters(lake, ["b", ODD])
    assert held(theirs) == [("b", "first"), (ODD, "first")]
    theirs.overwrite(rows(spark, b="second"), RUN_METRICS)
    assert (held(theirs), held(lake)) == ([("b", "second")], [("a", "first"), ("b", "second")])
    theirs.replace_keys(rows(spark, odd="third"), rows(spark, b="second").select("cluster_id", "subject"), RUN_METRICS)
    assert held(lake) == [("a", "first"), (ODD, "third")]
    assert theirs.read(CHECK_RESULTS).columns == list(CHECK_RESULTS.column_names)
