"""What the last run left, and whether it is still so: by the versions of the lake's tables, which no clock moves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from ingest.lake.delta import UPKEEP, Lake, PinnedLake, operations_since, side_by_side
from ingest.lake.program import program
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import BRONZE_TABLES, INGESTED_FILES
from ingest.lake.tables.gold import GOLD_TABLES
from ingest.lake.tables.kept import KEPT_TABLES, RUNS
from ingest.lake.tables.quality import EVIDENCE_COVERAGE, UNRECOGNISED_TEMPLATES
from ingest.lake.tables.silver import SILVER_TABLES

#: What rows depend on: the packages that read evidence, that judge it, and that decide whether gold is published.
_PACKAGES: Final = ("ingest", "reconstruct", "checks")
#: What a run writes, and nothing else does.
WRITTEN: Final = (
    *SILVER_TABLES,
    *GOLD_TABLES,
    EVIDENCE_COVERAGE,
    UNRECOGNISED_TEMPLATES,
    *(spec for spec in KEPT_TABLES if spec is not RUNS),
)


@dataclass(frozen=True)
class LastRun:
    """The last run that ended well; ``number`` 0 where none is known.

    ``is_kept``: this program made what the tables hold, of all clusters, and nothing else wrote them since.
    ``is_evidence_known``: nothing changed in bronze, of whose tables ``evidence`` has the versions.
    ``evidence_until_us`` is when the newest file that it knew was ingested, µs.
    """

    number: int = 0
    evidence: Mapping[str, int] = field(default_factory=dict)
    evidence_until_us: int | None = None
    report: Mapping[str, Any] | None = None
    is_kept: bool = False
    is_evidence_known: bool = False

    @property
    def is_nothing_new(self) -> bool:
        """Whether another run would make what is there."""
        return self.is_kept and self.is_evidence_known

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters that it knew."""
        return frozenset((self.report or {}).get("versions", ()))

    @property
    def next_number(self) -> int:
        """Runs are counted by what they find, not by how often they are run."""
        return self.number if self.is_evidence_known else self.number + 1


def versions(lake: Lake, specs: Iterable[TableSpec]) -> dict[str, int]:
    """The newest version of each table, by its name; -1 where there is none. No Spark job is needed."""
    listed = list(specs)
    found = side_by_side(lake.newest_version, listed)
    return {spec.full_name: version for spec, version in zip(listed, found, strict=True)}


def last_run(lake: Lake, evidence: Mapping[str, int]) -> LastRun:
    """``evidence``: the versions of bronze now."""
    row = _newest_note(lake)
    if row is None:
        return LastRun()
    report = json.loads(row["report"])
    is_whole = row["program"] == program(*_PACKAGES) and not report.get("refused")
    is_kept = is_whole and hold_the_same(lake, WRITTEN, row["tables"], versions(lake, WRITTEN))
    is_known = hold_the_same(lake, BRONZE_TABLES, row["evidence"], evidence)
    return LastRun(row["run_number"], row["evidence"], row["until_us"], report, is_kept, is_known)


def published(lake: Lake) -> Lake:
    """The lake as the last run that ended well left it, whatever another writes while it is read: its tables belong to
    one another. Bronze is read as it is, and so is a lake of which no run ended."""
    row = _newest_note(lake)
    return lake if row is None else Lake(lake.spark, lake.root, row["tables"])


def hours_to_keep(lake: Lake) -> float:
    """How far back the lake's files are read: to the end of the last run that ended well, where tables were written
    since, as by runs whose gold was refused; else 0."""
    read = published(lake)
    if all(read.version_read(spec) in (None, lake.newest_version(spec)) for spec in WRITTEN):
        return 0.0
    ended_at = F.unix_timestamp(F.max("ended_at"))
    (row,) = lake.read(RUNS).agg((F.unix_timestamp(F.current_timestamp()) - ended_at).alias("seconds")).collect()
    return max(float(row["seconds"]), 0.0) / 3600 + 1


def _newest_note(lake: Lake) -> Row | None:
    if versions(lake, [RUNS])[RUNS.full_name] < 1:  # version 0 is the empty table
        return None
    until = F.unix_micros("evidence_until").alias("until_us")
    newest = PinnedLake(lake).read(RUNS).select("*", until).orderBy(F.desc("ended_at")).limit(1).collect()
    return newest[0] if newest else None


def hold_the_same(lake: Lake, specs: Iterable[TableSpec], then: Mapping[str, int], now: Mapping[str, int]) -> bool:
    """Whether the tables hold the same rows at both versions: upkeep alone makes versions without changing any."""
    if then.keys() != now.keys():
        return False
    later = [spec for spec in specs if now[spec.full_name] != then[spec.full_name]]
    # the first that was written settles it
    return all(operations_since(lake, spec, then[spec.full_name], now[spec.full_name]) <= UPKEEP for spec in later)


def note(lake: Lake, number: int, evidence: Mapping[str, int], report: Mapping[str, Any]) -> None:
    """Note that a run ended well: the last that it writes."""
    row = {
        "run_number": F.lit(number),
        "program": F.lit(program(*_PACKAGES)),
        "evidence": as_map(evidence),
        "tables": as_map(versions(lake, WRITTEN)),
        "report": F.lit(json.dumps(report, sort_keys=True)),
        "ended_at": _after_all(lake),
    }
    newest = lake.read(INGESTED_FILES).agg(F.max("ingested_at").alias("evidence_until"))
    lake.append(newest.withColumns(row), RUNS)


def _after_all(lake: Lake) -> Column:
    """Our clock, or just after the newest note where that was set back since: by it the newest is known."""
    (row,) = PinnedLake(lake).read(RUNS).agg(F.max(F.unix_micros("ended_at")).alias("us")).collect()
    return F.greatest(F.current_timestamp(), F.timestamp_micros(F.lit((row["us"] or 0) + 1)))


def as_map(numbers: Mapping[str, int]) -> Column:
    """The numbers as a column's value."""
    return F.create_map(*(F.lit(each) for item in sorted(numbers.items()) for each in item))


def bronze_versions(lake: Lake) -> dict[str, int]:
    return versions(lake, BRONZE_TABLES)
