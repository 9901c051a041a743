"""What cannot be said of a cluster, and why: from what its evidence covers, to rules and questions.

A rule needs lines, and a line that is not there proves something only where its log was given, at a level that holds
such lines. :func:`limits` says, in one sentence each, which sources are missing, which have gaps, which are too coarse,
and which rules (:mod:`reconstruct.rule_book`) and questions (:mod:`reconstruct.coverage.questions`) are then left open,
or answered only in part. A rule named here may still be kept or broken on other evidence: each verdict says so itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ingest.lake.tables.bronze import LOG_KINDS, SourceKind
from reconstruct.coverage.levels import hides
from reconstruct.coverage.questions import UNKNOWN_WITHOUT
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.model.versions import KafkaVersion
from reconstruct.rule_book import RULES

#: Why something cannot be said, in the order of the list.
CAUSES: Final = (
    "no_logs",
    "gap",
    "not_captured",
    "out_of_order",
    "clock_set_back",
    "missing",
    "unknown_broker",
    "too_coarse",
    "silence",
)
NO_BROKER: Final = -1
#: Kinds that stand for several: what either of them tells.
_STANDS_FOR: Final[Mapping[str, frozenset[str]]] = {
    EvidenceKind.LOG_END: frozenset({SourceKind.LOG_SEGMENT, SourceKind.OFFSET_PROBE}),
    EvidenceKind.ZNODES: frozenset(
        {SourceKind.ZNODE_SNAPSHOT, SourceKind.ZNODE_SNAPSHOT_BINARY, SourceKind.ZNODE_TRANSACTION_LOG}
    ),
}
#: What a capture records, and what it is evidence of; of other kinds that is the kind itself.
_CAPTURED: Final[Mapping[str, str]] = {
    SourceKind.OFFSET_PROBE: EvidenceKind.LOG_END,
    SourceKind.ZNODE_SNAPSHOT: EvidenceKind.ZNODES,
}
_OF_CLUSTER: Final = (EvidenceKind.ZNODES, EvidenceKind.ZNODE_TRANSACTION_LOG)
#: A cluster has a metadata log in place of znodes: where it was given nothing is missing of these.
_IN_PLACE_OF_ZNODES: Final = EvidenceKind.METADATA_LOG
_OF_BROKERS: Final = tuple(kind for kind in EvidenceKind if kind not in (*_OF_CLUSTER, _IN_PLACE_OF_ZNODES))
#: What a node of a KRaft cluster leaves only if it has the role (``process.roles``): the others every node leaves.
_OF_ROLE: Final[Mapping[str, frozenset[str]]] = {
    "broker": frozenset(
        {
            EvidenceKind.STATE_CHANGE_LOG,
            EvidenceKind.HIGH_WATERMARK_CHECKPOINT,
            EvidenceKind.LEADER_EPOCH_CHECKPOINT,
            EvidenceKind.LOG_END,
        }
    ),
    "controller": frozenset({EvidenceKind.CONTROLLER_LOG}),
}


@dataclass(frozen=True, slots=True)
class AvailableEvidence:
    """Evidence that there is: one kind of source of one broker (-1: of none, or of one that nothing tells)."""

    broker_id: int
    source_kind: str
    level_floor: str | None = None
    from_ms: float | None = None
    to_ms: float | None = None


@dataclass(frozen=True, slots=True)
class NodeRole:
    """That a node of a KRaft quorum's cluster was ever ``broker`` (it registered) or ``controller`` (it voted)."""

    node_id: int
    role: str


@dataclass(frozen=True, slots=True)
class Hole:
    """A span of one broker's log: ``cause`` is ``gap`` (with its ``reason``), ``out_of_order`` (a file whose lines are
    not), ``clock_set_back`` (a time that a file tells twice), ``too_coarse`` or ``silence``: hours that no file speaks
    of, and nothing tells whether one is missing. Or an outage of a capture, ``not_captured``, of what it records of a
    broker or of the cluster."""

    cause: str
    broker_id: int
    source_kind: str
    from_ms: float
    to_ms: float
    level_floor: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that cannot be said: of ``brokers`` (none: of the cluster), for want of ``source_kind``; from and to
    are None where it is so throughout. ``why`` completes a sentence; rules and questions are left open, or answered
    only in part."""

    cause: str
    brokers: tuple[int, ...]
    source_kind: str
    why: str
    rules: tuple[str, ...] = ()
    questions: tuple[int, ...] = ()
    level_floor: str | None = None
    reason: str | None = None
    from_ms: float | None = None
    to_ms: float | None = None


@dataclass(frozen=True, slots=True)
class _Need:
    why: str
    rules: tuple[str, ...]
    questions: tuple[int, ...]


def _rules(is_meant: Callable[[Rule], bool]) -> tuple[str, ...]:
    return tuple(rule_id for rule_id, rule in RULES.items() if is_meant(rule))


def _needing(*kinds: str) -> tuple[str, ...]:
    return _rules(lambda rule: not set(kinds).isdisjoint(rule.needs))


_WITHOUT: Final[Mapping[str, _Need]] = {
    kind: _Need(why, _needing(kind), questions) for kind, (why, questions) in UNKNOWN_WITHOUT.items()
}
#: What state-change.log leaves out at INFO; at a higher level it leaves out what matters altogether.
_STATE_CHANGES_AT_INFO: Final = _Need(
    "transitions of replicas, partitions that go offline, requests and what the metadata cache holds are logged at"
    " TRACE only",
    _rules(lambda rule: rule.reads_trace),
    (11, 12, 13, 15),
)
_NO_LOGS: Final = _Need(
    "what was believed and done there, and what a controller there decided, is not known",
    _needing(*LOG_KINDS),
    tuple(sorted({question for kind in LOG_KINDS for question in _WITHOUT[kind].questions})),
)
_SILENT: Final = "what is not said then proves nothing"
_ORDER_UNKNOWN: Final = "what stands before a line need not have come before it: nothing is concluded from that order"
_TWO_TIMES: Final = "its lines of that time are of two times, and when they were by other clocks is not known"
#: What is concluded from the order of the lines of state-change.log, or from what it does not say.
_STATE_CHANGES_OUT_OF_ORDER: Final = _Need(
    f"{_ORDER_UNKNOWN} or from what the log does not say",
    _rules(lambda rule: rule.reads_line_order),
    (9, 11, 12, 13),
)


def limits(
    brokers: Collection[int],
    evidence: Sequence[AvailableEvidence],
    holes: Sequence[Hole],
    versions: Sequence[str] = (),
    roles: Sequence[NodeRole] = (),
) -> list[Limit]:
    """What cannot be said of a cluster with these brokers, in the order of :data:`CAUSES` and of time. What is so of
    several brokers, for one reason and at one time, is one limit. ``versions`` are Kafka's, as the files state them;
    ``roles`` are those known of a KRaft cluster's nodes, none where one had ZooKeeper."""
    there: dict[str, set[int]] = {}
    for one in evidence:
        there.setdefault(one.source_kind, set()).add(one.broker_id)
    for stands, kinds in _STANDS_FOR.items():
        there[stands] = {broker for kind in kinds for broker in there.get(kind, ())}
    found = [
        *_missing(sorted(brokers), there, versions, roles),
        *_of_no_known_broker(there),
        *_of_cluster(there),
        *_holes(evidence, holes),
        *_not_captured(there, holes),
        *_coarse_streams(evidence, holes),
    ]
    return _grouped(found)


def _missing(
    brokers: Sequence[int], there: Mapping[str, set[int]], versions: Sequence[str], roles: Sequence[NodeRole]
) -> Iterator[Limit]:
    unknown_then = frozenset(kind for kind in _OF_BROKERS if _has_no_rule(kind, versions))
    anonymous = {kind for kind in _OF_BROKERS if NO_BROKER in there.get(kind, ())}
    for broker in brokers:
        if broker < 0:
            continue
        never = unknown_then | _never_left(broker, roles)
        given = {kind for kind in _OF_BROKERS if broker in there.get(kind, ())}
        if given.isdisjoint(LOG_KINDS) and anonymous.isdisjoint(LOG_KINDS):
            yield _limit("no_logs", broker, "logs", _NO_LOGS)
        for kind in _OF_BROKERS:
            is_given = kind in given or kind in anonymous
            if not is_given and kind not in never and not (kind.value in LOG_KINDS and given.isdisjoint(LOG_KINDS)):
                yield _limit("missing", broker, kind, _WITHOUT[kind])


def _never_left(node_id: int, roles: Sequence[NodeRole]) -> frozenset[str]:
    """What a node with one role leaves nothing of: which it has must be known of each of both roles."""
    told = {each.role for each in roles}
    own = {each.role for each in roles if each.node_id == node_id}
    others = told - own if own and told == set(_OF_ROLE) else set()
    return frozenset(kind for role in others for kind in _OF_ROLE[role])


def _has_no_rule(kind: EvidenceKind, versions: Sequence[str]) -> bool:
    """Whether Kafka of each of the versions is older than every rule that is judged from the kind of evidence."""
    known = [version for version in map(KafkaVersion.parse, versions) if version is not None]
    begins = min(RULES[rule_id].since for rule_id in _WITHOUT[kind].rules)
    return bool(known) and all(version < begins for version in known)


def _of_no_known_broker(there: Mapping[str, set[int]]) -> Iterator[Limit]:
    for kind in _OF_BROKERS:
        if NO_BROKER in there.get(kind, ()):
            yield Limit("unknown_broker", (), kind, "it counts for no broker")


def _of_cluster(there: Mapping[str, set[int]]) -> Iterator[Limit]:
    if there.get(_IN_PLACE_OF_ZNODES):
        return
    kind = next((kind for kind in _OF_CLUSTER if not there.get(kind)), None)
    if kind is not None:
        yield _limit("missing", NO_BROKER, kind, _WITHOUT[kind])


def _limit(cause: str, broker: int, kind: str, need: _Need) -> Limit:
    return Limit(cause, (broker,) if broker >= 0 else (), kind, need.why, need.rules, need.questions)


def _need_of(cause: str, kind: str, level_floor: str | None) -> _Need:
    if cause == "silence":
        return _Need(_SILENT, (), ())
    if cause == "clock_set_back":
        return _Need(_TWO_TIMES, (), ())
    if cause == "out_of_order":
        return _STATE_CHANGES_OUT_OF_ORDER if kind == SourceKind.STATE_CHANGE_LOG else _Need(_ORDER_UNKNOWN, (), ())
    if cause == "too_coarse" and kind == SourceKind.STATE_CHANGE_LOG and level_floor in ("DEBUG", "INFO"):
        return _STATE_CHANGES_AT_INFO
    return _WITHOUT[kind]


def _holes(evidence: Sequence[AvailableEvidence], holes: Sequence[Hole]) -> Iterator[Limit]:
    spans = {(one.broker_id, one.source_kind): (one.from_ms, one.to_ms) for one in evidence}
    gaps = [hole for hole in holes if hole.cause == "gap"]
    for hole in holes:
        is_elsewhere = hole.cause == "not_captured" or (hole.cause == "silence" and _is_explained(hole, gaps))
        if hole.source_kind not in _WITHOUT or is_elsewhere:
            continue
        begin, end = spans.get((hole.broker_id, hole.source_kind), (None, None))
        is_whole = begin is not None and end is not None and hole.from_ms <= begin and end <= hole.to_ms
        need = _need_of(hole.cause, hole.source_kind, hole.level_floor)
        yield replace(
            _limit(hole.cause, hole.broker_id, hole.source_kind, need),
            level_floor=hole.level_floor,
            reason=hole.reason,
            from_ms=None if is_whole else hole.from_ms,
            to_ms=None if is_whole else hole.to_ms,
        )


def _not_captured(there: Mapping[str, set[int]], holes: Sequence[Hole]) -> Iterator[Limit]:
    """Outages of captures; what snapshots of znodes would tell, ZooKeeper's transaction logs tell better."""
    for hole in holes:
        kind = _CAPTURED.get(hole.source_kind, hole.source_kind)
        if (
            hole.cause == "not_captured"
            and kind in _WITHOUT
            and not (kind == EvidenceKind.ZNODES and there.get(EvidenceKind.ZNODE_TRANSACTION_LOG))
        ):
            made = _limit(hole.cause, hole.broker_id, kind, _WITHOUT[kind])
            yield replace(made, from_ms=hole.from_ms, to_ms=hole.to_ms)


def _is_explained(silence: Hole, gaps: Sequence[Hole]) -> bool:
    """Whether a gap of the same log says more of the same hours."""
    return any(
        (gap.broker_id, gap.source_kind) == (silence.broker_id, silence.source_kind)
        and gap.from_ms < silence.to_ms
        and silence.from_ms < gap.to_ms
        for gap in gaps
    )


def _coarse_streams(evidence: Sequence[AvailableEvidence], holes: Sequence[Hole]) -> Iterator[Limit]:
    """Logs that came with others in one stream, whose own level no file shows."""
    by_file = {(hole.broker_id, hole.source_kind) for hole in holes if hole.cause == "too_coarse"}
    for one in evidence:
        if (one.broker_id, one.source_kind) not in by_file and hides(one.source_kind, one.level_floor):
            need = _need_of("too_coarse", one.source_kind, one.level_floor)
            made = _limit("too_coarse", one.broker_id, one.source_kind, need)
            yield replace(made, level_floor=one.level_floor)


def _grouped(found: Sequence[Limit]) -> list[Limit]:
    same: dict[Limit, set[int]] = {}
    for limit in found:
        same.setdefault(replace(limit, brokers=()), set()).update(limit.brokers)
    made = [replace(limit, brokers=tuple(sorted(brokers))) for limit, brokers in same.items()]
    kinds = ("logs", *_OF_BROKERS, *_OF_CLUSTER)
    return sorted(
        made,
        key=lambda one: (
            CAUSES.index(one.cause),
            kinds.index(one.source_kind),
            one.from_ms or 0.0,
            one.to_ms or 0.0,
            one.brokers,
            one.level_floor or "",
        ),
    )
