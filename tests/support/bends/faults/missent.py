"""Requests that a controller sends to the wrong broker, or with the wrong content."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support.bends.editing import partition_of
from tests.support.bends.faults.drafts import Draft, Fault, Faults, Site, number
from tests.support.bends.faults.exchanges import handled_by, lives_on, receipts_of, request_fault
from tests.support.bends.faults.restating import put_isr
from tests.support.evidence.lines import ids


def sent_to_no_replica(site: Site) -> Iterator[Fault]:
    """One replica's LeaderAndIsr goes to a live broker that no source ever names as a replica; that broker takes it."""
    for line in site.events("leader_and_isr_sent"):
        partition, to = partition_of(line), number(line, "to_broker_id")
        if partition is None or to is None:
            continue
        strangers = [b for b in site.brokers if b not in site.ever_assigned(partition) and lives_on(site, b, line.at)]
        receipts = receipts_of(site, line, "leader_and_isr_received")
        for stranger in strangers[:1]:
            draft = Draft(site)
            sent = re.sub(r"(to broker )\d+", rf"\g<1>{stranger}", site.raw(line))
            draft.put(line, site.raw(line), sent)
            for receipt in receipts[:1]:
                taken = re.sub(r"(Broker (?:id=)?)\d+", rf"\g<1>{stranger}", site.raw(receipt))
                draft.insert(re.sub(r"broker-\d+", f"broker-{stranger}", receipt.file), receipt.at, taken)
            yield request_fault(
                "LeaderAndIsr to a broker that is no replica", "R15", partition, draft, line.id, stranger
            )


def sent_another_leader(site: Site) -> Iterator[Fault]:
    """One replica is sent another leader than the one that was elected, and receives that."""
    for line in site.events("leader_and_isr_sent"):
        leader, partition = number(line, "leader"), partition_of(line)
        other = next((r for r in sorted(site.ever_assigned(partition)) if r != leader), None) if partition else None
        if leader is None or leader < 0 or other is None:
            continue
        draft = Draft(site)
        for each in (line, *receipts_of(site, line, "leader_and_isr_received")[:1]):
            draft.put(each, re.sub(r"(\bLeader:|\bleader=)\d+", rf"\g<1>{other}", site.raw(each), count=1))
        yield request_fault("LeaderAndIsr with another leader", "R15 R02", partition, draft, line.id)


def sent_another_epoch(site: Site) -> Iterator[Fault]:
    """One replica is sent a leader epoch that was never decided, and receives it."""
    for line in site.events("leader_and_isr_sent"):
        epoch, partition = number(line, "leader_epoch"), partition_of(line)
        receipts = receipts_of(site, line, "leader_and_isr_received")[:1]
        # one that is refused as old cannot have carried a higher epoch
        is_refused = any(e.event_type == "leader_and_isr_ignored" for r in receipts for e in handled_by(site, r))
        if epoch is None or (number(line, "leader") or -1) < 0 or is_refused:
            continue
        draft = Draft(site)
        for each in (line, *receipts):
            draft.put(each, re.sub(r"(\b[Ll]eaderEpoch[:=])\d+", rf"\g<1>{epoch + 7}", site.raw(each), count=1))
        yield request_fault("LeaderAndIsr with an epoch never decided", "R15", partition, draft, line.id)


def isr_keeps_the_dead(site: Site) -> Iterator[Fault]:
    """The controller's own line of a shrink keeps the replica that it removes."""
    for line in site.events("isr_shrunk_by_controller"):
        gone, isr = line.fields.get("replica_id"), ids(line.fields.get("isr", ""))
        if gone is not None and isr and int(gone) not in isr:
            draft = Draft(site)
            draft.put(line, put_isr(site.raw(line), (*isr, int(gone))))
            yield request_fault("ISR keeps the dead replica", "R15 R03", partition_of(line), draft, line.id)


MISSENT: tuple[Faults, ...] = (
    sent_to_no_replica,
    sent_another_leader,
    sent_another_epoch,
    isr_keeps_the_dead,
)
