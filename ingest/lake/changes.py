"""Which clusters' rows changed since older versions of the lake's tables, as Delta's log says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark.errors import AnalysisException

from ingest.lake.delta import Lake, side_by_side
from ingest.lake.pinned import commit_actions
from ingest.lake.tables import TABLES

#: Of more changed files it is as well to look at everything.
MOST_FILES: Final = 10_000
#: What Delta calls a file in the table's own folder.
_OWN_FILE: Final = re.compile(r"[\w.-]+")


def changed_clusters(lake: Lake, then: Mapping[str, int], now: Mapping[str, int]) -> frozenset[str] | None:
    """The clusters of which a row may have come, gone or changed in these tables (versions by name) in between; None
    where it cannot be told: commits or files are there no longer, or too many. Upkeep changes no row."""
    commits = [
        (lake.path(TABLES[name]), version) for name in now for version in range(then.get(name, -1) + 1, now[name] + 1)
    ]
    found = side_by_side(lambda commit: commit_actions(lake.spark, *commit), commits)
    files: dict[str, str | None] = {}
    for (folder, _), actions in zip(commits, found, strict=True):
        if actions is None:
            return None
        for file in (action.get("add") or action.get("remove") for action in actions):
            if file is None or not file["dataChange"]:
                continue
            if not _OWN_FILE.fullmatch(file["path"]) or len(files) == MOST_FILES:
                return None
            place = f"{folder}/{file['path']}"
            files[place] = files.get(place) or _only_cluster(file)
    clusters = {cluster_id for cluster_id in files.values() if cluster_id is not None}
    unsaid = [place for place, cluster_id in files.items() if cluster_id is None]
    try:
        if unsaid:
            rows = lake.spark.read.schema("cluster_id string").parquet(*unsaid).distinct().collect()
            clusters |= {row["cluster_id"] for row in rows}
    except AnalysisException:
        return None
    return frozenset(clusters)


def _only_cluster(file: Mapping[str, Any]) -> str | None:
    """The one cluster that all rows of a file are of, by what Delta's log says of it; None where it does not say so."""
    stats = json.loads(file.get("stats") or "{}")
    least, greatest, nulls = ((stats.get(of) or {}).get("cluster_id") for of in ("minValues", "maxValues", "nullCount"))
    return least if least == greatest and nulls == 0 else None
