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
from ingest.readers.lines import blocks
from ingest.readers.work import Rejected, WorkItem
from ingest.run.planning import plan
from ingest.run.reading import read_item
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


def _reasons(item: WorkItem, counts: Counter[str]) -> Iterator[str]:
    if item.reason or item.damage:
        yield item.reason or item.damage or ""
        return
    for content in contents(item.location):  # which closes it when the next is asked for
        for found in read_item(item, blocks(content.stream, item.byte_count)):
            if isinstance(found, Rejected):
                counts[item.kind] += 1
                yield f"line {found.place.line}: {found.reason}"
            else:
                counts[item.kind] += found.num_rows
