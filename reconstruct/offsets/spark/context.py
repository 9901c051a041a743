"""What the bounds of a partition's offsets need to know of its cluster: small, collected, given to every partition.

It grows with the files of server.log, the registrations of brokers and their settings, not with partitions or records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.plans import collect_all
from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.cluster.settings import checkpoint_interval_us, session_timeout_us
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import columns_of, value_of
from reconstruct.kept.asking import ALWAYS, Asked, NotedMap, of_field
from reconstruct.model.znode_paths import BROKER_PATTERN
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import OffsetClocks, remaining_us
from reconstruct.offsets.evidence import LINE_TO_ACT_US, CheckpointSchedule
from reconstruct.time.log_names import RolledFile, runs_of_files

Span = tuple[int, int]

#: Two files of one server.log no further apart than this are one log: longer, and a file between them may be missing,
#: unless their names say that there was none.
JOINED_WITHIN_US: Final = 60_000_000
#: A broker registers within this of its process's first line: a later registration is of a process not in the log.
REGISTERED_WITHIN_US: Final = 60_000_000
#: What a broker logs whose session expired: it registers itself again without a start.
REGISTERS_AGAIN: Final = (EventType.SESSION_EXPIRED, EventType.BROKER_REGISTRATION_RENEWED)
#: ZooKeeper expires a session at the next tick after its timeout.
NOTICED_AFTER_US: Final = 4_000_000
#: The fields that note of which broker they are asked.
_BY_BROKER: Final = ("covered", "schedules")


@dataclass(frozen=True, slots=True)
class OffsetContext:
    """One cluster; instants in microseconds. ``covered`` and ``schedules`` as in :class:`OffsetEvidence`.

    ``clocks`` is what remains unknown of each broker's clock after its correction; exact where nothing was given.
    """

    view: ClusterView
    covered: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    schedules: Mapping[int, CheckpointSchedule] = field(default_factory=dict)
    clocks: OffsetClocks = field(default_factory=OffsetClocks)

    def noting(self, asked: Asked) -> OffsetContext:
        """The same context, which notes what it is asked; clocks are not noted."""
        by_broker: dict[str, Any] = {name: NotedMap(getattr(self, name), name, asked) for name in _BY_BROKER}
        return replace(self, view=self.view.noting(asked), **by_broker)

    def before(self, instant: int) -> OffsetContext:
        """What of the context was before ``instant``; clocks and intervals of checkpoints are of all times."""
        return replace(
            self,
            view=self.view.before(instant),
            covered={broker_id: _before(spans, instant) for broker_id, spans in self.covered.items()},
            schedules={
                broker_id: replace(schedule, sessions=_before(schedule.sessions, instant))
                for broker_id, schedule in self.schedules.items()
            },
        )

    def answer(self, fact: str, /, *asked: Any) -> object:
        """The answer to a question that was noted."""
        if fact == ALWAYS:
            return self.view.answer(ALWAYS), self.clocks
        return of_field(self, fact, asked) if fact in _BY_BROKER else self.view.answer(fact, *asked)


def _before(spans: Sequence[Span], instant: int) -> list[Span]:
    """Of one that went on for longer nothing tells of an end."""
    return [(start, end if end < instant else EVER_AFTER) for start, end in spans if start < instant]


def offset_contexts(
    views: Mapping[str, ClusterView],
    replication_events: DataFrame,
    snapshots: DataFrame,
    ingested_files: DataFrame,
    segments: DataFrame | None = None,
) -> dict[str, OffsetContext]:
    """By cluster id, from ``silver.replication_events``, ``bronze.znode_snapshots`` and ``bronze.ingested_files``.

    ``segments`` are those of every broker's clock, as :func:`reconstruct.clocks.spark.step.clocks_of` gives them, by
    which the events' times were corrected; without them every clock is taken to be right.
    """
    needed = [_log_spans(replication_events), _session_spans(snapshots), _server_logs(ingested_files)]
    rows = [_by_cluster(found) for found in collect_all(needed if segments is None else [*needed, _clocks(segments)])]
    result = {}
    for cluster_id, view in views.items():
        files, sessions, logs, *timed = (found.get(cluster_id, ()) for found in rows)
        clocks = uncertain_clocks(row for segments_of in timed for row in segments_of).set_back(view.set_back)
        lived = _spans_by_broker(sessions)
        expired: dict[int, list[int]] = {}
        for row in files:
            expired.setdefault(row["broker_id"], []).extend(row["expired_us"])
        schedules = {
            broker_id: CheckpointSchedule(interval, timeout + NOTICED_AFTER_US, sorted(lived.get(broker_id, ())))
            for broker_id, own in view.configurations.items()
            if (interval := checkpoint_interval_us(own)) is not None
            and (timeout := session_timeout_us(own)) is not None
        }
        covered = {
            broker: covered_spans(
                of_broker,
                [interval.start for interval in view.liveness.get(broker, ())],
                clocks.slack_us(broker),
                [*(at for at, _ in view.process_starts.get(broker, ())), *expired.get(broker, ())],
            )
            for broker, of_broker in _spans_by_broker(with_runs(files, logs)).items()
        }
        result[cluster_id] = OffsetContext(view, covered, schedules, clocks)
    return result


def _by_cluster(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["cluster_id"], []).append(row.asDict())
    return found


def _spans_by_broker(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[Span]]:
    spans: dict[int, list[Span]] = {}
    for row in rows:
        spans.setdefault(row["broker_id"], []).append((row["first_us"], row["last_us"]))
    return spans


def with_runs(files: Iterable[Mapping[str, Any]], logs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The spans of files, and of each run of them by their names (:func:`~reconstruct.time.log_names.runs_of_files`)
    one more: from its first event to its last."""
    of_broker: dict[int, list[RolledFile]] = {}
    for row in logs:
        of_broker.setdefault(row["broker_id"], []).append(value_of(RolledFile, row))
    spans = {(row["broker_id"], row["file_id"]): (row["first_us"], row["last_us"]) for row in files}
    runs: list[Mapping[str, Any]] = []
    for broker_id, rolled in of_broker.items():
        for run in runs_of_files(rolled):
            held = [spans[broker_id, file_id] for file_id in run if (broker_id, file_id) in spans]
            if held:
                first, last = min(first for first, _ in held), max(last for _, last in held)
                runs.append({"broker_id": broker_id, "first_us": first, "last_us": last})
    return [*files, *runs]


def uncertain_clocks(segments: Iterable[Mapping[str, Any]]) -> OffsetClocks:
    """The clocks of one cluster, from rows with the columns of a segment; of a clock that was set, the worst counts."""
    result: dict[int, int] = {}
    for row in segments:
        bounds = row["offset_lower_ms"], row["offset_upper_ms"]
        remaining = remaining_us(*bounds, row["correction_us"], row["verdict"], is_disputed=row["is_disputed"])
        result[row["broker_id"]] = max(remaining, result.get(row["broker_id"], 0))
    return OffsetClocks(result)


def covered_spans(
    files: Iterable[Span], registrations: Collection[int], slack_us: int = 0, told: Iterable[int] = ()
) -> list[Span]:
    """When a broker's server.log is complete, from the first and last instants of its files.

    The newest file is the one still written: what it does not say did not happen. That fails where the broker
    registered itself later than the file's end, as only a process does whose lines are missing: then it ends there. And
    where it registered itself, and nothing that it logs (``told``: its starts, and that its session expired) tells why:
    lines of a start are missing just before. ``slack_us`` is by how much the clock of its lines may be off that of the
    registrations.
    """
    merged: list[Span] = []
    for first, last in sorted(files):
        if merged and first <= merged[-1][1] + JOINED_WITHIN_US:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    if merged and all(at + slack_us <= merged[-1][1] + REGISTERED_WITHIN_US for at in registrations):
        merged[-1] = (merged[-1][0], EVER_AFTER)
    waiting = sorted(told)
    for at in sorted(registrations):
        by = at + slack_us + LINE_TO_ACT_US
        of_this, waiting = [one for one in waiting if one <= by], [one for one in waiting if one > by]
        if not of_this:
            hole = at - REGISTERED_WITHIN_US - slack_us, at + slack_us
            merged = [part for span in merged for part in _without(span, *hole)]
    return merged


def _without(span: Span, hole_start: int, hole_end: int) -> list[Span]:
    first, last = span
    if last <= hole_start or hole_end <= first:
        return [span]
    return [part for part in ((first, hole_start), (hole_end, last)) if part[0] < part[1]]


def _log_spans(replication_events: DataFrame) -> DataFrame:
    at = F.unix_micros("corrected_time")
    named = replication_events.where("broker_id IS NOT NULL")
    return named.groupBy("cluster_id", "broker_id", "file_id").agg(
        F.min(at).alias("first_us"),
        F.max(at).alias("last_us"),
        F.collect_set(F.when(F.col("event_type").isin(*REGISTERS_AGAIN), at)).alias("expired_us"),
    )


def _server_logs(ingested_files: DataFrame) -> DataFrame:
    """Each server.log that was read, as :class:`RolledFile`."""
    is_read = (F.col("source_kind") == SourceKind.SERVER_LOG) & (F.col("status") == "ingested")
    instants = {name: F.unix_micros(f"{name}_event_time") for name in ("first", "last")}
    return (
        ingested_files.where(is_read & F.col("broker_id").isNotNull())
        .withColumns(instants)
        .where("first IS NOT NULL AND last IS NOT NULL")
        .select("cluster_id", "broker_id", *columns_of(RolledFile))
    )


def _clocks(segments: DataFrame) -> DataFrame:
    bounds = ("offset_lower_ms", "offset_upper_ms", "correction_us", "verdict", "is_disputed")
    return segments.select("cluster_id", "broker_id", *bounds)


def _session_spans(snapshots: DataFrame) -> DataFrame:
    """From the first to the last snapshot that shows a broker registered by one session."""
    at = F.unix_micros("captured_at")
    broker = F.regexp_extract("path", BROKER_PATTERN, 1).try_cast("int")
    registered = snapshots.where(F.col("path").rlike(BROKER_PATTERN) & (F.col("ephemeral_owner") != 0))
    return registered.groupBy("cluster_id", broker.alias("broker_id"), "ephemeral_owner").agg(
        F.min(at).alias("first_us"), F.max(at).alias("last_us")
    )
