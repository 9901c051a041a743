"""One controller's own lines about one partition, in the order of its file, cut where one batch of requests ends.

A batch is made under the controller's lock (up to 0.10) or by its one thread: first the transitions, then the requests
that they gathered. So in one file a run of transitions and the run of requests behind it belong together: a *block*.
Requests that no transition of the partition asked for (a restatement, the raised epoch of a reassignment) stand in the
run of the block before.

The order is the file's, never the clock's. Where the two contradict each other
(:mod:`reconstruct.time.line_order`), there is none, and such a log proves nothing (:func:`ordered_logs`).

Source: kafka.controller.ControllerBrokerRequestBatch, PartitionStateMachine, ReplicaStateMachine, 0.8.0 to 3.9.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.cluster.spans import LiveView
from reconstruct.cluster.view import ClusterView
from reconstruct.model.states import ReplicaState
from reconstruct.model.versions import TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE
from reconstruct.partitions.evidence import Evidence
from reconstruct.time.instants import at_of
from reconstruct.time.line_order import jumps_back

PARTITION: Final = EventType.PARTITION_STATE_CHANGE
REPLICA: Final = EventType.REPLICA_STATE_CHANGE
LEADER_AND_ISR: Final = EventType.LEADER_AND_ISR_SENT
UPDATE_METADATA: Final = EventType.UPDATE_METADATA_SENT
STOP_REPLICA: Final = EventType.STOP_REPLICA_SENT
#: A reassignment raised the leader epoch, and LeaderAndIsr has told so.
RAISED: Final = EventType.REASSIGNMENT_LEADER_AND_ISR_SENT
TRANSITIONS: Final = (PARTITION, REPLICA)
FAILED: Final = (EventType.PARTITION_STATE_CHANGE_FAILED, EventType.REPLICA_STATE_CHANGE_FAILED)
#: In the order in which a batch sends them.
REQUESTS: Final = (LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA)
_LINES: Final = (*TRANSITIONS, *FAILED, *REQUESTS, RAISED, EventType.ISR_SHRUNK_BY_CONTROLLER)
#: The lines of one batch are not further apart, µs.
ONE_BATCH_US: Final = 1_000_000
#: A live list that changed within this time of a block does not say who was live in it.
_VIEW_SLACK_US: Final = 2_000_000
#: A log is asked for this much more than the lines that are judged, µs.
MARGIN_US: Final = 1_000_000


@dataclass(slots=True)
class Block:
    """Transitions, and the requests that follow them; ``others`` are refusals and announcements among them."""

    transitions: list[Evidence] = field(default_factory=list)
    requests: list[Evidence] = field(default_factory=list)
    others: list[Evidence] = field(default_factory=list)

    def batch(self, most_us: int | None = ONE_BATCH_US) -> list[Evidence]:
        """The first requests, at most so far apart: those of the transitions' own batch, where they asked for any."""
        result: list[Evidence] = []
        sent: set[tuple[str, int, bool | None]] = set()
        before = self.transitions[-1].at if self.transitions else None
        phase = 0
        for line in self.requests:
            now = REQUESTS.index(line.kind)
            brokers = {(line.kind, broker, line.is_delete) for broker in line.to_broker_ids or ()}
            is_late = before is not None and most_us is not None and line.at - before > most_us
            if now < phase or is_late or brokers & sent:
                break
            phase, before = now, line.at
            sent |= brokers
            result.append(line)
        return result

    def sent(self, kind: str) -> list[Evidence]:
        return [line for line in self.requests if line.kind == kind]


@dataclass(slots=True)
class ControllerLog:
    """The lines of one controller epoch in one file."""

    controller_id: int
    controller_epoch: int
    file: str = ""
    lines: list[Evidence] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    #: by replica, its transitions.
    of_replicas: dict[int, list[Evidence]] = field(default_factory=dict)
    #: whether its requests name the assigned replicas.
    shows_assignments: bool = False
    #: StopReplica requests as controller.log tells of them, up to 2.5.
    stops: list[Evidence] = field(default_factory=list)

    def forgotten_before(self, block: Block) -> frozenset[int]:
        """Replicas that were last NonExistentReplica when the block began."""
        first = block.transitions[0].offset if block.transitions else 0
        last = {
            replica: lines[: bisect_left(lines, first, key=lambda line: line.offset)][-1:]
            for replica, lines in self.of_replicas.items()
        }
        return frozenset(r for r, before in last.items() if before and before[0].to_state == ReplicaState.NON_EXISTENT)

    @property
    def start(self) -> int:
        return min(line.at for line in self.lines)

    @property
    def end(self) -> int:
        return max(line.at for line in self.lines)


def ordered_logs(facts: Sequence[Evidence], cluster: ClusterView) -> list[ControllerLog]:
    """:func:`controller_logs` without those whose lines need not stand in the order of what happened."""
    return [
        log
        for log in controller_logs(facts)
        if cluster.keeps_order(log.controller_id) and not jumps_back(line.at for line in log.lines)
    ]


def controller_logs(facts: Sequence[Evidence]) -> list[ControllerLog]:
    """By controller, epoch and file, in the order of the epochs; a line that does not say whose it is, is left out."""
    found: dict[tuple[int, int, str], ControllerLog] = {}
    stops: dict[int, list[Evidence]] = {}
    for line in facts:
        if line.kind == STOP_REPLICA and line.source_kind == SourceKind.CONTROLLER_LOG:
            speaker = line.controller_id if line.controller_id is not None else line.broker_id
            if speaker is not None:
                stops.setdefault(speaker, []).append(line)
        if line.kind not in _LINES or line.source_kind == SourceKind.CONTROLLER_LOG:
            continue
        if line.controller_id is None or line.controller_epoch is None:
            continue
        key = (line.controller_epoch, line.controller_id, line.file)
        log = found.setdefault(key, ControllerLog(line.controller_id, line.controller_epoch, line.file))
        log.lines.append(line)
    for log in found.values():
        log.lines.sort(key=lambda line: (line.offset, line.order))
        log.blocks = list(_blocks(log.lines))
        log.shows_assignments = any(line.replicas for line in log.lines if line.kind in REQUESTS)
        for line in log.lines:
            if line.kind == REPLICA and line.replica_id is not None:
                log.of_replicas.setdefault(line.replica_id, []).append(line)
        log.stops = stops.get(log.controller_id, [])
    return [found[key] for key in sorted(found)]


def _blocks(lines: Sequence[Evidence]) -> Iterator[Block]:
    block = Block()
    for line in lines:
        if line.kind in TRANSITIONS:
            if block.requests:
                yield block
                block = Block()
            block.transitions.append(line)
        elif line.kind in REQUESTS:
            block.requests.append(line)
        else:
            block.others.append(line)
    yield block


def logs_every_transition(cluster: ClusterView, controller_epoch: int | None) -> bool:
    """Whether a transition that is not in the log given was not made: up to 2.5 all are logged alike, from 2.6 on only
    at TRACE."""
    if cluster.version.is_before(TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE):
        return True
    tenure = cluster.tenure_of(controller_epoch)
    return tenure is not None and tenure.logs_transitions


def is_whole(log: ControllerLog, cluster: ClusterView, start: int, end: int, margin_us: int = MARGIN_US) -> bool:
    """Whether the log, by itself, lacks nothing of [start, end], and it and the tenure went on for ``margin_us`` more:
    what stands in the next file, since the log was rolled, does not stand in this one."""
    superseded = cluster.successor_start(log.controller_epoch)
    if superseded is not None and superseded <= end + margin_us:
        return False
    is_logged = cluster.logs_all(log.controller_id, start, end + margin_us, log.file)
    return is_logged and cluster.lived_on(log.controller_id, start, end)


def own_views(cluster: ClusterView, log: ControllerLog) -> list[LiveView]:
    """The lists of live brokers of the controller's tenure, in their order; none where it is not known."""
    tenure = cluster.tenure_of(log.controller_epoch)
    return [] if tenure is None else cluster.live_views_of(log.controller_id, tenure.start, tenure.end)


def steady_brokers(cluster: ClusterView, log: ControllerLog, at: int) -> frozenset[int]:
    """The brokers that are in each list of live ones that the controller logged about then, and of which nothing tells
    that they went in between: a list may be among lines that are missing."""
    views = own_views(cluster, log)
    before = bisect_right(views, at - _VIEW_SLACK_US, key=at_of)
    first = min(bisect_left(views, at - _VIEW_SLACK_US, key=at_of), max(0, before - 1))
    lists = views[first : bisect_right(views, at + _VIEW_SLACK_US, key=at_of)]
    following = bisect_right(views, at, key=at_of)
    if not lists or not following:
        return frozenset()
    since = lists[0].at
    listed_next = views[following].at if following < len(views) else None
    return frozenset(
        broker
        for broker in frozenset.intersection(*(view.live for view in lists))
        if broker == log.controller_id or not _may_have_gone(cluster, broker, since, at, listed_next)
    )


def _may_have_gone(cluster: ClusterView, broker: int, since: int, at: int, listed_next: int | None) -> bool:
    """Whether a process of the broker started after ``since`` and no later than the controller's next list, and the one
    before it gave no sign of life after ``at``, or its registration ended."""
    starts = [start for start, _ in cluster.process_starts.get(broker, ()) if start > since]
    if starts and (listed_next is None or starts[0] <= listed_next):
        departures = cluster.departures.get(broker, ())
        if not any(at + _VIEW_SLACK_US < left.served_until < starts[0] for left in departures):
            return True
    ends = (interval.end for interval in cluster.liveness.get(broker, ()) if interval.end is not None)
    return any(since < end <= at + _VIEW_SLACK_US for end in ends)
