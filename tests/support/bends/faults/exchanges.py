"""What one request of a controller left in the logs: sent, received, handled."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.bends.editing import partition_of
from tests.support.bends.faults.drafts import Draft, Fault, Site, number
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
SOON_US = 2_000_000


def _key(line: Line) -> tuple[object, ...]:
    return (line.file, partition_of(line), line.fields.get("controller_id"), line.fields.get("correlation_id"))


def handled_by(site: Site, received: Line) -> list[Line]:
    """What a broker did with a LeaderAndIsr for the partition, the receipt among it."""
    partition, key = partition_of(received), _key(received)
    near = [line for line in site.about(partition, *_HANDLED) if _key(line) == key]
    started = [
        line
        for line in site.about(partition, "leader_epoch_started")
        if line.broker_id == received.broker_id
        and line.fields.get("leader_epoch") == received.fields.get("leader_epoch")
        and abs(line.at - received.at) < SOON_US
    ]
    return [*(line for line in near if abs(line.at - received.at) < SOON_US), *started]


def receipts_of(site: Site, sent: Line, event_type: str) -> list[Line]:
    """The lines in which the broker received, or cached, what a line says was sent to it, within a second or two."""
    to = {number(sent, "to_broker_id"), *ids(sent.fields.get("to_broker_ids", ""))}
    same = ("leader", "leader_epoch", "isr", "partition_epoch", "controller_epoch")
    return [
        line
        for line in site.about(partition_of(sent), event_type)
        if line.broker_id in to
        and 0 <= line.at - sent.at < SOON_US
        and all(line.fields.get(name, "") == sent.fields.get(name, "") for name in same if name in sent.fields)
    ]


def lives_on(site: Site, broker: int, at: int) -> bool:
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


def request_fault(kind: str, rules: str, partition: Partition | None, draft: Draft, note: str, *brokers: int) -> Fault:
    return Fault(kind, partition, frozenset(rules.split()), draft.made(), note, frozenset(brokers))


def is_done(handled: Sequence[Line]) -> bool:
    """Whether the broker did what it was asked for: what it could not do it calls completed, too."""
    names = {line.event_type for line in handled}
    return any(name.endswith("_completed") for name in names) and not any(name.endswith(_NOT_DONE) for name in names)
