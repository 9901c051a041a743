"""How files that name no cluster were attributed: those of which it is not certain, and how to say it better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from dashboards import words
from dashboards.section import Section
from dashboards.source import Source, by_cluster
from ingest.lake.tables import bronze

_WHY: Final[Mapping[str, str]] = {
    "time": "in a folder of several clusters: taken for the one that the broker's own logs stated last"
    " before they begin",
    "nothing": "of which neither the file nor one beside it says the cluster: all such files are taken for one",
    "ambiguous": "that may be of several clusters: each is a cluster of its own, held against no other file",
}
HOW_TO_SAY: Final = (
    "To say it better, ingest each cluster's folder by itself into a new lake with --cluster ID, and name the broker of"
    " a folder or file with --broker ID=PATH."
)


@dataclass(frozen=True)
class AttributedFiles:
    """The files of one ``cluster_source``; ``example`` is one of them."""

    cluster_source: str
    files: int
    example: str

    @property
    def sentence(self) -> str:
        return f"{words.count(self.files, 'file')} {_WHY[self.cluster_source]} (such as {words.visible(self.example)})."


def gather(source: Source) -> Mapping[str, tuple[AttributedFiles, ...]]:
    """The files whose cluster is not certain, by what it was taken from."""
    rows = (
        source.read(bronze.INGESTED_FILES)
        .where((F.col("status") == "ingested") & F.col("cluster_source").isin(*_WHY))
        .groupBy("cluster_id", "cluster_source")
        .agg(F.count("*").alias("files"), F.min("source_file").alias("example"))
    )
    return by_cluster(AttributedFiles, rows.orderBy("cluster_id", "cluster_source"))


SECTION: Final[Section[tuple[AttributedFiles, ...]]] = Section("coverage/attribution", gather, ())
