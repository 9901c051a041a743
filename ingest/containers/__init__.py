"""Compressed files and archives as streams: nothing is unpacked to disk, memory stays bounded.

What a file is packed in is recognised by its first bytes, never by its name; programs and documents, which are zip
archives of their own kind, are not opened. A member of an archive is a file like any
other, named ``ARCHIVE!MEMBER``; of an archive inside another, ``OUTER!INNER!MEMBER``.
"""

from ingest.containers.nesting import Content, contents
from ingest.containers.streams import Peekable, damage_of, skip

__all__ = ["Content", "Peekable", "contents", "damage_of", "skip"]
