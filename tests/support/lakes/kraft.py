"""Of the lake that tests share, the cluster without ZooKeeper of which each question's answer is known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from reconstruct.metadata_log.evidence import LogRow
from reconstruct.model.metadata_log.image import applied, replay
from reconstruct.model.metadata_log.values import Image, Kind, PartitionState, TopicState
from tests import ROOT
from tests.support.captures.packed import extract
from tests.support.metadata_log import rows_of

#: ``lab lifecycle --version 4.3.1``, as it was captured.
LIFECYCLE: Final = ROOT / "tests" / "data" / "lifecycle-4.3.1.tar.xz"
WHOLE: Final = "lifecycle"


def lay_out(folder: Path) -> dict[str, Path]:
    """By the cluster's id, what is ingested of it."""
    return {WHOLE: extract(LIFECYCLE, folder)}


@dataclass(frozen=True)
class Recorded:
    """What a cluster's folder says without the program: its records, its lines, what was done to it."""

    folder: Path

    @cached_property
    def records(self) -> list[LogRow]:
        """Of all nodes' logs, each offset once, in order."""
        nodes = sorted(path.parent for path in self.folder.glob(f"broker-*/{METADATA_DIRECTORY}"))
        rows = {row.offset: row for row in rows_of(nodes) if row.snapshot_end is None}
        return [rows[offset] for offset in sorted(rows)]

    def of_type(self, *types: str) -> list[LogRow]:
        return [row for row in self.records if row.record_type in types]

    @cached_property
    def states(self) -> Mapping[tuple[str, str, int], list[tuple[LogRow, PartitionState]]]:
        """By topic, its id and partition, each state with the record that made it."""
        found: dict[tuple[str, str, int], list[tuple[LogRow, PartitionState]]] = {}
        image: Image = {}
        names: dict[str, str] = {}
        for row in self.records:
            for subject, state in applied(image, row.record).changes:
                if isinstance(state, TopicState):
                    names[state.topic_id] = state.name
                if subject.kind is Kind.PARTITION and isinstance(state, PartitionState):
                    key = (names[subject.name], subject.name, subject.partition_id)
                    found.setdefault(key, []).append((row, state))
            image = replay([row.record], image)
        return found

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """What was done to the cluster: never read by the program."""
        return [json.loads(line) for line in (self.folder / "events.jsonl").read_text("utf-8").splitlines()]

    def event(self, what: str, **details: Any) -> dict[str, Any]:
        """The first of these."""
        return next(
            event for event in self.events if event["what"] == what and all(event[k] == v for k, v in details.items())
        )

    def lines(self, log: str, text: str) -> Iterator[tuple[int, str]]:
        """The lines of a log of each node that hold a text, with the node's id."""
        for file in sorted(self.folder.glob(f"broker-*/logs/{log}")):
            for line in file.read_text("utf-8").splitlines():
                if text in line:
                    yield int(file.parent.parent.name.rpartition("-")[2]), line
