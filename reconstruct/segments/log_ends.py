"""What a listing, or an index without its log, proves of where a log ended: at the least."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconstruct.segments.evidence import SegmentFiles


def log_ends(files: Iterable[SegmentFiles]) -> Iterator[tuple[SegmentFiles, int]]:
    """Of each copy whose last segment was not read: that segment, and an offset that the log had reached.

    A segment is begun at the log's end, and an index entry is of a record that is there.
    """
    for file in files:
        if file.is_last and file.next_offset is None:
            indexed = [
                -1 if offset is None else offset for offset in (file.last_indexed_offset, file.last_timed_offset)
            ]
            yield file, max(file.base_offset, max(indexed) + 1)
