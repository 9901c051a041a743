"""The Spark edge of the ingest: lists of files in, DataFrames of rows out.

Every job has one shape: the driver packs what is to be read into bins of about equal bytes, one task takes
one bin, opens its files one after another and streams Arrow batches. Many small files share a task; the
members of an archive share a bin, so that the archive is read once.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ingest.containers import contents, skip
from ingest.containers.storage import ByteStream, ListedFile
from ingest.files.inspected import Inspected
from ingest.files.inspection import SPLIT_BYTES, inspect
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import REJECTED_RECORDS
from ingest.lake.tables.types import arrow_schema, spark_type
from ingest.readers.batches import BATCH_ROWS, CLOCK_COLUMN, kept_batches, rejected_batches, table_schema
from ingest.readers.lines import blocks
from ingest.readers.logs import records
from ingest.readers.sources import SOURCE_OF_KIND
from ingest.readers.work import Part, Place, Rejected, WorkItem

#: A small file costs its task about as much as this many bytes.
_FILE_COST_BYTES: Final = 32 << 10
_TASK_BYTES: Final = 32 << 20

#: Rejected records come with the result of the task that met them, up to so many bytes for a task: Spark's driver holds
#: those of all tasks at once. Of a part with more they are read again.
REJECTED_BYTES: Final = 256 << 10
#: What a row takes beside its text.
_ROW_BYTES: Final = 512

#: Rows of ``bronze.rejected_records`` as an Arrow stream, by part of a file; NULL where they are too many to hold.
Rejections = dict[Part, "bytes | None"]
_Task = Callable[[list[str]], Iterator[pa.RecordBatch]]
_TEXT_COLUMN: Final = arrow_schema({"text": "string"})
_TEXT: Final = T.StructType([T.StructField("text", spark_type("string"))])


class _RejectionsParam(AccumulatorParam[Rejections]):
    def zero(self, value: Rejections) -> Rejections:
        return {}

    def addInPlace(self, value1: Rejections, value2: Rejections) -> Rejections:
        value1.update(value2)
        return value1


def inspect_files(
    spark: SparkSession, found: Sequence[ListedFile], split_bytes: int = SPLIT_BYTES, *, is_final: bool = False
) -> list[Inspected]:
    """Inspect every file once, on the workers; in the order of their locations."""
    if not found:
        return []

    def task(payloads: list[str]) -> Iterator[pa.RecordBatch]:
        for payload in payloads:
            location, source_file, problem = payload.split("\0")
            file = ListedFile(location, source_file, problem or None)
            texts = [item.to_json() for item in inspect(file, split_bytes, is_final=is_final)]
            if texts:
                yield pa.record_batch({"text": texts}, _TEXT_COLUMN)

    named = [(file.location, 0, "\0".join((file.location, file.source_file, file.problem or ""))) for file in found]
    rows = _run(spark, _bins(named, spark), task, _TEXT).collect()
    return sorted((Inspected.from_json(row.text) for row in rows), key=lambda item: (item.location, item.member or ""))


def prefix_hashes(
    spark: SparkSession, wanted: Mapping[tuple[str, str | None], Sequence[int]]
) -> dict[tuple[str, str | None, int], str]:
    """SHA-256 of the first so many uncompressed bytes of files, by (location, member, bytes)."""
    if not wanted:
        return {}

    def task(payloads: list[str]) -> Iterator[pa.RecordBatch]:
        for payload in payloads:
            location, member, lengths = payload.split("\0")
            for content in contents(location):
                if (content.member or "") == member and content.problem is None:
                    texts = [
                        "\0".join((location, member, str(length), value))
                        for length, value in _prefixes(content.stream, [int(length) for length in lengths.split(",")])
                    ]
                    yield pa.record_batch({"text": texts}, _TEXT_COLUMN)
                    break

    bins = _bins(
        [
            (location, max(lengths), "\0".join((location, member or "", ",".join(map(str, sorted(set(lengths)))))))
            for (location, member), lengths in wanted.items()
        ],
        spark,
    )
    hashes = {}
    for row in _run(spark, bins, task, _TEXT).collect():
        location, member, length, value = row.text.split("\0")
        hashes[location, member or None, int(length)] = value
    return hashes


def _prefixes(stream: ByteStream, lengths: Sequence[int]) -> Iterator[tuple[int, str]]:
    state = hashlib.sha256()
    done = 0
    for length in lengths:
        for block in blocks(stream, length - done):
            state.update(block)
        done = length
        yield length, state.copy().hexdigest()


def kept_rows(spark: SparkSession, spec: TableSpec, items: Sequence[WorkItem], rejected: Any) -> DataFrame:
    """The rows of one bronze table that the items give.

    What cannot be read goes into ``rejected``, an accumulator of :func:`rejections`: a part is read once for both.
    """

    def task(payloads: list[str]) -> Iterator[pa.RecordBatch]:
        left = REJECTED_BYTES
        for item, stream in _open(payloads):
            held: list[Rejected] | None = []
            for found in read_item(item, blocks(stream, item.byte_count)):
                if not isinstance(found, Rejected):
                    yield found
                    continue
                left -= len(found.place.data) + _ROW_BYTES
                held = [*held, found] if held is not None and left > 0 else None
            if held != []:
                rejected.add({item.part: None if held is None else _packed(item, held)})

    return _run(spark, _item_bins(items, spark), task, _without_clock(spec), merged=True)


def rejected_rows(spark: SparkSession, items: Sequence[WorkItem], rejected: Rejections) -> DataFrame:
    """The rows of ``bronze.rejected_records`` that the items give: their records that cannot be read, the place
    where a file is damaged, and, for an item with a ``reason``, the file itself.

    ``rejected`` is what :func:`kept_rows` gathered; parts with more than it holds are read again.
    """

    def task(payloads: list[str]) -> Iterator[pa.RecordBatch]:
        for item, stream in _open(payloads):
            found = read_item(item, blocks(stream, item.byte_count))
            yield from rejected_batches(item, (row for row in found if isinstance(row, Rejected)))

    batches = [batch for item in items for batch in _unpacked(rejected.get(item.part))]
    for item in items:
        if item.reason:
            place = Place(0, item.end, 1, item.raw.encode("utf-8", "replace"))
            batches.extend(rejected_batches(item, [Rejected(place, item.reason)]))
    columns = _without_clock(REJECTED_RECORDS)
    rows = spark.createDataFrame(pa.Table.from_batches(batches, table_schema(REJECTED_RECORDS)), columns)
    again = [item for item in items if rejected.get(item.part, b"") is None]
    return rows.unionAll(_run(spark, _item_bins(again, spark), task, columns, merged=True)) if again else rows


def rejections(spark: SparkSession) -> Any:
    """An accumulator of what was rejected, by part of a file. A task that Spark repeats gives the same again."""
    return spark.sparkContext.accumulator({}, _RejectionsParam())


def read_item(item: WorkItem, source: Iterable[bytes]) -> Iterator[pa.RecordBatch | Rejected]:
    """What an item holds: kept rows in batches, rejected records one by one, the place of its damage at the end."""
    read = SOURCE_OF_KIND[item.kind].read
    if read is None:
        yield from records.read(item, source, *matchers())
    else:
        yield from kept_batches(SOURCE_OF_KIND[item.kind].table, item, read(item, source))
    if item.damage:
        yield Rejected(Place(item.end, 0, item.line, b""), item.damage)


def matchers() -> tuple[records.Matcher, records.CauseMatcher]:
    """The message shapes, loaded where they are used: on the workers."""
    from ingest.shapes import match, match_cause

    return match, match_cause


def _packed(item: WorkItem, rows: list[Rejected]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table_schema(REJECTED_RECORDS)) as writer:
        for each in rejected_batches(item, rows):
            writer.write_batch(each)
    return bytes(sink.getvalue().to_pybytes())


def _unpacked(packed: bytes | None) -> list[pa.RecordBatch]:
    return [] if packed is None else list(pa.ipc.open_stream(packed))


def _open(payloads: list[str]) -> Iterator[tuple[WorkItem, ByteStream]]:
    """Each item with its bytes, from its offset; an archive is passed once for all its members."""
    by_location: dict[str, list[WorkItem]] = {}
    for payload in payloads:
        item = WorkItem.from_json(payload)
        by_location.setdefault(item.location, []).append(item)
    for location, items in by_location.items():
        members = {item.member: item for item in items if item.member is not None}
        for item in items:
            if item.member is None:
                for content in contents(location, item.offset if item.is_plain else 0):
                    if not item.is_plain:
                        skip(content.stream, item.offset)
                    yield item, content.stream
        if members:
            for content in contents(location):
                wanted = members.pop(content.member or "", None) if content.problem is None else None
                if wanted is not None:
                    skip(content.stream, wanted.offset)
                    yield wanted, content.stream


def _item_bins(items: Sequence[WorkItem], spark: SparkSession) -> list[list[str]]:
    return _bins(
        [
            (
                f"{item.location}@{item.offset}" if item.member is None else item.location,
                item.byte_count,
                item.to_json(),
            )
            for item in items
        ],
        spark,
    )


def _bins(work: Sequence[tuple[str, int, str]], spark: SparkSession) -> list[list[str]]:
    """Pack (group, bytes, payload) into bins of about equal bytes; a group stays in one bin."""
    sizes: dict[str, int] = {}
    grouped: dict[str, list[str]] = {}
    for group, size, payload in work:
        sizes[group] = sizes.get(group, 0) + size + _FILE_COST_BYTES
        grouped.setdefault(group, []).append(payload)
    total = sum(sizes.values())
    number = max(1, min(len(grouped), max(spark.sparkContext.defaultParallelism, -(-total // _TASK_BYTES))))
    loads = [(0, index) for index in range(number)]
    bins: list[list[str]] = [[] for _ in range(number)]
    for group in sorted(grouped, key=lambda name: (-sizes[name], name)):
        load, index = heapq.heappop(loads)
        bins[index].extend(grouped[group])
        heapq.heappush(loads, (load + sizes[group], index))
    return bins


def _run(
    spark: SparkSession, bins: list[list[str]], task: _Task, schema: T.StructType, *, merged: bool = False
) -> DataFrame:
    shared = spark.sparkContext.broadcast(bins)

    def run(batches: Iterable[Any]) -> Iterable[Any]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                produced = task(shared.value[index])
                yield from _merged(produced) if merged else produced

    return spark.range(0, len(bins), 1, len(bins)).mapInArrow(run, schema)


def _merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: small files give small ones."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _without_clock(spec: TableSpec) -> T.StructType:
    return T.StructType([T.StructField(c.name, spark_type(c.type)) for c in spec.columns if c.name != CLOCK_COLUMN])
