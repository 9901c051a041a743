"""Gold is replaced as a whole, and only when its audit finds nothing: write, audit, publish.

Whoever asks of gold while a run lasts sees the former run's. What an audit refuses is kept beside the tables, and
they stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame

from ingest.lake.delta import Lake, side_by_side
from ingest.lake.tables import TableSpec

#: Where the newest refused rows lie, a Parquet folder per table.
REFUSED: Final = "_refused"

#: Given the lake as it would be, says in a sentence each what forbids it; nothing where it may be published.
Audit = Callable[[Lake], tuple[str, ...]]


def no_audit(candidate: Lake) -> tuple[str, ...]:
    """Publishes whatever there is."""
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


class Publication:
    """The rows that a run offers, one table after the other, until it publishes them together."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows: dict[str, DataFrame] = {}
        self._specs: dict[str, TableSpec] = {}
        self._writes: dict[str, Callable[[], None]] = {}

    def offer(self, spec: TableSpec, rows: DataFrame, write: Callable[[], None] | None = None) -> None:
        """Rows to replace all those of a table. They are read twice: give what is staged, or small. ``write`` is what
        leads to them with less than writing all of them."""
        if spec.full_name in self._rows:
            raise ValueError(f"{spec.full_name} is offered already")
        self._specs[spec.full_name] = spec
        self._rows[spec.full_name] = given = self._lake.conformed(rows, spec)
        self._writes[spec.full_name] = write or (lambda: self._lake.overwrite(given, spec))

    def read(self, spec: TableSpec) -> DataFrame:
        """The rows offered, else the table as it is."""
        return Candidate(self._lake, self._rows).read(spec)

    def publish(self, audit: Audit) -> tuple[str, ...]:
        """Replace the tables, a commit each, or none of them; return why not, sentence by sentence.

        Refused rows are written to ``LAKE/_refused/SCHEMA.TABLE`` as Parquet, in place of those refused before.
        """
        problems = audit(Candidate(self._lake, self._rows))
        if problems:
            for name, rows in self._rows.items():
                rows.write.mode("overwrite").parquet(f"{self._lake.root}/{REFUSED}/{name}")
        else:
            side_by_side(lambda write: write(), self._writes.values())
        return problems
