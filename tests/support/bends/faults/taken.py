"""Requests that a broker refuses, takes or remembers otherwise than it must."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tests.support.bends.editing import partition_of
from tests.support.bends.faults.drafts import Draft, Fault, Faults, Site, number
from tests.support.bends.faults.exchanges import SOON_US, handled_by, is_done, request_fault
from tests.support.evidence.lines import Line, Partition


def good_request_refused(site: Site) -> Iterator[Fault]:
    """A broker that lives on refuses a LeaderAndIsr with a higher leader epoch than it has: by a known epoch that is
    lower than the request's, and by one that nobody ever decided."""
    for received in site.events("leader_and_isr_received"):
        epoch, partition = number(received, "leader_epoch"), partition_of(received)
        handled = handled_by(site, received)
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
            fault = request_fault(kind, "R21", partition, draft, note, received.broker_id)
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
    is_later = (
        is_later
        or _takes_lower_later(site, received, partition, known)
        or any(
            line.file == received.file
            and line.at > received.at
            and 0 <= (number(line, "current_leader_epoch") or 0) < known
            for line in site.about(partition, "leader_and_isr_ignored")
        )
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


def _takes_lower_later(site: Site, received: Line, partition: Partition, known: int) -> bool:
    """Whether the same process of the broker takes a request of an epoch below the one that it names."""
    starts = [
        line.at
        for line in site.events("broker_server_starting", source_kind="server_log")
        if line.broker_id == received.broker_id and line.at > received.at
    ]
    return any(
        line.file == received.file
        and received.number < line.number
        and line.at < min(starts, default=line.at + 1)
        and (number(line, "leader_epoch") or 0) < known
        and _is_taken(handled_by(site, line))
        for line in site.about(partition, "leader_and_isr_received")
    )


def _is_taken(handled: Sequence[Line]) -> bool:
    names = {line.event_type for line in handled}
    return "leader_and_isr_ignored" not in names and any(name.endswith("_completed") for name in names)


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
            yield request_fault("cache with another leader", "R22 R24", partition, draft, line.id, line.broker_id)


def follows_another_leader(site: Site) -> Iterator[Fault]:
    """A follower receives, and follows, another leader than was elected."""
    for received in site.events("leader_and_isr_received"):
        handled = handled_by(site, received)
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
        pattern = rf"(\bLeader:|\bleader=|with leader |Current leader is |new leader ){leader}\b"
        draft = _rewritten(site, handled, pattern, rf"\g<1>{wrong}")
        yield request_fault("follower of another leader", "R20 R02", partition, draft, received.id, received.broker_id)


def _accepted_before(site: Site, received: Line) -> Line | None:
    """The broker's last accepted LeaderAndIsr for the partition since its process started."""
    starts = [
        line.at
        for line in site.events("broker_server_starting", source_kind="server_log")
        if line.broker_id == received.broker_id and line.at <= received.at
    ]
    # a replica that was deleted meanwhile is another one, which knows of no epoch
    deleted = [
        line.at
        for line in site.about(partition_of(received), "stop_replica_received", "stop_replica_handled")
        if line.file == received.file and line.number < received.number and line.fields.get("delete") == "true"
    ]
    before = [
        line
        for line in site.about(partition_of(received), "leader_and_isr_received")
        if line.file == received.file
        and line.number < received.number
        and line.at > max((*starts, *deleted), default=0)
        and is_done(handled_by(site, line))
    ]
    return before[-1] if before else None


def _accepted_again(site: Site, epoch: str) -> Iterator[tuple[Line, list[Line], int]]:
    """Each LeaderAndIsr that a broker acted on after another, its lines, and the ``epoch`` that it knew by then."""
    for received in site.events("leader_and_isr_received"):
        handled = handled_by(site, received)
        before = _accepted_before(site, received)
        known = number(before, epoch) if before is not None and is_done(handled) else None
        if known is not None:
            yield received, handled, known


def _rewritten(site: Site, lines: Iterable[Line], pattern: str, text: str) -> Draft:
    draft = Draft(site)
    for line in lines:
        draft.put(line, re.sub(pattern, text, site.raw(line)))
    return draft


def takes_lower_leader_epoch(site: Site) -> Iterator[Fault]:
    """A broker acts on a leader epoch below the one that it acted on before."""
    for received, handled, known in _accepted_again(site, "leader_epoch"):
        if known >= 1:
            pattern = r"(\b[Ll]eaderEpoch[:=]|starts at [Ll]eader [Ee]poch )\d+"
            draft = _rewritten(site, handled, pattern, rf"\g<1>{known - 1}")
            kind, partition = "broker takes a lower leader epoch", partition_of(received)
            yield request_fault(kind, "R21", partition, draft, received.id, received.broker_id)


def takes_lower_controller_epoch(site: Site) -> Iterator[Fault]:
    """A broker acts on the request of a controller whose successor's it has acted on."""
    for received, handled, known in _accepted_again(site, "controller_epoch"):
        if known >= 2 and number(received, "controller_epoch") == known:
            draft = _rewritten(site, handled, rf"(controller \d+ epoch ){known}\b", rf"\g<1>{known - 1}")
            kind, partition = "broker takes a deposed controller's request", partition_of(received)
            yield request_fault(kind, "R21 R12", partition, draft, received.id, received.broker_id)


def second_leader(site: Site) -> Iterator[Fault]:
    """A follower acts as leader at the epoch at which another leads."""
    led = {
        (partition_of(line), line.fields.get("leader_epoch"))
        for line in site.events("leader_and_isr_received")
        if any(each.event_type == "become_leader_completed" for each in handled_by(site, line))
    }
    for received in site.events("leader_and_isr_received"):
        handled = handled_by(site, received)
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
        yield request_fault("second leader at one epoch", "R25 R20", partition_of(received), draft, received.id)


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
            draft = _rewritten(site, same, rf"(controller \d+ epoch ){tenure}\b", rf"\g<1>{tenure - 1}")
            if same[0] is line:
                kind = "broker caches a deposed controller's state"
                fault = request_fault(kind, "R12 R21", partition_of(line), draft, line.id, line.broker_id)
                yield replace(fault, also=_named(same))
        accepted[line.file] = tenure


def _same_request(site: Site, line: Line) -> list[Line]:
    key = ("controller_id", "controller_epoch", "correlation_id")
    return [
        other
        for other in site.events("metadata_cached", "metadata_deleted")
        if other.file == line.file
        and all(other.fields.get(name) == line.fields.get(name) for name in key)
        and abs(other.at - line.at) < SOON_US
    ]


def _named(lines: Iterable[Line]) -> frozenset[Partition]:
    return frozenset(partition for partition in map(partition_of, lines) if partition is not None)


TAKEN: tuple[Faults, ...] = (
    good_request_refused,
    cache_differs,
    follows_another_leader,
    takes_lower_leader_epoch,
    takes_lower_controller_epoch,
    second_leader,
    cached_at_deposed_epoch,
)
