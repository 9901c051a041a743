"""Files of the lake that somebody took away, or broke, while a job reads them: told as a sentence.

Spark says it in an error of its own for each way of reading, wrapped by Java once for each thread that it passed, and
Python of the files that it reads itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

#: What the files of a table are called, by Delta and by us, whatever the table.
_PART: Final = r"[^\n]*?/part-[^/\n']*?\.parquet"
_GONE: Final = tuple(
    re.compile(pattern.format(part=f"({_PART})"))
    for pattern in (
        r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (.+?)\.(?:\s|$)",
        r"\[PATH_NOT_FOUND\] Path does not exist: {part}\.(?:\s|$)",
        r"No such file or directory: '{part}'",
        r"Failed to open local file '{part}'\. Detail: \[errno 2\]",
    )
)
_BROKEN: Final = re.compile(r"\[FAILED_READ_FILE\.\w+\] Encountered error while reading file (.+?)\.(?:\s|$)")


def lost_file(error: Exception) -> str | None:
    """What is wrong with which file, and what to do; None of another error."""
    from ingest.lake.rewriting import UNREADABLE

    told = str(error)
    if path := _first(_GONE, told):
        again = "where another job was tidying the lake (`maintain`) give the same command again, else"
        return f"{path} is gone: {again} {_what_to_do(path)}"
    if path := _first((_BROKEN, re.compile(f"{UNREADABLE}: ({_PART})")), told):
        return f"{path} cannot be read, it is cut or damaged: {_what_to_do(path)}"
    return None


def _what_to_do(path: str) -> str:
    from ingest.lake.renewal import what_to_do
    from ingest.lake.tables import TABLES
    from ingest.lake.tables.bronze import LOG_RECORDS
    from ingest.lake.tables.kept import INSPECTED_FILES, KEPT_TABLES

    specs = {spec.full_name: spec for spec in (*TABLES.values(), *KEPT_TABLES, INSPECTED_FILES)}
    # of a file that is of no table of ours, as of what is from sources
    folder = path.rpartition("/")[0].removesuffix("/_delta_log")
    return what_to_do(specs.get(".".join(folder.split("/")[-2:]), LOG_RECORDS))


def _first(patterns: Iterable[re.Pattern[str]], told: str) -> str | None:
    found = next(filter(None, (pattern.search(told) for pattern in patterns)), None)
    return None if found is None else unquote(re.sub(r"^file:/+", "/", found[1]))
