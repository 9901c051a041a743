"""The clusters of the lake of all captures that the tests of offsets and of checkpoint files look at.

Each capture is a cluster named like it. The probes, and all else that tells the truth, are left out of what is
ingested; but one capture is ingested with its probes once more, and one with its checkpoint files bent, as other
clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.captures.lake import Given, Sources
from tests.support.captures.packed import TRUTH, unpack_once
from tests.support.lakes.captures import CaptureLake, NamedClusters

#: Captures as they are.
WHOLE: Final = ("unclean-0.8.2.2", "unclean-3.9.1-info", "checkpoints-1.1.1", "quiet-0.8.2.2")


@dataclass(frozen=True)
class OffsetLake:
    """The clusters by their ids, with their names; and by name the folder that was ingested."""

    captures: CaptureLake
    names: Mapping[str, str]
    folders: Mapping[str, Path]

    @property
    def lake(self) -> NamedClusters:
        """All of them."""
        return self.of(list(self.folders))

    def of(self, names: Sequence[str]) -> NamedClusters:
        """The clusters of these names."""
        wanted = {cluster_id: name for cluster_id, name in self.names.items() if name in names}
        return NamedClusters(self.captures.lake, wanted)


@pytest.fixture(scope="session")
def offset_lake(capture_lake: CaptureLake, tmp_path_factory: pytest.TempPathFactory) -> OffsetLake:
    """See :class:`OffsetLake`."""
    names = {capture_lake.clusters[Given(Sources.ALL, name)]: name for name in WHOLE}
    folders = {name: unpack_once(name, tmp_path_factory, without=TRUTH) for name in WHOLE}
    return OffsetLake(
        capture_lake, names | {name: name for name in capture_lake.folders}, folders | dict(capture_lake.folders)
    )
