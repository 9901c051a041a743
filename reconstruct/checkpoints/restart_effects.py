"""What a restart with a damaged checkpoint did, as lines and later copies show it, or would do, by version.

A replica begins with the high watermark of ``replication-offset-checkpoint``, at most its log end offset: 0 where it
has no entry (``Partition.getOrCreateReplica`` up to 2.3); since 2.4 the log keeps it at or above its log start offset
(``Partition.createLog``, KAFKA-8457). Up to 0.10 a follower then cuts its log to that
(``ReplicaManager.makeFollowers``); since 0.11 it asks its leader where its last epoch ended (KIP-101), and the high
watermark cuts nothing unless the leader does not know that epoch. A file that cannot be read takes its log directory
offline since 1.0 (KIP-112); up to 0.11 every request to lead or to follow fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.checkpoints.evidence import (
    CLEANER,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    BrokerLine,
    LineKind,
    Replica,
)
from reconstruct.checkpoints.view import BrokerView
from reconstruct.model.versions import (
    DUPLICATES_PASS_SINCE,
    HIGH_WATERMARK_KEPT_IN_LOG_SINCE,
    NEWEST,
    OFFLINE_LOG_DIRS_SINCE,
    OFFSET_CHECKPOINT_SINCE,
    OLDEST,
    RECOVERY_POINTS_RESET_SINCE,
    TRUNCATION_BY_LEADER_EPOCH_SINCE,
    KafkaVersion,
    VersionRange,
)
from reconstruct.time.instants import utc

FILE_NAMES: Final[Mapping[str, str]] = {
    kind: kind.replace("_", "-") for kind in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANER)
}
#: Partitions that a sentence names; of more it says how many.
NAMED_AT_MOST: Final = 4
_EPOCHS: Final = TRUNCATION_BY_LEADER_EPOCH_SINCE

#: Texts in the order of versions: each holds from its version on, up to the next one's.
_ByVersion = Sequence[tuple[KafkaVersion, str]]
_NOTHING_LEADS: Final = (
    "no replica in the directory becomes leader or follower: each LeaderAndIsr request that names one fails"
)
_OFFLINE: Final = "the log directory goes offline with all its replicas, and a broker without another directory stops"

_UNREADABLE: Final[Mapping[str, _ByVersion]] = {
    HIGH_WATERMARKS: (
        (OLDEST, f"{_NOTHING_LEADS}, or the broker stops where the version is unknown"),
        (OFFSET_CHECKPOINT_SINCE, _NOTHING_LEADS),
        (OFFLINE_LOG_DIRS_SINCE, _OFFLINE),
    ),
    RECOVERY_POINTS: (
        (OLDEST, "the broker does not start"),
        (RECOVERY_POINTS_RESET_SINCE, "every log is recovered from its first segment on"),
        (OFFLINE_LOG_DIRS_SINCE, _OFFLINE),
    ),
    LOG_STARTS: (
        (OLDEST, "logs begin at their first segment: deleted records are seen again"),
        (OFFLINE_LOG_DIRS_SINCE, _OFFLINE),
    ),
    CLEANER: ((OLDEST, "the log cleaner stops"), (OFFLINE_LOG_DIRS_SINCE, _OFFLINE)),
}
_CUTS: Final[_ByVersion] = (
    (
        OLDEST,
        "as a follower it cuts its log down to that and fetches again what it cut; if its leader fails first, those"
        " records are gone with it (KIP-101)",
    ),
    (
        _EPOCHS,
        "no record is cut where leader epochs are known (KIP-101); as a leader it shows consumers nothing above that"
        " until the ISR has fetched",
    ),
)
_WITHOUT: Final[Mapping[str, str]] = {
    RECOVERY_POINTS: "after an unclean stop its whole log is read to recover it: slow, nothing is lost",
    LOG_STARTS: "its log begins at its first segment: deleted records are seen again",
    CLEANER: "the log cleaner begins again at the log's start",
}


def restart_with_unreadable(kind: str, version: VersionRange) -> str:
    """What a restart does with a file that it cannot read."""
    return _by_version(_UNREADABLE[kind], version)


def restart_with_duplicate(kind: str, version: VersionRange) -> str:
    """What a restart does with a file that has an entry twice."""
    refused = [
        (since, f"refuses the file: {text}") for since, text in _UNREADABLE[kind] if since < DUPLICATES_PASS_SINCE
    ]
    return _by_version([*refused, (DUPLICATES_PASS_SINCE, "takes the later entry, silently")], version)


def restart_with(kind: str, offset: int | None, version: VersionRange) -> str:
    """What a restart does with a replica whose entry is ``offset``; None: it has none."""
    if kind != HIGH_WATERMARKS:
        return _WITHOUT[kind]
    begins = str(offset or 0)
    if not offset:
        begins = _by_version(((OLDEST, "0"), (HIGH_WATERMARK_KEPT_IN_LOG_SINCE, "its log start offset")), version)
    return f"it begins with high watermark {begins}; {_by_version(_CUTS, version)}"


def _by_version(texts: _ByVersion, version: VersionRange) -> str:
    """The text of the version; where it is not known, of each that it may be, with its range."""
    untils = [*(since for since, _ in texts[1:]), None]
    matching = [
        (since, until, text)
        for (since, text), until in zip(texts, untils, strict=True)
        if version.may_be_since(since) and (until is None or version.may_be_before(until))
    ]
    if len({text for _, _, text in matching}) == 1:
        return matching[0][2]
    return "; ".join(f"{_range(since, until)}: {text}" for since, until, text in matching)


def _range(since: KafkaVersion, until: KafkaVersion | None) -> str:
    if until is None or until > NEWEST:
        return f"since {since}"
    return f"before {until}" if since == OLDEST else f"from {since} and before {until}"


@dataclass(frozen=True, slots=True)
class RestartEffects:
    """What one start did to replicas, in a sentence or two; empty where no line and no copy tells of it."""

    text: str
    evidence: tuple[str, ...] = ()


def describe_restart(view: BrokerView, start: int, before: Mapping[Replica, int]) -> RestartEffects:
    """What the start at ``start`` did to the replicas ``before``, whose checkpointed high watermark is given."""
    end = view.next_start(start)
    sentences: list[str] = []
    evidence: list[str] = list(view.start_evidence(start))
    without = {line.replica: line for line in view.lines_in(start, end, LineKind.NO_ENTRY) if line.replica in before}
    loaded = {line.replica: line for line in view.lines_in(start, end, LineKind.LOADED) if line.replica in before}
    if without:
        ends = {replica: loaded[replica].offset for replica in without if replica in loaded}
        sentences.append(
            f"the broker started ({utc(start)}) and found no high watermark for {named(without)}: each began at"
            f" {_initial(view, start, end, without)}" + (f", with a log up to {_values(ends)}" if ends else "")
        )
        evidence += [line.evidence_id for line in without.values()][:NAMED_AT_MOST]
        evidence += [loaded[replica].evidence_id for replica in list(ends)[:NAMED_AT_MOST]]
    cuts = [
        line
        for line in view.lines_in(start, end, LineKind.TRUNCATED)
        if line.replica in before and line.offset is not None and _is_cut(line.offset, loaded.get(line.replica))
    ]
    if cuts:
        sentences.append("cut were " + ", ".join(f"{_name(c.replica)} to {c.offset}" for c in cuts[:NAMED_AT_MOST]))
        evidence += [line.evidence_id for line in cuts[:NAMED_AT_MOST]]
    elif loaded and not view.version.may_be_before(_EPOCHS):
        sentences.append("no log was cut, as far as the lines say")
    fell = _fell(view, start, end, before)
    if fell is not None:
        sentences.append(fell[0])
        evidence += fell[1]
    return RestartEffects("; ".join(sentences), tuple(dict.fromkeys(evidence)))


def _initial(view: BrokerView, start: int, end: int | None, replicas: Iterable[Replica | None]) -> str:
    """Since 2.4 a line says the initial high watermark; before, one without entry begins at 0."""
    if view.version.is_since(HIGH_WATERMARK_KEPT_IN_LOG_SINCE):
        lines, wanted = view.lines_in(start, end, LineKind.INITIAL), set(replicas)
        found = {line.replica: line.offset for line in lines if line.replica in wanted}
        if found:
            return _values(found)
    return "high watermark 0"


def _is_cut(offset: int, loaded: BrokerLine | None) -> bool:
    return loaded is None or loaded.offset is None or offset < loaded.offset


def _fell(view: BrokerView, start: int, end: int | None, before: Mapping[Replica, int]) -> tuple[str, list[str]] | None:
    """By later copies: to what each high watermark fell, and by when it was back."""
    texts: list[str] = []
    evidence: list[str] = []
    for replica, value in sorted(before.items()):
        every = [view.series.get((directory, HIGH_WATERMARKS, replica), []) for directory in view.directories]
        after = sorted(
            (e for series in every for e in series if e.taken_at > start and (end is None or e.taken_at <= end)),
            key=lambda e: e.taken_at,
        )
        lower = next((entry for entry in after if entry.offset < value), None)
        if lower is None:
            continue
        back = next((e for e in after if e.taken_at > lower.taken_at and e.offset >= value), None)
        until = f"until {back.offset} was copied at {utc(back.taken_at)}" if back else "and was not seen back"
        texts.append(f"{_name(replica)} fell from {value} to {lower.offset} ({utc(lower.taken_at)}) {until}")
        evidence += [entry.evidence_id for entry in (lower, back) if entry is not None]
        if len(texts) == NAMED_AT_MOST:
            break
    return ("by the copies its high watermark: " + ", ".join(texts), evidence) if texts else None


def _name(replica: Replica | None) -> str:
    return "?" if replica is None else f"{replica[0]}-{replica[2]}"


def named(replicas: Iterable[Replica | None], values: Mapping[Replica, object] | None = None) -> str:
    """``orders-0 (61), orders-1 (62) and 3 more``."""
    every = sorted({replica for replica in replicas if replica is not None})
    listed = [
        _name(replica) + (f" ({values[replica]})" if values is not None and replica in values else "")
        for replica in every[:NAMED_AT_MOST]
    ]
    more = len(every) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")


def _values(offsets: Mapping[Replica, int | None] | Mapping[Replica | None, int | None]) -> str:
    values = sorted({value for value in offsets.values() if value is not None})
    if not values:
        return "an unknown offset"
    return str(values[0]) if values[0] == values[-1] else f"{values[0]} to {values[-1]}"
