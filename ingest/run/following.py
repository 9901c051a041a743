"""Files that grow, followed: Spark's Structured Streaming notices changes, and each micro-batch ingests them.

The stream's source is what the paths hold: its offset is every file's size and time of change, its rows are the
files that changed. Each batch runs the same ingest as ``ingest PATH``, which takes exactly what the lake does not hold
yet, by the content of files and the place of records. So a batch that is repeated, because the process died after it
had written and before the stream had noted that, adds nothing: results are exactly once whatever is killed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from ingest.containers import storage
from ingest.lake.delta import Lake
from ingest.lake.lease import only_writer
from ingest.readers.identity import digest
from ingest.run.pipeline import Ingest, IngestError, IngestOptions, IngestReport

SOURCE_NAME: Final = "kafka_state_replay_files"
#: So often a batch is tried where a file changes while it is read.
ATTEMPTS: Final = 3
_PATHS: Final = "paths"
_LEFT_OUT: Final = "left_out"

States = dict[str, str]


class Changed(InputPartition):
    """The files that changed, by location."""

    def __init__(self, locations: Sequence[str]) -> None:
        super().__init__(list(locations))

    @property
    def locations(self) -> list[str]:
        return list(self.value)


class _Reader(DataSourceStreamReader):
    def __init__(self, paths: Sequence[str], left_out: str) -> None:
        self._paths = paths
        self._left_out = left_out

    def initialOffset(self) -> dict[str, States]:
        return {"files": {}}

    def latestOffset(self) -> dict[str, States]:
        return {"files": states(self._paths, self._left_out)}

    def partitions(self, start: dict[str, States], end: dict[str, States]) -> Sequence[InputPartition]:
        before = start["files"]
        return [Changed([name for name, state in end["files"].items() if before.get(name) != state])]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        assert isinstance(partition, Changed)
        for location in partition.locations:
            yield (location,)


class ChangedFiles(DataSource):
    """Streaming source: one row per file that changed since the last batch. Options: ``paths`` (JSON list)."""

    @classmethod
    def name(cls) -> str:
        return SOURCE_NAME

    def schema(self) -> str:
        return "location string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Reader(json.loads(self.options[_PATHS]), self.options[_LEFT_OUT])


def _patiently(ingest: Ingest, progress: Callable[[str], None]) -> IngestReport:
    """Run; again where a file changed or went away while it was read, as one that is rotated may at any time."""
    for _ in range(ATTEMPTS - 1):
        try:
            return ingest.run()
        except (IngestError, PythonException) as error:
            progress(str(error).strip().splitlines()[-1])
    return ingest.run()


def states(paths: Sequence[str], left_out: str) -> States:
    """Every file's state at and below the paths, but below ``left_out``; a path that is not there now has no files."""
    found: States = {}
    for path in paths:
        try:
            files = storage.list_files(path)
        except storage.StorageError:
            continue
        found |= {file.location: file.state for file in files if not file.location.startswith(left_out)}
    return found


def follow(
    lake: Lake,
    paths: Sequence[str],
    options: IngestOptions,
    progress: Callable[[str], None],
    *,
    interval_seconds: float,
    each: Callable[[IngestReport], None],
    failed: Callable[[Exception], None],
) -> StreamingQuery:
    """Start to follow the files at and below the paths; ``each`` is called with the report of every batch, ``failed``
    with the error that ended the query, which Spark wraps in one of its own.

    The query runs until it is stopped. Where it was before is kept in the lake, by the paths.
    """
    spark: SparkSession = lake.spark
    spark.dataSource.register(ChangedFiles)
    ingest = Ingest(lake, paths, options, progress, may_be_empty=True)

    def batch(changed: DataFrame, batch_id: int) -> None:
        del changed, batch_id  # what is new follows from the files and the lake, not from the stream's memory
        try:
            with only_writer(lake, "ingest --follow", math.inf, progress):
                report = _patiently(ingest, progress)
            each(report)
        except Exception as error:
            failed(error)
            raise

    locations = sorted(storage.locate(path) for path in paths)
    own = storage.locate(lake.root) + "/"
    changes: Any = (
        spark.readStream.format(SOURCE_NAME).option(_PATHS, json.dumps(locations)).option(_LEFT_OUT, own).load()
    )
    query: StreamingQuery = (
        changes.writeStream.foreachBatch(batch)
        .queryName(f"ingest {', '.join(paths)}")
        .option("checkpointLocation", f"{lake.root}/_following/{digest(*locations)}")
        .trigger(processingTime=f"{interval_seconds} seconds")
        .start()
    )
    return query
