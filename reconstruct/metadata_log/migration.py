"""What a migration from ZooKeeper made of one topic: what its znodes hold against what the records made (KIP-866).

From its take-over on a quorum's controller writes to both. Each time that it has written to ZooKeeper what its records
made it says in ``/migration`` up to which offset the znodes are. What it writes next names that offset still, so that a
znode may be up to the next one that is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from ingest.lake.tables.events import METADATA_CHANGES
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.metadata_log.evidence import ClusterLog
from reconstruct.model.metadata_log.values import Kind

#: What a subject is where it is not: no znode, no record.
_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class UpTo:
    """The znodes were up to ``offset`` by the transaction ``zxid``; ``next_offset`` is the next one that is named.

    ``is_first``: no write that named it before is hidden, so that none of the znodes was further. ``is_log_whole``: the
    metadata log that was given tells all that the znodes may have held then.
    """

    zxid: int
    offset: int
    next_offset: int | None
    at: int
    evidence_id: str
    is_first: bool = True
    is_log_whole: bool = True

    def by(self, log: ClusterLog | None) -> UpTo:
        """The same with what is known of the log."""
        last = self.offset if self.is_first else self.next_offset
        return replace(self, is_log_whole=log is not None and last is not None and log.is_whole_before(last + 1))


@dataclass(frozen=True, slots=True)
class Migration:
    """When a quorum's controller took over from one of ZooKeeper's, and the first and the last of what it said that the
    znodes were up to: the last that the metadata log reaches, if it reaches any."""

    taken_over_zxid: int
    first: UpTo
    last: UpTo

    def by(self, log: ClusterLog | None) -> Migration:
        """The same with what is known of the metadata log."""
        return replace(self, first=self.first.by(log), last=self.last.by(log))


@dataclass(frozen=True, slots=True)
class Written:
    """What one subject of a topic became: by a write to a znode (``place`` is its zxid) or by a record (its offset).

    ``value`` is JSON, None where it was taken away. ``is_known``: no write that nothing shows came before it.
    """

    is_znode: bool
    kind: str
    partition_id: int | None
    place: int
    value: str | None
    at: int
    evidence_id: str
    is_known: bool = True


_Subject = tuple[str, int | None]
#: The replicas of one partition: of the topic's znode, and of the partition's records.
_ASSIGNMENT: Final = "assignment"
#: Of a topic that was to be deleted, which since 3.6 is not taken over, and goes from ZooKeeper soon after.
DELETION: Final = "deletion"


def judge_migration(topic: str, rows: Iterable[Written], migration: Migration, verdicts: Verdicts) -> None:
    """R60, of all that is known of one topic's name. Where no znode of it is known, those of topics may not have been
    given; where no record is, it was lost if the log is whole."""
    known = list(rows)
    numbers = sorted({row.partition_id for row in known if row.kind == Kind.PARTITION and row.partition_id is not None})
    parts = [part for row in known for part in _parts(row, numbers)]
    znodes, records = _by_subject(parts, is_znode=True), _by_subject(parts, is_znode=False)
    deletions = znodes.pop((DELETION, None), [])
    for up_to in dict.fromkeys((migration.first, migration.last)):
        is_given = znodes and (records or up_to.is_log_whole)
        if not is_given or _is_to_be_deleted(deletions, up_to):
            verdicts.unjudged("R60")
            continue
        for subject in sorted({*znodes, *records}, key=str):
            _judge_subject(topic, subject, znodes, records, up_to, verdicts)


def _is_to_be_deleted(deletions: Sequence[Written], up_to: UpTo) -> bool:
    """Whether it was, or may have been, when the znodes were up to the offset."""
    before = _last([row for row in deletions if row.place <= up_to.zxid])
    after = next((row for row in deletions if row.place > up_to.zxid), None)
    return (before is not None and before.value is not None) or (after is not None and after.value is None)


def _parts(row: Written, numbers: Sequence[int]) -> Iterator[Written]:
    """The row, and of what tells of replicas besides a row for each partition that is known of."""
    yield row
    if row.kind == Kind.PARTITION and not row.is_znode:
        yield replace(row, kind=_ASSIGNMENT)
    elif row.kind == Kind.TOPIC and row.is_znode:
        of = json.loads(row.value) if row.value else {}
        moving = [of.get(name) or {} for name in ("adding_replicas", "removing_replicas")]
        assigned = of.get("partitions") or {}
        for number in sorted({*map(str, numbers), *assigned}):
            adding, removing = (by_partition.get(number, []) for by_partition in moving)
            replicas = {"replicas": assigned.get(number), "adding": adding, "removing": removing}
            value = json.dumps(replicas) if number in assigned else None
            yield replace(row, kind=_ASSIGNMENT, partition_id=int(number), value=value)


def _by_subject(rows: Iterable[Written], *, is_znode: bool) -> dict[_Subject, list[Written]]:
    found: dict[_Subject, list[Written]] = {}
    for row in sorted(rows, key=lambda row: (row.place, row.evidence_id)):
        if row.is_znode is is_znode:
            found.setdefault((row.kind, row.partition_id), []).append(row)
    return found


def _judge_subject(
    topic: str,
    subject: _Subject,
    znodes: Mapping[_Subject, Sequence[Written]],
    records: Mapping[_Subject, Sequence[Written]],
    up_to: UpTo,
    verdicts: Verdicts,
) -> None:
    written = _shown_by(znodes.get(subject, ()), up_to)
    following = next((row for row in znodes.get(subject, ()) if row.place > up_to.zxid), None)
    if following is not None and not following.is_known:
        verdicts.unjudged("R60")
        return
    shown = _of_znode(subject[0], written)
    allowed = list(_between(records.get(subject, ()), up_to))
    if any(_values(row) == shown or (not shown and _is_assumed(row)) for row in allowed):
        verdicts.kept("R60")
        return
    of_topic = (str(Kind.TOPIC), None)
    has_topic = _of_znode(Kind.TOPIC, _shown_by(znodes.get(of_topic, ()), up_to))
    is_of_topic = has_topic or any(map(_values, _between(records.get(of_topic, ()), up_to)))  # else it was left behind
    # what is first known of a znode later on, its deletion or another one of the name, hides whether it was there
    is_hidden = written is None and following is not None
    if not up_to.is_log_whole or not is_of_topic or is_hidden:
        verdicts.unjudged("R60")
        return
    record = allowed[0]
    what = topic if subject[1] is None else f"{topic}-{subject[1]}"
    differing = sorted(name for name in {*shown, *_values(record)} if shown.get(name) != _values(record).get(name))
    theirs, ours = (
        "nothing" if not values else ", ".join(f"{name} {json.dumps(values.get(name))}" for name in differing)
        for values in (shown, _values(record))
    )
    evidence = tuple(row.evidence_id for row in (written, record) if row is not None and row.evidence_id)
    verdicts.broken(
        Divergence(DivergenceType.MIGRATED_STATE_DIFFERS, "error", up_to.at).explained(
            f"the znodes of {subject[0]} {what} to hold what the records up to offset {up_to.offset} made",
            f"{theirs} in ZooKeeper, {ours} by the records",
            f"When the znodes were said to be up to offset {up_to.offset} of the metadata log, ZooKeeper had for the"
            f" {subject[0]} of {what} {theirs}, and the records {ours}.",
            (*evidence, up_to.evidence_id),
        )
    )


def _last(rows: Sequence[Written]) -> Written | None:
    return rows[-1] if rows else None


def _shown_by(znodes: Sequence[Written], up_to: UpTo) -> Written | None:
    return _last([row for row in znodes if row.place <= up_to.zxid])


def _is_assumed(record: Written) -> bool:
    """Whether this is what a controller takes for the state of a partition that has no znode of it
    (``ZkTopicMigrationClient``)."""
    state = json.loads(record.value) if record.value and record.kind == Kind.PARTITION else {}
    replicas = state.get("replicas") or [None]
    return bool(state) and (state["leader"], state["leader_epoch"], state["isr"]) == (replicas[0], 0, replicas)


def _between(records: Sequence[Written], up_to: UpTo) -> Iterator[Written]:
    """What the records made of the subject at the offset, and at each until the next one that is named."""
    end = inf if up_to.next_offset is None else up_to.next_offset
    before = _last([row for row in records if row.place <= up_to.offset])
    yield before or Written(False, "", None, -1, None, up_to.at, "")
    yield from (row for row in records if up_to.offset < row.place <= end)


def _values(row: Written) -> Mapping[str, Any]:
    """What a record made, by the names that znodes use."""
    state = json.loads(row.value) if row.value else {}
    if not state:
        return _NOTHING
    if row.kind == Kind.TOPIC:
        return {"topic_id": state["topic_id"]}
    if row.kind == Kind.CONFIG:
        return dict(state["settings"])
    if row.kind == _ASSIGNMENT:
        return {
            "replicas": state["replicas"],
            "adding": state["adding_replicas"],
            "removing": state["removing_replicas"],
        }
    return {"leader": state["leader"], "leader_epoch": state["leader_epoch"], "isr": state["isr"]}


def _of_znode(kind: str, row: Written | None) -> Mapping[str, Any]:
    data = json.loads(row.value) if row is not None and row.value else {}
    if not isinstance(data, dict) or not data:
        return _NOTHING
    if kind == Kind.TOPIC:
        return {"topic_id": data.get("topic_id")}
    if kind == Kind.CONFIG:
        return {name: str(value) for name, value in (data.get("config") or {}).items()}
    if kind == _ASSIGNMENT:
        return {name: data.get(name, []) for name in ("replicas", "adding", "removing")}
    return {name: data.get(name) for name in ("leader", "leader_epoch", "isr")}


#: Judged where znodes and records of one topic meet.
RULES: Final = (
    Rule(
        "R60",
        "what a migrating controller took from ZooKeeper, and wrote to it, is what its records made",
        "org.apache.kafka.metadata.migration.KRaftMigrationDriver, KRaftMigrationZkWriter 3.4 to 3.9; KIP-866",
        METADATA_CHANGES.full_name,
        # znodes, too: but a cluster without them has none to migrate, mostly
        needs=(EvidenceKind.METADATA_LOG,),
        judges=(judge_migration,),
    ),
)
