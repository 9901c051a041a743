"""Places that may not be written, or read: told as a sentence.

Java and Python say it in the text of an error of their own for each way of writing, wrapped once for each thread.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Final

_ERRORS: Final = (errno.EROFS, errno.EACCES, errno.EPERM)
_REASONS: Final = "|".join(re.escape(os.strerror(number)) for number in _ERRORS)
#: By how it is said: of files by Java's two kinds of streams, of a bucket or path by its store, of a new folder, by
#: HDFS, and by Python.
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"(?:FileNotFoundException|FileSystemException): (?P<place>[^\n]+?)(?:: | \()(?P<reason>{_REASONS})",
        r"AccessDeniedException: (?P<place>[^\n]+?)(?=: |\n|$)",
        r"Mkdirs failed to create (?P<place>\S+)",
        rf"AccessControlException: (?P<reason>{_REASONS}): [^\n]*inode=\"(?P<place>[^\"\n]+)\"",
        rf"(?:OSError|PermissionError): \[Errno \d+\] (?P<reason>{_REASONS}): '(?P<place>[^'\n]+)'",
    )
)


def refused_access(error: Exception) -> str | None:
    """Which place may not be written or read, and what to do; None of another error."""
    found = _of_system(error) or _of_text(str(error))
    if found is None:
        return None
    place, reason = found
    return (
        f"{re.sub(r'^file:/+', '/', place)} may not be written, or not be read ({reason.lower()}): give whoever runs"
        " this the right to, or give another folder; `report`, `ask`, `explain` and `sql` only read the lake"
    )


def _of_system(error: Exception) -> tuple[str, str] | None:
    if not isinstance(error, OSError) or error.errno not in _ERRORS or error.filename is None:
        return None
    return os.fsdecode(error.filename), os.strerror(error.errno)


def _of_text(text: str) -> tuple[str, str] | None:
    for form in _FORMS:
        found = form.search(text)
        if found is not None:
            return found["place"], found.groupdict().get("reason") or os.strerror(errno.EACCES)
    return None
