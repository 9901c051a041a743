"""Partitions of a real KRaft cluster folded in plain Python: from its metadata log to their history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reconstruct.cluster.evidence import ClusterFacts
from reconstruct.cluster.metadata_log import broker_facts, broker_settings, elected_controllers, supported_levels
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.metadata_log.timeline import MetadataChange, replay_rows
from reconstruct.model.metadata_log.values import Kind, PartitionState
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import METADATA_PARTITION, METADATA_PARTITION_REMOVED, Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.metadata_log import cluster_log


def history_of(nodes: Sequence[Path]) -> tuple[ClusterHistory, dict[tuple[str, str, int], Case]]:
    """The cluster, and by topic, its id and partition the history of each partition."""
    log, topics = cluster_log(nodes)
    others = replay_rows(log.rows, log).changes
    facts = ClusterFacts(
        controllers=list(elected_controllers(log.rows)),
        brokers=list(broker_facts(others)),
        metadata_levels=supported_levels(others),
    )
    for broker_id, setting in broker_settings(others):
        facts.broker_settings.setdefault(broker_id, []).append(setting)
    cluster = ClusterHistory("c", facts)
    evidence: dict[tuple[str, str, int], list[Evidence]] = {}
    for name, rows in topics.items():
        for change in replay_rows(rows, log.of_quorum).changes:
            if change.subject.kind is Kind.PARTITION:
                key = (name, change.subject.name, change.subject.partition_id)
                evidence.setdefault(key, []).append(evidence_of(change))
    return cluster, {
        key: fold_partition(key[0], found, cluster.view, partition_id=key[2]) for key, found in evidence.items()
    }


def evidence_of(change: MetadataChange) -> Evidence:
    """As the room's evidence on Spark has it."""
    state = change.state
    given: dict[str, Any] = {
        "evidence_id": change.evidence[0],
        "at": change.at,
        "file": "metadata_log",
        "offset": change.offset,
        "source_kind": "metadata_log",
        "controller_epoch": change.epoch,
        "state_controller_epoch": change.epoch,
        "inferred_from": change.inferred_from,
    }
    if not isinstance(state, PartitionState):
        return Evidence(kind=METADATA_PARTITION_REMOVED, **given)
    return Evidence(
        kind=METADATA_PARTITION,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        leader_recovery_state=state.leader_recovery_state,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        directories=state.directories,
        replicas=state.replicas,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
        **given,
    )
