"""One lake for the tests of offsets and of checkpoint files on Spark: made once, then only read.

Each capture is a cluster named like it. The probes, and all else that tells the truth, are left out of what is
ingested; but one capture is ingested with its probes once more, and one with its checkpoint files bent, as other
clusters.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TableSpec
from ingest.run.pipeline import IngestOptions, ingest_paths
from reconstruct.pipeline import reconstruct
from tests.support.bends.checkpoint_files import BENDS, places
from tests.support.captures.packed import TRUTH, unpack, unpack_once
from tests.support.evidence.checkpoints import checkpoint_files

#: Captures as they are.
WHOLE: Final = ("unclean-0.8.2.2", "unclean-3.9.1-info", "checkpoints-1.1.1", "quiet-0.8.2.2")
#: The capture that is ingested with its probes too, and the cluster it then is.
PROBED, WITH_PROBES = "unclean-0.8.2.2", "unclean-0.8.2.2 with probes"
#: The capture whose files are bent: one copy of a broker in each way.
BENT: Final = "failover-1.1.1"
BENT_BROKER: Final = 2


@dataclass(frozen=True)
class OffsetLake:
    """The lake, and by cluster the folder that was ingested."""

    lake: Lake
    folders: dict[str, Path]


class OfClusters(PinnedLake):
    """Some clusters of a lake, to be read."""

    def __init__(self, lake: Lake, cluster_ids: Sequence[str]) -> None:
        super().__init__(lake)
        self._cluster_ids = list(cluster_ids)

    def read(self, spec: TableSpec) -> DataFrame:
        """The clusters' rows of a table."""
        return super().read(spec).where(F.col("cluster_id").isin(self._cluster_ids))


@pytest.fixture(scope="session")
def offset_lake(spark: Any, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> OffsetLake:
    """Ingested and reconstructed once for all modules that name it."""
    folders = {name: unpack_once(name, tmp_path_factory, without=TRUTH) for name in WHOLE}
    no_other_truth = [part for part in TRUTH if not part.startswith("probes")]
    folders[WITH_PROBES] = unpack_once(PROBED, tmp_path_factory, without=no_other_truth)
    folders[BENT] = unpack(BENT, tmp_path_factory.mktemp("bent"), without=TRUTH)
    _bend(folders[BENT] / f"broker-{BENT_BROKER}")
    lake = Lake(spark, str(shutil.copytree(empty_lake_dir, tmp_path_factory.mktemp("offsets") / "lake")))
    for cluster_id, folder in folders.items():
        ingest_paths(lake, [str(folder)], IngestOptions(cluster_id=cluster_id), lambda _: None)
    reconstruct(lake, progress=lambda _: None)
    return OffsetLake(lake, folders)


def _bend(broker: Path) -> None:
    files = checkpoint_files(broker)
    room = places(files)[3::4]
    for (bend, _), place in zip(BENDS.values(), room, strict=False):
        path = broker.joinpath(place[0], place[1], str(place[2]))
        content = bend(files[place] or b"", random.Random(1))
        path.unlink() if content is None else path.write_bytes(content)
    assert len(room) >= len(BENDS)
