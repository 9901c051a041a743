"""Which state-change logs are proven to lack lines, without Spark: by the counts that stand in them since 2.6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.requests.evidence import BROKER_LINES, SENT_LINES, UPDATE_METADATA, Request, Step
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
