"""A cluster that leaves its ZooKeeper: controllers of a quorum join it, take over, and are left alone (KIP-866)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from jobs.lab.kraft_admin import KraftAdmin
from jobs.lab.machines import settings
from jobs.lab.machines.kraft import FIRST_CONTROLLER
from jobs.lab.machines.ports import free_ports
from jobs.lab.machines.releases import Release
from jobs.lab.machines.servers import Broker
from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.lab.waiting import wait_for
from reconstruct.model.znode_paths import BROKER_IDS_PATH, CONTROLLER_PATH, MIGRATION_PATH

#: What the active controller logs when it is the first that is not to write znodes any more (3.5 to 3.9).
_COMPLETED: Final = "Completing the ZK migration"


class MigratingCluster(ZooKeeperCluster):
    """Begins as one with ZooKeeper. Then, in this order: :meth:`start_controllers`, each broker
    :meth:`restart_to_migrate`, :meth:`wait_until_migrated`, each broker :meth:`restart_without_zookeeper`,
    :meth:`finish`."""

    def __init__(
        self,
        release: Release,
        folder: Path,
        broker_ids: Sequence[int] = (1, 2, 3),
        own_settings: Mapping[str, str] | None = None,
        state_change_level: str = "TRACE",
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        super().__init__(release, folder, broker_ids, own_settings, state_change_level, say)
        taken = {self.zookeeper.port, *(broker.port for broker in self.brokers.values())}
        count = len(broker_ids)
        ports = [port for port in free_ports(count + len(taken)) if port not in taken][:count]
        self._voters = {FIRST_CONTROLLER + number: port for number, port in enumerate(ports)}
        log4j = partial(settings.kraft_log4j, release, state_change_level=state_change_level)
        self.controllers = {
            node_id: Broker(
                self._launcher,
                node_id,
                self.folder / f"broker-{node_id}",
                port,
                lambda data, node_id=node_id: self._controller_text(node_id, data) + self._migrating,
                log4j,
            )
            for node_id, port in self._voters.items()
        }
        self.nodes = {**self.brokers, **self.controllers}
        self._without_zookeeper: set[int] = set()

    @property
    def _migrating(self) -> str:
        return settings.lines(
            {"zookeeper.metadata.migration.enable": "true", "zookeeper.connect": self.zookeeper.address}
        )

    def _controller_text(self, node_id: int, data: Path) -> str:
        port = self._voters[node_id]
        return settings.kraft_properties(node_id, ["controller"], port, port, self._voters, data, own=self._settings)

    def _end(self) -> None:
        if isinstance(self.admin, KraftAdmin):
            self.admin.close()
        super()._end()

    # --- the steps of a migration -----------------------------------------------------------------------------------

    def start_controllers(self) -> None:
        """They wait until every broker is one that migrates."""
        cluster_id = json.loads(self._znode("/cluster/id"))["id"]
        for controller in self.controllers.values():
            controller.format(cluster_id)
        self.start(*self.controllers)

    def restart_to_migrate(self, broker_id: int) -> None:
        """The broker keeps its ZooKeeper, and registers with the controllers too."""
        broker = self.brokers[broker_id]
        voters = settings.voters_text(self._voters)
        migrating = settings.lines({"controller.quorum.voters": voters, **settings.CONTROLLER_LISTENER})
        self._restart(broker_id, broker.properties.read_text(encoding="utf-8") + migrating + self._migrating)

    def wait_until_migrated(self) -> None:
        """Until a controller of the quorum has named itself in ZooKeeper, and has written there what it decided."""
        wait_for("a controller of the quorum has taken over", self._is_taken_over)
        self.events.note("taken_over", controller=json.loads(self._znode(CONTROLLER_PATH))["brokerid"])
        self.admin = _MigratedAdmin(self.bootstrap, self.client, self._without_zookeeper)

    def restart_without_zookeeper(self, broker_id: int) -> None:
        """The broker is one of the quorum's."""
        broker = self.brokers[broker_id]
        text = settings.kraft_properties(
            broker_id, ["broker"], broker.port, None, self._voters, broker.data, own=self._settings
        )
        self._without_zookeeper.add(broker_id)
        self._restart(broker_id, text)

    def finish(self) -> None:
        """The controllers are started without ZooKeeper, one after the other: the first that is active writes that the
        migration is over."""
        for node_id, controller in self.controllers.items():
            self._restart(node_id, self._controller_text(node_id, controller.data))
        assert isinstance(self.admin, KraftAdmin)
        self.admin.close()
        self.admin = KraftAdmin(self.bootstrap)
        self.wait_for_controller()
        wait_for("the migration is over", self._is_over)
        self.events.note("migration_over")

    def _restart(self, node_id: int, properties: str) -> None:
        self.stop(node_id)
        self.nodes[node_id].configure(properties)
        self.start(node_id)

    def _is_taken_over(self) -> bool:
        try:
            controller = json.loads(self._znode(CONTROLLER_PATH))
            written = json.loads(self._znode(MIGRATION_PATH))
        except NoNodeError:
            return False
        return bool(controller.get("kraftControllerEpoch", -1) >= 0 and written["kraft_metadata_offset"] >= 0)

    def _is_over(self) -> bool:
        logs = [controller.logs / "controller.log" for controller in self.controllers.values()]
        return any(_COMPLETED in log.read_text(encoding="utf-8", errors="replace") for log in logs)

    def _znode(self, path: str) -> bytes:
        data: bytes = self.client.retry(self.client.get, path)[0]
        return data


class _MigratedAdmin(KraftAdmin):
    """While brokers with ZooKeeper are left, of which none describes the quorum: a znode says who is active. They name
    dead brokers too; of those that have ZooKeeper its registrations tell."""

    def __init__(self, bootstrap: str, zookeeper: KazooClient, without_zookeeper: Collection[int]) -> None:
        super().__init__(bootstrap)
        self._zookeeper: Any = zookeeper
        self._without_zookeeper = without_zookeeper

    def live_brokers(self) -> Collection[int]:
        registered = {int(name) for name in self._zookeeper.retry(self._zookeeper.get_children, BROKER_IDS_PATH)}
        return {one for one in super().live_brokers() if one in registered or one in self._without_zookeeper}

    def controller(self) -> int | None:
        try:
            data, _ = self._zookeeper.retry(self._zookeeper.get, CONTROLLER_PATH)
        except NoNodeError:
            return None
        return int(json.loads(data)["brokerid"])
