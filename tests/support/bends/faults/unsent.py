"""Requests that a controller does not send."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from tests.support.bends.editing import partition_of
from tests.support.bends.faults.drafts import ERROR, WARNING, Draft, Fault, Faults, Site, number
from tests.support.bends.faults.exchanges import SOON_US, handled_by, lives_on, receipts_of, request_fault
from tests.support.evidence.lines import Line, Partition, ids

#: What a controller does next, when a batch has been sent.
_BEHIND = ("partition_state_change", "replica_state_change")
_NOT_TOLD = "UpdateMetadata not sent to a live broker"


@dataclass(frozen=True)
class _Sent:
    """The requests about a partition that tell one broker the same within a few ms, and what it received of them."""

    partition: Partition
    lines: Sequence[Line]
    until: int

    @property
    def first(self) -> Line:
        return self.lines[0]

    def receipts(self, site: Site, event_type: str) -> list[Line]:
        """Of these requests, and not of such as tell the same later: by their ids where both sides print them (0.8)."""
        found = receipts_of(site, self.first, event_type)
        if not any(r.at < self.until for r in found):
            return []
        numbers = {line.fields.get("correlation_id") for line in self.lines} - {None}
        return [r for r in found if r.at < self.until or r.fields["correlation_id"] in numbers]


def _sent_together(site: Site, event_type: str) -> Iterator[_Sent]:
    found: dict[tuple[object, ...], list[list[Line]]] = {}
    for line in sorted(site.events(event_type), key=lambda line: (line.file, line.number)):
        to, partition = line.fields.get("to_broker_id"), partition_of(line)
        if to is not None and partition is not None:
            state = (line.file, partition, to, line.fields.get("leader_epoch"), line.fields.get("isr"))
            batches = found.setdefault(state, [])
            if batches and line.at - batches[-1][-1].at < 200_000:
                batches[-1].append(line)
            else:
                batches.append([line])
    for batches in found.values():
        for batch, following in zip_longest(batches, batches[1:]):
            partition = partition_of(batch[0])
            assert partition is not None
            yield _Sent(partition, batch, following[0].at if following else batch[-1].at + SOON_US)


def _is_followed(site: Site, partition: Partition, line: Line, *event_types: str) -> bool:
    """Whether requests of a later kind about the partition stand behind a request of the batch."""
    return any(
        other.file == line.file and other.number > line.number and other.at - line.at < 300_000
        for other in site.about(partition, *event_types)
    )


def leader_and_isr_not_sent(site: Site) -> Iterator[Fault]:
    """To one live replica; the leader and the others are sent it."""
    decided = [*site.events("partition_state_change", "reassignment_leader_and_isr_sent")]
    for sent in _sent_together(site, "leader_and_isr_sent"):
        partition, line, lines = sent.partition, sent.first, sent.lines
        to = number(line, "to_broker_id")
        decisions = [
            d
            for d in decided
            if partition_of(d) == partition
            and d.file == line.file
            and 0 <= line.at - d.at < 300_000
            and d.fields.get("to_state", "OnlinePartition") == "OnlinePartition"
            and d.fields.get("leader_epoch", line.fields.get("leader_epoch")) == line.fields.get("leader_epoch")
        ]
        others = [
            o
            for o in site.about(partition, "leader_and_isr_sent")
            if o.file == line.file and abs(o.at - line.at) < 300_000 and number(o, "to_broker_id") != to
        ]
        receipts = sent.receipts(site, "leader_and_isr_received")
        if to is None or not decisions or not others or not receipts or not lives_on(site, to, line.at):
            continue
        draft = Draft(site)
        draft.drop(lines)
        for receipt in receipts:
            draft.drop(handled_by(site, receipt))
        fault = request_fault("LeaderAndIsr not sent to a replica", "R15", partition, draft, f"{line.id} to {to}", to)
        # The log of the controller's own broker may have lost both lines at once, with none between to tell.
        is_elected = any(d.event_type == "partition_state_change" for d in decisions)
        is_told_apart = is_elected and _is_followed(site, partition, line, "update_metadata_sent", "stop_replica_sent")
        # Nor has a broker's log that begins later lost less than its head.
        decided_at = min(d.at for d in decisions)
        has_begun = any(other.file == receipts[0].file and other.at <= decided_at for other in site.lines)
        severity = ERROR if has_begun and to != line.broker_id else WARNING
        yield replace(fault, severity=severity, unprovable="" if is_told_apart else _tenure_ended(site, line))


def _tenure_ended(site: Site, line: Line) -> str:
    """Why a controller's silence proves nothing: it may have gone in the middle of the batch. It did not where it went
    on to another transition, or (since 2.6) counts the batch's UpdateMetadata."""
    tenure = (line.fields.get("controller_id"), line.fields.get("controller_epoch"))
    goes_on = any(
        (other.at > line.at + 1_000_000 or other.event_type in _BEHIND or _is_metadata_batch(other))
        and (other.fields.get("controller_id"), other.fields.get("controller_epoch")) == tenure
        for other in site.lines
        if other.file == line.file and other.number > line.number and "broker_id" not in other.fields
    )
    return "" if goes_on else "the controller went within a second, and later requests of the batch are not logged"


def _is_metadata_batch(line: Line) -> bool:
    return line.event_type == "request_batch_sent" and line.fields.get("api") == "UPDATE_METADATA"


def stop_replica_not_sent(site: Site) -> Iterator[Fault]:
    """Without deletion, to a live replica that is taken offline: the deletion of its topic, a reassignment."""
    yield from _stop_not_sent(site, "false", "StopReplica not sent to a replica", "R15")


def deletion_not_sent(site: Site) -> Iterator[Fault]:
    yield from _stop_not_sent(site, "true", "StopReplica with deletion not sent", "R15 R16")


def _stop_not_sent(site: Site, delete: str, kind: str, rules: str) -> Iterator[Fault]:
    for line in site.events("stop_replica_sent"):
        to, partition = number(line, "to_broker_id"), partition_of(line)
        if line.fields.get("delete") != delete or to is None or partition is None or not lives_on(site, to, line.at):
            continue
        gone = [
            other
            for other in site.about(partition, "stop_replica_received", "stop_replica_handled", "stop_replica_ignored")
            if other.broker_id == to
            and 0 <= other.at - line.at < SOON_US
            and other.fields.get("delete", delete) == delete
        ]
        answers = [
            other
            for other in site.about(partition, "topic_deletion_response", "topic_deletion_replicas_deleted")
            if delete == "true" and 0 <= other.at - line.at < SOON_US and _is_of(other, to)
        ]
        if gone:
            draft = Draft(site)
            draft.drop((line, *gone, *answers))
            fault = request_fault(kind, rules, partition, draft, f"{line.id} to {to}", to)
            yield replace(fault, severity=_severity_not_stopped(site, partition, line))


def _severity_not_stopped(site: Site, partition: Partition, line: Line) -> str:
    """Since 2.6 both lines are of one kind of log: a warning where one stretch of one log may have held both, or where
    nothing else of the batch was sent."""
    beside = [
        other
        for other in site.about(partition, "stop_replica_sent", "leader_and_isr_sent")
        if other is not line and other.file == line.file and abs(other.at - line.at) < 100_000
        if other.number > line.number or other.event_type == line.event_type
    ]
    is_one_log = number(line, "to_broker_id") == line.broker_id
    return WARNING if site.minor >= (2, 6) and (is_one_log or not beside) else ERROR


def _is_of(answer: Line, broker: int) -> bool:
    """Whether a line of the deletion's progress tells of a broker's replica, or of none."""
    named = (*ids(answer.fields.get("replica_ids", "")), *ids(answer.fields.get("to_broker_id", "")))
    return not named or broker in named


def update_metadata_not_sent(site: Site) -> Iterator[Fault]:
    """Of one batch, to one live broker; the others cache the new state."""
    if site.minor >= (1, 0):
        yield from _update_metadata_left_out(site) if site.minor < (2, 6) else _update_metadata_not_cached(site)
        return
    for sent in _sent_together(site, "update_metadata_sent"):
        partition, line, lines = sent.partition, sent.first, sent.lines
        to = number(line, "to_broker_id")
        receipts = sent.receipts(site, "metadata_cached")
        is_change = any(abs(d.at - line.at) < 300_000 for d in site.about(partition, "partition_state_change"))
        others = {
            number(o, "to_broker_id")
            for o in site.about(partition, "update_metadata_sent")
            if o.file == line.file and abs(o.at - line.at) < 300_000
        } - {to}
        if to is not None and is_change and others and receipts and lives_on(site, to, line.at):
            draft = Draft(site)
            draft.drop((*lines, *receipts))
            fault = request_fault(_NOT_TOLD, "R15", partition, draft, f"{line.id} to {to}", to)
            # The log of the controller's own broker may have lost both lines at once, with none between to tell.
            severity = WARNING if to == line.broker_id else ERROR
            yield replace(fault, severity=severity, unprovable=_tenure_ended(site, line))


def _update_metadata_left_out(site: Site) -> Iterator[Fault]:
    """From 1.0 to 2.5 one line names all brokers to which a partition's state goes."""
    for cached in site.events("metadata_cached"):
        to, partition = cached.broker_id, partition_of(cached)
        sent = [
            line
            for line in site.events("update_metadata_sent")
            if to in ids(line.fields.get("to_broker_ids", ""))
            and 0 <= cached.at - line.at < 300_000
            and ("partition_id" not in line.fields or partition_of(line) == partition)
            and line.fields.get("controller_epoch") == cached.fields.get("controller_epoch")
            # another of the batch may tell what was decided after it
            and ("partition_id" not in line.fields or _tells_of(line, cached))
        ]
        is_change = any(abs(d.at - cached.at) < 300_000 for d in site.about(partition, "partition_state_change"))
        if not sent or not is_change or partition is None or not lives_on(site, to, cached.at):
            continue
        line = sent[-1]
        others = set(ids(line.fields["to_broker_ids"])) - {to}
        same = [
            other
            for other in site.events("metadata_cached")
            if other.file == cached.file
            and other.fields.get("correlation_id") == cached.fields.get("correlation_id")
            and other.fields.get("controller_id") == cached.fields.get("controller_id")
            and abs(other.at - cached.at) < SOON_US
            and ("partition_id" not in line.fields or partition_of(other) == partition)
        ]
        if others and same[0] is cached:
            draft = Draft(site)
            draft.drop(same)
            draft.put(line, _without_broker(site.raw(line), to))
            yield request_fault(
                "UpdateMetadata not sent to a live broker", "R15", partition, draft, f"{line.id} to {to}", to
            )


def _tells_of(sent: Line, cached: Line) -> bool:
    return all(sent.fields.get(name) == cached.fields.get(name) for name in ("leader", "leader_epoch", "isr"))


def _update_metadata_not_cached(site: Site) -> Iterator[Fault]:
    """Since 2.6 only the broker's own lines tell which partitions an UpdateMetadata named: its count is one less, or
    the request was not sent at all where it named no other."""
    for cached in site.events("metadata_cached"):
        partition = partition_of(cached)
        changes = site.about(partition, "partition_state_change")
        is_change = any(0 <= cached.at - change.at < 300_000 for change in changes)
        others = [
            other
            for other in site.about(partition, "metadata_cached")
            if other.broker_id != cached.broker_id and abs(other.at - cached.at) < SOON_US
        ]
        if is_change and others and lives_on(site, cached.broker_id, cached.at):
            draft = Draft(site)
            draft.put(cached)
            reason = _counted_one_less(site, cached, draft)
            fault = request_fault(_NOT_TOLD, "R15", partition, draft, cached.id, cached.broker_id)
            yield replace(fault, unprovable=reason)


def _counted_one_less(site: Site, cached: Line, draft: Draft) -> str:
    """Make the counts fit an UpdateMetadata that lacks a partition. Why that proves nothing; empty where it does."""
    number = int(cached.fields["correlation_id"])
    (count,) = [
        line
        for line in site.events("metadata_batch")
        if line.file == cached.file and _is_numbered(line, cached, number) and abs(line.at - cached.at) < SOON_US
    ]
    own = [
        line
        for line in site.about(partition_of(cached), "leader_and_isr_received")
        if line.file == cached.file and _is_numbered(line, cached, number - 1) and abs(line.at - cached.at) < SOON_US
    ]
    added, deleted = int(count.fields["n_added"]), int(count.fields["n_deleted"])
    follows = added + deleted > 1
    if follows:
        draft.put(count, site.raw(count).replace(f"Add {added} partitions", f"Add {added - 1} partitions"))
    else:
        draft.put(count)
        follows = _leave_out(site, cached, number, draft)
    if not own:
        return (
            "the batch sent the broker no LeaderAndIsr of the partition, whose next request its UpdateMetadata would be"
        )
    return "" if follows else "nothing tells of the connection's next request"


def _is_numbered(line: Line, like: Line, number: int) -> bool:
    names = ("controller_id", "controller_epoch")
    is_one = all(line.fields.get(name, like.fields[name]) == like.fields[name] for name in names)
    return is_one and line.fields.get("correlation_id") == str(number)


def _leave_out(site: Site, cached: Line, number: int, draft: Draft) -> bool:
    """Take a request out of what both its ends logged: the controller does not name the broker, and the requests after
    it on that connection have one number less. Whether the next of them has a line."""
    controller, broker = cached.fields["controller_id"], str(cached.broker_id)
    sent = [
        line
        for line in site.events("request_batch_sent")
        if _is_metadata_batch(line)
        and line.fields.get("controller_id") == controller
        and broker in line.fields.get("to_broker_ids", "").split(",")
        and 0 <= cached.at - line.at < 300_000
    ]
    if sent:
        draft.put(sent[-1], _without_broker(site.raw(sent[-1]), cached.broker_id))
    ends = (
        [  # in the log of the controller's own broker stand the answers of all brokers, too
            line
            for line in site.lines
            if line.file == cached.file and line.number > cached.number and line.event_type != "response_received"
        ],
        [
            line
            for line in site.events("response_received")
            if line.fields.get("controller_id") == controller
            and line.fields.get("to_broker_id") == broker
            and line.at >= cached.at
        ],
    )
    is_next_told = False
    for lines in ends:
        last = number
        for line in lines:
            now = line.fields.get("correlation_id")
            if now is None or line.fields.get("controller_id") != controller:
                continue
            if int(now) < last:
                break  # a new connection
            last = int(now)
            is_next_told = is_next_told or (lines is ends[0] and last == number + 1)
            if last > number:
                text = re.sub(rf"(correlation ?[iI]d ){now}\b", rf"\g<1>{last - 1}", site.raw(line))
                draft.put(line, text)
            elif lines is ends[1]:
                draft.put(line)
    return is_next_told


def _without_broker(text: str, broker: int) -> str:
    def left(found: re.Match[str]) -> str:
        kept = [one for one in found[2].split(", ") if one != str(broker)]
        return f"{found[1]}{', '.join(kept)})"

    return re.sub(r"(to brokers \w*\()([\d, ]*)\)", left, text)


UNSENT: tuple[Faults, ...] = (
    leader_and_isr_not_sent,
    stop_replica_not_sent,
    deletion_not_sent,
    update_metadata_not_sent,
)
