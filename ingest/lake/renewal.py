"""Tables of earlier versions of their specs, brought to this one: in one commit, so that Delta keeps what was before.

What a run makes of bronze is emptied, and made anew by the run that asked. What only its sources could give again, or
tells of runs, keeps its rows where the columns that came since may be NULL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from ingest.lake.direct import commit_files
from ingest.lake.file_system import file_system_of
from ingest.lake.tables import TableSpec
from ingest.lake.tables.gold import FINDING_HISTORY
from ingest.lake.tables.quality import CHECK_RESULTS, RUN_METRICS

VERSION_PROPERTY: Final = "kafkaStateReplay.tableVersion"
#: They tell of runs that were: no later one makes their rows again.
_OF_RUNS: Final = frozenset(spec.full_name for spec in (FINDING_HISTORY, CHECK_RESULTS, RUN_METRICS))


@dataclass(frozen=True, slots=True)
class Standing:
    """How a table of a lake stands to its spec: the version ``found``, None where the table does not say it."""

    found: str | None
    is_same: bool
    is_newer: bool
    can_be_renewed: bool
    keeps_rows: bool

    def problem(self, spec: TableSpec, *, renews: bool) -> str | None:
        """Why the table cannot be used, as the end of a sentence; None where it can, or can be renewed and may be."""
        if self.is_same or (renews and self.can_be_renewed and not self.is_newer):
            return None
        told = f"{spec.full_name} of version {self.found or 'unknown'}, this program"
        if self.is_newer:
            return f"{told} knows version {spec.version}: a newer program wrote it, use that; nothing was done"
        told = f"{told} writes version {spec.version}"
        if self.can_be_renewed:
            return f"{told}: `reconstruct` brings the lake to it from its own bronze"
        return f"{told}, which needs the sources: give another --lake, or ingest them again into a new one"

    def told(self, spec: TableSpec) -> str:
        """What becomes of a table that is renewed."""
        kept = "its rows kept" if self.keeps_rows else "made anew from bronze"
        return f"{spec.full_name}: from version {self.found or 'unknown'} to {spec.version}, {kept}"


def is_from_sources(spec: TableSpec) -> bool:
    """Whether only the files that were ingested could give the table's rows again."""
    return spec.schema == "bronze"


def what_to_do(spec: TableSpec) -> str:
    """About a table that cannot be read any more."""
    if is_from_sources(spec):
        return "put it back as it was, or make the lake anew from its sources"
    return "put it back as it was, or delete that table's folder and let `reconstruct` make it anew"


def standing_of(spec: TableSpec, metadata: Mapping[str, Any]) -> Standing:
    """``metadata``: what Delta's log says of the table as it is, by the names of its PROTOCOL.md."""
    found = metadata["configuration"].get(VERSION_PROPERTY)
    schema = json.loads(metadata["schemaString"])
    is_same = found == str(spec.version) and T.StructType.fromJson(schema).simpleString() == spec.struct.simpleString()
    if is_same:
        return Standing(found, is_same=True, is_newer=False, can_be_renewed=True, keeps_rows=True)
    held = {field["name"]: field["type"] for field in schema["fields"]}
    wanted = json.loads(spec.struct.json())["fields"]
    fits = all(field["type"] == held[field["name"]] if field["name"] in held else field["nullable"] for field in wanted)
    is_newer = found is not None and found.isdigit() and int(found) > spec.version
    keeps_rows = fits and (is_from_sources(spec) or spec.full_name in _OF_RUNS)
    return Standing(found, False, is_newer, fits or not is_from_sources(spec), keeps_rows)


def renew(spark: SparkSession, path: str, spec: TableSpec, properties: Mapping[str, str], *, keeps_rows: bool) -> None:
    """Give the table at ``path`` the columns and properties of its spec, with its rows or without any."""
    changes = {"description": spec.grain, "schemaString": spec.struct.json(), "configuration": dict(properties)}
    commit_files(spark, path, [], replaces_all=not keeps_rows, metadata=changes)


def has_rows_files(spark: SparkSession, path: str) -> bool:
    """Whether files that hold rows lie in the folder of a table."""
    files, folder = file_system_of(spark, path)
    return files.exists(folder) and any(
        str(status.getPath().getName()).endswith(".parquet") for status in files.listStatus(folder)
    )
