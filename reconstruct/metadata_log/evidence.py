"""Rows of copies of the metadata log and of its snapshots, and what is known of a cluster's log as a whole."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Final

from reconstruct.model.metadata_log.commitment import (
    Commitment,
    Copy,
    Lineage,
    Span,
    bases_of,
    lineage_of,
    one_log,
    without_effect,
)
from reconstruct.model.metadata_log.image import applied
from reconstruct.model.metadata_log.values import (
    BrokerState,
    ConfigResource,
    ControllerState,
    MetadataRecord,
    State,
    Subject,
)
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import ANY_VERSION, VersionRange, release_of_level

LEADER_CHANGE: Final = "LeaderChangeMessage"
VOTERS: Final = "VotersRecord"
KRAFT_VERSION: Final = "KRaftVersionRecord"
#: Control records of the quorum, and those that bound transactions.
OF_QUORUM: Final = (LEADER_CHANGE, VOTERS, KRAFT_VERSION)
#: Those that tell whether a broker may lead.
OF_BROKERS: Final = (
    "RegisterBrokerRecord",
    "UnregisterBrokerRecord",
    "FenceBrokerRecord",
    "UnfenceBrokerRecord",
    "BrokerRegistrationChangeRecord",
)
#: Those that tell which release a node supports.
CONTROLLER: Final = "RegisterControllerRecord"
OF_RELEASES: Final = ("RegisterBrokerRecord", CONTROLLER)
#: Those that tell of what is enabled.
FEATURE: Final = "FeatureLevelRecord"
_ELR_FEATURE: Final = "eligible.leader.replicas.version"
_METADATA_VERSION: Final = "metadata.version"
_CONFIG: Final = "ConfigRecord"
MIN_ISR: Final = "min.insync.replicas"
#: A controller divides what it writes at once into batches of so many (org.apache.kafka.controller.QuorumController).
RECORDS_OF_BATCH: Final = 10_000
BEGIN_TRANSACTION: Final = "BeginTransactionRecord"
#: What a controller calls the transaction in which it takes what ZooKeeper holds (QuorumController).
_MIGRATION: Final = "ZK Migration"
OF_TRANSACTIONS: Final = (BEGIN_TRANSACTION, "EndTransactionRecord", "AbortTransactionRecord")


@dataclass(frozen=True, slots=True)
class LogRow:
    """A record as one or more copies hold it, or as a node's snapshot does.

    Of a snapshot ``snapshot_end`` is the first offset that it does not hold, ``node_id`` whose it is, ``offset`` the
    record's place in it. ``fields`` are JSON, empty where they could not be read. ``copies`` counts the nodes that have
    the record in their logs. ``at`` is in µs.
    """

    evidence_id: str
    offset: int
    epoch: int
    record_type: str
    fields: str
    at: int
    batch_offset: int | None = None
    copies: int = 1
    node_id: int | None = None
    snapshot_end: int | None = None

    @property
    def record(self) -> MetadataRecord:
        fields = json.loads(self.fields or "{}")
        return MetadataRecord(
            self.offset,
            self.epoch,
            self.record_type,
            fields if isinstance(fields, dict) else {},
            self.at,
            self.evidence_id,
        )


@dataclass(frozen=True, slots=True)
class CopySpan:
    """The offsets that one node's copy has of one epoch, from ``start`` to before ``end``."""

    node_id: int
    epoch: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A snapshot of one node: the first offset that it does not hold, when the last one that it holds was appended (µs;
    when it was written, where it does not say), and whether all of it could be read."""

    node_id: int
    end: int
    epoch: int
    at: int
    evidence_id: str
    is_whole: bool = True


@dataclass(frozen=True)
class ClusterLog:
    """What is known of one cluster's metadata log: the copies of it, the snapshots, the rows that concern no topic.

    ``disputed`` are records of the log, of one offset and epoch, of which one concerns another topic than the other, or
    none: no topic's rows have both.
    """

    cluster_id: str
    spans: tuple[CopySpan, ...] = ()
    snapshots: tuple[SnapshotFile, ...] = ()
    rows: tuple[LogRow, ...] = ()
    disputed: tuple[LogRow, ...] = ()

    @property
    def of_quorum(self) -> ClusterLog:
        """The same without the rows that only the replay of what belongs to no topic needs."""
        wanted = {*OF_QUORUM, *OF_TRANSACTIONS, *OF_BROKERS, *OF_RELEASES, FEATURE}
        return replace(
            self,
            disputed=(),
            rows=tuple(row for row in self.rows if row.record_type in wanted or _is_of_min_isr(row) or not row.fields),
        )

    @cached_property
    def unread_from(self) -> int | None:
        """The first offset of a record that could not be read: what came of it, nobody knows."""
        return min((r.offset for r in self.rows if not r.fields and r.snapshot_end is None), default=None)

    def is_read_before(self, end: int) -> bool:
        """Whether all records before an offset could be read."""
        return self.unread_from is None or end <= self.unread_from

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        nodes = sorted({span.node_id for span in self.spans} | {snapshot.node_id for snapshot in self.snapshots})
        return tuple(
            Copy(
                node,
                one_log(Span(s.start, s.end, s.epoch) for s in self.spans if s.node_id == node),
                tuple(sorted({s.end for s in self.snapshots if s.node_id == node})),
            )
            for node in nodes
        )

    @cached_property
    def voters(self) -> frozenset[int]:
        """The last set of voters that any record tells of: it counts from when it is appended (KIP-853)."""
        told = sorted((row for row in self.rows if row.record_type in (LEADER_CHANGE, VOTERS)), key=_log_order)
        return next((found for row in reversed(told) for found in [voters_of(row.record.fields)] if found), frozenset())

    @cached_property
    def lineage(self) -> Lineage:
        return lineage_of(self.copies, self.voters)

    @cached_property
    def bases(self) -> list[tuple[int, int]]:
        """From where records can be applied: (offset, before which)."""
        return bases_of(self.lineage.runs, (s.end for s in self.snapshots if s.is_whole))

    def is_whole_before(self, end: int) -> bool:
        """Whether records, or a snapshot and the records behind it, tell all that was decided before an offset."""
        return self.is_read_before(end) and any(base <= end <= stop for base, stop in self.bases)

    @property
    def told_end(self) -> int:
        """The first offset behind all that records, or a snapshot, tell of."""
        return max((stop for _, stop in self.bases), default=0)

    @cached_property
    def void(self) -> list[tuple[int, int | None]]:
        """The offsets of transactions that have no effect, or not yet."""
        return without_effect(
            (row.offset, row.record_type)
            for row in self.rows
            if row.record_type in OF_TRANSACTIONS and row.snapshot_end is None and self.is_followed(row)
        )

    def is_followed(self, row: LogRow) -> bool:
        return self.lineage.of(row.offset, row.epoch) is not Commitment.TRUNCATED

    def has_effect(self, row: LogRow) -> bool:
        """Whether the record counts: the quorum follows it, and no transaction takes it back."""
        is_void = any(start <= row.offset and (end is None or row.offset < end) for start, end in self.void)
        return self.is_followed(row) and not is_void

    @cached_property
    def _registrations(self) -> dict[int, list[tuple[int, BrokerState | None]]] | None:
        """By broker: from which offset on it was what. None where brokers migrate from ZooKeeper, and nothing tells
        what was taken from there: that was no choice of the quorum."""
        found: dict[int, list[tuple[int, BrokerState | None]]] = {}
        of_brokers = [row for row in self.rows if row.record_type in OF_BROKERS]
        for base, end in self.bases:
            image: dict[Subject, State] = {}
            source = self.base_snapshot(base)
            shown = [
                r for r in of_brokers if source is not None and (r.node_id, r.snapshot_end) == (source.node_id, base)
            ]
            logged = [r for r in of_brokers if r.snapshot_end is None and base <= r.offset < end and self.has_effect(r)]
            places = [(base - 1, row) for row in shown] + [(row.offset, row) for row in in_log_order(logged)]
            for offset, row in places:
                for subject, state in applied(image, row.record).changes:
                    image.pop(subject, None)
                    known = state if isinstance(state, BrokerState) else None
                    if known is not None:
                        image[subject] = known
                        if known.is_migrating and not self._taken_from_zookeeper:
                            return None
                    found.setdefault(int(subject.name), []).append((offset, known))
        return found

    @cached_property
    def _taken_from_zookeeper(self) -> list[tuple[int, float]]:
        """From which offset to which one the records are what ZooKeeper held (KIP-866): one transaction, since 3.6."""
        found: list[tuple[int, float]] = []
        for row in self._logged:
            if row.record_type == BEGIN_TRANSACTION and row.record.fields.get("name") == _MIGRATION:
                found.append((row.offset, inf))
            elif row.record_type in OF_TRANSACTIONS and found and found[-1][1] == inf:
                found[-1] = (found[-1][0], row.offset)
        return found

    def is_taken_from_zookeeper(self, offset: int) -> bool:
        """Whether the record at an offset is what ZooKeeper held, and no choice of the quorum's."""
        return any(start <= offset <= end for start, end in self._taken_from_zookeeper)

    def broker_before(self, broker_id: int, offset: int) -> tuple[bool, BrokerState | None]:
        """Whether the records before an offset tell of the broker, and its registration; None where it has none."""
        base = max((start for start, end in self.bases if start <= offset < end), default=None)
        if base is None or self._registrations is None:
            return False, None
        known = self._registrations.get(broker_id, [])
        last = bisect_left(known, offset, key=lambda one: one[0]) - 1
        if last < 0 or known[last][0] < base - 1:
            return base == 0, None
        return True, known[last][1]

    def is_active_before(self, broker_id: int, offset: int) -> bool | None:
        """Whether the broker was registered, not fenced and not shutting down by the records before an offset; None
        where they do not tell."""
        is_told, state = self.broker_before(broker_id, offset)
        if state is None:
            return False if is_told else None
        return not (state.is_fenced or state.is_in_controlled_shutdown)

    @cached_property
    def _logged(self) -> list[LogRow]:
        return sorted((row for row in self.rows if row.snapshot_end is None), key=lambda row: row.offset)

    def logged(self, start: int, end: int) -> list[LogRow]:
        """The rows of the log from an offset to before another, in their order."""
        found = (bisect_left(self._logged, offset, key=lambda row: row.offset) for offset in (start, end))
        return self._logged[slice(*found)]

    @cached_property
    def _rows_of_brokers(self) -> list[LogRow]:
        """In the log, of those that have effect; and where another controller took over."""
        wanted = (LEADER_CHANGE, *OF_BROKERS)
        return [row for row in self._logged if row.record_type in wanted and self.has_effect(row)]

    def removed_behind(self, row: LogRow, by: Collection[str] = OF_BROKERS) -> int | None:
        """The one broker that the controller may be taking away with the records that this one is among: they come
        before the broker's own, in its batch, or in a later one where so many are in a batch that it was divided.
        ``NO_LEADER`` where there is none, or its record is not of the types ``by``; None where that is not known."""
        end = max((end for start, end in self.bases if start <= row.offset < end), default=0)
        place = bisect_right(self._rows_of_brokers, row.offset, key=lambda one: one.offset)
        behind = next((one for one in self._rows_of_brokers[place : place + 1] if one.offset < end), None)
        if behind is not None and behind.record_type in OF_BROKERS and behind.record_type not in by:
            return NO_LEADER
        fields = {} if behind is None else behind.record.fields
        broker = fields.get("brokerId", fields.get("id"))
        if behind is not None and broker is not None and row.batch_offset in (None, behind.batch_offset):
            return int(broker)
        if row.batch_offset is None:
            return None
        reach = end if behind is None or behind.batch_offset is None else behind.batch_offset
        if reach - row.batch_offset < RECORDS_OF_BATCH:
            return NO_LEADER
        return None if broker is None else int(broker)

    def has_elr_at(self, offset: int) -> bool:
        """Whether the records before an offset enable eligible leader replicas (KIP-966)."""
        return self._is_enabled_at(_ELR_FEATURE, offset)

    def has_metadata_version_at(self, offset: int) -> bool:
        """Whether the records before an offset state a ``metadata.version``, which no controller before 3.3 writes
        (KIP-778)."""
        return self._is_enabled_at(_METADATA_VERSION, offset)

    def _is_enabled_at(self, feature: str, offset: int) -> bool:
        return any(start < offset <= end for start, end in self._enabled.get(feature, ()))

    @cached_property
    def _enabled(self) -> dict[str, list[tuple[float, float]]]:
        """By feature: from behind which offset to which one it has a level."""
        found: dict[str, list[tuple[float, float]]] = {}
        for row in sorted((row for row in self.rows if row.record_type == FEATURE), key=_place_in_log):
            fields = row.record.fields
            if row.snapshot_end is None and not self.has_effect(row):
                continue
            spans = found.setdefault(str(fields.get("name")), [])
            if spans:
                spans[-1] = (spans[-1][0], min(spans[-1][1], _place_in_log(row)))
            if fields.get("featureLevel"):
                spans.append((_place_in_log(row), inf))
        return found

    def default_min_isr_at(self, offset: int) -> int | None:
        """``min.insync.replicas`` of the cluster by the records before an offset; None where they do not tell. Where
        there are eligible leader replicas the controller has set it (KIP-966)."""
        found = [value for at, value in self._default_min_isr if at < offset]
        return found[-1] if found else None

    @cached_property
    def _default_min_isr(self) -> list[tuple[int, int | None]]:
        """From behind which offset on it is what."""
        return [
            (_place_in_log(row), number_of(row.record.fields.get("value")))
            for row in sorted(self.rows, key=_place_in_log)
            if _is_of_min_isr(row) and (row.snapshot_end is not None or self.has_effect(row))
        ]

    def releases_at(self, offset: int) -> VersionRange:
        """Those that the controller at an offset may have been of: any, unless one registered before it."""
        return self._registered_releases if self._first_controller < offset else ANY_VERSION

    @cached_property
    def _first_controller(self) -> float:
        """From which offset on controllers are registered."""
        return min((_place_in_log(row) for row in self.rows if row.record_type == CONTROLLER), default=inf)

    @cached_property
    def _registered_releases(self) -> VersionRange:
        """Of all nodes at any time, as a node registers when it has begun; any, where one says none or a later one."""
        registered = [row.record for row in self.rows if row.record_type in OF_RELEASES]
        states = [state for record in registered for _, state in applied({}, record).changes]
        levels = [state.metadata_version for state in states if isinstance(state, BrokerState | ControllerState)]
        releases = [None if level is None else release_of_level(level) for level in levels]
        known = [release for release in releases if release is not None]
        return VersionRange(min(known), max(known)) if known and len(known) == len(releases) else ANY_VERSION

    def base_snapshot(self, end: int) -> SnapshotFile | None:
        """The snapshot that a run of records goes on from."""
        known = (s for s in self.snapshots if s.end == end and s.is_whole)
        return min(known, key=lambda s: s.node_id, default=None)


def _is_of_min_isr(row: LogRow) -> bool:
    """Whether it sets what the cluster asks of topics that say nothing else: of the brokers without a name."""
    if row.record_type != _CONFIG or MIN_ISR not in row.fields:
        return False
    fields = row.record.fields
    named = (fields.get("resourceType"), fields.get("resourceName"), fields.get("name"))
    return named == (ConfigResource.BROKER, "", MIN_ISR)


def number_of(setting: str | None) -> int | None:
    """A setting that is a number."""
    return int(setting) if setting is not None and setting.isascii() and setting.isdecimal() else None


def voters_of(fields: Mapping[str, Any]) -> frozenset[int]:
    """The ids of the voters that a record of the quorum lists."""
    listed = fields.get("voters")
    found: Iterable[Any] = listed if isinstance(listed, list) else ()
    return frozenset(int(one["voterId"]) for one in found if isinstance(one, dict) and "voterId" in one)


def _place_in_log(row: LogRow) -> int:
    """The offset; of what a snapshot holds the last that it ends before."""
    return row.offset if row.snapshot_end is None else row.snapshot_end - 1


def _log_order(row: LogRow) -> tuple[bool, int, int]:
    """Records of a snapshot before those of a log."""
    return row.snapshot_end is None, row.offset, row.epoch


def in_log_order(rows: Iterable[LogRow]) -> Sequence[LogRow]:
    """By offset; of several at one offset the one that most nodes have comes first."""
    return sorted(rows, key=lambda row: (row.offset, row.epoch, -row.copies, row.record_type, row.fields))
