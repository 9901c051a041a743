"""What earlier runs found in files that stay as they are: whoever ingests a folder each hour reads what is new in it.

A file is the same where its size and the time of its last change are. What it holds is not trusted to stay so for a
moment after a change, which the file system's clock may be too coarse to tell from the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from pyspark.sql import functions as F

from ingest.containers.storage import ListedFile
from ingest.files.inspected import Inspected
from ingest.lake.delta import Lake
from ingest.lake.local_frames import local_frame
from ingest.lake.program import program
from ingest.lake.tables.kept import INSPECTED_FILES
from ingest.readers.secrets import masked_text
from ingest.run.reading import FILE_COST_BYTES

#: To look into less costs less than to note what was found, or to ask what was noted: two seconds of a processor.
WORTH_BYTES: Final = 256 << 20
#: Some file systems tell the time of a change by two seconds, and another machine's clock may be as far from ours.
SETTLED_SECONDS: Final = 10
_DEFAULTS: Final = {field.name: field.default for field in fields(Inspected)}

Found = Mapping[ListedFile, Sequence[Inspected]]


class KnownFiles:
    """``kept.inspected_files``, of the files at and below some locations, where there is much to look into."""

    def __init__(self, lake: Lake, locations: Iterable[str], split_bytes: int, *, is_final: bool) -> None:
        self._lake = lake
        self._locations = sorted(locations)
        self._asked = f"{split_bytes} {is_final}"
        self._held: set[str] | None = None  # the locations of which anything is noted

    def of(self, files: Sequence[ListedFile]) -> dict[ListedFile, list[Inspected]]:
        """What is known of those files that are as they were."""
        if not _is_worth_it(files):
            return {}
        self._lake.ensure([INSPECTED_FILES], renews=True)
        rows = self._rows() if self._lake.size_bytes(INSPECTED_FILES) else []
        by, self._held = self._by, {row["location"] for row in rows}
        noted = {
            ListedFile(row["location"], row["source_file"], None, row["state"]): row["found"]
            for row in rows
            if row["by"] == by
        }
        return {file: [_read(found) for found in json.loads(noted[file])] for file in files if file in noted}

    def keep(self, files: Sequence[ListedFile], fresh: Found, since: float) -> None:
        """Note for later runs what was found since an instant (seconds since 1970) in files listed before it; what is
        noted of files that are gone is forgotten."""
        if self._held is None or not _is_worth_it(fresh):
            return
        kept = {file: found for file, found in fresh.items() if _may_be_kept(file, found, since)}
        by, new, there = self._by, {file.location for file in kept}, {file.location for file in files}
        gone = new | self._held - there
        self._held = self._held & there | new
        rows = [
            (file.location, file.source_file, file.state, by, json.dumps([_written(one) for one in found]))
            for file, found in kept.items()
        ]
        spark = self._lake.spark
        columns = ", ".join(f"{column.name} {column.type}" for column in INSPECTED_FILES.columns)
        self._lake.replace_keys(
            local_frame(spark, columns, rows),
            local_frame(spark, "location string", [(location,) for location in sorted(gone)]),
            INSPECTED_FILES,
        )

    @property
    def _by(self) -> str:
        return f"{program('ingest')} {self._asked}"

    def _rows(self) -> list[Any]:
        below = F.lit(False)
        for location in self._locations:
            below |= (F.col("location") == location) | F.col("location").startswith(f"{location.rstrip('/')}/")
        return self._lake.read(INSPECTED_FILES).where(below).collect()


def _is_worth_it(files: Iterable[ListedFile]) -> bool:
    return sum(file.size_bytes + FILE_COST_BYTES for file in files) > WORTH_BYTES


def _may_be_kept(file: ListedFile, found: Sequence[Inspected], since: float) -> bool:
    """What could not be read may be readable the next time, and a name that is no text is in no table."""
    is_settled = file.problem is None and file.changed_at < since - SETTLED_SECONDS
    is_read = bool(found) and all(one.complete_hash for one in found)
    return is_settled and is_read and _is_text(file.location)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _written(found: Inspected) -> dict[str, Any]:
    """What is not as it is by default; what is not read may hold secrets all the same."""
    said = {name: value for name, default in _DEFAULTS.items() if (value := getattr(found, name)) != default}
    hidden = {name: masked_text(said[name]) for name in ("raw", "reason") if name in said}
    return said | hidden | {"marks": sorted(found.marks)}


def _read(said: Mapping[str, Any]) -> Inspected:
    pairs = {name: tuple(map(tuple, said[name])) for name in ("splits", "statements") if name in said}
    return Inspected(**{**said, **pairs, "marks": frozenset(said["marks"])})
