"""From what the oracle did to what its controllers would have logged: the evidence of one partition, and its cluster.

Each procedure is a minute after the one before, each of its lines a millisecond after the one before. A controller logs
all at TRACE and in one file; it logs what its release logs: since 1.0 requests name the replicas, since 1.1 the line of
a decision names leader and ISR, since 2.6 UpdateMetadata does not name partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.settings import Configuration
from reconstruct.cluster.spans import LiveView, LogSpan, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Output,
    PartitionTransition,
    ReplicaTransition,
    StopReplicaRequest,
    UpdateMetadataRequest,
    ZnodeWrite,
)
from reconstruct.model.controller.values import LeaderAndIsr, LeaderIsrAndControllerEpoch, TopicPartition
from reconstruct.model.controller.zookeeper import TopicAssignment, partition_state_path, topic_path
from reconstruct.model.states import PartitionState
from reconstruct.model.versions import (
    ASYNC_CONTROLLER_SINCE,
    BATCHES_COUNTED_SINCE,
    OFFLINE_LOG_DIRS_SINCE,
    VersionRange,
)
from reconstruct.model.znode_paths import REASSIGN_PARTITIONS_PATH
from reconstruct.partitions.evidence import (
    ZNODE_ASSIGNMENT,
    ZNODE_REASSIGNMENT,
    ZNODE_STATE,
    ZNODE_TOPIC_DELETED,
    Evidence,
)
from tests.oracles.controller.cluster import Cluster, Procedure

START: Final = 1_600_000_000_000_000
MINUTE: Final = 60_000_000
MILLISECOND: Final = 1_000


@dataclass(slots=True)
class _Writer:
    """The lines of one partition, as they come."""

    cluster: Cluster
    partition: TopicPartition
    lines: list[Evidence] = field(default_factory=list)
    at: int = START

    def write(self, procedure: Procedure, kind: str, is_znode: bool = False, **values: Any) -> None:
        self.at += MILLISECOND
        number = len(self.lines)
        who: dict[str, Any] = {}
        if not is_znode:
            own, epoch = procedure.controller_id, procedure.controller_epoch
            who = {"broker_id": own, "controller_id": own, "controller_epoch": epoch, "log_level": "TRACE"}
        file = "znode" if is_znode else f"{procedure.controller_id}/state-change.log"
        source = "znode" if is_znode else "state_change_log"
        self.lines.append(
            Evidence(f"e{number}", kind, self.at, file=file, offset=number, source_kind=source, **who, **values)
        )

    def write_output(self, procedure: Procedure, output: Output) -> None:
        for kind, values in self._lines_of(output):
            if kind == EventType.UPDATE_METADATA_SENT and self._names_one_more(values):
                continue
            self.write(procedure, kind, kind.startswith("znode"), **values)

    def _names_one_more(self, values: dict[str, Any]) -> bool:
        """Since 1.0 one line of an UpdateMetadata names all the brokers to which it goes."""
        last = self.lines[-1] if self.lines else None
        if last is None or self.cluster.settings.version < OFFLINE_LOG_DIRS_SINCE:
            return False
        told, more = last.to_broker_ids or (), values["to_broker_ids"]
        is_same = last == replace(last, kind=EventType.UPDATE_METADATA_SENT, **values | {"to_broker_ids": told})
        if is_same and not set(told) & set(more):
            self.lines[-1] = replace(last, to_broker_ids=(*told, *more))
            return True
        return False

    def _lines_of(self, output: Output) -> Iterator[tuple[str, dict[str, Any]]]:
        version = self.cluster.settings.version
        match output:
            case PartitionTransition(partition, from_state, to_state, decided) if partition == self.partition:
                shown = _decided(decided) if decided and version >= ASYNC_CONTROLLER_SINCE else {}
                if decided and not shown:
                    shown = {"leader": decided.leader}
                if to_state is PartitionState.NEW:
                    shown = {"replicas": self._assigned()}
                yield EventType.PARTITION_STATE_CHANGE, {"from_state": from_state, "to_state": to_state, **shown}
            case ReplicaTransition(partition, replica, from_state, to_state, is_logged) if partition == self.partition:
                if is_logged:
                    states = {"from_state": from_state, "to_state": to_state}
                    yield EventType.REPLICA_STATE_CHANGE, {"replica_id": replica, **states}
            case LeaderAndIsrRequest() | UpdateMetadataRequest():
                is_metadata = isinstance(output, UpdateMetadataRequest)
                for entry in output.partitions:
                    if entry.partition == self.partition and not (is_metadata and version >= BATCHES_COUNTED_SINCE):
                        yield (
                            EventType.UPDATE_METADATA_SENT if is_metadata else EventType.LEADER_AND_ISR_SENT,
                            {
                                **_decided(entry.info.leader_and_isr),
                                "replicas": entry.assignment.replicas if version >= OFFLINE_LOG_DIRS_SINCE else None,
                                "state_controller_epoch": entry.info.controller_epoch,
                                "to_broker_ids": (output.broker_id,),
                            },
                        )
            case StopReplicaRequest():
                for stop in output.partitions:
                    if stop.partition == self.partition and version >= BATCHES_COUNTED_SINCE:
                        deletes = {"is_delete": stop.delete_partition, "leader_epoch": stop.leader_epoch}
                        yield EventType.STOP_REPLICA_SENT, {"to_broker_ids": (output.broker_id,), **deletes}
            case ZnodeWrite(path, LeaderIsrAndControllerEpoch() as info, written) if path == self._state_path:
                values = _decided(info.leader_and_isr) | {"partition_epoch": written}
                yield ZNODE_STATE, values | {"state_controller_epoch": info.controller_epoch}
            case ZnodeWrite(path, TopicAssignment(partitions), written) if path == topic_path(self.partition.topic):
                found = partitions.get(self.partition.partition_id)
                if found is not None:
                    moving = {"adding_replicas": found.adding_replicas, "removing_replicas": found.removing_replicas}
                    yield ZNODE_ASSIGNMENT, {"replicas": found.replicas, "partition_epoch": written, **moving}
            case ZnodeWrite(path, Mapping() as targets) if (
                path == REASSIGN_PARTITIONS_PATH and self.partition in targets
            ):
                yield ZNODE_REASSIGNMENT, {"replicas": targets[self.partition]}
            case ZnodeWrite(path, None) if path == topic_path(self.partition.topic):
                yield ZNODE_TOPIC_DELETED, {}

    @property
    def _state_path(self) -> str:
        return partition_state_path(self.partition)

    def _assigned(self) -> tuple[int, ...]:
        return self.cluster.assigned[self.partition]


def _decided(info: LeaderAndIsr) -> dict[str, Any]:
    return {
        "leader": info.leader,
        "leader_epoch": info.leader_epoch,
        "isr": info.isr,
        "partition_epoch": info.partition_epoch,
    }


def logged(cluster: Cluster, partition: TopicPartition) -> tuple[list[Evidence], ClusterView]:
    """The lines that the controllers logged about the partition, the writes to its znodes, and the cluster's view."""
    writer = _Writer(cluster, partition)
    views: list[LiveView] = []
    begun: dict[int, tuple[int, int]] = {}
    for number, procedure in enumerate(cluster.procedures):
        writer.at = at = START + number * MINUTE
        if procedure.live_broker_ids and procedure.controller_epoch not in begun:
            begun[procedure.controller_epoch] = (procedure.controller_id, at)
        live = frozenset(procedure.live_broker_ids)
        known = [view.live for view in views if view.controller_id == procedure.controller_id]
        if live and known[-1:] != [live]:
            views.append(LiveView(at, procedure.controller_id, live, f"live{number}"))
        for output in procedure.outputs:
            writer.write_output(procedure, output)
    end = START + (len(cluster.procedures) + 2) * MINUTE
    starts = sorted((epoch, controller, at) for epoch, (controller, at) in begun.items())
    ends: list[int | None] = [*(at for _, _, at in starts[1:]), None]
    tenures = tuple(
        Tenure(controller, epoch, at, until, (f"elected{epoch}",), "TRACE")
        for (epoch, controller, at), until in zip(starts, ends, strict=True)
    )
    version = cluster.settings.version
    view = ClusterView(
        "c",
        version=VersionRange.exactly(version),
        tenures=tenures,
        configurations={0: Configuration({})},
        logs={controller: (LogSpan(START - MINUTE, end, "TRACE"),) for _, controller, _ in starts},
        live_views=tuple(views),
    )
    return writer.lines, view
