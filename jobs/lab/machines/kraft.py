"""A cluster without ZooKeeper: a quorum of controllers decides, which are brokers too, or nodes of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from jobs.lab.kraft_admin import KraftAdmin
from jobs.lab.machines import settings
from jobs.lab.machines.cluster import Cluster
from jobs.lab.machines.ports import free_ports
from jobs.lab.machines.releases import Release
from jobs.lab.machines.servers import Broker

CLUSTER_ID: Final = "kraft-of-the-lab-0000A"
#: Ids of controllers that are no brokers begin here.
FIRST_CONTROLLER: Final = 101


class KraftCluster(Cluster):
    """``controller_ids`` are brokers' where these are controllers as well."""

    admin: KraftAdmin

    def __init__(
        self,
        release: Release,
        folder: Path,
        broker_ids: Sequence[int] = (1, 2, 3),
        controller_ids: Sequence[int] = (1, 2, 3),
        own_settings: Mapping[str, str] | None = None,
        state_change_level: str = "TRACE",
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        super().__init__(release, folder, say)
        ids = sorted({*broker_ids, *controller_ids})
        ports = free_ports(len(ids) + len(controller_ids))
        voters = dict(zip(controller_ids, ports[len(ids) :], strict=True))
        log4j = partial(settings.kraft_log4j, release, state_change_level=state_change_level)
        self.nodes = {
            node_id: Broker(
                self._launcher,
                node_id,
                self.folder / f"broker-{node_id}",
                port if node_id in broker_ids else voters[node_id],
                partial(
                    settings.kraft_properties,
                    node_id,
                    ["broker"] * (node_id in broker_ids) + ["controller"] * (node_id in controller_ids),
                    port,
                    voters.get(node_id),
                    voters,
                    own=own_settings or {},
                ),
                log4j,
            )
            for node_id, port in zip(ids, ports[: len(ids)], strict=True)
        }
        self.brokers = {broker_id: self.nodes[broker_id] for broker_id in broker_ids}
        self.admin = KraftAdmin(self.bootstrap)

    def _begin(self) -> None:
        for node in self.nodes.values():
            node.format(CLUSTER_ID)
        self.start(*self.nodes)

    def lose_data(self, broker_id: int) -> None:
        """As with ZooKeeper, and formatted again: a node starts in no other directory."""
        super().lose_data(broker_id)
        self.brokers[broker_id].format(CLUSTER_ID)

    def _end(self) -> None:
        self.admin.close()
