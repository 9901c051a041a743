"""A capture read as the ingest reads it, without Spark: what is kept and what is rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ingest.containers import contents
from ingest.containers.storage import list_files
from ingest.files.attribution import attribute, round_ends
from ingest.files.inspection import inspect
from ingest.lake.tables.bronze import LOG_KINDS
from ingest.readers.logs import records
from ingest.readers.logs.framing import blocks
from ingest.readers.sources import SOURCE_OF_KIND
from ingest.readers.work import Rejected, WorkItem
from ingest.run.planning import plan
from ingest.run.reading import matchers
from ingest.run.work_items import work_items


@dataclass
class Reading:
    """Records read by the kind of their file, and a sentence for each that was rejected, or file not read."""

    read: Counter[str] = field(default_factory=Counter)
    rejected: list[str] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)


def read_whole(folder: Path) -> Reading:
    """Read every record of every file below the folder; nothing of a growing file is left for a later time."""
    found = Reading()
    files = [file for one in list_files(str(folder)) for file in inspect(one, is_final=True)]
    owners, _ = attribute(files, cluster_id=None, brokers={}, known_cluster=None)
    found.not_read = [
        f"{owner.file.source_file}: {owner.file.status}, {owner.file.reason}"
        for owner in owners
        if owner.file.status not in ("ingested", "empty")  # Kafka's checkpoint of log starts begins as 0 bytes
    ]
    for item in work_items(plan(owners, {}, {}), {}, round_ends(owners), "UTC"):
        for reason in _reasons(item, found.read):
            found.rejected.append(f"{item.source_file}: {reason}")
    return found


def _reasons(item: WorkItem, read: Counter[str]) -> Iterator[str]:
    if item.kind in LOG_KINDS:
        for content in contents(item.location):
            yield from (row.reason for row in records.rejected(item, blocks(content.stream, item.byte_count)))
    if item.reason or item.damage:
        yield item.reason or item.damage or ""
        return
    for content in contents(item.location):  # which closes it when the next is asked for
        source = blocks(content.stream, item.byte_count)
        if item.kind in LOG_KINDS:
            read[item.kind] += sum(batch.num_rows for batch in records.kept(item, source, matchers()[0], _ignored))
            continue
        reader = SOURCE_OF_KIND[item.kind].read
        assert reader is not None
        for row in reader(item, source):
            read[item.kind] += 1
            if isinstance(row, Rejected):
                yield f"line {row.place.line}: {row.reason}"


def _ignored(read: int, rejected: int) -> None:
    """The counts that are not needed."""
