"""A lake of captures of live clusters, read and reconstructed by Spark, and which cluster of it each capture became."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from jobs.lab.play import Played
from tests.support.truth.decisions import Truth, read_truth

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class LiveLake(Generic[Name]):
    """A lake of all that was played, and of each what the truth is and which cluster it became."""

    lake: Any
    truths: Mapping[Name, Truth]
    clusters: Mapping[Name, str]

    def rows(self, table: str, name: Name, condition: str = "true") -> list[Any]:
        """The rows of a table that are of one capture's cluster."""
        from ingest.lake.tables import TABLES

        read = self.lake.read(TABLES[table])
        return list(read.where(read["cluster_id"] == self.clusters[name]).where(condition).collect())


def reconstruct_live(spark: Any, folder: Path, played: Mapping[Name, Played]) -> LiveLake[Name]:
    """Ingest and reconstruct them into a new lake below ``folder``. A cluster is known by when its ZooKeeper made
    ``/brokers``."""
    from pyspark.sql import functions as F

    from ingest.lake.delta import Lake
    from ingest.lake.tables import TABLES
    from ingest.run.pipeline import IngestOptions, ingest_paths
    from reconstruct.pipeline import reconstruct

    def silent(message: str) -> None:
        """No progress."""

    lake = Lake(spark, str(folder / "lake"))
    lake.ensure()
    ingest_paths(lake, [str(each.capture) for each in played.values()], IngestOptions(), silent)
    reconstruct(lake, progress=silent)
    truths = {name: read_truth(each.truth) for name, each in played.items()}
    births = lake.read(TABLES["silver.znode_changes"]).where("path = '/brokers' AND change = 'written'")
    rows = births.select("cluster_id", (F.unix_micros("changed_at") / 1000).alias("at_ms")).distinct().collect()
    by_birth = {row["at_ms"]: row["cluster_id"] for row in rows}
    clusters = {}
    for name, truth in truths.items():
        assert truth.brokers_created is not None
        clusters[name] = by_birth[truth.brokers_created.time_ms]
    return LiveLake(lake, truths, clusters)
