"""Bends of what controllers sent and of what brokers did with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.support.bends.decisions import STRANGER
from tests.support.bends.editing import Bend, Places, Subject, partition_of, put
from tests.support.evidence.lines import Line, ids


def _edit(line: Line, text: str | None) -> dict[tuple[str, int], str | None]:
    return {(line.file, line.number): text}


def _other(subject: Subject, *taken: int) -> int:
    return next(broker for broker in (*subject.brokers, STRANGER) if broker not in taken)


def request_names_another_leader(subject: Subject) -> Iterator[Bend]:
    for line in subject.events("leader_and_isr_sent"):
        leader = int(line.fields.get("leader", -1))
        if leader >= 0:
            text = put(subject.raw(line), "leader", _other(subject, leader))
            yield Bend(
                "request with another leader",
                partition_of(line),
                _edit(line, text),
                frozenset({("R15", "request_not_decided"), ("R02", "two_leaders_for_one_epoch")}),
                line.id,
            )


def request_names_another_epoch(subject: Subject) -> Iterator[Bend]:
    for line in subject.events("leader_and_isr_sent"):
        if "leader_epoch" in line.fields:
            text = put(subject.raw(line), "leader_epoch", int(line.fields["leader_epoch"]) + 7)
            yield Bend(
                "request with another epoch",
                partition_of(line),
                _edit(line, text),
                frozenset({("R15", "request_not_decided")}),
                line.id,
            )


def request_to_wrong_broker(subject: Subject) -> Iterator[Bend]:
    for line in subject.events("leader_and_isr_sent"):
        partition = partition_of(line)
        assigned = {
            replica
            for fact in (subject.plain.facts.get(partition, ()) if partition else ())
            for replica in (*(fact.replicas or ()), *(fact.adding_replicas or ()))
        }
        text = put(subject.raw(line), "to_broker", _other(subject, *assigned))
        yield Bend(
            "request to a broker that is not assigned",
            partition,
            _edit(line, text),
            frozenset({("R15", "request_to_wrong_broker")}),
            line.id,
        )


def request_never_sent(subject: Subject) -> Iterator[Bend]:
    """Of one decision, all requests to one broker that lives on, and whatever that broker did with them."""
    decisions = {
        (partition_of(line), line.fields.get("leader_epoch"), line.fields["controller_epoch"])
        for line in subject.events("partition_state_change", "reassignment_leader_and_isr_sent")
    }
    online = {
        (partition_of(line), line.fields["controller_epoch"])
        for line in subject.events("partition_state_change")
        if line.fields["to_state"] == "OnlinePartition"
    }
    sent: dict[tuple[object, ...], list[Line]] = {}
    for line in subject.events("leader_and_isr_sent"):
        key = (partition_of(line), line.fields.get("leader_epoch"), line.fields["controller_epoch"])
        by_words = subject.minor < (1, 0) and (key[0], key[2]) in online
        if key in decisions or by_words:
            sent.setdefault((*key, line.fields.get("to_broker_id")), []).append(line)
    for (partition, epoch, controller_epoch, to), lines in sent.items():
        handled = [
            line
            for line in subject.lines
            if line.fields.get("broker_id") == to
            and partition_of(line) == partition
            and line.source_kind == "state_change_log"
            and line.fields.get("controller_epoch") == controller_epoch
            and line.fields.get("leader_epoch", epoch) == epoch
            and line.event_type.startswith(("leader_and_isr", "become", "fetcher", "log_trunc", "leader_epoch"))
        ]
        received = {
            line.fields.get("correlation_id") for line in handled if line.event_type == "leader_and_isr_received"
        }
        gone = [
            line
            for line in handled
            if line.fields.get("correlation_id") in received or line.event_type == "leader_epoch_started"
        ]
        later = any(line.at > lines[-1].at + 5_000_000 for line in subject.lines if str(line.broker_id) == to)
        is_decided_here = any(
            partition_of(line) == partition and line.file == lines[0].file and line.at <= lines[0].at
            for line in subject.events("partition_state_change")
            if line.fields["controller_epoch"] == controller_epoch and line.fields["to_state"] == "OnlinePartition"
        )
        if received and later and is_decided_here and _goes_on(subject, lines[-1]):
            edits: dict[tuple[str, int], str | None] = {(line.file, line.number): None for line in (*lines, *gone)}
            yield Bend(
                "request never sent",
                partition,
                edits,
                frozenset({("R15", "request_not_sent")}),
                f"leader epoch {epoch} to {to}",
            )


def _goes_on(subject: Subject, sent: Line) -> bool:
    """Whether its controller was there a second later: what one did not send that goes says nothing."""
    tenure = (sent.fields.get("controller_id"), sent.fields.get("controller_epoch"))
    return any(
        line.at > sent.at + 1_000_000
        and (line.fields.get("controller_id"), line.fields.get("controller_epoch")) == tenure
        for line in subject.lines
        if line.file == sent.file and "broker_id" not in line.fields
    )


def deletion_never_sent(subject: Subject) -> Iterator[Bend]:
    """The StopReplica with deletion of one replica, and what its broker did with it."""
    for line in subject.events("stop_replica_sent"):
        if line.fields.get("delete") == "true":
            to, partition = line.fields["to_broker_id"], partition_of(line)
            gone = [
                other
                for other in subject.events("stop_replica_received", "stop_replica_handled")
                if other.fields.get("broker_id") == to
                and partition_of(other) == partition
                and other.fields.get("delete") == "true"
            ]
            edits: dict[tuple[str, int], str | None] = {(each.file, each.number): None for each in (line, *gone)}
            yield Bend(
                "deletion never sent",
                partition,
                edits,
                frozenset({("R15", "request_not_sent"), ("R16", "step_missing")}),
                line.id,
            )


def cache_names_another_leader(subject: Subject) -> Iterator[Bend]:
    for line in subject.events("metadata_cached"):
        leader = int(line.fields.get("leader", -1))
        if leader >= 0:
            text = put(subject.raw(line), "leader", _other(subject, leader))
            yield Bend(
                "cache with another leader",
                partition_of(line),
                _edit(line, text),
                frozenset(
                    {("R22", "caches_disagree"), ("R24", "cache_never_decided"), ("R24", "cache_differs_at_rest")}
                ),
                line.id,
            )


def _requests(subject: Subject, became: str) -> Iterator[tuple[Line, list[Line]]]:
    """Each LeaderAndIsr that a broker received for a partition, and the lines of the transition it then completed."""
    done: dict[tuple[object, ...], list[Line]] = {}
    for line in subject.events(f"become_{became}_started", f"become_{became}_completed"):
        done.setdefault(_exchange(line), []).append(line)
    for line in subject.events("leader_and_isr_received"):
        key = _exchange(line)
        if any(each.event_type.endswith("completed") for each in done.get(key, ())):
            yield line, done[key]


def _exchange(line: Line) -> tuple[object, ...]:
    """The same for all lines of one broker about one partition of one request."""
    return line.file, partition_of(line), line.fields.get("controller_id"), line.fields.get("correlation_id")


def follows_another_leader(subject: Subject) -> Iterator[Bend]:
    for line, done in _requests(subject, "follower"):
        leader, own = int(line.fields["leader"]), int(line.fields["broker_id"])
        wrong = _other(subject, leader, own)
        edits = _edit(line, put(subject.raw(line), "leader", wrong))
        for other in (*done, *_started_epoch(subject, line)):
            text = re.sub(rf"(with leader |Current leader is ){leader}\b", rf"\g<1>{wrong}", subject.raw(other))
            edits[other.file, other.number] = text
        yield Bend(
            "follower of another leader", partition_of(line), edits, frozenset({("R20", "role_not_decided")}), line.id
        )


def _started_epoch(subject: Subject, received: Line) -> list[Line]:
    """The line in which the same broker starts the leader epoch that it received, since 2.8."""
    return [
        line
        for line in subject.events("leader_epoch_started")
        if line.file == received.file
        and partition_of(line) == partition_of(received)
        and line.fields.get("leader_epoch") == received.fields.get("leader_epoch")
    ]


def acted_on_lower_leader_epoch(subject: Subject) -> Iterator[Bend]:
    accepted: dict[tuple[object, ...], int] = {}
    # of a leader that it does not know the broker takes no epoch (ReplicaManager.makeFollowers)
    failed = {_exchange(line) for line in subject.events("become_leader_failed", "become_follower_failed")}
    for became in ("follower", "leader"):
        for line, _ in sorted(_requests(subject, became), key=lambda pair: (pair[0].file, pair[0].number)):
            key = (line.file, partition_of(line))
            epoch = int(line.fields["leader_epoch"])
            if accepted.get(key, 0) >= 1 and not _restarted_between(subject, line, key):
                edits = _edit(line, put(subject.raw(line), "leader_epoch", 0))
                for other in _started_epoch(subject, line):
                    edits[other.file, other.number] = put(subject.raw(other), "leader_epoch", 0)
                yield Bend(
                    "acted on a lower leader epoch",
                    partition_of(line),
                    edits,
                    frozenset({("R21", "acted_on_lower_leader_epoch")}),
                    line.id,
                )
            if _exchange(line) not in failed:
                accepted[key] = max(epoch, accepted.get(key, 0))


def _restarted_between(subject: Subject, line: Line, key: tuple[object, ...]) -> bool:
    """Whether the broker's process started after it had accepted its last request for the partition."""
    before = [
        other.at
        for other in subject.events("leader_and_isr_received")
        if (other.file, partition_of(other)) == key
        and other.number < line.number
        and other.fields.get("leader_epoch", "0") != "0"
    ]
    starts = [at for at, _ in subject.plain.view.process_starts.get(int(line.fields["broker_id"]), ())]
    return not before or any(max(before) <= at <= line.at for at in starts)


def acted_on_lower_controller_epoch(subject: Subject) -> Iterator[Bend]:
    accepted: dict[tuple[object, ...], tuple[int, int]] = {}
    for became in ("follower", "leader"):
        for line, done in sorted(_requests(subject, became), key=lambda pair: (pair[0].file, pair[0].number)):
            key = (line.file, partition_of(line))
            epoch = int(line.fields["controller_epoch"])
            known, at = accepted.get(key, (0, 0))
            starts = [start for start, _ in subject.plain.view.process_starts.get(int(line.fields["broker_id"]), ())]
            if epoch >= 2 and known >= epoch and not any(at <= start <= line.at for start in starts):
                edits = {
                    (each.file, each.number): re.sub(
                        rf"(controller \d+ epoch ){epoch}\b", rf"\g<1>{epoch - 1}", subject.raw(each)
                    )
                    for each in (line, *done)
                }
                yield Bend(
                    "acted on a lower controller epoch",
                    partition_of(line),
                    edits,
                    frozenset({("R21", "acted_on_lower_controller_epoch")}),
                    line.id,
                )
            accepted[key] = (epoch, line.at) if epoch >= known else (known, at)


def ignored_without_reason(subject: Subject) -> Iterator[Bend]:
    for line in subject.events("leader_and_isr_ignored"):
        if "request_leader_epoch" in line.fields and ("current_leader_epoch" in line.fields or subject.is_trace):
            epoch = int(line.fields["request_leader_epoch"])
            text = re.sub(r"(associated leader epoch )\d+", rf"\g<1>{epoch + 7}", subject.raw(line))
            yield Bend(
                "ignored without reason",
                partition_of(line),
                _edit(line, text),
                frozenset({("R21", "ignored_without_reason")}),
                line.id,
            )


def second_leader(subject: Subject) -> Iterator[Bend]:
    """A follower becomes leader at the epoch at which another leads."""
    led = {
        (partition_of(line), line.fields["leader_epoch"]): int(line.fields["broker_id"])
        for line, _ in _requests(subject, "leader")
    }
    for line, done in _requests(subject, "follower"):
        leads = led.get((partition_of(line), line.fields["leader_epoch"]))
        own = int(line.fields["broker_id"])
        if leads is None or leads == own or _started_epoch(subject, line):
            continue
        edits = _edit(line, put(subject.raw(line), "leader", own))
        for other in done:
            text = subject.raw(other).replace("become-follower", "become-leader")
            edits[other.file, other.number] = re.sub(r" with leader \d+", "", text)
        yield Bend(
            "second leader",
            partition_of(line),
            edits,
            frozenset({("R25", "two_acting_leaders"), ("R20", "role_not_decided")}),
            line.id,
        )


def shrunk_isr_keeps_the_dead(subject: Subject) -> Iterator[Bend]:
    """The controller's own line of an ISR shrink (since 1.1) keeps the replica that it says it removes."""
    for line in subject.events("isr_shrunk_by_controller"):
        gone = line.fields.get("replica_id")
        isr = ids(line.fields.get("isr", ""))
        if gone is not None and isr and int(gone) not in isr:
            text = re.sub(r"(\bISR:)([\d,]*)(?=,Leader)", rf"\g<1>\g<2>,{gone}", subject.raw(line))
            yield Bend(
                "ISR not shrunk",
                partition_of(line),
                _edit(line, text),
                frozenset({("R15", "isr_not_shrunk"), ("R03", "partition_epoch_repeated")}),
                line.id,
            )


TOLD: Final[tuple[Places, ...]] = (
    request_names_another_leader,
    request_names_another_epoch,
    request_to_wrong_broker,
    request_never_sent,
    deletion_never_sent,
    cache_names_another_leader,
    follows_another_leader,
    acted_on_lower_leader_epoch,
    acted_on_lower_controller_epoch,
    ignored_without_reason,
    second_leader,
    shrunk_isr_keeps_the_dead,
)
