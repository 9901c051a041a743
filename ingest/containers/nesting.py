"""What a file holds: itself, what it is packed in, or the members of an archive, and of archives inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ingest.containers import snappy, storage, tar_archives, zip_archives
from ingest.containers.compression import Decompressed, codec_of
from ingest.containers.entries import Entry
from ingest.containers.limits import TOO_MANY, TOO_MUCH, Allowance
from ingest.containers.storage import ByteStream
from ingest.containers.streams import Empty, Peekable
from ingest.containers.tar_archives import BLOCK, is_tar

#: Archives inside one another, the file itself counted: OUTER!MIDDLE!INNER!PATH.
MAX_ARCHIVES: Final = 3
#: Compressed data inside compressed data.
MAX_LAYERS: Final = 3
TOO_DEEP: Final = "an archive inside three others: unpack the outer ones and give the folder"
TOO_MANY_LAYERS: Final = "compressed more than three times over: decompress it and give the file"
#: Programs and documents that are zip archives: what they hold is no evidence.
_PACKAGES: Final = (".jar", ".war", ".ear", ".aar", ".apk", ".whl", ".egg", ".nupkg", ".docx", ".xlsx", ".pptx", ".odt")
#: Formats that are known and not read.
_OTHERS: Final = {
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x04\x22\x4d\x18": "LZ4 data",
    b"LZIP": "lzip data",
    b"\x1f\x9d": "data of the compress program (.Z)",
    b"\x89LZO\0\r\n\x1a\n": "LZO data",
    b"070701": "a cpio archive",
    b"070702": "a cpio archive",
    b"070707": "a cpio archive",
    b"!<arch>\n": "an ar archive",
    b"PK\x07\x08": "one part of a zip archive in several",
}


@dataclass(frozen=True)
class Content:
    """The uncompressed bytes of one file or member.

    ``member`` is None for a file that is no archive; of a member of an archive inside another it is
    ``ARCHIVE!MEMBER``. A member is unique in its file: where a name occurs again, ``#2``, ``#3`` ... is added.
    ``compression`` is what the file, or the archive that the member stands in, is packed in. ``problem`` says why the
    content must not be read; with ``member`` None, or that of an archive, why what follows in the archive is missing.
    """

    member: str | None
    compression: str
    stream: ByteStream
    problem: str | None = None


def contents(location: str, offset: int = 0) -> Iterator[Content]:
    """The file's content, or that of each member where it is an archive, in the archive's order.

    Each stream must be used before the next is asked for. ``offset`` skips that many bytes of a file that is not
    packed; for packed ones use :func:`ingest.containers.skip`. ``OSError`` where the file cannot be read.
    """
    raw = storage.open_stream(location, offset)
    try:
        outer = Peekable(raw)
        walk = _Walk(Allowance(storage.size_bytes(location)))
        if offset or location.lower().endswith(_PACKAGES):
            yield Content(None, "none", outer)
        elif zip_archives.is_zip(outer.peek(8)):
            file = storage.open_seekable(location)
            try:
                yield from walk.members(zip_archives.entries(file), None, "zip", 1, 0)
            finally:
                storage.close(file)
        else:
            yield from walk.contents(outer, None, "none", 1, 0)
    finally:
        storage.close(raw)


class _Walk:
    """One pass over a file; it remembers the names of members, to tell equal ones apart."""

    def __init__(self, allowance: Allowance) -> None:
        self._names: dict[str, int] = {}
        self._allowance = allowance

    def contents(self, stream: Peekable, name: str | None, packed: str, archive: int, layer: int) -> Iterator[Content]:
        """What one file or member holds. ``packed`` is what it stands in, ``archive`` how many archives there are
        around it if it is one, itself included, ``layer`` how many layers it was unpacked from."""
        compression = None
        layers = 0
        while True:
            head = stream.peek(BLOCK)
            codec = codec_of(head)
            is_snappy = head.startswith(snappy.MAGIC)
            if codec is None and not is_snappy:
                break
            layers += 1
            compression = compression or (codec.name if codec else snappy.NAME)
            if layers > MAX_LAYERS:
                yield self._content(name, packed if name else compression, Empty(), TOO_MANY_LAYERS)
                return
            unpacked: ByteStream = Decompressed(stream, codec) if codec else snappy.SnappyStream(stream)
            stream = Peekable(self._allowance.limited(unpacked, layer))
            layer += 1
        head = stream.peek(BLOCK)
        found = None if (name or "").lower().endswith(_PACKAGES) else _archive(stream, head, compression)
        if found is None:
            problem = _other_problem(head)
            own = compression or "none"
            yield self._content(name, packed if name else own, stream if problem is None else Empty(), problem)
        elif archive > MAX_ARCHIVES:
            yield self._content(name, packed, Empty(), TOO_DEEP)
        else:
            yield from self.members(found[0], name, found[1], archive, layer)

    def members(
        self, entries: Iterator[Entry], name: str | None, packed: str, archive: int, layer: int
    ) -> Iterator[Content]:
        """The members of an archive, those of archives inside it in their places."""
        for entry in entries:
            if entry.name is None:
                yield self._content(name, packed, Empty(), entry.problem)
                continue
            member = entry.name if name is None else f"{name}!{entry.name}"
            if not self._allowance.admits(member):
                yield self._content(name, packed, Empty(), TOO_MANY)
                return
            if entry.problem is not None:
                yield self._content(member, packed, entry.stream, entry.problem)
                continue
            stream = Peekable(self._allowance.limited(entry.stream, layer))
            yield from self.contents(stream, member, packed, archive + 1, layer + 1)
            if self._allowance.left(layer) <= 0:  # to look for the next entry might mean to read on
                yield self._content(name, packed, Empty(), TOO_MUCH)
                return

    def _content(self, member: str | None, compression: str, stream: ByteStream, problem: str | None) -> Content:
        if member is None:
            return Content(None, compression, stream, problem)
        distinct = member
        number = self._names.get(member, 0)
        while distinct in self._names:
            number += 1
            distinct = f"{member}#{number}"
        self._names[distinct] = 1
        self._names[member] = max(number, 1)
        return Content(distinct, compression, stream, problem)


def _archive(stream: Peekable, head: bytes, compression: str | None) -> tuple[Iterator[Entry], str] | None:
    """The entries of an archive and what it is packed in; None where it is none."""
    if is_tar(head):
        suffix = "bz2" if compression == "bzip2" else {"gzip": "gz", "zstd": "zst"}.get(compression or "", compression)
        return tar_archives.entries(stream), f"tar.{suffix}" if suffix else "tar"
    if zip_archives.is_zip(head):
        return zip_archives.entries_of_stream(stream), "zip"
    return None


def _other_problem(head: bytes) -> str | None:
    what = next((name for magic, name in _OTHERS.items() if head.startswith(magic)), None)
    return None if what is None else f"{what}, which is not read: unpack it and give the folder"
