"""One lake for all tests that only read what ``reconstruct`` makes of files: made once a session.

To reconstruct thirty clusters costs little more than to reconstruct one, since most of a run is the planning of its
queries. So captures with all or some of their sources, damaged copies of them, extracts of public folders, the metadata
logs of quorums and what was left of an incident are clusters of one lake. Only those are in it that the chosen tests
need, by the fixtures that they name: the tests of one file alone wait for no other's clusters.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import functions as F

from checks.pipeline import run_checks
from checks.results import CheckReport
from ingest.lake.delta import Lake, OfClusters
from ingest.lake.tables import TABLES
from jobs.sql.names import LakeNames
from reconstruct.pipeline import reconstruct
from tests import ROOT
from tests.support.captures.lake import GIVEN, NAMED_WHEN_INGESTED, Given, Sources, lay_out
from tests.support.captures.packed import Unpacker, unpack
from tests.support.files import incident_folder
from tests.support.lakes import again, damaged, kraft, offsets
from tests.support.lakes.apart import ingest_apart
from tests.support.metadata_log import MIGRATED, QUORUM
from tests.support.quorum import OUTAGE
from tests.support.truth.decisions import Truth, read_truth

#: Extracts of folders that people published; see ``tests/spark/wild``.
EXTRACTS: Final = ROOT / "tests" / "data" / "wild"
#: Captures that are read again in another order: one of each protocol era.
REORDERED: Final = [Given(Sources.ALL, name) for name in ("unclean-0.8.2.2", "failover-1.1.1", "lifecycle-3.9.1")]
#: The cluster that the incident's folder is, and that of the quorum of which two controllers were killed.
INCIDENT: Final = "incident"
QUORUM_OUTAGE: Final = "quorum-outage"


@dataclass(frozen=True)
class SharedLake:
    """The lake, and which cluster of it is what.

    ``clusters``: captures with the sources given of each. ``folders``: by the name that tests know the cluster by, the
    folder that was ingested, where it is still as it was. ``extracts``: by cluster the public folder's extract, and in
    ``warnings`` what ``ingest`` warned of.
    """

    lake: Lake
    clusters: dict[Given, str] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    extracts: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def of(self, *cluster_ids: str) -> OfClusters:
        """These clusters alone."""
        return OfClusters(self.lake, cluster_ids)


def silent(message: str) -> None:
    """No progress."""


@pytest.fixture(scope="session")
def truths(unpacked: Unpacker) -> Mapping[str, Truth]:
    """By capture what ZooKeeper's transaction log says, read when asked for."""
    return _Truths(unpacked)


class _Truths(dict[str, Truth]):
    def __init__(self, unpacked: Unpacker) -> None:
        self._unpacked = unpacked

    def __missing__(self, name: str) -> Truth:
        self[name] = read_truth(self._unpacked(name))
        return self[name]


@pytest.fixture(scope="session")
def shared_lake(
    request: pytest.FixtureRequest,
    spark: Any,
    empty_lake_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
    truths: Mapping[str, Truth],
) -> SharedLake:
    """Ingested and reconstructed once for all modules; nothing is written to it but what ``check`` writes."""
    named = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    folder, apart = tmp_path_factory.mktemp("captures"), tmp_path_factory.mktemp("apart")
    lake = Lake(spark, str(shutil.copytree(empty_lake_dir, tmp_path_factory.mktemp("shared") / "lake")))
    shared = SharedLake(lake)
    given = GIVEN if "captures" in named else _whole_captures(named)
    alone: dict[str, Path] = {}
    extracts = sorted(EXTRACTS.iterdir()) if "extracts" in named else []
    for one in given:
        if one.sources in NAMED_WHEN_INGESTED:
            alone[one.cluster_id] = lay_out(one, apart / one.capture)
        else:
            lay_out(one, folder / "captures")
    if "quorum" in named:
        shutil.copytree(QUORUM, folder / "captures" / "quorum")
    if "migrated" in named:
        shutil.copytree(MIGRATED, folder / "migrated")
    if "offset_lake" in named:
        shared.folders.update(offsets.lay_out(apart / "bent", tmp_path_factory))
        alone |= {name: shared.folders[name] for name in (offsets.WITH_PROBES, offsets.BENT)}
    if "damaged_copies" in named:
        alone |= damaged.lay_out(folder / "copies", apart / "damaged")
    if "created_again" in named:
        alone |= again.lay_out(apart / "again", apart / "again_of")
    if "incident_lake" in named:
        alone[INCIDENT] = incident_folder.left(unpack(incident_folder.CAPTURE, apart / "capture"), apart).folder
    if "outage" in named:
        alone[QUORUM_OUTAGE] = OUTAGE
    if "kraft_lake" in named:
        shared.folders.update(kraft_folders := kraft.lay_out(apart / "kraft"))
        alone |= kraft_folders
    given_with = {path: cluster_id for cluster_id, path in alone.items()}
    groups: dict[Path, str | None] = dict.fromkeys([*extracts, *sorted(folder.iterdir())])
    owners, warnings = ingest_apart(lake, groups | given_with)
    shared.warnings.extend(warnings)
    for extract in extracts:
        already = shared.extracts.keys() & owners[extract]
        assert not already, f"{extract.name}: another extract has the same cluster id"
        shared.extracts.update(dict.fromkeys(owners[extract], extract.name))
    reconstruct(lake, progress=silent)
    renamed = {path.name for path in folder.glob("copies/*")}
    shared.clusters.update(_cluster_ids(lake, given, truths, {*alone, *renamed}))
    return shared


def _whole_captures(named: set[str]) -> list[Given]:
    """Those that are asked for where not all are."""
    wanted = {*(offsets.GIVEN if "offset_lake" in named else ()), *(REORDERED if "reordered" in named else ())}
    return sorted(wanted)


def _cluster_ids(lake: Lake, given: Sequence[Given], truths: Mapping[str, Truth], names: set[str]) -> dict[Given, str]:
    """The cluster of each given capture: those that name themselves are known by when ``/brokers`` was created,
    the others by the name given. ``names``: clusters of copies, whose ``/brokers`` is as old."""
    births = lake.read(TABLES["silver.znode_changes"]).where("path = '/brokers' AND change = 'written'")
    rows = births.select("cluster_id", (F.unix_micros("changed_at") / 1000).alias("at_ms")).distinct().collect()
    told = [one for one in given if one.sources is not Sources.ALL]
    names = names | {one.cluster_id for one in told}
    by_birth = {row["at_ms"]: row["cluster_id"] for row in rows if row["cluster_id"] not in names}
    named = {
        one: by_birth.get(created.time_ms, "")
        for one in given
        if one.sources is Sources.ALL and (created := truths[one.capture].brokers_created) is not None
    }
    return named | {one: one.cluster_id for one in told}


@pytest.fixture(scope="session")
def shared_checks(shared_lake: SharedLake) -> CheckReport:
    """What the checks say of the lake, with an example of every cluster."""
    with pytest.MonkeyPatch.context() as patched:
        for module in ("checks.measure", "checks.metrics.judge"):
            patched.setattr(f"{module}.EXAMPLES_COUNT", 1000)
        return run_checks(shared_lake.lake, progress=silent)


@pytest.fixture(scope="session")
def named_lake(shared_lake: SharedLake) -> SharedLake:
    """The lake with its tables, views and questions named for SQL, which takes six seconds. The modules that ask for it
    lie in one folder, so that no other lake is named between them."""
    LakeNames(shared_lake.lake.spark, shared_lake.lake.root).name()
    return shared_lake


@pytest.fixture(scope="session")
def captures(shared_lake: SharedLake) -> SharedLake:
    """The lake with all captures in it, some of them with fewer sources too."""
    return shared_lake


@pytest.fixture(scope="session")
def extracts(shared_lake: SharedLake) -> SharedLake:
    """The lake with the extracts of public folders in it."""
    return shared_lake


@pytest.fixture(scope="session")
def damaged_copies(shared_lake: SharedLake) -> SharedLake:
    """The lake with captures that were damaged on purpose in it."""
    return shared_lake


@pytest.fixture(scope="session")
def created_again(shared_lake: SharedLake) -> SharedLake:
    """The lake with captures in it whose cluster was created again in the same logs."""
    return shared_lake


@pytest.fixture(scope="session")
def quorum(shared_lake: SharedLake) -> SharedLake:
    """The lake with the metadata logs of a quorum in it."""
    return shared_lake


@pytest.fixture(scope="session")
def outage(shared_lake: SharedLake) -> SharedLake:
    """The lake with a quorum in it that lost its majority."""
    return shared_lake


@pytest.fixture(scope="session")
def migrated(shared_lake: SharedLake) -> SharedLake:
    """The lake with a cluster in it that left ZooKeeper."""
    return shared_lake


@pytest.fixture(scope="session")
def kraft_lake(shared_lake: SharedLake) -> SharedLake:
    """The lake with the cluster without ZooKeeper in it that every question is asked of."""
    return shared_lake


@pytest.fixture(scope="session")
def reordered(shared_lake: SharedLake) -> SharedLake:
    """The lake with the captures in it that are read again in another order."""
    return shared_lake


@pytest.fixture(scope="session")
def incident_lake(shared_lake: SharedLake) -> SharedLake:
    """The lake with all that was left after an incident in it."""
    return shared_lake


@pytest.fixture(scope="session")
def offset_lake(shared_lake: SharedLake) -> offsets.OffsetLake:
    """What the tests of offsets and of checkpoint files read of it."""
    ids = {one.capture: shared_lake.clusters[one] for one in offsets.GIVEN}
    ids |= {offsets.WITH_PROBES: offsets.WITH_PROBES, offsets.BENT: offsets.BENT}
    return offsets.OffsetLake(shared_lake.lake, shared_lake.folders, ids)
