"""Boot a cluster, play a scenario on it, keep what it leaves behind, and end everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingest.capture import CaptureSummary
from jobs.lab.machines.cluster import Cluster
from jobs.lab.machines.releases import Release
from jobs.lab.recording import Recording
from jobs.lab.stage import Scenario, Stage


@dataclass(frozen=True)
class Played:
    """``capture`` is a folder of the captures' layout. ``truth`` holds ``zk-version-2``, ZooKeeper's own transaction
    logs and snapshots: what a reconstruction is measured against. Both hold ``events.jsonl``."""

    scenario: Scenario
    release: Release
    capture: Path
    truth: Path
    summary: CaptureSummary | None


def play(
    scenario: Scenario,
    release: Release,
    folder: Path,
    *,
    state_change_level: str = "TRACE",
    say: Callable[[str], None] = lambda sentence: None,
) -> Played:
    """Play ``scenario`` on a new cluster below ``folder``, which is to be empty or not there.

    The cluster's own files stay in ``folder/cluster`` where anything fails, and go where nothing does. Whatever
    happens, no process is left.

    :raises NeverHappened: where the cluster does not do what the scenario waits for.
    """
    capture, truth, files = folder / scenario.file_name(release), folder / "truth", folder / "cluster"
    say(f"starting ZooKeeper and {len(scenario.broker_ids)} brokers of Kafka {release.version}")
    cluster = Cluster(release, files, scenario.broker_ids, scenario.settings, state_change_level, say)
    with cluster:
        cluster.events.note(
            "scenario", name=scenario.name, kafka_version=release.version, state_change_level=state_change_level
        )
        with Recording(cluster, capture) as recording:
            scenario.play(Stage(cluster, recording, say))
            recording.wait_for_rounds(2)
        say("ending the cluster")
    if scenario.keeps_logs:
        _keep_logs(cluster, capture)
    truth.mkdir(parents=True)
    shutil.copytree(cluster.zookeeper.transactions, truth / "zk-version-2")
    for place in (capture, truth):
        shutil.copy(cluster.events.file, place / "events.jsonl")
    shutil.rmtree(files)
    return Played(scenario, release, capture, truth, recording.summary)


def _keep_logs(cluster: Cluster, capture: Path) -> None:
    """Copy each partition's directory, as the ended brokers left it."""
    for broker in cluster.brokers.values():
        for directory in sorted(broker.data.glob("*-[0-9]*")):
            shutil.copytree(directory, capture / f"broker-{broker.broker_id}" / "data" / directory.name)
