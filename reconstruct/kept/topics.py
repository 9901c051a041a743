"""Of which topics evidence may be another than at the last run, so that it is made of these alone.

To make a partition's evidence costs most of what an increment does, and nearly all of it is what it was. What it is
made from is looked at instead: of log records those of files that changed, of sources of fewer rows the few columns
from which the others follow, hashed by topic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.plans import named, union
from reconstruct.engine.staging import Staging
from reconstruct.kept.hashes import counted_and_hashed, with_hashes

#: What each source has beside what is hashed of it.
TOPIC_KEY: Final = ("cluster_id", "topic")


@dataclass(frozen=True)
class Topics:
    """All topics, or those of ``keys`` (:data:`TOPIC_KEY`, each once), of which ``names`` are the topics, None where
    they are many; ``keep`` makes rows once, under a name."""

    keys: DataFrame | None = None
    names: tuple[str, ...] | None = None
    keep: Callable[[DataFrame, str], DataFrame] | None = None

    @classmethod
    def some(cls, keys: DataFrame, stage: Staging, name: str) -> Topics:
        """Those of ``keys``, which are read more than once; what is kept of them begins with ``name``."""
        kept, few = stage.keep_or_hold(keys.distinct(), f"{name}_changed_topics")
        names = None if few is None else tuple(sorted({row["topic"] for row in few}))
        return cls(kept, names, lambda rows, of: stage.keep(rows, f"{name}_{of}"))

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows of these topics; ``rows`` have :data:`TOPIC_KEY`."""
        if self.keys is None:
            return rows
        some = rows if self.names is None else named(rows, "topic", self.names)
        return some.join(F.broadcast(self.keys), list(TOPIC_KEY), "left_semi")

    def once(self, rows: DataFrame, name: str) -> DataFrame:
        """Rows of these topics that are read more than once: to find them goes through those of all topics."""
        return rows if self.keep is None else self.keep(rows, name)


ALL_TOPICS: Final = Topics()


def topic_hashes(sources: Sequence[DataFrame]) -> DataFrame:
    """Grain: one row per topic that a source names: ``rows_count`` and ``rows_hash`` of all its rows in all of them."""
    hashed = []
    for number, rows in enumerate(sources):
        of_topics = rows.where("topic IS NOT NULL").withColumn("source_number", F.lit(number))
        narrow = with_hashes(of_topics, TOPIC_KEY).select(*TOPIC_KEY, "evidence_hash_1", "evidence_hash_2")
        hashed.append(narrow)
    return union(hashed).groupBy(*TOPIC_KEY).agg(*counted_and_hashed("rows_count", "rows_hash"))


def changed_topics(now: DataFrame, before: DataFrame) -> DataFrame:
    """The topics that are new, gone, or of which the hash is another: :data:`TOPIC_KEY`."""
    then = before.select(*TOPIC_KEY, F.struct("rows_count", "rows_hash").alias("then"))
    both = now.select(*TOPIC_KEY, F.struct("rows_count", "rows_hash").alias("now")).join(
        then, list(TOPIC_KEY), "full_outer"
    )
    return both.where("NOT now <=> then").select(*TOPIC_KEY)
