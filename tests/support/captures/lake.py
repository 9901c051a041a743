"""One lake of all captures, each given by several sets of sources, so that a test pays for Spark once.

A cluster of the lake is one (capture, sources). The whole capture keeps the identity that its own files give it; a
capture with fewer sources is named by a ``meta.properties`` beside each broker's logs, and its one log line that
would name the cluster otherwise is left out: else all would be the same cluster. ZooKeeper's files name the cluster
too: they are ingested by themselves, under a given id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tests.support.budget import IS_HARD
from tests.support.captures.packed import TRUTH, ZNODES, capture_names, unpack
from tests.support.evidence.corrected import later

_RECORD: Final = re.compile(r"^\[\d{4}-\d\d-\d\d ")
#: By how much the clocks of :attr:`Sources.WRONG_CLOCKS` are wrong: two hours are a zone, 47 seconds are a clock.
WRONG_BY: Final = {2: timedelta(hours=2), 3: timedelta(seconds=-47)}
_NAMES_CLUSTER: Final = "Cluster ID = "
_CONTROLLER_SPEAKS: Final = re.compile(r"\] [A-Z]+ \[?Controller ")


class Sources(StrEnum):
    """What of a capture is given to the program: not the truth, unless it is ZooKeeper's own files that are read."""

    ALL = "logs, znodes, checkpoints"
    NO_ZNODES = "logs, checkpoints"
    CONTROLLER = "controller's logs only"
    BROKERS = "brokers' logs only"
    TRANSACTIONS = "ZooKeeper's own files only"
    WRONG_CLOCKS = "logs, znodes, checkpoints; broker 2 in another zone, broker 3's clock slow"


@dataclass(frozen=True, order=True)
class Given:
    """One cluster of the lake."""

    sources: Sources
    capture: str

    @property
    def cluster_id(self) -> str:
        """The id that ``meta.properties`` states; for :attr:`Sources.ALL` the files state it themselves."""
        return f"{self.capture}-{self.sources.name.lower()}".replace(".", "-")


#: Sources of which no file says the name that tells the cluster from the whole capture: it is given with them.
NAMED_WHEN_INGESTED: Final = (Sources.TRANSACTIONS, Sources.WRONG_CLOCKS)
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


def lay_out(given: Given, folder: Path) -> Path:
    """Unpack what is given below ``folder``, in a folder of its own, and return that."""
    target = folder / given.sources.name.lower()
    if given.sources is Sources.TRANSACTIONS:
        return unpack(given.capture, target, without=("broker-*", "znodes", "probes-*.jsonl", "events.jsonl"))
    if given.sources is Sources.ALL:
        return unpack(given.capture, target, without=TRUTH)
    if given.sources is Sources.WRONG_CLOCKS:
        capture = unpack(given.capture, target, without=TRUTH)
        for broker, shift in WRONG_BY.items():
            for log in capture.glob(f"broker-{broker}/logs/*.log"):
                set_clock(log, shift)
        name_cluster(capture, given.cluster_id)
        return capture
    capture = unpack(given.capture, target, without=(*TRUTH, *ZNODES, "meta.properties"))
    for broker in sorted(capture.glob("broker-*")):
        (broker / "meta.properties").write_text(f"version=0\ncluster.id={given.cluster_id}\n")
        for log in sorted((broker / "logs").glob("*.log")):
            _filter(log, _keep(given.sources, log.name))
    for path in _checkpoints_to_leave_out(given.sources, capture):
        path.unlink()
    return capture


#: Brokers state their cluster since 0.10.1, and keep its id later.
_STATED_ID: Final = re.compile(rb"(?:Cluster ID = |cluster\.id=)([A-Za-z0-9_-]+)")


def name_cluster(capture: Path, cluster_id: str) -> None:
    """Write another cluster id wherever a capture's text states its own, so that many are told apart in one lake."""
    places = ("broker-*/logs/*", "broker-*/meta.properties")
    stated = {
        found for place in places for path in capture.glob(place) for found in _STATED_ID.findall(path.read_bytes())
    }
    assert stated
    for path in [
        p for pattern in ("broker-*/logs/*", "broker-*/meta.properties", "znodes/*") for p in capture.glob(pattern)
    ]:
        content = path.read_bytes()
        for own in stated:
            content = content.replace(own, cluster_id.encode())
        path.write_bytes(content)


def set_clock(log: Path, shift: timedelta) -> None:
    """Print every time of a log so much later."""
    lines = log.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    log.write_bytes("\n".join(later(line, shift) for line in lines).encode("utf-8", "surrogateescape"))


def _checkpoints_to_leave_out(sources: Sources, capture: Path) -> Iterator[Path]:
    """All but the last copy of each checkpoint, whose thousands of files say nothing of states; all for one side."""
    for kind in capture.glob("broker-*/checkpoints/*"):
        copies = sorted(kind.iterdir())
        yield from copies[:-1] if sources is Sources.NO_ZNODES else copies
    if sources is not Sources.NO_ZNODES:
        yield from capture.glob("broker-*/leader-epoch-checkpoint/*")


def _keep(sources: Sources, log: str) -> Callable[[str], bool]:
    """Which records of a log, by their first line, belong to the sources."""

    def from_controller(line: str) -> bool:
        return log == "controller.log" or (log == "state-change.log" and bool(_CONTROLLER_SPEAKS.search(line)))

    def keep(line: str) -> bool:
        if _NAMES_CLUSTER in line:
            return False
        if sources is Sources.NO_ZNODES:
            return True
        return from_controller(line) is (sources is Sources.CONTROLLER)

    return keep


def _filter(log: Path, keep: Callable[[str], bool]) -> None:
    kept: list[str] = []
    keeping = False
    with log.open(encoding="utf-8", newline="") as lines:
        for line in lines:
            if _RECORD.match(line):
                keeping = keep(line)
            if keeping:
                kept.append(line)
    if kept:
        with log.open("w", encoding="utf-8", newline="") as file:
            file.writelines(kept)
    else:
        log.unlink()


def rows_by_cluster(frame: Any, *columns: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of a timeline by cluster, its instants in epoch ms: small tables only, those of a test."""
    from pyspark.sql import functions as F

    kinds = dict(frame.dtypes)
    chosen = [
        (F.unix_micros(F.col(name)) / 1000).alias(name) if kinds[name] == "timestamp" else F.col(name)
        for name in ("cluster_id", *columns)
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in frame.select(*chosen).collect():
        groups.setdefault(row["cluster_id"], []).append(row.asDict())
    return groups


def row_texts(frame: Any, without: Iterable[str] = ()) -> list[str]:
    """Those of one table: see :func:`table_row_texts`."""
    return table_row_texts({"": frame}, without)[""]


def table_row_texts(frames: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, list[str]]:
    """Every row as JSON, sorted, by table, leaving out the columns that hold our own clock or the file's name.

    One query: to plan one for each of fifty tables takes most of their time.
    """
    from pyspark.sql import functions as F

    from ingest.lake.plans import union

    left_out = {*without, "ingested_at", "run_at", "run_id"}
    parts = []
    for name, frame in frames.items():
        columns = [F.col(column) for column in sorted(frame.columns) if column not in left_out]
        text = F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})
        parts.append(frame.select(F.lit(name).alias("name"), text.alias("text")))
    texts: dict[str, list[str]] = {name: [] for name in frames}
    for row in union(parts).collect():
        texts[row["name"]].append(row["text"])
    return {name: sorted(found) for name, found in texts.items()}
