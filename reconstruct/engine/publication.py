"""Gold is replaced as a whole, and only when its audit finds nothing: write, audit, publish.

Whoever asks of gold while a run lasts sees the former run's. What an audit refuses of a cluster is kept beside the
tables, and there that cluster stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, OfClusters, side_by_side
from ingest.lake.tables import TableSpec

#: Where the newest refused rows lie, a Parquet folder per table.
REFUSED: Final = "_refused"

#: Given the lake as it would be, or of a table the rows alone that are not published yet, says in a sentence each what
#: forbids it; nothing where it may be published. It holds no row against those of another key.
Audit = Callable[[Lake], tuple[str, ...]]
#: Replaces a table's rows in a lake by those given.
Write = Callable[[Lake, DataFrame], None]


def no_audit(candidate: Lake) -> tuple[str, ...]:
    """Publishes whatever there is; of partitions that stay as they are no later run audits it either, but with
    ``full``."""
    del candidate
    return ()


class Candidate(Lake):
    """A lake as it would be with a run's rows published; the other tables are as they are. It is only read."""

    def __init__(self, lake: Lake, rows: Mapping[str, DataFrame]) -> None:
        super().__init__(lake.spark, lake.root, lake.versions)
        self._lake, self._rows = lake.pinned(), rows

    def read(self, spec: TableSpec) -> DataFrame:
        """The rows offered, else the table."""
        offered = self._rows.get(spec.full_name)
        return self._lake.read(spec) if offered is None else offered


@dataclass(frozen=True)
class Refused:
    """Why gold was not published, a sentence each, and of which clusters; of none where it was."""

    problems: tuple[str, ...] = ()
    clusters: frozenset[str] = frozenset()


class Publication:
    """The rows that a run offers, one table after the other, until it publishes them together."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows: dict[str, DataFrame] = {}
        self._unpublished: dict[str, DataFrame] = {}
        self._writes: dict[str, Write] = {}
        self._together: list[Callable[[], None]] = []
        self._one_by_one: set[str] = set()

    def offer(self, spec: TableSpec, rows: DataFrame, write: Write | None = None) -> None:
        """Rows to replace all those of a table. They are read twice: give what is staged, or small. ``write`` takes the
        place of :meth:`ingest.lake.delta.Lake.overwrite`."""
        self._offer(spec, rows, write)
        self._one_by_one.add(spec.full_name)

    def offer_together(
        self, offered: Sequence[tuple[TableSpec, DataFrame, DataFrame | None]], write: Callable[[], None]
    ) -> None:
        """Rows to replace all those of several tables, and those among them that are not published yet: all of some
        keys; None where any may be. Where those of every cluster are published, ``write`` leads to the same with less
        than writing one table after the other."""
        for spec, rows, unpublished in offered:
            self._offer(spec, rows, None)
            if unpublished is not None:
                self._unpublished[spec.full_name] = self._lake.conformed(unpublished, spec)
        self._together.append(write)

    def leave(self, specs: Sequence[TableSpec]) -> None:
        """Tables whose rows are all published."""
        for spec in specs:
            self._unpublished[spec.full_name] = self._lake.spark.createDataFrame([], spec.struct)

    def _offer(self, spec: TableSpec, rows: DataFrame, write: Write | None) -> None:
        if spec.full_name in self._rows:
            raise ValueError(f"{spec.full_name} is offered already")
        self._rows[spec.full_name] = self._lake.conformed(rows, spec)
        self._writes[spec.full_name] = write or (lambda lake, given: lake.overwrite(given, spec))

    def read(self, spec: TableSpec) -> DataFrame:
        """The rows offered, else the table as it is."""
        return Candidate(self._lake, self._rows).read(spec)

    def publish(self, audit: Audit, clusters: Collection[str]) -> Refused:
        """Replace the tables, a commit each. Of ``clusters``, which are all that rows are of, those whose rows the
        audit finds something in stay as they were, and no other waits for them.

        Refused rows are written to ``LAKE/_refused/SCHEMA.TABLE`` as Parquet, in place of those refused before.
        """
        problems = audit(Candidate(self._lake, self._rows | self._unpublished))
        if not problems:
            writes = list(self._together)
            writes += [partial(self._writes[name], self._lake, self._rows[name]) for name in sorted(self._one_by_one)]
            side_by_side(lambda write: write(), writes)
            return Refused()
        refused = frozenset(self._broken(audit, sorted(clusters))) or frozenset(clusters)
        sound = frozenset(clusters) - refused
        for name, rows in _of(self._rows, refused).items():
            rows.write.mode("overwrite").parquet(f"{self._lake.root}/{REFUSED}/{name}")
        if sound:
            lake, of_sound = OfClusters(self._lake, sound), _of(self._rows, sound)
            side_by_side(lambda name: self._writes[name](lake, of_sound[name]), of_sound)
        return Refused(problems, refused)

    def _broken(self, audit: Audit, clusters: Sequence[str]) -> list[str]:
        """Those of the clusters that the audit finds something in, by halves: no check compares clusters."""
        halves = clusters[: len(clusters) // 2], clusters[len(clusters) // 2 :]
        broken: list[str] = []
        audited = self._rows | self._unpublished
        for half in filter(None, halves):
            if audit(Candidate(OfClusters(self._lake, half), _of(audited, half))):
                broken += half if len(half) == 1 else self._broken(audit, half)
        return broken


def _of(offered: Mapping[str, DataFrame], clusters: Collection[str]) -> dict[str, DataFrame]:
    """What is offered of some clusters."""
    return {name: rows.where(F.col("cluster_id").isin(sorted(clusters))) for name, rows in offered.items()}
