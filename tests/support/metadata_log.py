"""The metadata logs of real KRaft nodes as the model takes them: read by the program's own reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from ingest.readers.metadata_log.records import read, read_snapshot
from ingest.readers.work import Kept, WorkItem
from reconstruct.model.metadata_log.commitment import Copy, Span
from reconstruct.model.metadata_log.values import MetadataRecord
from tests import ROOT

#: One node that alone is the quorum, of three brokers: topics created and deleted, a broker killed and started.
ONE_VOTER: Final = ROOT / "tests" / "data" / "kraft-4.1.0" / "broker-1"
#: Three nodes that are controllers and brokers: the active controller killed twice, another node shut down and started.
QUORUM: Final = ROOT / "tests" / "data" / "kraft-4.1.0-quorum"
NODES: Final = tuple(sorted(QUORUM.glob("broker-*")))
_LOG: Final = "__cluster_metadata-0"


def log_of(node: Path) -> list[MetadataRecord]:
    """All records of a node's log; of NoOps in a row the first."""
    return [record for record, _ in _rows(node)]


def copy_of(node: Path) -> Copy:
    """What the node's log covers, epoch by epoch."""
    spans: list[Span] = []
    for record, last in _rows(node):
        if spans and spans[-1].epoch == record.epoch:
            spans[-1] = spans[-1]._replace(end=last + 1)
        else:
            spans.append(Span(record.offset, last + 1, record.epoch))
    return Copy(int(node.name.rpartition("-")[2]), tuple(spans), tuple(sorted(snapshots_of(node))))


def snapshots_of(node: Path) -> dict[int, list[MetadataRecord]]:
    """The records of each snapshot, by the offset before which it ends."""
    return {
        int(file.name.partition("-")[0]): [_record(row, "position") for row in _kept(file)]
        for file in sorted((node / _LOG).glob("*-*.checkpoint"))
    }


def _rows(node: Path) -> Iterator[tuple[MetadataRecord, int]]:
    for file in sorted((node / _LOG).glob("*.log")):
        for row in _kept(file):
            yield _record(row, "offset"), row.values["last_offset"]


def _record(row: Kept, place: str) -> MetadataRecord:
    values = row.values
    fields = json.loads(values["fields"] or "{}")
    return MetadataRecord(values[place], values.get("leader_epoch") or 0, values["record_type"], fields)


def _kept(file: Path) -> list[Kept]:
    data = file.read_bytes()
    is_snapshot = file.suffix == ".checkpoint"
    kind = SourceKind.METADATA_SNAPSHOT if is_snapshot else SourceKind.METADATA_LOG
    item = WorkItem(str(file), None, file.name, kind, "c", 1, "f", "f", len(data))
    found = list((read_snapshot if is_snapshot else read)(item, [data]))
    kept = [one for one in found if isinstance(one, Kept)]
    assert len(kept) == len(found), f"{file} has records that cannot be read"
    return kept
