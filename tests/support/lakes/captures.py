"""One lake of all captures for a whole run of tests, and a small one that is filled twice: made once, then only read.

Making a lake costs Spark minutes. So all captures, each with several sets of sources, are ingested and reconstructed in
one go, with what the tests of offsets need besides; see :mod:`tests.support.captures.lake` for the sets of sources.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TABLES, TableSpec
from ingest.run.pipeline import IngestOptions, ingest_paths
from reconstruct.pipeline import reconstruct
from tests.support.bends.checkpoint_files import BENDS, places
from tests.support.budget import IS_HARD
from tests.support.captures.lake import Given, Sources, lay_out, name_cluster, row_texts
from tests.support.captures.packed import TRUTH, capture_names, unpack, unpack_once
from tests.support.evidence.checkpoints import checkpoint_files
from tests.support.truth.decisions import Truth, read_truth

ALL: Final = [Given(Sources.ALL, name) for name in capture_names()]
#: Captures that are read with less than all their sources; with HYPOTHESIS_PROFILE=hard every one is read so.
FEWER_SOURCES: Final = (
    capture_names() if IS_HARD else ("failover-0.8.2.2", "reassign_busy-1.1.1", "lifecycle-3.9.1", "unclean-3.9.1-info")
)
NO_ZNODES: Final = [Given(Sources.NO_ZNODES, name) for name in FEWER_SOURCES]
ONE_SIDE: Final = [
    Given(sources, name)
    for sources in (Sources.CONTROLLER, Sources.BROKERS)
    for name in (
        ("failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1", "unclean-3.9.1-info")
        if IS_HARD
        else ("failover-1.1.1",)
    )
]
TRANSACTIONS: Final = [
    Given(Sources.TRANSACTIONS, name)
    for name in ("lifecycle-0.8.2.2", "lifecycle-3.9.1", *(("failover-1.1.1", "unclean-3.9.1-info") if IS_HARD else ()))
]
WRONG_CLOCKS: Final = [Given(Sources.WRONG_CLOCKS, name) for name in ("failover-1.1.1", "lifecycle-3.9.1")]
GIVEN: Final = [*ALL, *NO_ZNODES, *ONE_SIDE, *TRANSACTIONS, *WRONG_CLOCKS]
#: The capture that is ingested with its probes too, and the cluster it then is.
PROBED, WITH_PROBES = "unclean-0.8.2.2", "unclean-0.8.2.2 with probes"
#: The capture whose checkpoint files are bent, one copy of a broker in each way, and the cluster it then is.
TO_BE_BENT, BENT, BENT_BROKER = "failover-1.1.1", "failover-1-1-1-bent", 2
#: Captures that are read again in another order: one of each protocol era.
REORDERED: Final = ("unclean-0.8.2.2", "failover-1.1.1", "lifecycle-3.9.1")


@dataclass(frozen=True)
class CaptureLake:
    """The lake, the truth of each capture, the cluster of each given capture, and the folder of each of
    :data:`WITH_PROBES` and :data:`BENT`."""

    lake: Lake
    truths: Mapping[str, Truth]
    clusters: Mapping[Given, str]
    folders: Mapping[str, Path]


class NamedClusters(PinnedLake):
    """Some clusters of a lake, to be read, each under a name of the test's own."""

    def __init__(self, lake: Lake, names: Mapping[str, str]) -> None:
        super().__init__(lake)
        self._names: dict[Any, Any] = dict(names)

    def read(self, spec: TableSpec) -> DataFrame:
        """The clusters' rows of a table."""
        rows = super().read(spec).where(F.col("cluster_id").isin(list(self._names)))
        return rows.replace(self._names, subset=["cluster_id"])


@dataclass(frozen=True)
class RunAgain:
    """A lake of :data:`REORDERED`, what it was filled from, and its rows when it had been filled once."""

    lake: Lake
    paths: Sequence[Path]
    rows: Mapping[str, list[str]]


def silent(message: str) -> None:
    """No progress."""


def fill(lake: Lake, paths: Sequence[Path], named: Mapping[str, Path]) -> None:
    """Ingest and reconstruct; ``named`` paths are each of a cluster whose id is given."""
    ingest_paths(lake, [str(path) for path in paths], IngestOptions(), silent)
    for cluster_id, path in named.items():
        ingest_paths(lake, [str(path)], IngestOptions(cluster_id=cluster_id), silent)
    reconstruct(lake, progress=silent)


@pytest.fixture(scope="session")
def capture_lake(spark: Any, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> CaptureLake:
    """Ingested and reconstructed once for all modules that name it."""
    folder, alone = tmp_path_factory.mktemp("captures"), tmp_path_factory.mktemp("named")
    for given in (*ALL, *NO_ZNODES, *ONE_SIDE, *WRONG_CLOCKS):
        lay_out(given, folder)
    bent = unpack(TO_BE_BENT, folder / "bent", without=TRUTH)
    name_cluster(bent, BENT)
    _bend(bent / f"broker-{BENT_BROKER}")
    no_other_truth = [part for part in TRUTH if not part.startswith("probes")]
    probed = unpack_once(PROBED, tmp_path_factory, without=no_other_truth)
    named = {given.cluster_id: lay_out(given, alone / given.capture) for given in TRANSACTIONS}
    lake = Lake(spark, str(shutil.copytree(empty_lake_dir, tmp_path_factory.mktemp("all-captures") / "lake")))
    fill(lake, [folder], named | {WITH_PROBES: probed})
    truths = {name: read_truth(unpack_once(name, tmp_path_factory)) for name in capture_names()}
    return CaptureLake(lake, truths, _cluster_ids(lake, truths), {WITH_PROBES: probed, BENT: bent})


@pytest.fixture(scope="session")
def run_again(spark: Any, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> RunAgain:
    """Some captures again, their files under other names and given in another order; others may be added to it."""
    shuffled, folder = random.Random(20261121), tmp_path_factory.mktemp("moved")
    paths: list[Path] = []
    for name in REORDERED:
        capture = lay_out(Given(Sources.ALL, name), folder / name)
        for index, log in enumerate(sorted(capture.glob("broker-*/logs/*.log"))):
            log.rename(log.with_name(f"{99 - index}.txt"))
        paths += sorted(capture.iterdir())
    shuffled.shuffle(paths)
    lake = Lake(spark, str(shutil.copytree(empty_lake_dir, tmp_path_factory.mktemp("again") / "lake")))
    fill(lake, paths, {})
    return RunAgain(lake, paths, derived_rows(lake))


def derived_rows(lake: Lake, cluster_ids: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Every row of silver and gold, by table, as text; of these clusters, or of all."""
    pinned = PinnedLake(lake)

    def texts(spec: TableSpec) -> list[str]:
        rows = pinned.read(spec)
        return row_texts(rows if cluster_ids is None else rows.where(F.col("cluster_id").isin(list(cluster_ids))))

    derived = [spec for spec in TABLES.values() if spec.schema in ("silver", "gold")]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip([spec.full_name for spec in derived], pool.map(texts, derived), strict=True))


def _bend(broker: Path) -> None:
    files = checkpoint_files(broker)
    room = places(files)[3::4]
    for (bend, _), place in zip(BENDS.values(), room, strict=False):
        path = broker.joinpath(place[0], place[1], str(place[2]))
        content = bend(files[place] or b"", random.Random(1))
        path.unlink() if content is None else path.write_bytes(content)
    assert len(room) >= len(BENDS)


def _cluster_ids(lake: Lake, truths: Mapping[str, Truth]) -> dict[Given, str]:
    """The cluster of each given capture: those that name themselves are known by when ``/brokers`` was created,
    the others by the name given."""
    births = lake.read(TABLES["silver.znode_changes"]).where("path = '/brokers' AND change = 'written'")
    rows = births.select("cluster_id", (F.unix_micros("changed_at") / 1000).alias("at_ms")).distinct().collect()
    named = {given: given.cluster_id for given in GIVEN if given.sources is not Sources.ALL}
    others = {*named.values(), WITH_PROBES, BENT}
    by_birth = {row["at_ms"]: row["cluster_id"] for row in rows if row["cluster_id"] not in others}
    by_itself = {
        given: by_birth.get(created.time_ms, "")
        for given in ALL
        if (created := truths[given.capture].brokers_created) is not None
    }
    return by_itself | named
