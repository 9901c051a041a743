"""Of the lake that tests share, what those of offsets and of checkpoint files read.

The probes, and all else that tells the truth, are left out of what is ingested; but one capture is ingested with its
probes once more, and one with its checkpoint files bent, as other clusters.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from ingest.lake.delta import Lake
from tests.support.bends.checkpoint_files import BENDS, places
from tests.support.captures.lake import Given, Sources
from tests.support.captures.packed import TRUTH, unpack, unpack_once
from tests.support.evidence.checkpoints import checkpoint_files

#: Captures as they are.
WHOLE: Final = ("unclean-0.8.2.2", "unclean-3.9.1-info", "checkpoints-1.1.1", "quiet-0.8.2.2")
GIVEN: Final = [Given(Sources.ALL, name) for name in WHOLE]
#: The capture that is ingested with its probes too, and the cluster it then is.
PROBED, WITH_PROBES = "unclean-0.8.2.2", "unclean-0.8.2.2 with probes"
#: The capture whose files are bent: one copy of a broker in each way.
BENT: Final = "failover-1.1.1"
BENT_BROKER: Final = 2


@dataclass(frozen=True)
class OffsetLake:
    """The lake, and by the name that tests know it by, the folder that was ingested and the id of each cluster."""

    lake: Lake
    folders: Mapping[str, Path]
    ids: Mapping[str, str]

    @property
    def names(self) -> dict[str, str]:
        """By id."""
        return {cluster_id: name for name, cluster_id in self.ids.items()}


def lay_out(folder: Path, folders: pytest.TempPathFactory) -> dict[str, Path]:
    """By name, what is ingested or, of whole captures, equal to it; the bent one is laid out below ``folder``."""
    laid_out = {name: unpack_once(name, folders, without=TRUTH) for name in WHOLE}
    no_other_truth = [part for part in TRUTH if not part.startswith("probes")]
    laid_out[WITH_PROBES] = unpack_once(PROBED, folders, without=no_other_truth)
    laid_out[BENT] = unpack(BENT, folder, without=TRUTH)
    _bend(laid_out[BENT] / f"broker-{BENT_BROKER}")
    return laid_out


def _bend(broker: Path) -> None:
    files = checkpoint_files(broker)
    room = places(files)[3::4]
    for (bend, _), place in zip(BENDS.values(), room, strict=False):
        path = broker.joinpath(place[0], place[1], str(place[2]))
        content = bend(files[place] or b"", random.Random(1))
        path.unlink() if content is None else path.write_bytes(content)
    assert len(room) >= len(BENDS)
