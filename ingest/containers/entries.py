"""What archives hold, whatever their format: entries, and why some are refused."""

from __future__ import annotations

import posixpath
import re
from typing import Final, NamedTuple

from ingest.containers.storage import ByteStream
from ingest.containers.streams import Empty

OUTSIDE: Final = "an archive's entry that points outside of the archive: refused"
LINK: Final = "a link inside an archive: links are not followed"
DEVICE: Final = "a device, pipe or socket inside an archive: refused"
NAME_TOO_LONG: Final = "an archive's entry whose name is longer than 4096 characters: refused"
_MAX_NAME: Final = 4096
_DRIVE: Final = re.compile(r"^[A-Za-z]:")


class Entry(NamedTuple):
    """A file in an archive. ``problem`` says why it must not be read.

    An entry without ``name`` is about the archive itself: its ``problem`` says why what follows is missing.
    """

    name: str | None
    stream: ByteStream
    problem: str | None = None


def refused(name: str | None, problem: str) -> Entry:
    return Entry(name, Empty(), problem)


def text_of(name: bytes) -> str:
    """A name as text that can be written anywhere: bytes that are no UTF-8, and NUL, as escapes."""
    return name.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def name_problem(name: str) -> str | None:
    """Why an entry of this name is refused; None where nothing speaks against it.

    Backslashes count as separators here: whoever unpacks on Windows follows them.
    """
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or _DRIVE.match(name) or ".." in parts:
        return OUTSIDE
    return NAME_TOO_LONG if len(name) > _MAX_NAME else None


def tidy(name: str) -> str:
    """A name without ``./`` and doubled slashes, cut where it is too long to keep."""
    return posixpath.normpath(name)[:_MAX_NAME]
