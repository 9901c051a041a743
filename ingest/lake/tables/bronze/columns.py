"""The columns that the tables of bronze share."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.lake.tables.bronze.kinds import SOURCE_KINDS
from ingest.lake.tables.spec import Column, TableSpec, col, required

CLUSTER = required(
    "cluster_id",
    "string",
    "Cluster: given, else /cluster/id, else the log's Cluster ID line, else Metadata's ClusterId, else meta.properties,"
    " else 'unknown-' and a hash of the creation zxid and time of /brokers, else 'unknown'.",
)
FILE = required("file_id", "string", "The file, bronze.ingested_files.file_id.")
BROKER = col("broker_id", "int", "Broker whose machine the file comes from; NULL where nothing says.")
KIND = required("source_kind", "string", "What the file was recognised as.", vocabulary=SOURCE_KINDS)
RECORD = required(
    "record_id",
    "string",
    "Hash of cluster, broker, source kind, the first record's first line, the byte offset and the record's bytes.",
)
PLACE = (
    required("source_file", "string", "Path below the path given; ARCHIVE!MEMBER inside an archive."),
    required("source_line", "int", "Line in the uncompressed file, from 1."),
    required("byte_offset", "bigint", "First byte in the uncompressed file."),
    required("byte_length", "bigint", "Bytes of the record, line ends and continuation lines included."),
)
INGESTED_AT = col("ingested_at", "timestamp", "When this row was written: our clock, no fact of the cluster.")


def record_table(
    name: str,
    grain: str,
    *columns: Column,
    of: Sequence[Column] = (BROKER, KIND),
    place: Sequence[Column] = PLACE,
    version: int = 1,
) -> TableSpec:
    """A table with one row per record of a file: ``of`` is what its file is, ``place`` where the record stands."""
    every = (RECORD, CLUSTER, FILE, *of, *place, *columns, INGESTED_AT)
    return TableSpec("bronze", name, grain, ("cluster_id", "record_id"), every, version=version)
