"""What the metadata log of a KRaft quorum tells of a cluster: who was active controller, which brokers were live, and
which settings held.

A broker is live while it is registered and not fenced: then it may lead, as it may while its znode is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.evidence import BrokerFact, ControllerFact
from reconstruct.cluster.settings import EVERY_BROKER, SettingChange
from reconstruct.metadata_log.evidence import LEADER_CHANGE, LogRow
from reconstruct.metadata_log.timeline import MetadataChange
from reconstruct.model.metadata_log.values import BrokerState, ConfigResource, ConfigState, Kind

MIN_ISR: Final = BrokerSetting.MIN_ISR.value
UNCLEAN: Final = BrokerSetting.UNCLEAN.value


def elected_controllers(rows: Iterable[LogRow]) -> Iterator[ControllerFact]:
    """A fact ``elected`` for each first record of a raft epoch, also of one that the quorum did not follow."""
    for row in rows:
        leader = row.record.fields.get("leaderId")
        if row.record_type == LEADER_CHANGE and row.snapshot_end is None and isinstance(leader, int):
            yield ControllerFact("elected", row.at, row.evidence_id, leader, row.epoch, is_of_quorum=True)


def broker_facts(changes: Iterable[MetadataChange]) -> Iterator[BrokerFact]:
    """``registered`` when a broker is unfenced, ``unregistered`` when it is fenced or gone; both by the offset of the
    record that unfenced it. ``shutdown_requested`` when it asked to be shut down. A broker that migrates counts by its
    znode, which it still has."""
    live_since: dict[int, int] = {}
    known: dict[int, BrokerState] = {}
    for change in changes:
        if change.subject.kind is not Kind.BROKER:
            continue
        broker_id, evidence = int(change.subject.name), change.evidence[0]
        before, state = known.pop(broker_id, None), change.state
        if isinstance(state, BrokerState):
            known[broker_id] = state
        is_live = isinstance(state, BrokerState) and not state.is_fenced and not state.is_migrating
        is_leaving = isinstance(state, BrokerState) and state.is_in_controlled_shutdown
        was_leaving = before is not None and before.is_in_controlled_shutdown
        if is_leaving and not was_leaving:
            yield BrokerFact(broker_id, "shutdown_requested", change.at, evidence, is_of_quorum=True)
        since = live_since.get(broker_id)
        is_other = isinstance(state, BrokerState) and before is not None and before.broker_epoch != state.broker_epoch
        if since is not None and (not is_live or is_other):
            del live_since[broker_id]
            yield BrokerFact(broker_id, "unregistered", change.at, evidence, since, change.at, is_of_quorum=True)
        if is_live and broker_id not in live_since:
            live_since[broker_id] = change.offset
            yield BrokerFact(broker_id, "registered", change.at, evidence, change.offset, is_of_quorum=True)


def supported_levels(changes: Iterable[MetadataChange]) -> set[int]:
    """The levels of metadata.version that brokers registered as their highest."""
    states = (change.state for change in changes)
    return {s.metadata_version for s in states if isinstance(s, BrokerState) and s.metadata_version is not None}


def broker_settings(changes: Iterable[MetadataChange]) -> Iterator[tuple[int, SettingChange]]:
    """Of each broker, and of :data:`EVERY_BROKER`, what was set when."""
    of_brokers = f"{ConfigResource.BROKER}:"
    known: set[str] = set()
    for change in changes:
        if change.subject.kind is Kind.CONFIG and change.subject.name.startswith(of_brokers):
            name = change.subject.name.removeprefix(of_brokers)
            if name == "" or name.isdigit():
                is_first = name not in known and change.inferred_from is None
                known.add(name)
                yield int(name) if name else EVERY_BROKER, setting_of(change.at, change.state, is_first)


def setting_of(at: int, state: object, is_first: bool) -> SettingChange:
    """What a resource sets from ``at`` on."""
    set_ = state if isinstance(state, ConfigState) else ConfigState(())
    min_isr, unclean = set_.value(MIN_ISR), set_.value(UNCLEAN)
    return SettingChange(
        at,
        int(min_isr) if min_isr and min_isr.isdigit() else None,
        None if unclean is None else unclean.lower() == "true",
        is_first,
    )
