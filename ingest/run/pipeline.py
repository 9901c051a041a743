"""From paths to bronze: the ingest from end to end.

Inspect every file once, find whose it is and whether it is new, read what is new into the bronze tables, count
what was written and hold it against what was read. A run that was killed leaves records without their file's
row; the next run replaces them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import functions as F

from ingest.containers import storage
from ingest.containers.storage import ListedFile
from ingest.files.attribution import UNKNOWN_CLUSTER, Attributed, attribute, round_ends
from ingest.files.histories import part_histories
from ingest.files.inspected import Inspected
from ingest.files.inspection import SPLIT_BYTES
from ingest.files.not_of_kafka import in_words, not_of_kafka
from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.maintenance import put_tiny_files_together
from ingest.lake.tables.bronze import BRONZE_TABLES, INGESTED_FILES, NOT_OF_KAFKA
from ingest.lake.tables.kept import INSPECTED_FILES
from ingest.readers.logs.times import BUDDHIST_YEARS, common_year, zone
from ingest.run import reading
from ingest.run.accounting import IngestError, keys_frame, text_frame
from ingest.run.known_files import KnownFiles
from ingest.run.known_histories import KnownHistories
from ingest.run.planning import Action, Planned, StoredFile, file_ids, needed_prefixes, plan
from ingest.run.superseding import earlier_ids, prefixes, superseded
from ingest.run.writing import Writer

__all__ = ["Ingest", "IngestError", "IngestOptions", "IngestReport", "ingest_paths"]


@dataclass(frozen=True)
class IngestOptions:
    """What the files themselves cannot say.

    ``brokers`` maps paths to broker ids, the longest fitting path counts; ``time_zone`` is that of log times
    that print none (``Europe/Berlin`` or ``+02:00``); ``split_bytes`` is the size of the parts a long log is
    read in; ``is_final`` says that no log grows any more: a last line without its end is taken as it is.
    """

    cluster_id: str | None = None
    brokers: Mapping[str, int] = field(default_factory=dict)
    time_zone: str = "UTC"
    kafka_version: str | None = None
    split_bytes: int = SPLIT_BYTES
    is_final: bool = False


@dataclass(frozen=True)
class IngestReport:
    """What a run did. ``records_read`` = ``records_kept`` + ``records_rejected``; ``files_ambiguous`` were read and may
    be of several of the ``clusters``; ``not_of_kafka`` counts by kind of name the files that Kafka does not write."""

    files_new: int = 0
    files_grown: int = 0
    files_known: int = 0
    files_not_read: int = 0
    files_rejected: int = 0
    files_ambiguous: int = 0
    not_of_kafka: Mapping[str, int] = field(default_factory=dict)
    records_read: int = 0
    records_kept: int = 0
    records_rejected: int = 0
    clusters: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def passed_over(self) -> str:
        """What the files are that Kafka does not write, in words; empty where there are none."""
        return in_words(self.not_of_kafka)

    @property
    def nothing_recognised(self) -> bool:
        """Whether not one file is a source that is read, in this run or an earlier one."""
        return self.files_new + self.files_grown + self.files_known == 0


def ingest_paths(
    lake: Lake, paths: Sequence[str], options: IngestOptions, progress: Callable[[str], None]
) -> IngestReport:
    """Take what is new at and below the paths into bronze; ``progress`` is called with a sentence for each step.

    Raises :class:`IngestError` for paths or options that cannot be used.
    """
    return Ingest(lake, paths, options, progress).run()


class Ingest:
    """Takes what is new at and below the paths into bronze, as often as :meth:`run` is called.

    Between runs it remembers what it saw in files that stay as they are; of what holds much, so does the lake
    (:mod:`ingest.run.known_files`). ``may_be_empty`` says that a folder without
    files is no mistake: some may come.
    """

    def __init__(
        self,
        lake: Lake,
        paths: Sequence[str],
        options: IngestOptions,
        progress: Callable[[str], None],
        *,
        may_be_empty: bool = False,
    ) -> None:
        self._lake = PinnedLake(lake)
        self._paths = paths
        self._options = options
        self._progress = progress
        self._may_be_empty = may_be_empty
        self._inspected: dict[ListedFile, list[Inspected]] = {}
        locations = map(storage.locate, paths)
        self._known = KnownFiles(self._lake, locations, options.split_bytes, is_final=options.is_final)
        self._histories = KnownHistories(self._lake)

    def run(self) -> IngestReport:
        """One ingest; raises :class:`IngestError` for paths or options that cannot be used."""
        lake, options, progress = self._lake, self._options, self._progress
        found = _discover(lake, self._paths, options, may_be_empty=self._may_be_empty)
        progress(f"{len(found)} files found")
        for renewed in lake.ensure(BRONZE_TABLES, renews=True):
            progress(renewed)
        attributed, warnings = _attributed(lake, self._inspect(found), options)
        owners, of_histories = part_histories(attributed, self._histories.of(attributed))
        self._histories.take(owners)
        rows_before = _stored(lake, owners)
        stored = {row.key: row for row in rows_before}
        hashes = reading.prefix_hashes(lake.spark, needed_prefixes(owners, stored))
        planned = plan(owners, stored, hashes)
        earlier = superseded(planned, rows_before, reading.prefix_hashes(lake.spark, prefixes(planned, rows_before)))
        taken = [entry for entry in planned if entry.action is not Action.KNOWN]
        progress(f"{len(taken)} files to take, {len(planned) - len(taken)} known")
        writer = Writer(lake, round_ends(owners), options.time_zone, options.kafka_version, progress)
        writer.take_out(earlier)
        rows = writer.take(taken)
        put_tiny_files_together(lake, (*BRONZE_TABLES, INSPECTED_FILES))
        return _report(planned, rows, [*warnings, *of_histories, *_unfinished(planned), *_buddhist(planned)])

    def _inspect(self, found: Sequence[ListedFile]) -> list[Inspected]:
        """Every file inspected: those that changed since the last run, now."""
        known = self._inspected or self._known.of(found)
        changed = [file for file in found if file not in known]
        if known:
            self._progress(f"{len(changed)} of these are to be looked into, the others are as they were")
        fresh: dict[str, list[Inspected]] = {}
        since = time.time()
        for inspected in reading.inspect_files(
            self._lake.spark, changed, self._options.split_bytes, is_final=self._options.is_final
        ):
            fresh.setdefault(inspected.location, []).append(inspected)
        self._known.keep(found, {file: fresh.get(file.location, []) for file in changed}, since)
        self._inspected = {file: known.get(file, fresh.get(file.location, [])) for file in found}
        return [inspected for file in found for inspected in self._inspected[file]]


def _discover(lake: Lake, paths: Sequence[str], options: IngestOptions, *, may_be_empty: bool) -> list[ListedFile]:
    own = storage.locate(lake.root) + "/"
    try:
        zone(options.time_zone)
    except ValueError as error:
        raise IngestError(str(error)) from error
    if not paths:
        raise IngestError("no path was given: give the path of a log, or of a folder of logs")
    found: dict[str, ListedFile] = {}
    try:
        for path in paths:
            below = [file for file in storage.list_files(path) if not file.location.startswith(own)]
            if not below and not may_be_empty:
                raise IngestError(f"{path} holds no files: give a folder with logs, znode snapshots or checkpoints")
            for file in below:
                before = found.get(file.location)
                if before is None or len(file.source_file) > len(before.source_file):
                    found[file.location] = file
    except storage.StorageError as error:
        raise IngestError(str(error)) from error
    return [found[location] for location in sorted(found)]


def _attributed(
    lake: Lake, inspected: Sequence[Inspected], options: IngestOptions
) -> tuple[list[Attributed], list[str]]:
    brokers = {storage.locate(path): broker for path, broker in options.brokers.items()}
    owners, warnings = attribute(inspected, cluster_id=options.cluster_id, brokers=brokers, known_cluster=None)
    if any(owner.cluster_id == UNKNOWN_CLUSTER for owner in owners):
        known = (
            lake.read(INGESTED_FILES).where("status = 'ingested'").select("cluster_id").distinct().limit(2).collect()
        )
        if len(known) == 1:
            only = str(known[0]["cluster_id"])
            return attribute(inspected, cluster_id=options.cluster_id, brokers=brokers, known_cluster=only)
    return owners, warnings


def _stored(lake: Lake, owners: Sequence[Attributed]) -> list[StoredFile]:
    """What the lake holds of these files: by their ids, those they may have had before, and their names."""
    if not lake.size_bytes(INGESTED_FILES):
        return []
    keys = {*file_ids(owners), *(key for earlier in earlier_ids(owners).values() for key in earlier)}
    names = {owner.file.source_file for owner in owners}
    length = F.when(F.col("status") == "ingested", F.col("ingested_bytes")).otherwise(F.col("size_bytes"))
    columns = ("cluster_id", "file_id", "broker_id", "source_kind", "source_file", "status", length, "content_hash")
    table = lake.read(INGESTED_FILES)
    by_key = table.join(keys_frame(lake.spark, sorted(keys)), ["cluster_id", "file_id"], "left_semi").select(*columns)
    named = text_frame(lake.spark, ["source_file"], [[name] for name in sorted(names)])
    by_name = table.join(named, "source_file", "left_semi").select(*columns)
    return [StoredFile(*row) for row in by_key.unionAll(by_name).distinct().collect()]


def _unfinished(planned: Sequence[Planned]) -> list[str]:
    names = sorted(
        {
            entry.owner.file.source_file
            for entry in planned
            if entry.owner.file.has_lines and entry.owner.file.ingestible_bytes < entry.owner.file.size_bytes
        }
    )
    if not names:
        return []
    return [f"{_some(names)}: the last line is not finished and is kept back until it is; --final takes it as it is"]


def _buddhist(planned: Sequence[Planned]) -> list[str]:
    names = sorted(
        entry.owner.file.source_file
        for entry in planned
        if (entry.owner.file.first_at or "")[:4] != common_year((entry.owner.file.first_at or "")[:4])
    )
    if not names:
        return []
    return [f"{_some(names)}: years of the Buddhist calendar, taken as those {BUDDHIST_YEARS} before"]


def _some(names: Sequence[str]) -> str:
    first = ", ".join(names[:3])
    return first if len(names) <= 3 else f"{first} and {len(names) - 3} more"


def _report(planned: Sequence[Planned], rows: Sequence[Mapping[str, Any]], warnings: Sequence[str]) -> IngestReport:
    written = {(row["cluster_id"], row["file_id"]) for row in rows}
    read = [entry for entry in planned if _is_read(entry)]
    outcomes = Counter(_outcome(entry, entry.key in written) for entry in planned)
    files = [entry.owner.file for entry in planned]
    others = Counter(not_of_kafka(file.names) or "" for file in files if file.status == NOT_OF_KAFKA)
    return IngestReport(
        files_new=outcomes["new"],
        files_grown=outcomes["grown"],
        files_known=outcomes["known"],
        files_not_read=outcomes["not_read"],
        files_rejected=outcomes["rejected"],
        not_of_kafka=dict(others),
        files_ambiguous=sum(entry.owner.is_ambiguous for entry in read),
        records_read=sum(row["records_read_count"] for row in rows),
        records_kept=sum(row["records_kept_count"] for row in rows),
        records_rejected=sum(row["records_rejected_count"] for row in rows),
        clusters=tuple(sorted({entry.owner.cluster_id for entry in read if not entry.owner.is_ambiguous})),
        warnings=tuple(warnings),
    )


def _is_read(entry: Planned) -> bool:
    return entry.owner.file.is_read or (entry.owner.file.status == "empty" and entry.owner.file.kind != "unrecognised")


def _outcome(entry: Planned, is_written: bool) -> str:
    if entry.owner.file.status == "rejected":
        return "rejected"
    if entry.owner.file.status == NOT_OF_KAFKA:
        return NOT_OF_KAFKA
    if not _is_read(entry):
        return "not_read"
    if not is_written or entry.action is Action.KNOWN:
        return "known"
    return "grown" if entry.action is Action.GROWN else "new"
