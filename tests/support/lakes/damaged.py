"""Captures damaged on purpose in one lake, and all that the tables and the checks say of each.

A share of the kinds of damage is in every suite, all of them are with ``HYPOTHESIS_PROFILE=hard``. The lake is the one
of :func:`tests.support.lakes.captures.run_again`, so that what was in it is ingested and reconstructed a second time.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from checks.pipeline import run_checks
from dashboards.sections.coverage.limits import available_evidence, evidence_holes
from dashboards.source import Limits, Source
from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TABLES
from reconstruct.coverage.limits import limits
from tests.support.budget import IS_HARD
from tests.support.captures.bases import BASES, ZOOKEEPER
from tests.support.captures.damages import COPIES, KINDS
from tests.support.captures.lake import name_cluster
from tests.support.lakes.captures import RunAgain, fill, silent

Row = dict[str, Any]
_TABLES: Final = {
    "files": "bronze.ingested_files",
    "rejected": "bronze.rejected_records",
    "coverage": "quality.evidence_coverage",
    "findings": "gold.divergences",
    "templates": "quality.unrecognised_templates",
}
BROKERS: Final = (1, 2, 3)

SHARE: Final = (
    "log cut in a line",
    "hour missing",
    "TRACE lines removed",
    "requests edited",
    "wrong time zone",
    "last snapshot names another leader",
)
#: What is damaged and what is given twice in this suite.
DAMAGED: Final = tuple(kind for kind in KINDS if IS_HARD or kind.name in SHARE)
DOUBLED: Final = COPIES if IS_HARD else COPIES[:1]


@dataclass
class Account:
    """What the tables, the checks and the limits drawn from the coverage say of one cluster."""

    files: list[Row] = field(default_factory=list)
    rejected: list[Row] = field(default_factory=list)
    coverage: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    templates: list[Row] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    broken: dict[str, str] = field(default_factory=dict)
    limits: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class DamagedLake:
    """The lake, and what is said of each cluster in it."""

    lake: Lake
    accounts: Mapping[str, Account]


@pytest.fixture(scope="session")
def damaged_lake(run_again: RunAgain, tmp_path_factory: pytest.TempPathFactory) -> DamagedLake:
    """Ingested, reconstructed and checked once for all modules that name it."""
    together, alone = _lay_out(tmp_path_factory.mktemp("damaged"))
    fill(run_again.lake, [together, *run_again.paths], alone)
    report = run_checks(run_again.lake, docs_dir=None, progress=silent)
    return DamagedLake(run_again.lake, _accounts(run_again.lake, report.results))


def _lay_out(folder: Path) -> tuple[Path, dict[str, Path]]:
    """Every undamaged and every damaged capture: the folder of those that name their cluster, and ZooKeeper's own files
    by the id to be given with them."""
    together, alone = folder / "together", {}
    used = {damage.base for damage in (*DAMAGED, *DOUBLED)}
    changes = [(base.name, base, None) for base in BASES.values() if base.name in used]
    changes += [(damage.cluster_id, BASES[damage.base], damage.change) for damage in (*DAMAGED, *DOUBLED)]
    whole = {name: base.lay(folder / "whole" / name) for name, base in BASES.items() if name in used}
    for cluster_id, base, change in changes:
        capture = (folder if base.name == ZOOKEEPER else together) / cluster_id
        shutil.copytree(whole[base.name], capture)
        if base.name == ZOOKEEPER:
            alone[cluster_id] = capture
        else:
            name_cluster(capture, cluster_id)
        if change is not None:
            change(capture)
    return together, alone


def _accounts(lake: Lake, results: Iterable[Any]) -> Mapping[str, Account]:
    lake, accounts = PinnedLake(lake), defaultdict[str, Account](Account)
    for name, table in _TABLES.items():
        for row in lake.read(TABLES[table]).collect():
            getattr(accounts[row["cluster_id"]], name).append(row.asDict())
    for row in lake.read(TABLES["quality.run_metrics"]).collect():
        accounts[row["cluster_id"]].metrics[row["metric"]].append(row["value"])
    for result in results:
        for example in json.loads(result.examples or "[]") if result.verdict == "broken" else ():
            accounts[example["cluster_id"]].broken[result.check_id] = result.severity
    source = Source(lake, Limits(), tuple(sorted(accounts)))
    available, holes = available_evidence(source), evidence_holes(source)
    for cluster_id, rows in available.items():
        accounts[cluster_id].limits = limits(BROKERS, rows, holes.get(cluster_id, ()), ("3.9.1",))
    return accounts
