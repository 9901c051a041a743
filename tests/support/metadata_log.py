"""The metadata logs of real KRaft nodes as the model takes them: read by the program's own reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from ingest.readers.metadata_log.records import read, read_snapshot
from ingest.readers.work import Kept, WorkItem
from reconstruct.metadata_log.evidence import (
    OF_QUORUM,
    OF_TRANSACTIONS,
    ClusterLog,
    CopySpan,
    LogRow,
    SnapshotFile,
)
from reconstruct.model.metadata_log.commitment import Copy, Span
from reconstruct.model.metadata_log.image import REPLAYED
from reconstruct.model.metadata_log.values import ConfigResource, MetadataRecord
from tests import ROOT

#: One node that alone is the quorum, of three brokers: topics created and deleted, a broker killed and started.
ONE_VOTER: Final = ROOT / "tests" / "data" / "kraft-4.1.0" / "broker-1"
#: Three nodes that are controllers and brokers: the active controller killed twice, another node shut down and started.
QUORUM: Final = ROOT / "tests" / "data" / "kraft-4.1.0-quorum"
NODES: Final = tuple(sorted(QUORUM.glob("broker-*")))
#: A node's log of reassignments that ended.
REASSIGNED: Final = ROOT / "tests" / "data" / "kraft-4.1.0-reassignment" / "broker-1"
#: A controller's log of three brokers with ELR: both replicas killed, the wrong one started first, elected uncleanly.
UNCLEAN: Final = ROOT / "tests" / "data" / "kraft-4.3.1-unclean" / "broker-101"
#: Three brokers and three controllers of 3.9.1 that leave ZooKeeper: taken over, a topic created, a broker killed and
#: replicas moved while both were written, two of the brokers started without ZooKeeper. One controller's log.
MIGRATED: Final = ROOT / "tests" / "data" / "kraft-3.9.1-migration"
#: Three controllers of 3.9.1 with dynamic voters: a fourth joined them, the active one was taken out. One's log.
VOTERS_CHANGED: Final = ROOT / "tests" / "data" / "kraft-3.9.1-voters" / "broker-101"
_LOG: Final = "__cluster_metadata-0"
_BY_ID: Final = ("TopicRecord", "RemoveTopicRecord", "PartitionRecord", "PartitionChangeRecord")


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
    return Copy(_node_id(node), tuple(spans), tuple(sorted(snapshots_of(node))))


def snapshots_of(node: Path) -> dict[int, list[MetadataRecord]]:
    """The records of each snapshot, by the offset before which it ends."""
    return {end: [_record(row, "position") for row in rows] for end, rows in _snapshot_rows(node).items()}


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


def rows_of(nodes: Sequence[Path]) -> list[LogRow]:
    """The records of several nodes' logs, each once, and those of their snapshots."""
    found: dict[tuple[int, int, str, str], LogRow] = {}
    shown = []
    for node in nodes:
        node_id = _node_id(node)
        for file in sorted((node / _LOG).glob("*.log")):
            for row in _kept(file):
                values = row.values
                key = (values["offset"], values["leader_epoch"], values["record_type"], values["fields"] or "{}")
                known = found.get(key)
                found[key] = LogRow(
                    f"{values['offset']}@{values['leader_epoch']}",
                    *key,
                    values["appended_at"],
                    values["batch_offset"],
                    1 if known is None else known.copies + 1,
                )
        for end, rows in _snapshot_rows(node).items():
            for row in rows:
                values = row.values
                shown.append(
                    LogRow(
                        f"{node_id}:{end}:{values['position']}",
                        values["position"],
                        values["snapshot_epoch"],
                        values["record_type"],
                        values["fields"] or "{}",
                        values["appended_at"],
                        node_id=node_id,
                        snapshot_end=end,
                    )
                )
    return [*found.values(), *shown]


def cluster_log(nodes: Sequence[Path]) -> tuple[ClusterLog, dict[str, list[LogRow]]]:
    """The log of a cluster with the rows of no topic, and the rows of each topic by its name: as Spark groups them."""
    rows = rows_of(nodes)
    names = {
        row.record.fields["topicId"]: row.record.fields["name"] for row in rows if row.record_type == "TopicRecord"
    }
    topics: dict[str, list[LogRow]] = {}
    others = []
    for row in rows:
        fields = row.record.fields
        if row.record_type in _BY_ID:
            topics.setdefault(names[fields["topicId"]], []).append(row)
        elif row.record_type == "ClearElrRecord":
            for name in [fields["topicName"]] if fields["topicName"] else set(names.values()):
                topics.setdefault(name, []).append(row)
        elif row.record_type == "ConfigRecord" and fields["resourceType"] == ConfigResource.TOPIC:
            topics.setdefault(fields["resourceName"], []).append(row)
        elif row.record_type in {*REPLAYED, *OF_QUORUM, *OF_TRANSACTIONS}:
            others.append(row)
    spans = tuple(
        CopySpan(_node_id(node), span.epoch, span.start, span.end) for node in nodes for span in copy_of(node).spans
    )
    snapshots = tuple(
        SnapshotFile(_node_id(node), end, values["snapshot_epoch"], values["appended_at"], f"{node.name}:{end}")
        for node in nodes
        for end, shown in _snapshot_rows(node).items()
        for values in [shown[0].values]
    )
    return ClusterLog("c", spans, snapshots, tuple(others)), topics


def _node_id(node: Path) -> int:
    return int(node.name.rpartition("-")[2])


def _snapshot_rows(node: Path) -> dict[int, list[Kept]]:
    files = sorted((node / _LOG).glob("*-*.checkpoint"))
    return {int(file.name.partition("-")[0]): _kept(file) for file in files}
