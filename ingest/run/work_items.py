"""The work items of the planned files: what the tasks read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ingest.lake.tables.bronze import READ_PARTITION_FILE_KINDS
from ingest.readers.work import WorkItem
from ingest.run.planning import FileKey, Planned


def work_items(
    planned: Sequence[Planned],
    resumed: Mapping[FileKey, tuple[int, int]],
    rounds: Mapping[tuple[str, int | None], Sequence[int]],
    time_zone: str,
) -> list[WorkItem]:
    """The items of the files that are read or rejected: one each, more for a long plain log.

    ``resumed`` says where reading goes on in a file that has grown, as (byte offset, line); ``rounds`` are the
    instants of the capture's rounds, which bound when a copy was made.
    """
    items: list[WorkItem] = []
    for entry in planned:
        status = entry.owner.file.status
        if status == "rejected":
            file = entry.owner.file
            items.append(_item(entry, file.size_bytes, reason=file.reason or "not recognised", raw=file.raw))
        elif status == "ingested":
            items.extend(_parts(entry, resumed.get(entry.key, (0, 1)), rounds, time_zone))
    return items


def _parts(
    entry: Planned, start: tuple[int, int], rounds: Mapping[tuple[str, int | None], Sequence[int]], time_zone: str
) -> list[WorkItem]:
    file = entry.owner.file
    end = file.ingestible_bytes
    begins = [start, *(split for split in file.splits if start[0] < split[0] < end)]
    ends = [*(offset for offset, _ in begins[1:]), end]
    captured = file.captured_at_ms
    upper = None
    if captured is not None:
        instants = rounds.get((entry.owner.cluster_id, entry.owner.broker_id), ())
        following = bisect_right(instants, captured)
        upper = instants[following] if following < len(instants) else None
    return [
        _item(
            entry,
            stop,
            offset=offset,
            line=line,
            time_zone=time_zone,
            captured_at_ms=captured,
            captured_at_upper_ms=upper,
            damage=file.damage,
        )
        for (offset, line), stop in zip(begins, ends, strict=True)
        # an empty segment tells something all the same: where its partition's log ends
        if offset < stop or file.damage or file.kind in READ_PARTITION_FILE_KINDS
    ]


def _item(entry: Planned, end: int, **values: Any) -> WorkItem:
    """The item of a file up to the byte ``end``; ``values`` are those that the file alone does not say."""
    owner, file = entry.owner, entry.owner.file
    return WorkItem(
        location=file.location,
        member=file.member,
        source_file=file.source_file,
        kind=file.kind,
        cluster_id=owner.cluster_id,
        broker_id=owner.broker_id,
        file_id=owner.file_id,
        record_base=entry.base_id,
        end=end,
        layout=file.layout,
        directory=file.directory,
        chroot=file.chroot,
        snapshot_zxid=file.snapshot_zxid,
        streams=None if file.is_shared else file.streams,
        is_plain=file.compression == "none",
        **values,
    )
