"""Java's classes kept as it has read them (class data sharing): Spark starts in half the time.

Of the 30,000 classes that a run loads each start reads, checks and links every one anew, out of 250 jars. The first
full run leaves an archive of them in the cache as its Java ends, some seconds after the command did; later ones map it
into memory. Java compares the archive with its own version and with the jars, and reads the jars where anything
differs; it writes what the archive begins with last, so one that was not finished is told from one that was.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jobs.session.caches import cache_dir

#: An archive has some 200 MB.
_FOLDER: Final = "classes"
#: How a finished one begins: CDS_DYNAMIC_ARCHIVE_MAGIC of Java 17 and 21, least byte first.
_MAGIC: Final = b"\xa8\xab\x0b\xf0"
#: What Java has to say about its archive is for nobody.
_QUIET: Final = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def java_option(java: str, jars: Sequence[Path], *, may_make: bool) -> str:
    """The option that has Java use the archive, or make it where there is none and ``may_make``; else nothing."""
    archive = cache_dir() / _FOLDER / f"{_name(java, jars)}.jsa"
    if " " in str(archive):
        return ""  # options of Java are parted by spaces
    if _is_finished(archive):
        return f"{_QUIET} -XX:SharedArchiveFile={archive}"
    if not may_make:
        return ""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        for old in archive.parent.glob("*.jsa"):
            old.unlink(missing_ok=True)
    except OSError:
        return ""
    return f"{_QUIET} -XX:ArchiveClassesAtExit={archive}"


def _is_finished(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _name(java: str, jars: Sequence[Path]) -> str:
    """Another one where Java, Spark or a jar is another."""
    import pyspark

    program = os.path.realpath(java)
    known = (program, os.stat(program).st_mtime_ns, pyspark.__version__, pyspark.__file__, *jars)
    return hashlib.sha256("\n".join(map(str, known)).encode()).hexdigest()[:16]
