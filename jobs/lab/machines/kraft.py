"""A cluster without ZooKeeper: a quorum of controllers decides, which are brokers too, or nodes of their own."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from jobs.lab.kraft_admin import KraftAdmin
from jobs.lab.machines import settings
from jobs.lab.machines.cluster import Cluster
from jobs.lab.machines.ports import LOOPBACK, free_ports
from jobs.lab.machines.releases import Release
from jobs.lab.machines.servers import Broker

CLUSTER_ID: Final = "kraft-of-the-lab-0000A"
#: Ids of controllers that are no brokers begin here.
FIRST_CONTROLLER: Final = 101


class KraftCluster(Cluster):
    """``controller_ids`` are brokers' where these are controllers as well. With ``spare_ids`` the quorum's voters are
    dynamic (KIP-853): these are controllers that are no voters, and not started. Each node has ``directories`` log
    directories, of which the first holds the metadata log."""

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
        spare_ids: Sequence[int] = (),
        directories: int = 1,
    ) -> None:
        super().__init__(release, folder, say)
        self.spare_ids = tuple(spare_ids)
        all_controllers = (*controller_ids, *spare_ids)
        ids = sorted({*broker_ids, *all_controllers})
        ports = free_ports(len(ids) + len(all_controllers))
        self._controller_ports = dict(zip(all_controllers, ports[len(ids) :], strict=True))
        self._initial = {voter: _directory_id(voter) for voter in controller_ids} if spare_ids else {}
        log4j = partial(settings.kraft_log4j, release, state_change_level=state_change_level)
        self.nodes = {
            node_id: Broker(
                self._launcher,
                node_id,
                self.folder / f"broker-{node_id}",
                port if node_id in broker_ids else self._controller_ports[node_id],
                partial(
                    settings.kraft_properties,
                    node_id,
                    ["broker"] * (node_id in broker_ids) + ["controller"] * (node_id in all_controllers),
                    port,
                    self._controller_ports.get(node_id),
                    # the spare ones too: up to 4.1 a broker that has lost its leader asks no other (KAFKA-19354)
                    self._controller_ports,
                    own=own_settings or {},
                    is_dynamic=bool(spare_ids),
                ),
                log4j,
                directories=directories,
            )
            for node_id, port in zip(ids, ports[: len(ids)], strict=True)
        }
        self.brokers = {broker_id: self.nodes[broker_id] for broker_id in broker_ids}
        self.admin = KraftAdmin(self.bootstrap)

    def _begin(self) -> None:
        for node_id in self.nodes:
            self._format(node_id)
        self.start(*(node_id for node_id in self.nodes if node_id not in self.spare_ids))

    def _format(self, node_id: int) -> None:
        options: tuple[str, ...] = ()
        if node_id in self._initial:
            named = ",".join(
                f"{voter}@{LOOPBACK}:{self._controller_ports[voter]}:{directory}"
                for voter, directory in self._initial.items()
            )
            options = ("--initial-controllers", named)
        elif self._initial:
            options = ("--no-initial-controllers",)
        self.nodes[node_id].format(CLUSTER_ID, *options)

    def lose_data(self, broker_id: int) -> None:
        """As with ZooKeeper, and formatted again: a node starts in no other directory."""
        super().lose_data(broker_id)
        self._format(broker_id)

    def add_voter(self, node_id: int) -> None:
        """A controller that runs joins the voters, as by ``kafka-metadata-quorum add-controller``."""
        self._say(f"adding controller {node_id} to the voters")
        self.events.note("add_voter", broker=node_id)
        directory = self.nodes[node_id].directory_id()
        self.admin.add_voter(node_id, directory, (LOOPBACK, self._controller_ports[node_id]))
        self.events.note("voter_added", broker=node_id)

    def remove_voter(self, node_id: int) -> None:
        """A controller is a voter no more, as by ``kafka-metadata-quorum remove-controller``; it runs on."""
        self._say(f"removing controller {node_id} from the voters")
        self.events.note("remove_voter", broker=node_id)
        self.admin.remove_voter(node_id, self.nodes[node_id].directory_id())
        self.events.note("voter_removed", broker=node_id)

    def _end(self) -> None:
        self.admin.close()


def _directory_id(node_id: int) -> str:
    """An id as Kafka's own, of 16 bytes: another for each node."""
    return base64.urlsafe_b64encode(b"directory of" + node_id.to_bytes(4, "big")).rstrip(b"=").decode()
