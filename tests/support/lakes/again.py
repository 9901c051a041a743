"""Captures whose cluster ends at one instant and is created again in the same logs: a few in every run, those that once
accused among them; many of all captures with ``HYPOTHESIS_PROFILE=hard``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.support.bends.mishaps import created_again
from tests.support.budget import IS_HARD
from tests.support.captures.packed import TRUTH, capture_names, unpack
from tests.support.captures.text import CaptureText, printed_at

_TRIES: Final = range(6)
#: A controller whose requests were on their way was accused of one that a broker did not receive, and said to be
#: registered from the first life to the second.
_SHARE: Final = {
    "lifecycle-1.1.1": (0,),
    "reassign_busy-1.1.1": (0, 1),
    "failover-0.8.2.2": (0,),
    "failover-3.9.1": (0,),
}


class Again(NamedTuple):
    """One cluster: it was created again by ``begins_at``, µs, where its logs go on."""

    cluster_id: str
    text: CaptureText
    begins_at: int


def clusters(folder: Path) -> Iterator[Again]:
    """Those of this run, made of captures that are unpacked below a folder."""
    chosen = dict.fromkeys(capture_names(), _TRIES) if IS_HARD else _SHARE
    for name, numbers in chosen.items():
        text = CaptureText.read(unpack(name, folder / name, without=TRUTH))
        for number in numbers:
            after, again = created_again(text, Random(f"again {name} {number}"))
            first = min(line[1:24] for log in text.named("/logs/") for line in text.files[log][:1])
            begins_at = printed_at(first) + after // timedelta(microseconds=1)
            yield Again(f"again-{name}-{number}", again, begins_at)


def lay_out(folder: Path, apart: Path) -> dict[str, Path]:
    """Each in a folder of its own, by the id to be given with it."""
    laid = {}
    for cluster in clusters(apart):
        cluster.text.write(folder / cluster.cluster_id)
        laid[cluster.cluster_id] = folder / cluster.cluster_id
    return laid
