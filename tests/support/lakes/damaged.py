"""Copies of captures, damaged on purpose: a share of the kinds in every run, all with ``HYPOTHESIS_PROFILE=hard``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tests.support.budget import IS_HARD
from tests.support.captures.bases import BASES, ZOOKEEPER
from tests.support.captures.damages import COPIES, KINDS
from tests.support.captures.lake import name_cluster

SHARE: Final = (
    "log cut in a line",
    "hour missing",
    "TRACE lines removed",
    "numbers that no column holds",
    "requests edited",
    "what a broker received edited",
    "wrong time zone",
    "last snapshot names another leader",
)
CHOSEN: Final = tuple(kind for kind in KINDS if IS_HARD or kind.name in SHARE)
GIVEN_TWICE: Final = COPIES if IS_HARD else COPIES[:1]


def lay_out(folder: Path, apart: Path) -> dict[str, Path]:
    """Every undamaged and every damaged capture, each named anew: below ``folder``, and ZooKeeper's own files, which
    name no cluster, below ``apart``, by the id to be given with them."""
    alone = {}
    used = {damage.base for damage in (*CHOSEN, *GIVEN_TWICE)}
    changes = [(base.name, base, None) for base in BASES.values() if base.name in used]
    changes += [(damage.cluster_id, BASES[damage.base], damage.change) for damage in (*CHOSEN, *GIVEN_TWICE)]
    whole = {name: base.lay(apart / "whole" / name) for name, base in BASES.items() if name in used}
    for cluster_id, base, change in changes:
        capture = (apart if base.name == ZOOKEEPER else folder) / cluster_id
        shutil.copytree(whole[base.name], capture)
        if base.name == ZOOKEEPER:
            alone[cluster_id] = capture
        else:
            name_cluster(capture, cluster_id)
        if change is not None:
            change(capture)
    return alone
