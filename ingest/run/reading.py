"""The Spark edge of the ingest: lists of files in, DataFrames of rows out.

Every job has one shape: the driver packs what is to be read into bins of about equal bytes, one task takes
one bin, opens its files one after another and streams Arrow batches. Many small files share a task; the
members of an archive share a bin, so that the archive is read once.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

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
from ingest.lake.tables.types import spark_type
from ingest.readers.batches import BATCH_ROWS, CLOCK_COLUMN, kept_batches, rejected_batches, table_schema
from ingest.readers.lines import blocks
from ingest.readers.logs import records
from ingest.readers.sources import SOURCE_OF_KIND
from ingest.readers.work import Part, Place, Rejected, WorkItem

#: A small file costs its task about as much as this many bytes.
FILE_COST_BYTES: Final = 32 << 10
_TASK_BYTES: Final = 32 << 20

#: Rejected records come with the result of the task that met them, up to so many bytes for a task: Spark's driver has
#: those of all tasks in memory at once. Of a part with more they are read again.
REJECTED_BYTES: Final = 256 << 10
#: What a row takes beside its text.
_ROW_BYTES: Final = 512

_Work = TypeVar("_Work")
_Found = TypeVar("_Found")
#: Rows of ``bronze.rejected_records`` as an Arrow stream, by part of a file; None where they are too many to keep.
Rejections = dict[Part, "bytes | None"]
_Member = tuple[str, "str | None"]  # location, member


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

    def task(files: list[ListedFile]) -> Iterator[Inspected]:
        for file in files:
            yield from inspect(file, split_bytes, is_final=is_final)

    rows = _collect(spark, _bins([(file.location, 0, file) for file in found], spark), task)
    return sorted(rows, key=lambda item: (item.location, item.member or ""))


def prefix_hashes(
    spark: SparkSession, wanted: Mapping[_Member, Sequence[int]]
) -> dict[tuple[str, str | None, int], str]:
    """SHA-256 of the first so many uncompressed bytes of files, by (location, member, bytes)."""
    if not wanted:
        return {}

    def task(files: list[tuple[_Member, list[int]]]) -> Iterator[tuple[tuple[str, str | None, int], str]]:
        for (location, member), lengths in files:
            for content in contents(location):
                if content.member == member and content.problem is None:
                    for length, value in _prefixes(content.stream, lengths):
                        yield (location, member, length), value
                    break

    work = [(key[0], max(lengths), (key, sorted(set(lengths)))) for key, lengths in wanted.items()]
    return dict(_collect(spark, _bins(work, spark), task))


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
    return _rows(spark, _item_bins(items, spark), _kept(rejected), spec)


def kept_files(
    spark: SparkSession,
    items: Sequence[WorkItem],
    rejected: Any,
    write: Callable[[Iterator[pa.RecordBatch]], Iterator[_Found]],
) -> list[_Found]:
    """What ``write`` gives for the rows of :func:`kept_rows`: it is called by each task with its own."""
    read = _kept(rejected)
    return _collect(spark, _item_bins(items, spark), lambda items: write(read(items)))


def _kept(rejected: Any) -> Callable[[list[WorkItem]], Iterator[pa.RecordBatch]]:
    def task(items: list[WorkItem]) -> Iterator[pa.RecordBatch]:
        left = REJECTED_BYTES
        for item, stream in _open(items):
            unreadable: list[Rejected] | None = []
            for found in read_item(item, blocks(stream, item.byte_count)):
                if not isinstance(found, Rejected):
                    yield found
                    continue
                left -= len(found.place.data) + _ROW_BYTES
                unreadable = [*unreadable, found] if unreadable is not None and left > 0 else None
            if unreadable != []:
                rejected.add({item.part: None if unreadable is None else _packed(item, unreadable)})

    return task


def rejected_rows(spark: SparkSession, items: Sequence[WorkItem], rejected: Rejections) -> DataFrame:
    """The rows of ``bronze.rejected_records`` that the items give: their records that cannot be read, the place
    where a file is damaged, and, for an item with a ``reason``, the file itself.

    ``rejected`` is what :func:`kept_rows` gathered; parts with more than it has are read again.
    """

    def task(items: list[WorkItem]) -> Iterator[pa.RecordBatch]:
        for item, stream in _open(items):
            found = read_item(item, blocks(stream, item.byte_count))
            yield from rejected_batches(item, (row for row in found if isinstance(row, Rejected)))

    batches = [batch for item in items for batch in _unpacked(rejected.get(item.part))]
    for item in items:
        if item.reason:
            place = Place(0, item.end, 1, item.raw.encode("utf-8", "replace"))
            batches.extend(rejected_batches(item, [Rejected(place, item.reason)]))
    table = pa.Table.from_batches(batches, table_schema(REJECTED_RECORDS))
    rows = spark.createDataFrame(table, _without_clock(REJECTED_RECORDS))
    again = [item for item in items if rejected.get(item.part, b"") is None]
    return rows.unionAll(_rows(spark, _item_bins(again, spark), task, REJECTED_RECORDS)) if again else rows


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


def _open(items: list[WorkItem]) -> Iterator[tuple[WorkItem, ByteStream]]:
    """Each item with its bytes, from its offset; an archive is passed once for all its members."""
    by_location: dict[str, list[WorkItem]] = {}
    for item in items:
        by_location.setdefault(item.location, []).append(item)
    for location, parts in by_location.items():
        members = {item.member: item for item in parts if item.member is not None}
        for item in parts:
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
                if not members:  # what follows may be work without end
                    break


def _item_bins(items: Sequence[WorkItem], spark: SparkSession) -> list[list[WorkItem]]:
    """The parts of a file may lie in several bins, the members of an archive in one."""
    places = (f"{item.location}@{item.offset}" if item.member is None else item.location for item in items)
    return _bins([(place, item.byte_count, item) for place, item in zip(places, items, strict=True)], spark)


def _bins(work: Sequence[tuple[str, int, _Work]], spark: SparkSession) -> list[list[_Work]]:
    """Pack (group, bytes, what is to be done) into bins of about equal bytes; a group stays in one bin."""
    sizes: dict[str, int] = {}
    grouped: dict[str, list[_Work]] = {}
    for group, size, payload in work:
        sizes[group] = sizes.get(group, 0) + size + FILE_COST_BYTES
        grouped.setdefault(group, []).append(payload)
    total = sum(sizes.values())
    number = max(1, min(len(grouped), max(spark.sparkContext.defaultParallelism, -(-total // _TASK_BYTES))))
    loads = [(0, index) for index in range(number)]
    bins: list[list[_Work]] = [[] for _ in range(number)]
    for group in sorted(grouped, key=lambda name: (-sizes[name], name)):
        load, index = heapq.heappop(loads)
        bins[index].extend(grouped[group])
        heapq.heappush(loads, (load + sizes[group], index))
    return bins


def _collect(
    spark: SparkSession, bins: list[list[_Work]], task: Callable[[list[_Work]], Iterator[_Found]]
) -> list[_Found]:
    """What the tasks find, one task for each bin."""
    return spark.sparkContext.parallelize(bins, len(bins)).flatMap(task).collect()


def _rows(
    spark: SparkSession,
    bins: list[list[WorkItem]],
    task: Callable[[list[WorkItem]], Iterator[pa.RecordBatch]],
    spec: TableSpec,
) -> DataFrame:
    """The table's rows that the tasks make, one task for each bin."""
    shared = spark.sparkContext.broadcast(bins)

    def run(batches: Iterable[Any]) -> Iterable[Any]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from _merged(task(shared.value[index]))

    return spark.range(0, len(bins), 1, len(bins)).mapInArrow(run, _without_clock(spec))


def _merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: small files give small ones."""
    gathered: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        gathered.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield from pa.Table.from_batches(gathered).combine_chunks().to_batches()
            gathered, rows = [], 0
    if gathered:
        yield from pa.Table.from_batches(gathered).combine_chunks().to_batches()


def _without_clock(spec: TableSpec) -> T.StructType:
    return T.StructType([T.StructField(c.name, spark_type(c.type)) for c in spec.columns if c.name != CLOCK_COLUMN])
