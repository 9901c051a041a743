"""What the counts in state-change logs prove (since 2.6), without Spark: which logs lack lines, which requests none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.spans import CountedRequests
from reconstruct.cluster.view import ClusterView
from reconstruct.requests.evidence import (
    BROKER_LINES,
    LEADER_AND_ISR,
    NEXT_WITHIN_US,
    SENT_LINES,
    UPDATE_METADATA,
    Request,
    Step,
)
from reconstruct.requests.lossy_logs import lossy_brokers, missing_lines
from tests.support.evidence.lines import Line

_COUNTS: Final = ("n_partitions", "n_become_leader", "n_become_follower", "n_added", "n_deleted")
_BATCHES: Final = (EventType.LEADER_AND_ISR_RECEIVED, EventType.STOP_REPLICA_RECEIVED, EventType.METADATA_BATCH)
#: The lines of one batch of a controller follow each other faster than this, µs.
_SAME_BATCH_US: Final = 1_000_000


def lossy_logs(lines: Sequence[Line], cluster: ClusterView) -> frozenset[int]:
    """The brokers whose logs lack lines; ``lines`` stand in the order of their files."""
    own = [line for line in lines if line.source_kind == "state_change_log"]
    requests = (*_sent(own), *_received(own))
    return frozenset(lossy_brokers(proof for each in requests for proof in missing_lines(each, cluster)))


def _counted(line: Line) -> int:
    return sum(int(line.fields[name]) for name in _COUNTS if name in line.fields)


def _sent(lines: Sequence[Line]) -> Iterator[Request]:
    """What controllers sent, each as its count says; an UpdateMetadata has no other lines."""
    stretch: list[tuple[str, str | None, str | None]] = []
    last: Line | None = None
    for line in lines:
        to = line.fields.get("to_broker_id")
        if last is None or last.file != line.file or line.at - last.at > _SAME_BATCH_US:
            stretch = []
        if line.event_type in SENT_LINES:
            stretch.append((line.file, SENT_LINES[EventType(line.event_type)], to))
            last = line
        elif line.event_type == EventType.REQUEST_BATCH_SENT:
            api = line.fields["api"]
            lacking = _counted(line) - stretch.count((line.file, api, to))
            if lacking > 0 and api != UPDATE_METADATA and "n_replicas" not in line.fields:
                yield Request(
                    "c", line.broker_id, None, -1, api, sent_at=line.at, sent_ref=line.id, lacking_sent=lacking
                )
            stretch, last = [], line


def _received(lines: Sequence[Line]) -> Iterator[Request]:
    """What brokers received, each correlation id of a controller once."""
    of_request: dict[tuple[str, str, str | None, str], list[Line]] = {}
    for line in lines:
        api, step = BROKER_LINES.get(EventType(line.event_type), ("", None))
        is_batch = line.event_type in _BATCHES
        if "correlation_id" in line.fields and (is_batch or step in (Step.RECEIVED, Step.CACHED)):
            key = line.file, api, line.fields.get("controller_id"), line.fields["correlation_id"]
            of_request.setdefault(key, []).append(line)
    for (_, api, _, _), own in of_request.items():
        lacking = sum(map(_counted, own)) - sum("topic" in line.fields for line in own)
        if lacking > 0:
            at, ref = own[0].at, own[0].id
            yield Request(
                "c", -1, None, own[0].broker_id, api, received_at=at, received_ref=ref, lacking_received=lacking
            )


def counted_requests(lines: Sequence[Line]) -> Mapping[int, tuple[CountedRequests, ...]]:
    """By broker: what it received of one controller without a gap; ``lines`` stand in the order of their files."""
    stretches: dict[tuple[int, int, int], list[list[tuple[int, int, str]]]] = {}
    for (_, api, controller_id, number), run in groupby(filter(_is_of_request, lines), key=_request_of):
        own = list(run)
        epochs = {line.fields["controller_epoch"] for line in own if "controller_epoch" in line.fields}
        counts = [_counted(line) for line in own if line.event_type in _BATCHES and "topic" not in line.fields]
        is_refused = any(_step_of(line) is Step.IGNORED for line in own)
        named = [(line.fields["topic"], line.fields.get("partition_id")) for line in own if "topic" in line.fields]
        if len(epochs) != 1:
            continue
        of_connection = stretches.setdefault((own[0].broker_id, int(controller_id), int(epochs.pop())), [[]])
        if is_refused or counts != [len(named)] or len(set(named)) < len(named):
            of_connection.append([])
            continue
        begins_at, before, kind = of_connection[-1][-1] if of_connection[-1] else (0, -2, "")
        is_late = kind == LEADER_AND_ISR and own[0].at - begins_at > NEXT_WITHIN_US
        if before + 1 != int(number) or is_late:
            of_connection.append([])
        of_connection[-1].append((own[0].at, int(number), api))
    found: dict[int, list[CountedRequests]] = {}
    for (broker_id, controller_id, epoch), of_connection in sorted(stretches.items()):
        for stretch in of_connection:
            if len(stretch) > 1:
                (start, first_id, _), (end, last_id, _) = stretch[0], stretch[-1]
                run_of_them = CountedRequests(controller_id, epoch, first_id, last_id, start, end)
                found.setdefault(broker_id, []).append(run_of_them)
    return {broker_id: tuple(runs) for broker_id, runs in found.items()}


def _is_of_request(line: Line) -> bool:
    """Whether a line of a broker counts a request, names a partition of it, or refuses it as a whole."""
    is_whole = line.event_type in _BATCHES or (_step_of(line) is Step.IGNORED and "topic" not in line.fields)
    is_part = is_whole or _step_of(line) in (Step.RECEIVED, Step.CACHED)
    is_numbered = {"correlation_id", "controller_id"} <= set(line.fields)
    return is_part and is_numbered and line.source_kind == "state_change_log"


def _step_of(line: Line) -> Step | None:
    return BROKER_LINES.get(EventType(line.event_type), ("", None))[1]


def _request_of(line: Line) -> tuple[str, str, str, str]:
    api, _ = BROKER_LINES[EventType(line.event_type)]
    return line.file, api, line.fields["controller_id"], line.fields["correlation_id"]
