"""A cluster with one ZooKeeper, in which its brokers elect their controller."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from jobs.lab.admin import ZooKeeperAdmin
from jobs.lab.machines import settings
from jobs.lab.machines.cluster import Cluster
from jobs.lab.machines.ports import free_ports
from jobs.lab.machines.releases import Release
from jobs.lab.machines.servers import Broker, ZooKeeper
from jobs.lab.waiting import PATIENCE_S

#: How long a server is given to shut down at the end, when nobody looks at it any more.
_LAST_CALL_S: Final = 20.0


class ZooKeeperCluster(Cluster):
    """A subclass adds to the plain cluster that scenarios play on: settings and Java options of the servers, and what
    is done before the first broker starts."""

    zookeeper_settings: Mapping[str, str] = {}
    zookeeper_options: Sequence[str] = ()
    broker_options: Sequence[str] = ()

    def __init__(
        self,
        release: Release,
        folder: Path,
        broker_ids: Sequence[int] = (1, 2, 3),
        own_settings: Mapping[str, str] | None = None,
        state_change_level: str = "TRACE",
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        super().__init__(release, folder, say)
        self._settings = own_settings or {}
        launcher = self._launcher
        zookeeper_port, *ports = free_ports(1 + len(broker_ids))
        self.zookeeper = ZooKeeper(
            launcher, self.folder / "zookeeper", zookeeper_port, self.zookeeper_settings, self.zookeeper_options
        )
        log4j = partial(settings.broker_log4j, release, state_change_level=state_change_level)
        self.nodes = self.brokers = {
            broker_id: Broker(
                launcher,
                broker_id,
                self.folder / f"broker-{broker_id}",
                port,
                partial(
                    settings.broker_properties,
                    release,
                    broker_id,
                    port,
                    zookeeper_port,
                    own=self.broker_settings(broker_id, port),
                ),
                log4j,
                self.broker_options,
            )
            for broker_id, port in zip(broker_ids, ports, strict=True)
        }
        logging.getLogger("kazoo").setLevel(logging.CRITICAL)
        retry = KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0, deadline=PATIENCE_S)
        self.client = KazooClient(
            hosts=self.zookeeper.address, timeout=9.0, connection_retry=retry, command_retry=retry
        )
        self.admin = ZooKeeperAdmin(self.client)

    def broker_settings(self, broker_id: int, port: int) -> Mapping[str, str]:
        """The settings of one broker, which win over those of every broker of the lab; ``port`` is its own."""
        return self._settings

    def prepare(self) -> None:
        """Called when ZooKeeper serves, before the first broker starts."""

    def _begin(self) -> None:
        self.zookeeper.start()
        self.client.start(timeout=PATIENCE_S)
        self.prepare()
        self.start(*self.brokers)

    def _end(self) -> None:
        with contextlib.suppress(Exception):
            self.client.stop()
            self.client.close()
        self.zookeeper.process.end(_LAST_CALL_S)

    def kill_zookeeper(self) -> None:
        """SIGKILL: nothing can be decided until it is started again."""
        self._say("killing ZooKeeper (SIGKILL)")
        self.events.note("signal", server="zookeeper", signal="SIGKILL")
        self.zookeeper.process.kill()

    def start_zookeeper(self) -> None:
        """Start it again, with what it had written; sessions go on."""
        self._say("starting ZooKeeper")
        self.events.note("start_zookeeper")
        self.zookeeper.start()
