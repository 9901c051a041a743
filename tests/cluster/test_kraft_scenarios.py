"""Scenarios on clusters without ZooKeeper: what is recorded of them is what the nodes have, and what they log is known.

What it means is not measured here yet: the truth to hold it against is each node's metadata log.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

import pytest

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from ingest.readers.logs.writers import kind_of_logger
from ingest.shapes import match
from jobs.lab.machines.releases import KRAFT_RELEASES
from jobs.lab.play import Played
from jobs.lab.scenarios.catalogue import SCENARIOS
from tests.cluster.conftest import Player

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

#: Of the lines of these loggers nearly each has a shape; of the others, as the group coordinator, few.
OF_KRAFT: Final = re.compile(
    r"org\.apache\.kafka\.(?:raft|controller|image|metadata|queue)\.|kafka\.server\.(?:BrokerServer|ControllerServer)"
    r"|.*\.(?:BrokerLifecycleManager|NodeToController\w+|ControllerRegistrationManager)\Z|state\.change\.logger"
)
LEAST_KNOWN: Final = 0.98
LINE: Final = re.compile(r"\[[^\]]+\] [A-Z]+ +(?P<message>.*) \((?P<logger>[\w.$]+)\)", re.ASCII)
#: The quorum has another leader, in a later epoch, at their end.
CONTROLLERS_END: Final = ("controller-failover", "zombie", "quorum-outage")


@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        pytest.param(name, release.name, id=f"{name}-{release.name}")
        for release in KRAFT_RELEASES
        for name, scenario in SCENARIOS.items()
        if scenario.plays_on(release)
    ],
)
def test_what_was_captured_is_what_the_nodes_have(scenario: str, version: str, player: Player) -> None:
    assert problems(player(scenario, version)) == []


def problems(played: Played) -> list[str]:
    """Everything that is not as it must be."""
    return [*not_as_copied(played), *not_of_the_quorum(played), *not_known(played)]


def not_as_copied(played: Played) -> list[str]:
    """Files of the metadata log that the capture lacks, or that begin otherwise: what a node wrote after it is no
    fault."""
    found = []
    for theirs in sorted(played.truth.glob(f"broker-*/{METADATA_DIRECTORY}/*")):
        name = theirs.name.removesuffix(".deleted")
        if not name.endswith((".log", ".checkpoint")):
            continue
        ours = played.capture / theirs.parent.relative_to(played.truth) / name
        if ours.exists():
            written, copied = theirs.read_bytes(), ours.read_bytes()
            is_deleted = name != theirs.name  # before its last bytes were copied, or on a disk that was lost
            is_same = written.startswith(copied) and (is_deleted or 2 * len(copied) >= len(written))
            if not is_same and not (is_deleted and copied.startswith(written)):
                found.append(f"{ours.relative_to(played.capture)} is not what the node has")
        elif name.endswith(".log") and not list(ours.parent.glob("*.log")):
            found.append(f"{ours.relative_to(played.capture)} was not copied")
    return found


def not_of_the_quorum(played: Played) -> list[str]:
    told = described(played, "quorum")
    epochs = {(entry["leader_epoch"], entry["leader"]) for entry in told if entry["leader"] >= 0}
    found = [] if told else ["the quorum was not described"]
    if len(dict(epochs)) != len(epochs):
        found.append(f"two leaders in one epoch: {sorted(epochs)}")
    if played.scenario.name in CONTROLLERS_END and len(epochs) < 2:
        found.append(f"the quorum has one leader all the time: {sorted(epochs)}")
    return found


def not_known(played: Played) -> list[str]:
    """Too many lines without a shape, and each of a state change."""
    counts, unknown = Counter[bool](), []
    for log in sorted(played.capture.glob("broker-*/logs/*.log")):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            read = LINE.fullmatch(line)
            if read is None or not OF_KRAFT.match(read["logger"]):
                continue
            kind = kind_of_logger(read["logger"])
            is_known = match(kind, read["logger"], read["message"]) is not None
            counts[is_known] += 1
            if not is_known and kind == "state_change_log":
                unknown.append(f"no shape is known of {line}")
    known = counts[True] / max(1, counts.total())
    return unknown + ([] if known >= LEAST_KNOWN else [f"only {known:.1%} of {counts.total()} lines have a shape"])


def described(played: Played, kind: str) -> list[dict[str, Any]]:
    lines = (played.capture / "descriptions.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["description"] == kind]
