"""Files of the lake that somebody took away, or broke, while a job reads them: told as a sentence.

Spark says it in an error of its own for each way of reading, wrapped by Java once for each thread that it passed.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_UNREADABLE: Final = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (.+?)\.(?:\s|$)")
_GONE: Final = "FILE_NOT_EXIST"


def lost_file(error: Exception) -> str | None:
    """What is wrong with which file, and what to do; None of another error."""
    found = _UNREADABLE.search(str(error))
    if found is None:
        return None
    path = unquote(re.sub(r"^file:/+", "/", found[2]))
    if found[1] == _GONE:
        return (
            f"{path} is gone: where another job was tidying the lake (`maintain`) give the same command again, else"
            " put the file back or make the lake anew from its sources"
        )
    return f"{path} cannot be read, it is cut or damaged: put it back, or make the lake anew from its sources"
