"""Faults of what a controller sends, and of what brokers do with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from tests.support.bends.editing import partition_of
from tests.support.bends.faults.drafts import ERROR, WARNING, Draft, Fault, Faults, Site, number, put_isr
from tests.support.evidence.lines import Line, Partition, ids

#: A broker's lines of one LeaderAndIsr, by its correlation id.
_HANDLED = (
    "leader_and_isr_received",
    "become_leader_started",
    "become_leader_completed",
    "become_leader_skipped",
    "become_follower_started",
    "become_follower_completed",
    "become_follower_skipped",
    "become_follower_failed",
    "fetchers_stopped",
    "fetcher_started",
    "fetcher_skipped",
    "log_truncated",
    "leader_and_isr_ignored",
)
_NOT_DONE = ("_failed", "_skipped")
_SOON_US = 2_000_000


def _key(line: Line) -> tuple[object, ...]:
    return (line.file, partition_of(line), line.fields.get("controller_id"), line.fields.get("correlation_id"))


def _handled(site: Site, received: Line) -> list[Line]:
    """What a broker did with a LeaderAndIsr for the partition, the receipt among it."""
    partition, key = partition_of(received), _key(received)
    near = [line for line in site.about(partition, *_HANDLED) if _key(line) == key]
    started = [
        line
        for line in site.about(partition, "leader_epoch_started")
        if line.broker_id == received.broker_id
        and line.fields.get("leader_epoch") == received.fields.get("leader_epoch")
        and abs(line.at - received.at) < _SOON_US
    ]
    return [*(line for line in near if abs(line.at - received.at) < _SOON_US), *started]


def _receipts(site: Site, sent: Line, event_type: str) -> list[Line]:
    """The lines in which the broker received, or cached, what a line says was sent to it, within a second or two."""
    to = {number(sent, "to_broker_id"), *ids(sent.fields.get("to_broker_ids", ""))}
    same = ("leader", "leader_epoch", "isr", "partition_epoch", "controller_epoch")
    return [
        line
        for line in site.about(partition_of(sent), event_type)
        if line.broker_id in to
        and 0 <= line.at - sent.at < _SOON_US
        and all(line.fields.get(name, "") == sent.fields.get(name, "") for name in same if name in sent.fields)
    ]


def _lives_on(site: Site, broker: int, at: int) -> bool:
    """Whether the broker's process ran long before, and runs long after."""
    own = [line.at for line in site.lines if line.broker_id == broker]
    starts = [
        line.at for line in site.events("broker_server_starting", source_kind="server_log") if line.broker_id == broker
    ]
    ends = [
        line.at
        for line in site.events("broker_server_shutting_down", source_kind="server_log")
        if line.broker_id == broker
    ]
    near = [t for t in (*starts, *ends) if at - 3_000_000 <= t <= at + 8_000_000]
    is_listed = [
        str(broker) in line.fields["live_broker_ids"].split(",")
        for line in site.events("broker_change", "brokers_active", source_kind="controller_log")
        if "live_broker_ids" in line.fields and at - 10_000_000 <= line.at <= at + 5_000_000
    ]
    return not near and any(t > at + 5_000_000 for t in own) and all(is_listed)


def _fault(kind: str, rules: str, partition: Partition | None, draft: Draft, note: str, *brokers: int) -> Fault:
    return Fault(kind, partition, frozenset(rules.split()), draft.made(), note, frozenset(brokers))


# --- not sent


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
        """Of these requests, and not of such as tell the same later."""
        return [r for r in _receipts(site, self.first, event_type) if r.at < self.until]


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
            yield _Sent(partition, batch, following[0].at if following else batch[-1].at + _SOON_US)


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
        if to is None or not decisions or not others or not receipts or not _lives_on(site, to, line.at):
            continue
        draft = Draft(site)
        draft.drop(lines)
        for receipt in receipts:
            draft.drop(_handled(site, receipt))
        fault = _fault("LeaderAndIsr not sent to a replica", "R15", partition, draft, f"{line.id} to {to}", to)
        # The log of the controller's own broker may have lost both lines at once, with none between to tell.
        is_elected = any(d.event_type == "partition_state_change" for d in decisions)
        is_told_apart = is_elected and _is_followed(site, partition, line, "update_metadata_sent", "stop_replica_sent")
        severity = WARNING if to == line.broker_id and not is_told_apart else ERROR
        yield replace(fault, severity=severity, unprovable="" if is_told_apart else _tenure_ended(site, line))


def _tenure_ended(site: Site, line: Line) -> str:
    """Why a controller's silence proves nothing: it may have gone in the middle of the batch."""
    tenure = (line.fields.get("controller_id"), line.fields.get("controller_epoch"))
    goes_on = any(
        other.at > line.at + 1_000_000
        and (other.fields.get("controller_id"), other.fields.get("controller_epoch")) == tenure
        for other in site.lines
        if other.file == line.file and "broker_id" not in other.fields
    )
    return "" if goes_on else "the controller went within a second, and later requests of the batch are not logged"


def stop_replica_not_sent(site: Site) -> Iterator[Fault]:
    """Without deletion, to a live replica that is taken offline: the deletion of its topic, a reassignment."""
    yield from _stop_not_sent(site, "false", "StopReplica not sent to a replica", "R15")


def deletion_not_sent(site: Site) -> Iterator[Fault]:
    yield from _stop_not_sent(site, "true", "StopReplica with deletion not sent", "R15 R16")


def _stop_not_sent(site: Site, delete: str, kind: str, rules: str) -> Iterator[Fault]:
    for line in site.events("stop_replica_sent"):
        to, partition = number(line, "to_broker_id"), partition_of(line)
        if line.fields.get("delete") != delete or to is None or partition is None or not _lives_on(site, to, line.at):
            continue
        gone = [
            other
            for other in site.about(partition, "stop_replica_received", "stop_replica_handled", "stop_replica_ignored")
            if other.broker_id == to
            and 0 <= other.at - line.at < _SOON_US
            and other.fields.get("delete", delete) == delete
        ]
        answers = [
            other
            for other in site.about(partition, "topic_deletion_response", "topic_deletion_replicas_deleted")
            if delete == "true" and 0 <= other.at - line.at < _SOON_US and _is_of(other, to)
        ]
        if gone:
            draft = Draft(site)
            draft.drop((line, *gone, *answers))
            fault = _fault(kind, rules, partition, draft, f"{line.id} to {to}", to)
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
        yield from _update_metadata_left_out(site)
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
        if to is not None and is_change and others and receipts and _lives_on(site, to, line.at):
            draft = Draft(site)
            draft.drop((*lines, *receipts))
            kind = "UpdateMetadata not sent to a live broker"
            fault = _fault(kind, "R15", partition, draft, f"{line.id} to {to}", to)
            # The log of the controller's own broker may have lost both lines at once, with none between to tell.
            severity = WARNING if to == line.broker_id else ERROR
            yield replace(fault, severity=severity, unprovable=_tenure_ended(site, line))


def _update_metadata_left_out(site: Site) -> Iterator[Fault]:
    """Since 1.0 one line names all brokers of a partition's, since 2.8 or so of a whole request."""
    for cached in site.events("metadata_cached"):
        to, partition = cached.broker_id, partition_of(cached)
        sent = [
            line
            for line in site.events("update_metadata_sent")
            if to in ids(line.fields.get("to_broker_ids", ""))
            and 0 <= cached.at - line.at < 300_000
            and ("partition_id" not in line.fields or partition_of(line) == partition)
            and line.fields.get("controller_epoch") == cached.fields.get("controller_epoch")
        ]
        is_change = any(abs(d.at - cached.at) < 300_000 for d in site.about(partition, "partition_state_change"))
        if not sent or not is_change or partition is None or not _lives_on(site, to, cached.at):
            continue
        line = sent[-1]
        others = set(ids(line.fields["to_broker_ids"])) - {to}
        same = [
            other
            for other in site.events("metadata_cached")
            if other.file == cached.file
            and other.fields.get("correlation_id") == cached.fields.get("correlation_id")
            and other.fields.get("controller_id") == cached.fields.get("controller_id")
            and abs(other.at - cached.at) < _SOON_US
            and ("partition_id" not in line.fields or partition_of(other) == partition)
        ]
        if others and same[0] is cached:
            draft = Draft(site)
            draft.drop(same)
            draft.put(line, _without_broker(site.raw(line), to))
            yield _fault("UpdateMetadata not sent to a live broker", "R15", partition, draft, f"{line.id} to {to}", to)


def _without_broker(text: str, broker: int) -> str:
    def left(found: re.Match[str]) -> str:
        kept = [one for one in found[2].split(", ") if one != str(broker)]
        return f"{found[1]}{', '.join(kept)})"

    return re.sub(r"(to brokers \w*\()([\d, ]*)\)", left, text)


# --- sent, but wrongly


def sent_to_no_replica(site: Site) -> Iterator[Fault]:
    """One replica's LeaderAndIsr goes to a live broker that no source ever names as a replica; that broker takes it."""
    for line in site.events("leader_and_isr_sent"):
        partition, to = partition_of(line), number(line, "to_broker_id")
        if partition is None or to is None:
            continue
        strangers = [b for b in site.brokers if b not in site.ever_assigned(partition) and _lives_on(site, b, line.at)]
        receipts = _receipts(site, line, "leader_and_isr_received")
        for stranger in strangers[:1]:
            draft = Draft(site)
            sent = re.sub(r"(to broker )\d+", rf"\g<1>{stranger}", site.raw(line))
            draft.put(line, site.raw(line), sent)
            for receipt in receipts[:1]:
                taken = re.sub(r"(Broker (?:id=)?)\d+", rf"\g<1>{stranger}", site.raw(receipt))
                draft.insert(re.sub(r"broker-\d+", f"broker-{stranger}", receipt.file), receipt.at, taken)
            yield _fault("LeaderAndIsr to a broker that is no replica", "R15", partition, draft, line.id, stranger)


def sent_another_leader(site: Site) -> Iterator[Fault]:
    """One replica is sent another leader than the one that was elected, and receives that."""
    for line in site.events("leader_and_isr_sent"):
        leader, partition = number(line, "leader"), partition_of(line)
        other = next((r for r in sorted(site.ever_assigned(partition)) if r != leader), None) if partition else None
        if leader is None or leader < 0 or other is None:
            continue
        draft = Draft(site)
        for each in (line, *_receipts(site, line, "leader_and_isr_received")[:1]):
            draft.put(each, re.sub(r"(\bLeader:|\bleader=)\d+", rf"\g<1>{other}", site.raw(each), count=1))
        yield _fault("LeaderAndIsr with another leader", "R15 R02", partition, draft, line.id)


def sent_another_epoch(site: Site) -> Iterator[Fault]:
    """One replica is sent a leader epoch that was never decided, and receives it."""
    for line in site.events("leader_and_isr_sent"):
        epoch, partition = number(line, "leader_epoch"), partition_of(line)
        receipts = _receipts(site, line, "leader_and_isr_received")[:1]
        # one that is refused as old cannot have carried a higher epoch
        is_refused = any(e.event_type == "leader_and_isr_ignored" for r in receipts for e in _handled(site, r))
        if epoch is None or (number(line, "leader") or -1) < 0 or is_refused:
            continue
        draft = Draft(site)
        for each in (line, *receipts):
            draft.put(each, re.sub(r"(\b[Ll]eaderEpoch[:=])\d+", rf"\g<1>{epoch + 7}", site.raw(each), count=1))
        yield _fault("LeaderAndIsr with an epoch never decided", "R15", partition, draft, line.id)


def isr_keeps_the_dead(site: Site) -> Iterator[Fault]:
    """The controller's own line of a shrink keeps the replica that it removes."""
    for line in site.events("isr_shrunk_by_controller"):
        gone, isr = line.fields.get("replica_id"), ids(line.fields.get("isr", ""))
        if gone is not None and isr and int(gone) not in isr:
            draft = Draft(site)
            draft.put(line, put_isr(site.raw(line), (*isr, int(gone))))
            yield _fault("ISR keeps the dead replica", "R15 R03", partition_of(line), draft, line.id)


# --- taken wrongly


def good_request_refused(site: Site) -> Iterator[Fault]:
    """A broker that lives on refuses a LeaderAndIsr with a higher leader epoch than it has: by a known epoch that is
    lower than the request's, and by one that nobody ever decided."""
    for received in site.events("leader_and_isr_received"):
        epoch, partition = number(received, "leader_epoch"), partition_of(received)
        handled = _handled(site, received)
        done = [line for line in handled if line.event_type.endswith(("_completed", "leader_epoch_started"))]
        if epoch is None or epoch < 1 or partition is None or not done:
            continue
        for known in (epoch - 1, epoch + 2):
            draft = Draft(site)
            draft.drop(line for line in handled if line is not received)
            draft.after(received, _refusal(site, received, epoch, known))
            note = f"{received.id} epoch {epoch} against {known}"
            kind = (
                "good request refused by a lower epoch" if known < epoch else "good request refused by an unknown epoch"
            )
            fault = _fault(kind, "R21", partition, draft, note, received.broker_id)
            yield fault if known < epoch else replace(fault, unprovable=_may_be_known(site, received, partition, known))


def _may_be_known(site: Site, received: Line, partition: Partition, known: int) -> str:
    """Why an epoch that the broker names, and no line shows, may have been decided all the same."""
    epoch = number(received, "leader_epoch")
    writes = [row for row in site.writes.get(partition, ()) if row.state["leader_epoch"] == epoch]
    is_later = any(
        site.written_at(row) > received.at + 2_000_000 and row.state["leader_epoch"] < known
        for row in site.writes.get(partition, ())
    ) or any(
        line.file == received.file and line.at > received.at and 0 <= (number(line, "leader_epoch") or 0) < known - 2
        for line in site.about(partition, "leader_and_isr_received", "metadata_cached")
    )
    is_own = any(
        row.state["controller_epoch"] == number(received, "controller_epoch") and site.written_at(row) <= received.at
        for row in writes
    )
    is_moving = site.minor < (2, 4) and len({a for _, a in site.assignments(partition)}) > 1
    if is_later or (is_own and not is_moving):
        return ""
    if is_moving:
        return "up to 2.3 a reassignment raises epochs that its controller does not know of"
    return "another controller decided the request's epoch, and may have decided a higher one"


def _refusal(site: Site, received: Line, epoch: int, known: int) -> str:
    """As the version words it (kafka.server.ReplicaManager.becomeLeaderOrFollower)."""
    fields, raw = received.fields, site.raw(received)
    controller, correlation, tenure = fields["controller_id"], fields["correlation_id"], fields["controller_epoch"]
    topic, partition = fields["topic"], fields["partition_id"]
    stamp = raw[:25]
    if site.minor < (1, 0):
        return (
            f"{stamp} WARN Broker {received.broker_id} ignoring LeaderAndIsr request from controller {controller} with"
            f" correlation id {correlation} epoch {tenure} for partition [{topic},{partition}] since its associated"
            f" leader epoch {epoch} is old. Current leader epoch is {known} (state.change.logger)"
        )
    reason = "not higher than" if site.minor < (2, 0) else "smaller than"
    return (
        f"{stamp} {'WARN' if site.minor < (2, 0) else 'INFO'} [Broker id={received.broker_id}] Ignoring LeaderAndIsr"
        f" request from controller {controller} with correlation id {correlation} epoch {tenure} for partition"
        f" {topic}-{partition} since its associated leader epoch {epoch} is {reason} the current leader epoch {known}"
        " (state.change.logger)"
    )


def cache_differs(site: Site) -> Iterator[Fault]:
    """One broker's cache holds another leader than was sent to it."""
    for line in site.events("metadata_cached"):
        leader, partition = number(line, "leader"), partition_of(line)
        other = next((r for r in sorted(site.ever_assigned(partition)) if r != leader), None) if partition else None
        if leader is not None and leader >= 0 and other is not None:
            draft = Draft(site)
            draft.put(line, re.sub(r"(\bLeader:|\bleader=)\d+", rf"\g<1>{other}", site.raw(line), count=1))
            yield _fault("cache with another leader", "R22 R24", partition, draft, line.id, line.broker_id)


def follows_another_leader(site: Site) -> Iterator[Fault]:
    """A follower receives, and follows, another leader than was elected."""
    for received in site.events("leader_and_isr_received"):
        handled = _handled(site, received)
        if not any(line.event_type == "become_follower_completed" for line in handled):
            continue
        partition, leader = partition_of(received), number(received, "leader")
        wrong = (
            next(
                (
                    b
                    for b in (*sorted(site.ever_assigned(partition)), *site.brokers)
                    if b not in (leader, received.broker_id)
                ),
                None,
            )
            if partition
            else None
        )
        if wrong is None:
            continue
        draft = Draft(site)
        pattern = rf"(\bLeader:|\bleader=|with leader |Current leader is |new leader ){leader}\b"
        for line in handled:
            draft.put(line, re.sub(pattern, rf"\g<1>{wrong}", site.raw(line)))
        yield _fault("follower of another leader", "R20 R02", partition, draft, received.id, received.broker_id)


def _is_done(handled: Sequence[Line]) -> bool:
    """Whether the broker did what it was asked for: what it could not do it calls completed, too."""
    names = {line.event_type for line in handled}
    return any(name.endswith("_completed") for name in names) and not any(name.endswith(_NOT_DONE) for name in names)


def _accepted_before(site: Site, received: Line) -> Line | None:
    """The broker's last accepted LeaderAndIsr for the partition since its process started."""
    starts = [
        line.at
        for line in site.events("broker_server_starting", source_kind="server_log")
        if line.broker_id == received.broker_id and line.at <= received.at
    ]
    before = [
        line
        for line in site.about(partition_of(received), "leader_and_isr_received")
        if line.file == received.file
        and line.number < received.number
        and line.at > max(starts, default=0)
        and _is_done(_handled(site, line))
    ]
    return before[-1] if before else None


def takes_lower_leader_epoch(site: Site) -> Iterator[Fault]:
    """A broker acts on a leader epoch below the one that it acted on before."""
    for received in site.events("leader_and_isr_received"):
        handled = _handled(site, received)
        before = _accepted_before(site, received)
        if before is None or not _is_done(handled):
            continue
        known = number(before, "leader_epoch")
        if known is None or known < 1:
            continue
        draft = Draft(site)
        for line in handled:
            text = re.sub(
                r"(\b[Ll]eaderEpoch[:=]|starts at [Ll]eader [Ee]poch )\d+", rf"\g<1>{known - 1}", site.raw(line)
            )
            draft.put(line, text)
        yield _fault(
            "broker takes a lower leader epoch", "R21", partition_of(received), draft, received.id, received.broker_id
        )


def takes_lower_controller_epoch(site: Site) -> Iterator[Fault]:
    """A broker acts on the request of a controller whose successor's it has acted on."""
    for received in site.events("leader_and_isr_received"):
        handled = _handled(site, received)
        before = _accepted_before(site, received)
        if before is None or not _is_done(handled):
            continue
        known = number(before, "controller_epoch")
        if known is None or known < 2 or number(received, "controller_epoch") != known:
            continue
        draft = Draft(site)
        for line in handled:
            draft.put(line, re.sub(rf"(controller \d+ epoch ){known}\b", rf"\g<1>{known - 1}", site.raw(line)))
        rules = "R21 R12"
        yield _fault(
            "broker takes a deposed controller's request",
            rules,
            partition_of(received),
            draft,
            received.id,
            received.broker_id,
        )


def second_leader(site: Site) -> Iterator[Fault]:
    """A follower acts as leader at the epoch at which another leads."""
    led = {
        (partition_of(line), line.fields.get("leader_epoch"))
        for line in site.events("leader_and_isr_received")
        if any(each.event_type == "become_leader_completed" for each in _handled(site, line))
    }
    for received in site.events("leader_and_isr_received"):
        handled = _handled(site, received)
        is_follower = any(line.event_type == "become_follower_completed" for line in handled)
        if not is_follower or (partition_of(received), received.fields.get("leader_epoch")) not in led:
            continue
        draft, own = Draft(site), received.broker_id
        for line in handled:
            if line.event_type in ("leader_epoch_started", "log_truncated", "fetcher_started"):
                draft.put(line)
                continue
            text = site.raw(line).replace("become-follower", "become-leader")
            text = re.sub(r" with leader \d+", "", text)
            draft.put(line, re.sub(r"(\bLeader:|\bleader=)\d+", rf"\g<1>{own}", text, count=1))
        yield _fault("second leader at one epoch", "R25 R20", partition_of(received), draft, received.id)


def cached_at_deposed_epoch(site: Site) -> Iterator[Fault]:
    """A broker that has accepted a controller's UpdateMetadata takes one of the controller before it."""
    accepted: dict[str, int] = {}
    for line in sorted(site.events("metadata_cached"), key=lambda line: (line.file, line.number)):
        tenure, known = number(line, "controller_epoch") or 0, accepted.get(line.file, 0)
        starts = [
            s.at
            for s in site.events("broker_server_starting", source_kind="server_log")
            if s.broker_id == line.broker_id
        ]
        if tenure >= 2 and known == tenure and not any(line.at - 5_000_000 < s <= line.at for s in starts):
            same = _same_request(site, line)
            draft = Draft(site)
            for each in same:
                draft.put(each, re.sub(rf"(controller \d+ epoch ){tenure}\b", rf"\g<1>{tenure - 1}", site.raw(each)))
            if same[0] is line:
                kind = "broker caches a deposed controller's state"
                fault = _fault(kind, "R12 R21", partition_of(line), draft, line.id, line.broker_id)
                yield replace(fault, also=_named(same))
        accepted[line.file] = tenure


def _same_request(site: Site, line: Line) -> list[Line]:
    key = ("controller_id", "controller_epoch", "correlation_id")
    return [
        other
        for other in site.events("metadata_cached", "metadata_deleted")
        if other.file == line.file
        and all(other.fields.get(name) == line.fields.get(name) for name in key)
        and abs(other.at - line.at) < _SOON_US
    ]


def _named(lines: Iterable[Line]) -> frozenset[Partition]:
    return frozenset(partition for partition in map(partition_of, lines) if partition is not None)


REQUESTS: tuple[Faults, ...] = (
    leader_and_isr_not_sent,
    stop_replica_not_sent,
    deletion_not_sent,
    update_metadata_not_sent,
    sent_to_no_replica,
    sent_another_leader,
    sent_another_epoch,
    isr_keeps_the_dead,
    good_request_refused,
    cache_differs,
    follows_another_leader,
    takes_lower_leader_epoch,
    takes_lower_controller_epoch,
    second_leader,
    cached_at_deposed_epoch,
)
