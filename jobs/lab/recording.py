"""A capture that runs beside a scenario: the program's own ``capture``, in a thread."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Final

from ingest.capture import BrokerFiles, CaptureParams, CaptureSummary, run_capture
from jobs.lab.machines.cluster import Cluster
from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.lab.waiting import PATIENCE_S, NeverHappened, wait_for

INTERVAL_S: Final = 1.0
#: Every answer to Metadata gives such a line, by the broker asked.
_OF_CLUSTER: Final = re.compile(r'"broker":(\d+),"description":"cluster"')


class Recording:
    """Captures ``cluster`` into ``folder`` from entering to leaving the context."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.folder = folder
        self.summary: CaptureSummary | None = None
        self._is_kraft = cluster.release.is_kraft
        self._params = CaptureParams(
            out=str(folder),
            zookeeper=cluster.zookeeper.address if isinstance(cluster, ZooKeeperCluster) else None,
            bootstrap_servers=cluster.bootstrap,
            brokers=tuple(
                BrokerFiles(
                    broker.broker_id,
                    (str(broker.logs),),
                    tuple(map(str, broker.directories)),
                    (str(broker.properties),),
                )
                for broker in cluster.nodes.values()
            ),
            interval_s=INTERVAL_S,
            metadata_every=1 if self._is_kraft else CaptureParams.metadata_every,
            api_version=cluster.release.client_api,
            # Without a topic, brokers of 0.8 name no broker.
            waits=True,
        )
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lab-capture", daemon=True)

    def __enter__(self) -> Recording:
        self._thread.start()
        self.wait_for_rounds(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive() and error is None:
            raise NeverHappened(f"the capture was asked to end: it has not within {PATIENCE_S:.0f} s")
        if self._error is not None and error is None:
            raise self._error

    def wait_for_rounds(self, count: int) -> None:
        """Until so many more snapshots of the znodes are whole, or one broker has described the cluster so often: what
        was so before is then recorded."""
        before = self._rounds()

        def look() -> bool:
            now = self._rounds()
            return any(rounds >= before.get(of, 0) + count for of, rounds in now.items())

        wait_for(f"{count} more rounds are captured", look)

    def _rounds(self) -> dict[str, int]:
        if self._error is not None:
            raise self._error
        if not self._is_kraft:
            return {"znodes": sum(1 for _ in self.folder.glob("znodes/*.jsonl"))}
        file = self.folder / "descriptions.jsonl"
        return Counter(_OF_CLUSTER.findall(file.read_text(encoding="utf-8"))) if file.exists() else {}

    def _run(self) -> None:
        try:
            self.summary = run_capture(self._params, self._stop)
        except BaseException as error:
            self._error = error
