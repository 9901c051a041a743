"""Metadata logs and snapshots: as ``kafka-dump-log --cluster-metadata-decoder`` prints them, and as they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from ingest.readers.metadata_log.framing import BatchFramer
from ingest.readers.metadata_log.records import records_of
from reconstruct.model.metadata_log.comparison import differences
from reconstruct.model.metadata_log.image import replay
from reconstruct.model.metadata_log.values import Image
from tests.support.metadata_log import log_of, snapshots_of

#: The tool's names of control records: with their fields, or as types alone (LeaderChange up to 3.9).
_CONTROL: Final = {
    "LeaderChange": "LeaderChangeMessage",
    "SnapshotHeader": "SnapshotHeaderRecord",
    "SnapshotFooter": "SnapshotFooterRecord",
    "KRaftVersion": "KRaftVersionRecord",
    "KRaftVoters": "VotersRecord",
    "LEADER_CHANGE": "LeaderChangeMessage",
}
_FILE: Final = re.compile(r"^Dumping (.+)$")
_RECORD: Final = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*? headerKeys: \[\] (?:payload: )?(.*)$")
_TYPE_ALONE: Final = re.compile(r"controlType: (\w+)\(\d+\)$")


class DumpedRecord(NamedTuple):
    """``fields`` is None where the tool prints the type alone."""

    offset: int
    timestamp_ms: int
    record_type: str
    fields: dict[str, Any] | None


def printed(text: str) -> dict[str, list[DumpedRecord]]:
    """The records of each file, by the name that stands above them; what stands above none is of no name."""
    found: dict[str, list[DumpedRecord]] = {}
    file = ""
    for line in text.splitlines():
        if (named := _FILE.match(line)) is not None:
            file = named[1]
            found[file] = []
        elif (record := _RECORD.match(line)) is not None:
            found.setdefault(file, []).append(
                DumpedRecord(int(record[1]), int(record[2]), *_type_and_fields(record[3]))
            )
    return found


def _type_and_fields(said: str) -> tuple[str, dict[str, Any] | None]:
    if said.startswith("{"):
        payload = json.loads(said)
        return "".join(map(str.capitalize, payload["type"].split("_"))), payload["data"]
    if (alone := _TYPE_ALONE.match(said)) is not None:
        return _CONTROL[alone[1]], None
    name, _, fields = said.partition(" ")
    return _CONTROL[name.rstrip(":")], json.loads(fields)


def read(file: Path) -> list[DumpedRecord]:
    """The same file by the program's own reader."""
    framer = BatchFramer()
    batches = [*framer.take(file.read_bytes()), *framer.finish()]
    return [
        DumpedRecord(
            record.offset,
            record.timestamp_ms,
            record.decoded.record_type,
            None if record.decoded.fields is None else dict(record.decoded.fields),
        )
        for batch in batches
        for record in records_of(batch.data)
    ]


def read_otherwise(ours: Sequence[DumpedRecord], theirs: Sequence[DumpedRecord]) -> list[str]:
    """Records that the tool prints otherwise than they are read, field by field."""
    return [
        f"{one} is {other} by kafka-dump-log"
        for one, other in zip_longest(ours, theirs)
        if one is None
        or other is None
        or one[:3] != other[:3]
        or (other.fields is not None and one.fields != other.fields)
    ]


def snapshots_that_differ(node: Path) -> tuple[int, list[str]]:
    """How many of a node's snapshots could be held against its log, and what in them its records did not make."""
    snapshots, records = snapshots_of(node), log_of(node)
    start = min((record.offset for record in records), default=0)
    end = max((record.offset for record in records), default=-1) + 1
    base = max((one for one in snapshots if one <= start), default=0)
    first: Image = replay(snapshots[base]) if base in snapshots else {}
    count, found = 0, []
    for snapshot_end, shown in snapshots.items():
        if (base == 0 or snapshot_end > base) and snapshot_end <= end and (start == 0 or base in snapshots):
            count += 1
            made = replay([one for one in records if base <= one.offset < snapshot_end], first)
            found += [f"{node.name}, snapshot at {snapshot_end}: {one}" for one in differences(made, replay(shown))]
    return count, found
