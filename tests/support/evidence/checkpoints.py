"""The checkpoints of a capture's brokers without Spark: the plain way to :func:`judge_checkpoints`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from ingest.readers.log_dirs import checkpoints
from ingest.readers.work import Kept, Rejected, WorkItem
from ingest.shapes import match
from reconstruct.checkpoints.evidence import (
    AssignedSpan,
    BrokerCheckpoints,
    BrokerLine,
    CheckpointCopy,
    CheckpointEntry,
    RejectedEntry,
    Replica,
    lines_of,
)
from reconstruct.model.versions import KafkaVersion, VersionRange
from reconstruct.offsets.bound_steps import EVER_AFTER
from tests.support.captures.packed import kafka_version
from tests.support.captures.text import printed_at

_HEADER: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (\w+) (.*) \(([\w.$]+)\)$")
_CAUSE: Final = re.compile(r"^(?:Caused by: )?([\w.$]+): (.*)$")
_TOPIC: Final = re.compile(r"^/brokers/topics/([^/]+)$")
#: The content of each copy by (directory, file, milliseconds); None: the file was not there.
Files = dict[tuple[str, str, int], bytes | None]


def checkpoint_files(broker: Path) -> Files:
    """Every copy of a broker of a capture that says when it was made."""
    return {
        (str(path.parent.parent.relative_to(broker)), path.parent.name, int(path.name)): path.read_bytes()
        for path in sorted(broker.glob("checkpoints/**/*"))
        if path.is_file()
    }


def read_checkpoints(files: Files) -> tuple[list[CheckpointCopy], list[CheckpointEntry]]:
    """What ingest reads of each copy; topics have no incarnations here."""
    read = [_copy(*place, content) for place, content in sorted(files.items()) if content is not None]
    copies = [copy for copy, _ in read]
    return copies, _mark_runs(copies, [entry for _, entries in read for entry in entries])


@lru_cache(maxsize=100_000)
def _copy(
    directory: str, name: str, milliseconds: int, content: bytes
) -> tuple[CheckpointCopy, tuple[CheckpointEntry, ...]]:
    """What is read of one copy: of a broker's bent copies all but one are as they were."""
    kind, at = name.replace("-", "_"), milliseconds * 1000
    evidence_id = f"{directory}/{name}/{milliseconds}"
    bad, entries = [], []
    for record in _records(name, kind, content):
        place = record.place
        record_id = f"{evidence_id}:{place.line}"
        if isinstance(record, Kept):
            replica = (record.values["topic"], "", record.values["partition_id"])
            entries.append(CheckpointEntry(directory, kind, replica, at, record.values["offset"], record_id))
        else:
            bad.append(RejectedEntry(record.reason, place.data.decode(errors="replace"), record_id))
    copy = CheckpointCopy(directory, kind, at, len(entries), tuple(bad), hashlib.sha256(content).hexdigest())
    return copy, tuple(entries)


@lru_cache(maxsize=100_000)
def _records(name: str, kind: str, content: bytes) -> tuple[Kept | Rejected, ...]:
    """What is read of one content: most of a broker's copies are alike."""
    return tuple(checkpoints.read(_item(name, kind, len(content)), [content]))


def broker_lines(broker: Path) -> tuple[list[BrokerLine], list[tuple[int, str]], list[tuple[int, int]]]:
    """What its server.log says, its starts, and the span that it covers."""
    broker_id = broker.name.removeprefix("broker-")
    lines: list[BrokerLine] = []
    starts: list[tuple[int, str]] = []
    first = None
    log = broker / "logs" / "server.log"
    text = log.read_text(errors="replace").splitlines() if log.exists() else []
    for number, line in enumerate(text, 1):
        header = _HEADER.match(line)
        if header is None:
            continue
        at = printed_at(header[1])
        first = at if first is None else first
        matched = match("server_log", header[4], header[3])
        event_type = "" if matched is None else matched.event_type
        evidence_id = f"{broker_id}/server.log:{number}"
        if event_type == "broker_server_starting":
            starts.append((at, evidence_id))
        cause = text[number] if number < len(text) else ""
        caused = _CAUSE.match(cause)
        exception = match("exception", caused[1], caused[2]) if caused else None
        cause_type = "" if exception is None else exception.event_type
        fields = {} if matched is None else matched.fields
        lines += lines_of(at, evidence_id, event_type, fields, cause if caused else "", cause_type)
    return lines, starts, [] if first is None else [(first, EVER_AFTER)]


def assigned_spans(capture: Path) -> Mapping[int, Mapping[Replica, list[AssignedSpan]]]:
    """By broker: from the topics' znodes, as each snapshot shows them; a topic that is gone is nobody's."""
    seen: dict[tuple[str, int], list[tuple[int, tuple[int, ...]]]] = {}
    for snapshot in sorted(capture.glob("znodes/*.jsonl")):
        shown = {}
        at = int(snapshot.stem) * 1000
        for line in snapshot.read_text().splitlines():
            row = json.loads(line)
            if (topic := _TOPIC.match(row["path"])) and row["data"]:
                for number, replicas in json.loads(row["data"])["partitions"].items():
                    shown[topic[1], int(number)] = tuple(replicas)
        for partition in shown.keys() | seen.keys():
            spans = seen.setdefault(partition, [])
            if not spans or spans[-1][1] != shown.get(partition, ()):
                spans.append((at, shown.get(partition, ())))
    brokers = {int(path.name.removeprefix("broker-")) for path in capture.glob("broker-*")}
    return {
        broker: {
            (topic, "", number): [
                AssignedSpan(start, end, broker in replicas)
                for (start, replicas), end in zip(spans, [*(at for at, _ in spans[1:]), None], strict=True)
            ]
            for (topic, number), spans in seen.items()
        }
        for broker in brokers
    }


def plain_checkpoints(capture: Path) -> Iterator[BrokerCheckpoints]:
    """Each broker of a capture; what is proven of its high watermarks otherwise is left out."""
    version = KafkaVersion.parse(kafka_version(capture.name))
    assert version is not None
    assigned = assigned_spans(capture)
    for broker in sorted(capture.glob("broker-*")):
        broker_id = int(broker.name.removeprefix("broker-"))
        copies, entries = read_checkpoints(checkpoint_files(broker))
        lines, starts, covered = broker_lines(broker)
        yield BrokerCheckpoints(
            broker_id,
            VersionRange.exactly(version),
            copies,
            entries,
            lines,
            starts,
            assigned[broker_id],
            covered=covered,
        )


def _item(name: str, kind: str, size: int) -> WorkItem:
    return WorkItem(name, None, name, kind, "c", None, "f", "f", size)


def _mark_runs(copies: Iterable[CheckpointCopy], entries: Iterable[CheckpointEntry]) -> list[CheckpointEntry]:
    """Set ``begins_run`` of every entry of dated copies; all entries must be given."""
    rounds: dict[tuple[str, str], list[int]] = {}
    for copy in copies:
        if copy.taken_at is not None:
            rounds.setdefault((copy.directory, copy.kind), []).append(copy.taken_at)
    number = {
        (place, at): index for place, instants in rounds.items() for index, at in enumerate(sorted(set(instants)))
    }
    last: dict[tuple[str, str, Replica], int] = {}
    result = []
    for entry in sorted(entries, key=lambda e: e.taken_at):
        place = (entry.directory, entry.kind)
        index = number[place, entry.taken_at]
        before = last.get((*place, entry.replica))
        last[*place, entry.replica] = index
        begins_run = before is None or before < index - 1
        result.append(replace(entry, begins_run=True) if begins_run else entry)  # most are none: to copy all takes long
    return result
