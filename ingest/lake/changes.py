"""Which clusters' rows changed since older versions of the lake's tables, as Delta's log says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES

#: Of more changed files it is as well to look at everything.
MOST_FILES: Final = 10_000
#: What Delta calls a file in the table's own folder.
_OWN_FILE: Final = re.compile(r"[\w.-]+")
_FILE: Final = "struct<path string, dataChange boolean>"


def changed_clusters(lake: Lake, then: Mapping[str, int], now: Mapping[str, int]) -> frozenset[str] | None:
    """The clusters of which a row may have come, gone or changed in these tables (versions by name) in between; None
    where it cannot be told: commits or files are there no longer, or too many. Upkeep changes no row."""
    commits = [
        f"{lake.path(TABLES[name])}/_delta_log/{version:020d}.json"
        for name in now
        for version in range(then.get(name, -1) + 1, now[name] + 1)
    ]
    if not commits:
        return frozenset()
    spark = lake.spark
    try:
        actions = spark.read.schema(f"add {_FILE}, remove {_FILE}").json(commits)
        changes = actions.select(
            F.regexp_extract("_metadata.file_path", "([^/]+/[^/]+)/_delta_log/[^/]*$", 1).alias("table"),
            F.explode(F.array("add", "remove")).alias("file"),
        )
        changed = changes.where("file.dataChange").select("table", "file.path").distinct()
        files = changed.limit(MOST_FILES + 1).collect()
        if len(files) > MOST_FILES or not all(_OWN_FILE.fullmatch(file["path"]) for file in files):
            return None
        if not files:
            return frozenset()
        paths = [f"{lake.root}/{file['table']}/{file['path']}" for file in files]
        clusters = spark.read.schema("cluster_id string").parquet(*paths).distinct().collect()
    except AnalysisException:
        return None
    return frozenset(row["cluster_id"] for row in clusters)
