"""Zip archives as streams of their entries.

Where the file can be sought in, its central directory says what it holds. Where that is missing, or the archive
comes as a stream too long to hold, the entries are found one after another by their local headers.

Python's zipfile reads the directory. Where it refuses the archive, since its end is cut off, an entry of its directory
is damaged or a name is no UTF-8, the entries are found in sequence, too: that costs what is damaged and nothing else.
"""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from ingest.containers import zip_directory as directory
from ingest.containers.entries import Entry, refused, tidy
from ingest.containers.storage import ByteStream, SeekableStream
from ingest.containers.streams import BLOCK_BYTES, Part, Peekable, damage_of
from ingest.containers.zip_directory import View, ZipEntry
from ingest.containers.zip_entries import CUT_OFF, Checked, in_sequence, unpacked

#: An archive inside another is kept in memory up to this size.
SPOOL_BYTES: Final = 64 << 20
MAGICS: Final = (directory.LOCAL, directory.END, directory.DESCRIPTOR + directory.LOCAL)


def is_zip(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a zip archive."""
    return head.startswith(MAGICS)


def entries(file: SeekableStream) -> Iterator[Entry]:
    """The files of a zip archive that can be sought in. Each stream must be used before the next is asked for."""
    found = directory.read_directory(file)
    if not isinstance(found, str):
        yield from _listed(file, *found)
        return
    file.seek(0)
    yield from in_sequence(Peekable(file), found)


def entries_of_stream(source: ByteStream) -> Iterator[Entry]:
    """The files of a zip archive inside another file: kept in memory where it is small, else read in sequence."""
    spooled = io.BytesIO()
    while spooled.tell() <= SPOOL_BYTES:
        block = source.read(BLOCK_BYTES)
        if not block:
            damage = damage_of(source)
            # what is wrong with the archive itself is then said of that damage
            yield from (entry for entry in entries(spooled) if damage is None or entry.name is not None)
            if damage is not None:
                yield refused(None, f"the zip archive is damaged ({damage}): files of it may be missing")
            return
        spooled.write(block)
    rest = Peekable(source)
    rest.put_back(spooled.getvalue())
    spooled.close()
    yield from in_sequence(rest, None)


def _listed(file: SeekableStream, found: list[ZipEntry], directory_start: int) -> Iterator[Entry]:
    starts = sorted([*(min(entry.offset, directory_start) for entry in found), directory_start])
    for entry in found:
        if not entry.is_folder:
            content = entry.problem or _located(file, entry, starts)
            name = tidy(entry.name)
            yield refused(name, content) if isinstance(content, str) else Entry(name, content)


def _located(file: SeekableStream, entry: ZipEntry, starts: list[int]) -> ByteStream | str:
    """The entry's content, or why it cannot be read."""
    view = View(file, starts[-1], max(entry.offset, 0))
    lengths = directory.parse_local(view.read(30))
    if lengths is None or entry.offset < 0:
        return "the zip archive is damaged: this entry is not where its directory says"
    start = view.seek(sum(lengths), 1)
    following = bisect_right(starts, entry.offset)
    is_shared = following - bisect_left(starts, entry.offset) > 1
    if is_shared or start + entry.packed_bytes > starts[following]:
        return "the zip archive is damaged: this entry's bytes are also another's"
    return Checked(unpacked(Part(view, entry.packed_bytes, CUT_OFF), entry.method), entry)
